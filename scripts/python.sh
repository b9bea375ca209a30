#!/usr/bin/env bash
# Builds the Python package into a virtual environment of its own, and tests it there: pytest,
# mypy --strict, and stubtest for the stubs of the native module.
#
#   scripts/python.sh [PYTEST-ARGUMENT…]
#
# PYTHON names another interpreter than python3, and HOLDFAST the program that mounts a volume for
# some of the tests; without one they are skipped. Needs Python 3.11 or later with venv, and the
# network for PyPI; without them it says so and ends with 77.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
export HOLDFAST=${HOLDFAST:-$CARGO_TARGET_DIR/debug/holdfast}
target=$CARGO_TARGET_DIR/python
venv=$target/venv

skip() {
    echo "skipped: $1"
    exit 77
}

"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    skip "no $python of version 3.11 or later with venv (Debian: python3-venv)"
mkdir -p "$target"
log=$target/install.log
# A venv of another interpreter is made anew.
if ! "$venv/bin/python" -c "import sys; sys.exit(sys.version != '''$("$python" -c 'import sys; print(sys.version)')''')" 2>/dev/null; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check -r python/tests/requirements.txt \
    >"$log" 2>&1 || {
    cat "$log"
    skip "pip cannot install python/tests/requirements.txt"
}

rm -rf "$target/wheels"
"$venv/bin/maturin" build --quiet --manifest-path python/Cargo.toml --out "$target/wheels"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
    "$target"/wheels/*.whl

# check NAME COMMAND…: one more test, that a command succeeds.
failed=0
check() {
    local name=$1
    shift
    if "$@"; then
        echo "test result: $name, 1 passed; 0 failed"
    else
        echo "test result: $name, 0 passed; 1 failed"
        failed=1
    fi
}

# From another folder, so that the installed package is tested, and not the sources.
tests=$PWD/python/tests
config=$PWD/python/pyproject.toml
cd "$target"
code=0
"$venv/bin/python" -m pytest -c "$config" --rootdir "$tests" -p no:cacheprovider \
    --junit-xml "$target/result.xml" "$tests" "$@" || code=$?
"$venv/bin/python" - "$target/result.xml" <<'EOF'
import sys, xml.etree.ElementTree

suite = xml.etree.ElementTree.parse(sys.argv[1]).getroot().find("testsuite")
count = {name: int(suite.get(name)) for name in ("tests", "errors", "failures", "skipped")}
failed = count["errors"] + count["failures"]
for case in suite.iter("testcase"):
    for skipped in case.iter("skipped"):
        print(f"skipped: {case.get('name')}: {skipped.get('message')}")
print(f"test result: pytest, {count['tests'] - failed} passed; {failed} failed")
EOF
[ "$code" = 0 ] || failed=1
check mypy "$venv/bin/python" -m mypy --config-file "$config" --package holdfast
check mypy-tests "$venv/bin/python" -m mypy --config-file "$config" "$tests"
# Not `holdfast.spec`: its stub would be that of fsspec, which has none.
check stubtest "$venv/bin/python" -m mypy.stubtest --mypy-config-file "$config" \
    holdfast._daemon holdfast._errors holdfast._file holdfast._holdfast holdfast._mount \
    holdfast._volume holdfast.torch
exit "$failed"
