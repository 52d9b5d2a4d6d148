#!/usr/bin/env bash
# Compiles this example and puts the docs of its WIT into the component: notes.wasm, which is checked in.
#
# Needs Rust's wasm32-wasip2 target; see ../../scripts/rust-guests.sh. HOST names the `host` binary that embeds the docs;
# without it, this repository's is built and run.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/scripts/rust-guests.sh"

build_rust_guests "$here" "$rebuild_cache/notes"
built=$rebuild_cache/notes/$rust_target/release/notes.wasm
check_paths "$built"

host=(cargo run --quiet --release --manifest-path "$root/Cargo.toml" --)
[ -z "${HOST:-}" ] || host=("$HOST")
cd "$here"
"${host[@]}" embed-docs "$built" --wit wit -o notes.wasm
