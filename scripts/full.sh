#!/usr/bin/env bash
# A full volume answers "no space left" and goes on. So does a full `mem:`, where a case applies.
#
#   scripts/full.sh [--transport auto|uring|dev]
#
# a  values, links and symbolic links on a volume without room: refused, nothing else fails
# b  bytes appended to small files on a volume without room: refused, or durable
# c  a file copied over another that has its blocks: needs no others
# d  what was allocated is there after an unmount
# e  a file written and removed repeatedly: never refused while there is room
#
# Each case ends with an unmount and `holdfast fsck`, which must find nothing. The script prints
# its results.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

rounds=1 quick=1
rounds_and_transport "$@"

need_mount
place=$WORK/mnt
image=$WORK/data.hf
mkdir "$place"
MOUNTS+=("$place")
failed=0

wrong() {
    printf 'WRONG: %s\n' "$*"
    failed=1
}

# start OPTIONS...: mounts the volume, or `mem:`.
start() {
    "$HOLDFAST" mount "$@" "$place" --foreground --transport "$transport" </dev/null >"$WORK/daemon.log" 2>&1 &
    daemon=$!
    PIDS+=("$daemon")
    until_true 30 is_mounted "$place" || die "not mounted: $(cat "$WORK/daemon.log")"
}

daemon_gone() { process_gone "$daemon"; }

stop() {
    umount "$place"
    until_true 30 daemon_gone || die "the daemon is still there"
    drop_pid "$daemon"
}

# fresh MIB: a new volume of this size, mounted.
fresh() {
    rm -f "$image"
    "$HOLDFAST" mkfs --size "${1}M" "$image" >/dev/null
    start "$image"
}

# ends CASE: what is durable now must be there, and sound.
ends() {
    local said
    sync -f "$place" || wrong "$1: sync fails"
    : 2>/dev/null >"$place/touched" || true
    [ "$(findmnt -no OPTIONS "$place" | tr , '\n' | grep -cx ro)" = 0 ] || wrong "$1: it is read-only"
    stop
    if ! said=$("$HOLDFAST" fsck "$image" 2>&1); then
        wrong "$1: fsck: $said"
    fi
    start "$image"
    find "$place" -mindepth 1 -delete || wrong "$1: not everything can be removed"
    echo after >"$place/after" || wrong "$1: an emptied volume takes nothing"
    stop
}

# fill MIB: takes all room, but for so much.
fill() {
    dd if=/dev/zero of="$place/filler" bs=64k 2>/dev/null || true
    truncate -s "-${1}M" "$place/filler"
    sync -f "$place"
}

small_files() {
    local number
    for ((number = 0; number < $1; number++)); do
        head -c "$2" /dev/zero >"$place/small-$number"
    done
    sync -f "$place"
}

# until_refused MOST COMMAND: runs it with ascending numbers until it fails; $done and $said tell of
# it.
until_refused() {
    local most=$1
    shift
    for ((done = 0; done < most; done++)); do
        said=$("$@" "$done" 2>&1) || return 0
    done
    said=
}

no_space() {
    case $said in
    *"No space left"*) ;;
    "") [ "$2" = may ] || wrong "$1: nothing is refused" ;;
    *) wrong "$1: $said" ;;
    esac
    say "$1: $done times, then: ${said:-nothing}"
}

set_value() {
    python3 - "$place/small-$(($1 % 200))" "user.v$(($1 / 200))" <<'PY'
import os, sys
os.setxattr(sys.argv[1], sys.argv[2], b"v" * 60000)
PY
}
long() { printf '%0230d' "$1"; }
hard_link() { ln "$place/small-7" "$place/$(long "$1")"; }
symbolic_link() { ln -s "$(printf '%04000d' "$1")" "$place/s-$1"; }
append() { head -c 100 /dev/zero >>"$place/small-$1"; }

say "a: values, links and targets without room"
fresh 64
small_files 200 100
fill 2
until_refused 2000 set_value
no_space "a, values" must
until_refused 3000 hard_link
no_space "a, hard links" may
until_refused 3000 symbolic_link
no_space "a, symbolic links" may
ends a

say "b: small files that grow"
fresh 64
small_files 1000 2000
fill 1
until_refused 1000 append
no_space "b, appends" must
durable=$done
sync -f "$place" || wrong "b: what was accepted does not become durable"
touch "$place/small-0" || wrong "b: touch fails"
stop
start "$image"
for ((number = 0; number < durable; number++)); do
    [ "$(stat -c %s "$place/small-$number")" = 2100 ] || wrong "b: small-$number lost what was accepted"
done
ends b

say "c: a copy over what has its blocks"
fresh 64
head -c 20M /dev/urandom >"$WORK/from"
cp "$WORK/from" "$place/from"
head -c 20M /dev/zero >"$place/to"
sync -f "$place"
fill 0
said=$(python3 - "$place/from" "$place/to" 2>&1 <<'PY'
import os, sys
a, b = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY)
at, size = 0, os.fstat(a).st_size
while at < size:
    at += os.copy_file_range(a, b, size - at, at, at)
os.fsync(b)
print("all of it")
PY
) || true
say "c: ${said##*$'\n'}"
case $said in *"all of it"* | *"No space left"*) ;; *) wrong "c: $said" ;; esac
case $said in *"all of it"*) cmp -s "$WORK/from" "$place/to" || wrong "c: other bytes" ;; esac
ends c

say "d: what was allocated"
for how in nothing truncate fsync; do
    fresh 64
    : >"$place/f"
    fallocate -n -l 1M "$place/f"
    case $how in
    truncate) truncate -s 4096 "$place/f" ;;
    fsync) sync "$place/f" ;;
    esac
    before=$(stat -c %b "$place/f")
    stop
    start "$image"
    after=$(stat -c %b "$place/f")
    say "d, $how: $before blocks, after a remount $after"
    [ "$before $after" = "2048 2048" ] || wrong "d, $how"
    ends "d, $how"
done

say "e: written and removed again and again"
fresh 512
room=$(df --output=avail -k "$place" | tail -1)
head -c $(((room - 65536) * 1024)) /dev/zero >"$place/filler"
sync -f "$place"
again() { head -c 1M /dev/zero >"$place/temporary" && rm "$place/temporary"; }
until_refused 500 again
say "e: $done times, then: ${said:-nothing}"
[ "$done" = 500 ] || wrong "e: refused at $done: $said"
ends e

say "mem: names, values and targets count"
start -o size=1M mem:
: >"$place/small-0"
set_value_here() {
    python3 - "$place/small-0" "user.v$1" <<'PY'
import os, sys
os.setxattr(sys.argv[1], sys.argv[2], b"v" * 60000)
PY
}
until_refused 100 set_value_here
no_space "mem:, values" must
rm "$place/small-0" || wrong "mem: a full file system keeps a file"
until_refused 3000 symbolic_link
no_space "mem:, symbolic links" must
find "$place" -mindepth 1 -delete || wrong "mem: not everything can be removed"
head -c 512k /dev/zero >"$place/file" || wrong "mem: room does not come back"
again_here() { head -c 64k /dev/zero >"$place/temporary" && rm "$place/temporary"; }
until_refused 500 again_here
[ "$done" = 500 ] || wrong "mem: refused at $done: $said"
[ "$(df --output=used -k "$place" | tail -1)" -le 516 ] || wrong "mem: removed files are still counted"
stop

[ "$failed" = 0 ] || die "something is wrong, see above"
say "all is right"
