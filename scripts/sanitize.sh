#!/usr/bin/env bash
# Runs the tests of the crates with unsafe code or threads, then the stress test, under a sanitizer.
# The front ends above them have neither. The models of interleavings are left out: they run one
# thread at a time, and take hours here.
#
# Prints first what it covers, and at the end each kind of report with its count. Exits with 0 only
# if there was no report and no test failed.
set -euo pipefail

usage() {
    echo "usage: scripts/sanitize.sh thread|address [SECONDS]" >&2
    echo "SECONDS: how long the stress test takes, over memory and two stores; 60 if not said, none if 0" >&2
    exit 2
}

cd "$(dirname "$0")/.."
kind=${1:-}
seconds=${2:-60}
[[ $seconds =~ ^[0-9]+$ ]] || usage
case $kind in
thread)
    flags="-Zsanitizer=thread -C unsafe-allow-abi-mismatch=sanitizer"
    covers="races in memory that Holdfast's own code reads and writes, as far as threads overlap here.
Not covered: what only the standard library orders or touches, which is not instrumented. Those reports are suppressed by
place (scripts/thread-sanitizer.suppressions), races inside drops of an Arc with them."
    ;;
address)
    flags="-Zsanitizer=address"
    covers="use after free, double free, and accesses outside of what was allocated.
Not covered: leaks. Pointers carry marks in their high bits, which the sanitizer does not follow, so that it takes what they lead
to for lost; the tests of lifetimes and of limits of memory count what comes back."
    ;;
*) usage ;;
esac
echo "sanitize: the $kind sanitizer: $covers"

target=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" PROPTEST_CASES=16
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/safety-$kind"
export TSAN_OPTIONS="suppressions=$PWD/scripts/thread-sanitizer.suppressions"
export ASAN_OPTIONS="detect_leaks=0"

packages=()
tests=(--lib)
for crate in sync dirindex cache core; do
    packages+=(-p "holdfast-$crate")
    for path in "crates/$crate"/tests/*; do
        name=$(basename "$path" .rs)
        if [[ $path == *.rs || -e $path/main.rs ]] && [[ $name != *_model ]]; then
            tests+=(--test "$name")
        fi
    done
done

mkdir -p "$CARGO_TARGET_DIR"
said="$CARGO_TARGET_DIR/said"
: >"$said"
failed=0
run() {
    "$@" 2>&1 | tee -a "$said" || failed=1
}
run cargo test --target "$target" --no-fail-fast "${packages[@]}" "${tests[@]}"
# The other tests of the volume go over whole images, which takes hours here: its units, and the
# stress test, have its unsafe parts.
run cargo test --target "$target" --no-fail-fast -p holdfast-fs-volume --lib
if ((seconds > 0)); then
    cargo build --target "$target" -p holdfast-testkit --no-default-features --bin stress
    for store in memory model volume; do
        run "$CARGO_TARGET_DIR/$target/debug/stress" --seconds "$seconds" --threads 8 --store "$store"
    done
fi
# Also the reports of a process if its exit code was ignored.
reports=$(grep -a '^SUMMARY: [A-Za-z]*Sanitizer' "$said" | sort | uniq -c | sort -rn || true)
if [[ -n $reports ]]; then
    failed=1
    printf 'sanitize: reports, by place:\n%s\n' "$reports" >&2
fi
if ((failed)); then
    echo "sanitize: the $kind sanitizer, or a test under it, has found something: $said" >&2
else
    echo "sanitize: no report"
fi
exit "$failed"
