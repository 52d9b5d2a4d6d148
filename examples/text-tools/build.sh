#!/usr/bin/env bash
# Compiles this example and puts the docs of its WIT into the component: text-tools.wasm, which is checked in.
#
# Needs Rust's wasm32-wasip2 target: `rustup target add wasm32-wasip2`. Where that is no choice, RUST_WASM_TOOLCHAIN names a
# script that makes a toolchain, as for ../../test-components/rebuild.sh, whose toolchain is used if it is there already.
# HOST names the `host` binary that embeds the docs; without it, this repository's is built and run.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/host/rebuild
target=wasm32-wasip2

path=$PATH
if [ ! -d "$(rustc --print target-libdir --target $target)" ]; then
    if [ ! -x "$cache/rust/toolchain/bin/cargo" ]; then
        if [ -z "${RUST_WASM_TOOLCHAIN:-}" ]; then
            echo "error: this Rust has no $target" >&2
            echo "hint: rustup target add $target, or on Debian RUST_WASM_TOOLCHAIN=$root/test-components/rust-wasm-from-debian.sh" >&2
            exit 1
        fi
        "$RUST_WASM_TOOLCHAIN" "$cache/rust" $target
    fi
    path=$cache/rust/toolchain/bin:$PATH
fi

# Build paths must not end up in the component.
PATH=$path cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml"
flags=--remap-path-prefix=$here=/text-tools
for source in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
    flags+=$'\x1f'--remap-path-prefix=$source=/crates
done
PATH=$path CARGO_ENCODED_RUSTFLAGS=$flags cargo build --quiet --release --locked --target $target \
    --manifest-path "$here/Cargo.toml" --target-dir "$cache/text-tools"
built=$cache/text-tools/$target/release/text_tools.wasm
if grep -aqF -e "$HOME" -e "$root" "$built"; then
    echo "error: the component contains a path of this machine" >&2
    exit 1
fi

host=(cargo run --quiet --release --manifest-path "$root/Cargo.toml" --)
[ -z "${HOST:-}" ] || host=("$HOST")
cd "$here"
"${host[@]}" embed-docs "$built" --wit wit -o text-tools.wasm
