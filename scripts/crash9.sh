#!/usr/bin/env bash
# A volume under load is killed with SIGKILL repeatedly: everything fsynced is there afterwards.
#
#   scripts/crash9.sh [--quick] [--rounds N] [--transport auto|uring|dev]
#
# Four writers create, rename and remove files, make each change durable, and only then note it in
# a log outside the mount. After the kill the volume is mounted again. Everything that the logs
# list must be there, byte for byte, and everything that they list as removed must be gone. Only the
# change that a writer was making may be there or not. `holdfast fsck` must find nothing. Then the
# next round goes on with the same volume.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

rounds=20 quick=4
rounds_and_transport "$@"

need_mount
place=$WORK/mnt
image=$WORK/data.hf
mkdir "$place"
MOUNTS+=("$place")

start() {
    "$HOLDFAST" mount --create "$image" "$place" --foreground --transport "$transport" \
        </dev/null >"$WORK/daemon.log" 2>&1 &
    daemon=$!
    PIDS+=("$daemon")
    # That it is killed is no news.
    disown "$daemon"
    until_true 20 is_mounted "$place" || die "not mounted after 20 s: $(cat "$WORK/daemon.log")"
}

daemon_gone() { process_gone "$daemon"; }

reap_daemon() {
    until_true 20 daemon_gone || die "the daemon is still there"
    drop_pid "$daemon"
}

# content WRITER NUMBER LENGTH
content() { yes "writer $1 file $2" 2>/dev/null | head -c "$3" || true; }

# length NUMBER: some are inline, some have extents.
length() { echo $(($1 * 7919 % 30000 + 1)); }

# writer NAME FIRST LOG: goes on until something fails. Each line of the log follows an fsync.
writer() {
    local dir=$place/$1 number=$2 log=$3 old
    while :; do
        echo "try put $number" >>"$log"
        content "$1" "$number" "$(length "$number")" |
            dd of="$dir/f-$number" bs=64k conv=fsync iflag=fullblock status=none 2>/dev/null || return 0
        echo "put $number" >>"$log"
        if [ $((number % 3)) = 0 ]; then
            echo "try move $number" >>"$log"
            mv "$dir/f-$number" "$dir/g-$number" 2>/dev/null || return 0
            sync "$dir/g-$number" 2>/dev/null || return 0
            echo "move $number" >>"$log"
        fi
        old=$((number - 4))
        if [ $((number % 5)) = 0 ] && [ "$old" -ge "$2" ]; then
            echo "try remove $old" >>"$log"
            rm "$dir"/[fg]-"$old" 2>/dev/null || return 0
            sync "$dir" 2>/dev/null || return 0
            echo "remove $old" >>"$log"
        fi
        number=$((number + 1))
    done
}

# expect WRITER LOG: what the log says.
expect() {
    local writer=$1 dir=$place/$1 did number at trying=""
    local -A state=()
    while read -r did number at; do
        case $did in
        try) trying="$number $at" ;;
        put) state[$number]=f trying="" ;;
        move) state[$number]=g trying="" ;;
        remove) state[$number]=gone trying="" ;;
        esac
    done <"$2"
    for number in "${!state[@]}"; do
        case "${state[$number]} $trying" in
        "gone "*)
            ! ls "$dir"/[fg]-"$number" >/dev/null 2>&1 || die "$writer: file $number is back"
            ;;
        *" remove $number")
            # It may be gone, but if it is there it is whole.
            at=$(ls "$dir"/[fg]-"$number" 2>/dev/null || true)
            [ -z "$at" ] || whole "$writer" "$number" "$at"
            ;;
        *" move $number")
            at=$(ls "$dir"/[fg]-"$number") || die "$writer: file $number is lost while it moved"
            whole "$writer" "$number" "$at"
            ;;
        *) whole "$writer" "$number" "$dir/${state[$number]}-$number" ;;
        esac
        checked=$((checked + 1))
    done
}

whole() {
    [ -e "$3" ] || die "$1: $3 is lost; the log says that it was durable"
    content "$1" "$2" "$(length "$2")" | cmp -s - "$3" || die "$1: $3 has other bytes"
}

all_busy() {
    local name
    for name in w1 w2 w3 w4; do
        grep -q '^put' "$WORK/$name.log" || return 1
    done
}

writers_gone() {
    local pid
    for pid in "${writers[@]}"; do
        process_gone "$pid" || return 1
    done
}

checked=0
start
mkdir "$place"/w{1,2,3,4}
sync "$place"
for ((round = 1; round <= rounds; round++)); do
    writers=()
    for name in w1 w2 w3 w4; do
        log=$WORK/$name.log
        : >"$log"
        writer "$name" $((round * 10000)) "$log" &
        writers+=($!)
        PIDS+=($!)
    done
    until_true 30 all_busy || die "round $round: the writers do not write"
    sleep "$((RANDOM % 2)).$((RANDOM % 10))$((RANDOM % 10))"
    kill -9 "$daemon"
    reap_daemon
    until_true 30 writers_gone || die "round $round: a writer hangs"
    for pid in "${writers[@]}"; do
        wait "$pid" || true
        drop_pid "$pid"
    done
    "$HOLDFAST" umount "$place" >/dev/null
    # As the kill left it, and looked at only: the mount then replays its journal.
    sound "$image"
    start
    for name in w1 w2 w3 w4; do
        expect "$name" "$WORK/$name.log"
        # So that later rounds begin with little.
        rm -f "$place/$name"/*
    done
done
"$HOLDFAST" umount "$place"
reap_daemon
sound "$image"
[ "$checked" -gt "$rounds" ] || die "only $checked files were made durable: the writers do not write"
say "$rounds kills, $checked files checked, nothing fsynced was lost"
