#!/usr/bin/env bash
# Small programs, each after a report about some file system, on a volume, on `mem:` and on tmpfs: what each met.
#
#   scripts/surprises.sh [--transport auto|uring|dev]
#
# Prints a table; exits 0 only if a volume and `mem:` do as is right in all of them. Needs root and python3.
set -euo pipefail
source "$(dirname "$0")/session.sh"
trap cleanup EXIT
transport=auto
case "${1:-}" in
    "") ;;
    --transport) transport=${2:?--transport needs a name} ;;
    *) die "unknown argument $1" ;;
esac
[ "$(id -u)" = 0 ] || unfit "needs root"
[ -e /dev/fuse ] || unfit "needs /dev/fuse"
command -v python3 >/dev/null || unfit "needs python3"
[ -x "$HOLDFAST" ] || (cd "$ROOT" && cargo build --release --quiet)

for name in volume mem tmpfs; do
    mkdir "$WORK/$name"
    MOUNTS+=("$WORK/$name")
done
"$HOLDFAST" mkfs --quiet --size 512m "$WORK/image.hf"
"$HOLDFAST" mount -o "transport=$transport" "$WORK/image.hf" "$WORK/volume"
"$HOLDFAST" mount -o "transport=$transport,size=512m" mem: "$WORK/mem"
mount -t tmpfs -o size=512m tmpfs "$WORK/tmpfs"
python3 "$ROOT/scripts/surprises.py" "$WORK/volume" "$WORK/mem" "$WORK/tmpfs"
