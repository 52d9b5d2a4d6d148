#!/usr/bin/env bash
# A Rust toolchain with a WebAssembly target, for machines that have Debian's packages but not rustup's server.
# Elsewhere `rustup target add wasm32-wasip2` does the same in a second.
#
#   rust-wasm-from-debian.sh DIR [TARGET]      TARGET: wasm32-wasip2 (default) or wasm32-wasip1
#
# leaves a copy of the active toolchain in DIR/toolchain, with the target's standard library added: compiled from
# Debian's rust-src, which must be of the very version of rustc, and linked with Debian's wasi-libc. Takes about a
# minute and 0.7 GB. Packages are only unpacked below DIR, never installed.
set -euo pipefail

mkdir -p "$1"
work=$(cd "$1" && pwd)
target=${2:-wasm32-wasip2}
version=$(rustc --version | cut -d' ' -f2)
toolchain=$work/toolchain

# A private view of apt with the newer suites, so that the system's own sources stay as they are.
mkdir -p "$work"/apt/lists/partial "$work"/apt/cache/archives/partial "$work"/packages
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
for suite in bookworm-backports trixie-backports forky sid; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] $mirror $suite main"
done >"$work/apt/sources.list"
apt=(-o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/apt/lists"
    -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
apt-get "${apt[@]}" update -qq

versions() { apt-cache "${apt[@]}" madison "$1" | awk '{print $3}'; }
source=$(versions rust-src | grep -m 1 "^$version" || true)
if [ -z "$source" ]; then
    echo "error: Debian has no rust-src $version, only: $(versions rust-src | xargs)" >&2
    exit 1
fi
# Backports of Debian 13 have the first wasi-libc with a wasip2 directory; a libc of another target links, then traps.
libc=$(versions wasi-libc | grep -m 1 bpo13 || versions wasi-libc | head -n 1)
(
    cd "$work/packages"
    apt-get "${apt[@]}" download -qq "rust-src=$source" "wasi-libc=$libc"
    for package in *.deb; do dpkg -x "$package" "$work/unpacked"; done
)

sysroot=$(rustc --print sysroot)
mkdir -p "$toolchain"
cp -r --reflink=auto "$sysroot"/bin "$sysroot"/lib "$sysroot"/libexec "$toolchain"/

# Cargo compiles the standard library as a dependency of an empty crate. The two variables are for cargo's own use: one
# unlocks -Z, the other says where the library's sources are.
library=$work/unpacked/usr/src/rustc-$version/library
stub=$work/stub
mkdir -p "$stub/src"
: >"$stub/src/lib.rs"
printf '[package]\nname = "stub"\nedition = "2024"\n[profile.release]\ndebug = 0\n[workspace]\n' >"$stub/Cargo.toml"
(
    cd "$stub"
    RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$library \
        RUSTFLAGS="-Cembed-bitcode=yes -Zforce-unstable-if-unmarked --remap-path-prefix=$library=/rustc/library" \
        cargo build --release --target "$target" -Zbuild-std=std,panic_abort --target-dir "$stub/target"
)

libraries=$toolchain/lib/rustlib/$target/lib
rm -rf "$libraries"
mkdir -p "$libraries/self-contained"
rm -f "$stub/target/$target"/release/deps/libstub-*.rlib
cp "$stub/target/$target"/release/deps/lib*.rlib "$libraries"/
case $target in
    wasm32-wasip1) objects=$work/unpacked/usr/lib/wasm32-wasi ;;
    *) objects=$work/unpacked/usr/lib/$target ;;
esac
cp "$objects"/crt1-command.o "$objects"/crt1-reactor.o "$objects"/libc.a "$libraries/self-contained"/
