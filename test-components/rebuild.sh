#!/usr/bin/env bash
# Compiles the test components that are checked in as binaries, and records in manifest.json what they are made of.
# Tests never run this: a test only compares the manifest with the files.
#
#   rebuild.sh [NAME…]      all by default; the others keep their bytes, which depend on the toolchain
#
# Rust needs its targets wasm32-wasip2 and wasm32-wasip1; see ../scripts/rust-guests.sh. wit-bindgen's C generator and
# zig, which is the C compiler, are fetched into the cache.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../scripts/rust-guests.sh"
cache=$rebuild_cache
wit_bindgen_version=0.63.0
wasip3_version=0.9.0
zig_version=0.17.0
mkdir -p "$cache"

rust_names=$(cd "$here" && dirname ./*/Cargo.toml | xargs -n 1 basename)
c_names=$(cd "$here" && dirname ./*/*.c | xargs -n 1 basename)
names=${*:-$rust_names $c_names}

helper() { cargo run --quiet --manifest-path "$here/../Cargo.toml" -p test-guests --bin "$1" -- "${@:2}"; }

zig_cc() {
    local venv=$cache/zig-$zig_version
    [ -d "$venv" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "ziglang==$zig_version"
    "$venv/bin/python" -m ziglang cc -target wasm32-wasi -Os -s -Wall -Wextra "$@"
}

build_kitchen_c() {
    local name=kitchen-c world=cook bindings=$cache/kitchen-c
    [ -x "$cache/bin/wit-bindgen" ] ||
        cargo install --quiet --locked --root "$cache" --no-default-features --features c \
            "wit-bindgen-cli@$wit_bindgen_version"
    "$cache/bin/wit-bindgen" c "$here/$name/wit" --world "$world" --out-dir "$bindings" >/dev/null
    zig_cc -mexec-model=reactor -I"$bindings" -o "$bindings/core.wasm" \
        "$here/$name"/*.c "$bindings/$world.c" "$bindings/${world}_component_type.o"
    helper componentize "$bindings/core.wasm" "$here/$name/$name.wasm"
    check_paths "$here/$name/$name.wasm"
    helper update-manifest "$name" "zig $zig_version" "wit-bindgen $wit_bindgen_version"
}

# keep FROM NAME FILE: puts what was built where it is checked in.
keep() {
    check_paths "$1"
    install -m 644 "$1" "$here/$2/$3"
}

# A program in C is a core module; one of them is there as a component too.
build_c_program() {
    local name=$1 core=$cache/$1/core.wasm tools=("zig $zig_version")
    mkdir -p "$cache/$name"
    zig_cc -o "$core" "$here/$name"/*.c
    if [ "$name" = cli-getopt ]; then
        keep "$core" "$name" "$name-module.wasm"
        helper componentize --program "$core" "$cache/$name/component.wasm"
        core=$cache/$name/component.wasm
        tools+=("the command adapter of wasmtime's release in Cargo.lock")
    fi
    keep "$core" "$name" "$name.wasm"
    helper update-manifest "$name" "${tools[@]}"
}

built=
build_rust() {
    local name=$1 file=${1//-/_}.wasm module=wasm32-wasip1 tools=("wit-bindgen $wit_bindgen_version")
    # All at once, so that a component has the same bytes whichever others are asked for.
    [ -n "$built" ] || build_rust_guests "$here" "$cache/target"
    built=yes
    # The crate with the bindings of WASI 0.3 has its own generator for further ones.
    [ "$name" != http-client-p3 ] || tools=("wasip3 $wasip3_version")
    if [ "$name" = cli-clap ]; then
        # Cargo leaves the hyphens in the name of a program, and it needs no bindings.
        file=$name.wasm
        tools=()
        build_rust_guests "$here" "$cache/target" $module -p "$name"
        keep "$cache/target/$module/release/$file" "$name" "$name-module.wasm"
    fi
    keep "$cache/target/$rust_target/release/$file" "$name" "$name.wasm"
    helper update-manifest "$name" "$(rustc --version)" "std by $rust_std" "${tools[@]}"
}

for name in $names; do
    case $name in
        kitchen-c) build_kitchen_c ;;
        *) if [ -f "$here/$name/Cargo.toml" ]; then build_rust "$name"; else build_c_program "$name"; fi ;;
    esac
done
