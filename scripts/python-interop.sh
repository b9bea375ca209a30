#!/usr/bin/env bash
# Writes, reads and compares by libraries over the Python package: pyarrow, pandas, polars, DuckDB,
# zarr, dask and xarray. Prints their versions. They are some hundred megabytes, so this is no part
# of continuous integration.
#
#   scripts/python-interop.sh [PYTEST-ARGUMENT…]
#
# PYTHON names another interpreter than python3. HOLDFAST_TORCH=1 installs torch too, which takes
# several gigabytes, for its DataLoader; HOLDFAST names the program that mounts a volume for it.
# Needs Python 3.11 or later with venv, and the network for PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
target=$CARGO_TARGET_DIR/python
venv=$target/interop
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r python/interop/requirements.txt
[ -z "${HOLDFAST_TORCH:-}" ] || "$venv/bin/pip" install --quiet --disable-pip-version-check torch
export HOLDFAST=${HOLDFAST:-$CARGO_TARGET_DIR/debug/holdfast}
rm -rf "$target/wheels"
"$venv/bin/maturin" build --quiet --manifest-path python/Cargo.toml --out "$target/wheels"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
    "$target"/wheels/*.whl

"$venv/bin/python" --version
"$venv/bin/pip" list --disable-pip-version-check --format=freeze | grep -iE \
    "^($(sed -E 's/[^a-z].*//' python/interop/requirements.txt | paste -sd '|')|torch)="
tests=$PWD/python/interop
cd "$target"
"$venv/bin/python" -m pytest -q -p no:cacheprovider --rootdir "$tests" "$tests/libraries.py" \
    "$tests/loaders.py" "$@"
