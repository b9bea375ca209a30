#!/usr/bin/env bash
# The daemon dies, or is asked to go, while programs are writing: what a user is left with.
#
#   scripts/kill9.sh [--quick] [--rounds N] [--transport auto|uring|dev]
#
# Each round kills the daemon with SIGKILL under load: the writers end with an error and do not
# hang, mounting over the dead mount is refused with the way out, `holdfast umount` clears it, and
# the folder can be mounted again. Then SIGTERM under load: the daemon unmounts and ends. If the
# mount is busy, the daemon prints the processes that hold it and serves until they have left.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

rounds=10 quick=3
rounds_and_transport "$@"

need_mount
place=$WORK/mnt
mkdir "$place"
MOUNTS+=("$place")

# start: mounts in the foreground of a job of ours; its id is in $daemon, its words in daemon.log.
start() {
    "$HOLDFAST" mount mem: "$place" --foreground --transport "$transport" \
        </dev/null >"$WORK/daemon.log" 2>&1 &
    daemon=$!
    PIDS+=("$daemon")
    until_true 10 is_live || die "not live after 10 s: $(cat "$WORK/daemon.log")"
}

is_live() { is_mounted "$place" && [ -d "$place" ] && [ -n "$(info_value "$place" transport)" ]; }

# writer FOLDER: creates, appends, renames and deletes until an operation fails. The folder exists
# in the mount only, so that nothing is ever written beneath it.
writer() {
    local number=0
    while :; do
        number=$((number + 1))
        head -c 100000 /dev/zero 2>/dev/null >"$1/a-$number" || return 0
        echo more 2>/dev/null >>"$1/a-$number" || return 0
        mv "$1/a-$number" "$1/b-$((number % 50))" 2>/dev/null || return 0
        [ $((number % 10)) != 0 ] || rm "$1/b-$((number % 50))" 2>/dev/null || return 0
    done
}

# load: four writers; their ids are in $writers.
load() {
    local number
    writers=()
    for number in 1 2 3 4; do
        mkdir "$place/w$number"
        writer "$place/w$number" 2>/dev/null &
        writers+=($!)
        PIDS+=($!)
    done
    # Each has come some way before anything happens.
    until_true 10 all_busy || die "the writers do not write"
    sleep "0.$((RANDOM % 10))"
}

all_busy() {
    local number
    for number in 1 2 3 4; do
        [ -e "$place/w$number/b-5" ] || return 1
    done
}

writers_gone() {
    local pid
    for pid in "${writers[@]}"; do
        process_gone "$pid" || return 1
    done
}

reap_writers() {
    local pid
    until_true 20 writers_gone || die "a writer hangs: $(ps -o pid,stat,wchan,args -p "${writers[*]}")"
    for pid in "${writers[@]}"; do
        wait "$pid" || true
        drop_pid "$pid"
    done
}

daemon_gone() { process_gone "$daemon"; }

reap_daemon() { # SECONDS
    local code=0
    until_true "$1" daemon_gone || return 1
    wait "$daemon" || code=$?
    drop_pid "$daemon"
    daemon_code=$code
}

# A fresh mount holds nothing of the one before, and works.
mount_again() {
    start
    [ -z "$(ls -A "$place")" ] || die "a new mount shows $(ls -A "$place")"
    echo alive >"$place/file"
    [ "$(cat "$place/file")" = alive ] || die "the new mount does not return what was written"
    "$HOLDFAST" umount "$place"
    ! is_mounted "$place" || die "still mounted after holdfast umount"
    reap_daemon 10 || die "the daemon outlives its mount"
    [ "$daemon_code" = 0 ] || die "exit code $daemon_code after umount: $(cat "$WORK/daemon.log")"
}

kill_round() {
    start
    load
    kill -9 "$daemon"
    reap_daemon 10 || die "the daemon survived SIGKILL for 10 s"
    reap_writers
    is_mounted "$place" || die "nothing is left to clear: was something else unmounting?"
    if "$HOLDFAST" mount mem: "$place" --transport "$transport" </dev/null >"$WORK/over.log" 2>&1; then
        say "mounted over the dead mount"
        "$HOLDFAST" umount "$place"
    else
        grep -q umount "$WORK/over.log" ||
            die "a refused mount does not say how to clear the old one: $(cat "$WORK/over.log")"
    fi
    if is_mounted "$place"; then
        "$HOLDFAST" umount "$place"
    fi
    ! is_mounted "$place" || die "holdfast umount did not clear the dead mount"
    [ -z "$(ls -A "$place")" ] || die "something was written beneath the mount: $(ls "$place")"
    mount_again
}

term_round() {
    start
    load
    kill -TERM "$daemon"
    if reap_daemon 30; then
        ! is_mounted "$place" || die "the daemon ended on SIGTERM and left its mount behind"
        [ "$daemon_code" = 0 ] || die "exit code $daemon_code on SIGTERM: $(cat "$WORK/daemon.log")"
        reap_writers
        say "SIGTERM under load: unmounted and ended"
    else
        # The writers' commands come and go; held_round asks for the id of one that stays.
        grep -qiE 'busy|in use|held by|holds' "$WORK/daemon.log" ||
            die "still there after SIGTERM, and does not say why: $(cat "$WORK/daemon.log")"
        say "SIGTERM under load: busy, and says so: $(tail -1 "$WORK/daemon.log")"
        kill "${writers[@]}" 2>/dev/null || true
        reap_writers
        if is_mounted "$place"; then
            "$HOLDFAST" umount "$place"
        fi
        reap_daemon 10 || die "the daemon outlives its mount"
    fi
    [ -z "$(ls -A "$place")" ] || die "something was written beneath the mount: $(ls "$place")"
    mount_again
}

# A program that keeps a file open and does nothing: SIGTERM finds the mount busy for sure.
held_round() {
    start
    echo held >"$place/held"
    local holder
    exec 9<"$place/held"
    sleep 1000 &
    holder=$!
    exec 9<&-
    PIDS+=("$holder")
    kill -TERM "$daemon"
    if reap_daemon 10; then
        ! is_mounted "$place" || die "the daemon ended on SIGTERM and left its mount behind"
        say "SIGTERM while a file is open: unmounted and ended"
    else
        grep -qw "$holder" "$WORK/daemon.log" ||
            die "process $holder holds the mount, the daemon does not name it: $(cat "$WORK/daemon.log")"
        say "SIGTERM while a file is open: names the holder"
        [ "$(cat "$place/held")" = held ] || die "the mount is busy and no longer serves"
    fi
    kill "$holder"
    wait "$holder" || true
    drop_pid "$holder"
    if is_mounted "$place"; then
        "$HOLDFAST" umount "$place"
    fi
    process_gone "$daemon" || reap_daemon 10 || die "the daemon outlives its mount"
    drop_pid "$daemon"
    mount_again
}

for round in $(seq 1 "$rounds"); do
    kill_round
    say "kill -9, round $round of $rounds: cleared and mounted again"
done
for round in $(seq 1 "$(((rounds + 2) / 3))"); do
    term_round
done
held_round
echo "kill9: $rounds rounds of SIGKILL, $(((rounds + 2) / 3)) of SIGTERM, 1 with a file held: all passed"
