#!/usr/bin/env bash
# Checks that the program and the library build with the oldest Rust that Cargo.toml promises
# (`rust-version`). rust-toolchain.toml says what developers use, which is newer.
#
#   scripts/msrv.sh
#
# Needs rustup, and the network where that toolchain is not installed yet. Exit code 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^rust-version = "(.+)"$/\1/p' Cargo.toml)
[ -n "$version" ] || { echo "Cargo.toml has no rust-version" >&2; exit 1; }
command -v rustup >/dev/null || { echo "skipped: msrv: no rustup"; exit 77; }
if ! rustup run "$version" rustc --version 2>/dev/null; then
    rustup toolchain install "$version" --profile minimal ||
        { echo "skipped: msrv: Rust $version cannot be installed"; exit 77; }
fi
# A folder of its own: cargo would build all anew at each change of the compiler.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv
# Lint levels are for the newest compiler: an old one has warnings that are not mended.
RUSTFLAGS="--cap-lints warn" cargo "+$version" check --locked -p holdfast-cli -p holdfast-fs
echo "holdfast-cli and holdfast-fs build with Rust $version"
