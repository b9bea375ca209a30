#!/usr/bin/env bash
# Small checks, each after a report about some file system: calls, archives, options, the command,
# directories of the host that others change.
#
#   scripts/surprises.sh [--transport auto|uring|dev] [PART-OF-A-NAME…]
#
# Each check runs where it applies: on a volume, on `mem:`, on a mounted directory of the host, and
# on tmpfs, which is the reference. Prints a line a check, in about a minute. Exit code 0: Holdfast
# is right in all of them. Needs root and python3; a check that needs more (fusermount3, setpriv,
# chattr, overlayfs) is skipped without it.
#
# Two things are checked elsewhere: a write beside a cold read by the tests `slow_device` of
# crates/testkit, and that a scan of all inodes leaves the caches as they were by
# crates/volume/tests/it/scans.rs.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"
transport=auto
if [ "${1:-}" = --transport ]; then
    transport=${2:?--transport needs a name}
    shift 2
fi
need_mount
command -v python3 >/dev/null || unfit "needs python3"

for name in volume mem host tmpfs; do
    mkdir "$WORK/$name"
done
mkdir "$WORK/below"
for name in below tmpfs; do
    TMPFS+=("$WORK/$name")
    mount -t tmpfs -o size=256m holdfast-test "$WORK/$name"
done
mkdir "$WORK/below/dir"
MOUNTS+=("$WORK/volume" "$WORK/mem" "$WORK/host")
"$HOLDFAST" mkfs --quiet --size 256m "$WORK/image.hf"
"$HOLDFAST" mount -o "transport=$transport" "$WORK/image.hf" "$WORK/volume"
"$HOLDFAST" mount -o "transport=$transport,size=256m" mem: "$WORK/mem"
"$HOLDFAST" mount -o "transport=$transport" "dir:$WORK/below/dir" "$WORK/host"
check_transport "$WORK/mem" "$transport"
export HOLDFAST PYTHONDONTWRITEBYTECODE=1
python3 "$ROOT/scripts/surprises" "$WORK" "$transport" "$@"
"$HOLDFAST" umount "$WORK/volume"
sound "$WORK/image.hf"
