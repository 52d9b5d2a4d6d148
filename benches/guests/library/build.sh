#!/usr/bin/env bash
# build.sh FILE: compiles this component, which is not checked in because of its size. A build is kept in the cache.
#
# Needs Rust's wasm32-wasip2 target; see ../../../scripts/rust-guests.sh.
set -euo pipefail

out=$(realpath -m "${1:?usage: build.sh FILE}")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../scripts/rust-guests.sh"

build_rust_guests "$here" "$rebuild_cache/library"
cp "$rebuild_cache/library/$rust_target/release/library.wasm" "$out"
