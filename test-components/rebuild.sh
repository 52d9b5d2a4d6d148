#!/usr/bin/env bash
# Compiles the test components that are checked in as binaries, and records in manifest.json what they are made of.
# Tests never run this: a test only compares the manifest with the files.
#
#   rebuild.sh [NAME…]      all by default; the others keep their bytes, which depend on the toolchain
#
# Rust needs its wasm32-wasip2 target; see ../scripts/rust-guests.sh. wit-bindgen's C generator and zig, which is the C
# compiler, are fetched into the cache.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../scripts/rust-guests.sh"
cache=$rebuild_cache
wit_bindgen_version=0.63.0
zig_version=0.17.0
mkdir -p "$cache"

rust_names=$(cd "$here" && dirname ./*/Cargo.toml | xargs -n 1 basename)
names=${*:-$rust_names kitchen-c}

helper() { cargo run --quiet --manifest-path "$here/../Cargo.toml" -p test-guests --bin "$@"; }

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
    # All at once, so that a component has the same bytes whichever others are asked for.
    [ -n "$built" ] || build_rust_guests "$here" "$cache/target"
    built=yes
    cp "$cache/target/$rust_target/release/${name//-/_}.wasm" "$here/$name/$name.wasm"
    check_paths "$here/$name/$name.wasm"
    helper update-manifest "$name" "$(rustc --version)" "std by $rust_std" "wit-bindgen $wit_bindgen_version"
done
