#!/usr/bin/env bash
# Changes by others in a mounted directory of the host are visible through the mount in time.
#
#   scripts/coherence.sh [--quick] [--transport uring|dev] [--changes N] [--seed S]
#
# A driver (`coherence`, of holdfast-testkit) changes files, symbolic links, directories and pipes
# below the mount, beside readers in it. Each state of a name has its own version, so that each
# result of a read has an age. The driver runs for each transport, with `-o told` and `-o valid=1`:
# 1,000,000 changes in all, with --quick 16,000. It prints its counts. Exit code 1: a result was
# older than promised or of another file, or a name or open file that is there gave an error.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

changes=250000 transports="uring dev" seed=1 limit=2000
while [ $# -gt 0 ]; do
    case $1 in
    --quick) changes=4000; shift ;;
    --transport) transports=${2:?--transport needs a name}; shift 2 ;;
    --changes) changes=${2:?--changes needs a number}; shift 2 ;;
    --seed) seed=${2:?--seed needs a number}; shift 2 ;;
    *) die "unknown argument $1" ;;
    esac
done

need_mount
COHERENCE=${COHERENCE:-$(dirname "$HOLDFAST")/coherence}
[ -x "$COHERENCE" ] || die "no binary at $COHERENCE: run cargo build --release -p holdfast-testkit, or set COHERENCE"
place=$WORK/mnt
mkdir "$place"
MOUNTS+=("$place")
failed=0

daemon_gone() { process_gone "$daemon"; }

# one TRANSPORT OPTIONS: changes a directory that is mounted so.
one() {
    rm -rf "$WORK/dir" "$WORK/aside"
    mkdir "$WORK/dir" "$WORK/aside"
    "$HOLDFAST" mount -o "$2" --transport "$1" --foreground "$WORK/dir" "$place" </dev/null >"$WORK/daemon.log" 2>&1 &
    daemon=$!
    PIDS+=("$daemon")
    until_true 30 is_mounted "$place" || die "not mounted: $(cat "$WORK/daemon.log")"
    say "$1, $2"
    "$COHERENCE" --source "$WORK/dir" --mount "$place" --aside "$WORK/aside" --changes "$changes" \
        --seed "$seed" --limit "$limit" || failed=1
    umount "$place"
    until_true 30 daemon_gone || die "the daemon is still there"
    drop_pid "$daemon"
}

for transport in $transports; do
    one "$transport" told
    one "$transport" valid=1
done
exit "$failed"
