#!/usr/bin/env bash
# Runs the tests of the crates where unsafe code lives or threads meet, then the stress test, under a
# sanitizer: the front ends above them hold neither. The models of interleavings are left out: they
# run one thread at a time, and take hours here.
set -euo pipefail

usage() {
    echo "usage: scripts/sanitize.sh thread|address [SECONDS]" >&2
    echo "SECONDS: how long the stress test takes, over memory and two stores; 60 if not said" >&2
    exit 2
}

cd "$(dirname "$0")/.."
kind=${1:-}
seconds=${2:-60}
case $kind in
thread) flags="-Zsanitizer=thread -C unsafe-allow-abi-mismatch=sanitizer" ;;
address) flags="-Zsanitizer=address" ;;
*) usage ;;
esac
[[ $seconds =~ ^[0-9]+$ ]] || usage

target=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" PROPTEST_CASES=16
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/safety-$kind"
export TSAN_OPTIONS="suppressions=$PWD/scripts/thread-sanitizer.suppressions"

packages=()
tests=(--lib)
for crate in sync cache core; do
    packages+=(-p "holdfast-$crate")
    for path in "crates/$crate"/tests/*; do
        name=$(basename "$path" .rs)
        if [[ $path == *.rs || -e $path/main.rs ]] && [[ $name != *_model ]]; then
            tests+=(--test "$name")
        fi
    done
done

failed=0
cargo test --target "$target" --no-fail-fast "${packages[@]}" "${tests[@]}" || failed=1
cargo build --target "$target" -p holdfast-testkit --no-default-features --bin stress
for store in memory model volume; do
    "$CARGO_TARGET_DIR/$target/debug/stress" --seconds "$seconds" --threads 8 \
        --store "$store" || failed=1
done
if ((failed)); then
    echo "sanitize: the $kind sanitizer, or a test under it, has found something" >&2
fi
exit "$failed"
