#!/usr/bin/env bash
# Many small files through a mount of ours (in memory) and through libfuse's passthrough_hp over
# tmpfs, in interleaved rounds.
#
#   bench/rivals/compare.sh [--transport auto|uring|dev] [ARGUMENT…]
#
# Further arguments go to `holdfast-bench sharded`; without them it is --threads 1,2 and as many
# files as the rival can hold, 100,000 per thread at most. Exit code 0 only if ours is ahead in
# every phase. HOLDFAST and BENCH name the binaries, if they are not those in target/release.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/session.sh
source "$HERE/../../scripts/session.sh"

transport=auto
if [ "${1:-}" = --transport ]; then
    transport=${2:?--transport needs a name}
    shift 2
fi

need_mount
rival=$("$HERE/passthrough_hp.sh")
# The rival holds a descriptor for every file that the kernel knows, as many as it may have.
ulimit -n "$(cat /proc/sys/fs/nr_open)" 2>/dev/null || ulimit -n "$(ulimit -Hn)"
files=$(($(ulimit -n) / 2 - 100))
say "the rival can hold $(ulimit -n) files: EMFILE means that there are more"
[ $# -gt 0 ] || set -- --threads 1,2 --files $((files < 100000 ? files : 100000))

mount_holdfast "$WORK/ours" --transport "$transport"
check_transport "$WORK/ours" "$transport"

mount_tmpfs "$WORK/below"
mkdir "$WORK/rival"
MOUNTS+=("$WORK/rival")
say "passthrough_hp $(cat "$(dirname "$rival")/version" 2>/dev/null) over tmpfs"
"$rival" --foreground "$WORK/below" "$WORK/rival" </dev/null &
server=$!
PIDS+=("$server")
until_true 10 is_mounted "$WORK/rival" || die "passthrough_hp did not mount"

"${BENCH:-$HERE/../../target/release/holdfast-bench}" sharded --target "dir:$WORK/ours" --target "dir:$WORK/rival" "$@" |
    tee "$WORK/table"

umount_holdfast "$WORK/ours"
umount "$WORK/rival"
wait "$server" || die "passthrough_hp ended with exit code $?"
drop_pid "$server"

awk -v ours="dir:$WORK/ours" '
    $3 == ours { phases++; if ($NF + 0 > 1) ahead++; else behind = behind " " $2 "/" $1 }
    END {
        if (behind != "") print "behind in (phase/threads):" behind
        printf "ours is ahead in %d of %d\n", ahead, phases
        exit !(phases > 0 && ahead == phases)
    }' "$WORK/table"
