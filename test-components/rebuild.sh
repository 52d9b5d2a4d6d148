#!/usr/bin/env bash
# Compiles the test components that are checked in as binaries, and records in manifest.json what they are made of.
# Tests never run this: a test only compares the manifest with the files.
#
#   rebuild.sh [NAME…]      all by default; the others keep their bytes, which depend on the toolchain
#
# Rust needs its wasm32-wasip2 target: `rustup target add wasm32-wasip2`. Where that is no choice, RUST_WASM_TOOLCHAIN
# names a script that is called with a directory and the target, and leaves a toolchain in DIRECTORY/toolchain.
# wit-bindgen's C generator and zig, which is the C compiler, are fetched into the cache.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/host/rebuild
target=wasm32-wasip2
wit_bindgen_version=0.63.0
zig_version=0.17.0
mkdir -p "$cache"

rust_names=$(cd "$here" && dirname ./*/Cargo.toml | xargs -n 1 basename)
names=${*:-$rust_names kitchen-c}

helper() { cargo run --quiet --manifest-path "$here/../Cargo.toml" -p test-guests --bin "$@"; }

# Build paths must not end up in the messages of panics.
check_paths() {
    if grep -aqE "$HOME|$here" "$1"; then
        echo "error: $1 contains a path of this machine" >&2
        exit 1
    fi
}

build_rust() {
    local path=$PATH std=rustup flags source
    if [ ! -d "$(rustc --print target-libdir --target $target)" ]; then
        if [ -z "${RUST_WASM_TOOLCHAIN:-}" ]; then
            echo "error: this Rust has no $target" >&2
            echo "hint: rustup target add $target, or on Debian RUST_WASM_TOOLCHAIN=$here/rust-wasm-from-debian.sh" >&2
            exit 1
        fi
        [ -x "$cache/rust/toolchain/bin/cargo" ] || "$RUST_WASM_TOOLCHAIN" "$cache/rust" $target
        path=$cache/rust/toolchain/bin:$PATH
        std=$(basename "$RUST_WASM_TOOLCHAIN")
    fi
    PATH=$path cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml"
    flags=--remap-path-prefix=$here=/test-components
    for source in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        flags+=$'\x1f'--remap-path-prefix=$source=/crates
    done
    # All at once, so that a component has the same bytes whichever others are asked for.
    PATH=$path CARGO_ENCODED_RUSTFLAGS=$flags cargo build --quiet --release --locked --target $target \
        --manifest-path "$here/Cargo.toml" --target-dir "$cache/target"
    rust_tools=("$(rustc --version)" "std by $std" "wit-bindgen $wit_bindgen_version")
}

build_c() {
    local name=$1 world=$2 bindings=$cache/$1
    [ -x "$cache/bin/wit-bindgen" ] ||
        cargo install --quiet --locked --root "$cache" --no-default-features --features c \
            "wit-bindgen-cli@$wit_bindgen_version"
    [ -d "$cache/zig-$zig_version" ] || python3 -m venv "$cache/zig-$zig_version"
    "$cache/zig-$zig_version/bin/pip" install --quiet "ziglang==$zig_version"
    "$cache/bin/wit-bindgen" c "$here/$name/wit" --world "$world" --out-dir "$bindings" >/dev/null
    "$cache/zig-$zig_version/bin/python" -m ziglang cc -target wasm32-wasi -mexec-model=reactor -Os -s -Wall -Wextra \
        -I"$bindings" -o "$bindings/core.wasm" "$here/$name"/*.c "$bindings/$world.c" "$bindings/${world}_component_type.o"
    helper componentize "$bindings/core.wasm" "$here/$name/$name.wasm"
    check_paths "$here/$name/$name.wasm"
    helper update-manifest "$name" "zig $zig_version" "wit-bindgen $wit_bindgen_version"
}

built=
for name in $names; do
    if [ "$name" = kitchen-c ]; then
        build_c kitchen-c cook
        continue
    fi
    [ -n "$built" ] || build_rust
    built=yes
    cp "$cache/target/$target/release/${name//-/_}.wasm" "$here/$name/$name.wasm"
    check_paths "$here/$name/$name.wasm"
    helper update-manifest "$name" "${rust_tools[@]}"
done
