#!/usr/bin/env bash
# A killed daemon loses no more than the last second, although no program called fsync.
#
#   scripts/written9.sh [--quick] [--rounds N] [--transport auto|uring|dev]
#
# tar unpacks, git commits, a program renames, and SQLite inserts into two databases: one with a
# write-ahead log, one with a rollback journal. None of them calls fsync. Each notes outside the
# mount when a step was reported as done. The daemon is killed with SIGKILL at a random moment.
#
# Then the volume must be sound and hold a prefix of what each program did. The prefix includes
# every step that was done more than a second before: unpacked files in their order and byte for
# byte, commits that pass git's own check, databases that pass SQLite's. HOLDFAST_LOSES: seconds
# instead of one, for a busy machine.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

rounds=20 quick=3
programs=(tar git ahead over move)
rounds_and_transport "$@"
loses=${HOLDFAST_LOSES:-1}

need_mount
need_commands git:git sqlite3:sqlite3
place=$WORK/mnt
image=$WORK/data.hf
source=$WORK/source
mkdir "$place"
MOUNTS+=("$place")
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

start() {
    "$HOLDFAST" mount --create --size 4g "$image" "$place" --foreground --transport "$transport" \
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

# make_source: a few thousand files in folders, from none to 60,000 bytes, and their order in an
# archive.
make_source() {
    local number dir
    mkdir "$source"
    head -c 4000000 /dev/urandom >"$WORK/bytes"
    for ((number = 0; number < 3000; number++)); do
        dir=$source/d$((number / 100))
        mkdir -p "$dir"
        tail -c +$((number * 997)) "$WORK/bytes" | head -c $((number * 7919 % 60000 * (number % 3) / 2)) \
            >"$dir/f$number" || true
    done
    tar -cf "$WORK/source.tar" -C "$source" .
    tar -tf "$WORK/source.tar" | grep -v '/$' >"$WORK/order"
}

git_there() { git -C "$place/git" -c user.name=T -c user.email=t@example.org -c gc.auto=0 -c core.fsync=none "$@"; }

# stamped: each line with the time at which it came.
stamped() {
    local line
    while read -r line; do echo "$EPOCHREALTIME $line"; done
}

# tar names a file before it makes it: when a line comes, the ones before it are done.
unpack() {
    local number=0
    while mkdir "$place/tar/$number" 2>/dev/null; do
        tar -xvf "$WORK/source.tar" -C "$place/tar/$number" 2>/dev/null | grep --line-buffered -v '/$' |
            sed -u "s/^/$number /" | stamped >>"$WORK/tar.log"
        number=$((number + 1))
    done
}

commit() {
    local number=1
    while echo "$number" 2>/dev/null >"$place/git/file-$((number % 7))"; do
        git_there add -A >/dev/null 2>&1 || return 0
        git_there commit -qm "$number" >/dev/null 2>&1 || return 0
        echo "$EPOCHREALTIME $number" >>"$WORK/git.log"
        number=$((number + 1))
    done
}

# insert NAME MODE: into the database of that name, with a journal of that mode.
insert() {
    {
        # Writing ahead it only appends; with a rollback journal it relies on pages that are no
        # later than the journal's file.
        echo "pragma synchronous = off; pragma locking_mode = exclusive; pragma journal_mode = $2;"
        echo 'pragma wal_autocheckpoint = 0;'
        for ((number = 1; number < 1000000; number++)); do
            echo "begin; insert into t values ($number, hex(randomblob(300))); commit; select $number;"
        done
    } 2>/dev/null | sqlite3 -bail "$place/db/$1" 2>/dev/null | grep --line-buffered '^[1-9]' |
        stamped >>"$WORK/$1.log" || true
}

insert_ahead() { insert ahead wal; }
insert_over() { insert over delete; }

move() {
    local number=1
    while mv "$place/move/$(((number - 1) % 2))/at-$((number - 1))" \
        "$place/move/$((number % 2))/at-$number" 2>/dev/null; do
        echo "$EPOCHREALTIME $number" >>"$WORK/move.log"
        number=$((number + 1))
    done
}

# told LOG: the last line that came early enough, without its time.
told() { awk -v until="$killed" -v loses="$loses" '$1 < until - loses' "$1" | tail -1 | cut -d' ' -f2-; }

check_tar() {
    local last number name at present=0
    last=$(told "$WORK/tar.log")
    read -r number name <<<"$last"
    for ((at = 0; at < number; at++)); do
        diff -rq "$source" "$place/tar/$at" >&2 || die "tar: folder $at is not whole"
    done
    # What the last folders have must be the first files of the archive.
    for ((; at < number + 400; at++)); do
        [ -d "$place/tar/$at" ] || break
        (cd "$place/tar/$at" && find . -type f) | LC_ALL=C sort >"$WORK/found"
        present=$(wc -l <"$WORK/found")
        head -n "$present" "$WORK/order" | LC_ALL=C sort | cmp -s - "$WORK/found" ||
            die "tar: folder $at has other files than the first $present"
        # All but the one that it was at.
        while read -r file; do
            cmp -s "$source/$file" "$place/tar/$at/$file" || die "tar: $at/$file has other bytes"
        done < <(head -n $((present > 1 ? present - 1 : 0)) "$WORK/order" 2>/dev/null)
        if [ "$at" = "$number" ]; then
            # The file that is named may not be done.
            [ "$present" -ge $(($(grep -nxF -- "$name" "$WORK/order" | cut -d: -f1) - 1)) ] ||
                die "tar: folder $at has $present files, and $name was begun in time"
        fi
        [ "$present" = 3000 ] || [ ! -d "$place/tar/$((at + 1))" ] ||
            die "tar: folder $at is not whole, and there is another"
    done
}

check_git() {
    local last found
    last=$(told "$WORK/git.log")
    git_there fsck --full --strict --no-dangling >/dev/null || die "git: fsck"
    found=$(git_there rev-list --count HEAD)
    # The first one is the commit that all begin with.
    [ $((found - 1)) -ge "${last:-0}" ] || die "git: $((found - 1)) commits, and $last were made in time"
}

# check_db NAME
check_db() {
    local last found
    last=$(told "$WORK/$1.log")
    [ "$(sqlite3 "$place/db/$1" 'pragma integrity_check;')" = ok ] || die "SQLite, $1: the database is damaged"
    found=$(sqlite3 "$place/db/$1" 'select count(*), coalesce(max(n), 0) from t;')
    [ "${found%|*}" = "${found#*|}" ] || die "SQLite, $1: rows are missing: $found"
    [ "${found%|*}" -ge "${last:-0}" ] || die "SQLite, $1: ${found%|*} rows, and $last were there in time"
}

check_move() {
    local last found
    last=$(told "$WORK/move.log")
    found=$(find "$place/move" -type f -printf '%f\n')
    [ "$(wc -w <<<"$found")" = 1 ] || die "move: one file has become: $found"
    [ "${found#at-}" -ge "${last:-0}" ] || die "move: it is $found, and was at-$last in time"
}

all_busy() {
    local name
    for name in "${programs[@]}"; do
        [ -s "$WORK/$name.log" ] || return 1
    done
}

workers_gone() {
    local pid
    for pid in "${workers[@]}"; do
        process_gone "$pid" || return 1
    done
}

make_source
start
checked=0
for ((round = 1; round <= rounds; round++)); do
    rm -rf "${place:?}"/*
    mkdir -p "$place"/{tar,git,db,move/0,move/1}
    : >"$place/move/0/at-0"
    git_there init -q
    git_there commit -q --allow-empty -m 0
    for name in ahead over; do
        sqlite3 "$place/db/$name" 'create table t (n integer primary key, what text);'
    done
    sync -f "$place"
    for name in "${programs[@]}"; do : >"$WORK/$name.log"; done
    workers=()
    for work in unpack commit insert_ahead insert_over move; do
        "$work" &
        workers+=($!)
        PIDS+=($!)
    done
    until_true 30 all_busy || die "round $round: the programs do nothing"
    # No sooner than something was done long enough ago to be asked for.
    sleep "$((${loses%.*} + RANDOM % 5)).$((RANDOM % 10))$((RANDOM % 10))"
    killed=$EPOCHREALTIME
    kill -9 "$daemon"
    reap_daemon
    until_true 30 workers_gone || die "round $round: a program hangs"
    for pid in "${workers[@]}"; do
        wait "$pid" 2>/dev/null || true
        drop_pid "$pid"
    done
    "$HOLDFAST" umount "$place" >/dev/null
    # As the kill left it, and looked at only: the mount then replays its journal.
    sound "$image"
    start
    check_tar
    check_git
    check_db ahead
    check_db over
    check_move
    for name in "${programs[@]}"; do
        checked=$((checked + $(awk -v until="$killed" -v loses="$loses" '$1 < until - loses' "$WORK/$name.log" | wc -l)))
    done
done
"$HOLDFAST" umount "$place"
reap_daemon
sound "$image"
[ "$checked" -gt "$rounds" ] || die "only $checked things were done in time: the programs do nothing"
say "$rounds kills, $checked things done more than $loses s before them, nothing of that was lost"
