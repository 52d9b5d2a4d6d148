# shellcheck shell=bash
# Sourced by what compiles Rust to components: test-components/rebuild.sh and the examples.
#
# Rust needs its target: `rustup target add wasm32-wasip2`. Where that is no choice, RUST_WASM_TOOLCHAIN names a
# script that is called with a directory and the target, and leaves a toolchain in DIRECTORY/toolchain; one that an earlier run
# left in the cache is used again.

rust_target=wasm32-wasip2
rebuild_cache=${XDG_CACHE_HOME:-$HOME/.cache}/host/rebuild

# build_rust_guests FOLDER TARGET_DIR [TARGET [OPTION…]]: compiles the Cargo project in FOLDER, for wasm32-wasip2 by default, with
# further options of `cargo build`. Where the standard library came from is in `rust_std`.
build_rust_guests() {
    local folder=$1 target_dir=$2 target=${3:-$rust_target} options=("${@:4}")
    local path=$PATH toolchain=$rebuild_cache/rust flags source
    rust_std=rustup
    if [ ! -d "$(rustc --print target-libdir --target "$target")" ]; then
        if [ ! -d "$toolchain/toolchain/lib/rustlib/$target" ]; then
            if [ -z "${RUST_WASM_TOOLCHAIN:-}" ]; then
                echo "error: this Rust has no $target" >&2
                echo "hint: rustup target add $target, or on Debian RUST_WASM_TOOLCHAIN=test-components/rust-wasm-from-debian.sh" >&2
                return 1
            fi
            "$RUST_WASM_TOOLCHAIN" "$toolchain" "$target"
        fi
        path=$toolchain/toolchain/bin:$PATH
        rust_std=rust-wasm-from-debian.sh
    fi
    PATH=$path cargo fetch --quiet --locked --manifest-path "$folder/Cargo.toml"
    # Build paths must not end up in the messages of panics.
    flags=--remap-path-prefix=$folder=/guest
    for source in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        flags+=$'\x1f'--remap-path-prefix=$source=/crates
    done
    PATH=$path CARGO_ENCODED_RUSTFLAGS=$flags cargo build --quiet --release --locked --target "$target" \
        --manifest-path "$folder/Cargo.toml" --target-dir "$target_dir" "${options[@]}"
}

# check_paths COMPONENT: fails if a path of this machine is in it.
check_paths() {
    if grep -aqF -e "$HOME/" -e "$PWD/" "$1"; then
        echo "error: $1 contains a path of this machine" >&2
        return 1
    fi
}
