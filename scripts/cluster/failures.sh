# What fails under two mounts; `scripts/cluster.sh` sources it.
# shellcheck shell=bash disable=SC2154 # variables of that script

# --- a third mount -----------------------------------------------------------------------------

c=$WORK/c
mkdir "$c"
MOUNTS+=("$c")

# mount_c URL [ARGUMENT…]: its process is $daemon.
mount_c() {
    "$HOLDFAST" mount "$@" "$c" --foreground </dev/null >"$WORK/daemon.log" 2>&1 &
    daemon=$!
    PIDS+=("$daemon")
    soon is_mounted "$c" || die "not live after 10 s: $(cat "$WORK/daemon.log")"
}

# umount_c: whether that ends in time; nothing of it is left.
umount_c() {
    local code=0
    timeout 40 "$HOLDFAST" umount "$c" >"$WORK/umount.log" 2>&1 || code=$?
    [ "$code" != 124 ] && ! is_mounted "$c" || umount -l "$c"
    kill -9 "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
    drop_pid "$daemon"
    [ "$code" != 124 ]
}

newest_client() {
    "$HOLDFAST" info "$DATABASE" | sed -n 's/^client *\([0-9]*\) .*/\1/p' | sort -n | tail -1
}

# --- writers -----------------------------------------------------------------------------------

# writer FOLDER LOG: makes files. The number of one is in the log once it has its last name. A
# change that happens twice is an error: the file is made exclusively, and the name is moved.
writer() {
    local number=0
    set -C
    until [ -e "$WORK/stop" ]; do
        number=$((number + 1))
        { echo "$2 $number" >"$1/tmp" && mv "$1/tmp" "$1/$number"; } 2>>"$2.errors" || return 1
        echo "$number" >>"$2"
    done
}

# start_writers NAME MOUNT…: four of them.
start_writers() {
    local number name=$1 mounts=("${@:2}")
    rm -f "$WORK"/log-* "$WORK/stop"
    writers=()
    for number in 1 2 3 4; do
        : >"$WORK/log-$number"
        mkdir "${mounts[number % ${#mounts[@]}]}/$name-$number"
        writer "${mounts[number % ${#mounts[@]}]}/$name-$number" "$WORK/log-$number" &
        writers+=($!)
        PIDS+=($!)
    done
}

# end_writers: whether all end, without an error.
end_writers() {
    local pid bad=0
    : >"$WORK/stop"
    for pid in "${writers[@]}"; do
        until_true 60 process_gone "$pid" || bad=$((bad + 1))
        wait "$pid" || bad=$((bad + 1))
        drop_pid "$pid"
    done
    [ "$bad" = 0 ]
}

# all_have_written COUNT
all_have_written() {
    local number
    for number in 1 2 3 4; do
        [ "$(wc -l <"$WORK/log-$number")" -ge "$1" ] || return 1
    done
}

# count_answered NAME MOUNT MORE: adds to $answered and to $missing. A folder has at most so many
# names that were not answered.
count_answered() {
    local number one count folder found
    for number in 1 2 3 4; do
        folder=$2/$1-$number count=0
        while read -r one; do
            count=$((count + 1))
            reads_now "$folder/$one" "$WORK/log-$number $one" || missing=$((missing + 1))
        done <"$WORK/log-$number"
        answered=$((answered + count))
        found=("$folder"/*)
        [ -e "${found[0]}" ] || found=()
        [ $((${#found[@]} - count)) -ge 0 ] && [ $((${#found[@]} - count)) -le "$3" ] ||
            missing=$((missing + 1))
    done
}

# under_writers NAME PROMISE COMMAND…: the command goes on under four writers of both mounts.
under_writers() {
    local name=$1 promise=$2 bad=0 answered=0 missing=0 before
    shift 2
    start_writers "$name" "$a" "$b"
    until_true 60 all_have_written 5 || bad=1
    "$@" || bad=1
    before=$(wc -l <"$WORK/log-1")
    until_true 60 all_have_written $((before + 5)) || bad=1
    end_writers || bad=1
    [ "$bad" = 0 ] || sort "$WORK"/log-*.errors | uniq -c
    count_answered "$name" "$a" 0
    promise "$promise" "$answered" $((bad + missing))
}

# --- clients -----------------------------------------------------------------------------------

try_killed_clients() {
    local round pid answered=0 missing=0 hung=0
    for round in $(seq "$kills"); do
        mount_c "$DATABASE"
        start_writers "k$round" "$c"
        until_true 60 all_have_written 10 || die "the writers do not write"
        kill -9 "$daemon"
        wait "$daemon" 2>/dev/null || true
        drop_pid "$daemon"
        for pid in "${writers[@]}"; do
            soon process_gone "$pid" || hung=$((hung + 1))
            drop_pid "$pid"
        done
        "$HOLDFAST" umount "$c" 2>/dev/null || umount -l "$c"
        count_answered "k$round" "$a" 1
        rm -r "$a/k$round"-*
    done
    promise "what a killed client had been answered is there, once" "$answered" "$missing" \
        "$kills kills"
    promise "programs on a killed mount end" $((4 * kills)) "$hung"
}

# A client stops for longer than its session, and goes on.
try_stopped_client() {
    local bad=0 client holder
    mount_c "$DATABASE"
    client=$(newest_client)
    mkdir "$c/stopped"
    echo before >"$c/stopped/file"
    # A process of its own: another that inherits the descriptor would wait at its end.
    python3 "$ROOT/scripts/cluster/holder.py" "$c/stopped/open" "$WORK/go" &
    holder=$!
    soon test -e "$WORK/go.ready" || bad=1
    kill -STOP "$daemon"
    if [ "$long" = 1 ]; then sleep 90; else "$HOLDFAST" fence "$DATABASE" "$client" >/dev/null; fi
    soon test -d "$a/stopped" || bad=1
    echo after >"$a/stopped/file"
    mv "$a/stopped/open" "$a/stopped/moved"
    kill -CONT "$daemon"
    pause 1
    ! (: >"$c/stopped/new") 2>/dev/null || bad=1
    ! (echo wrong >"$c/stopped/file") 2>/dev/null || bad=1
    # Its dirty bytes are lost, which an open file is told.
    : >"$WORK/go"
    wait "$holder" || bad=1
    umount_c || bad=1
    reads_now "$b/stopped/file" after || bad=1
    [ "$(cd "$b/stopped" && echo *)" = "file moved" ] || bad=1
    [ "$(wc -l <"$a/stopped/moved")" -le 2 ] || bad=1
    promise "a client that was stopped for too long harms nothing" 1 "$bad"
}

# --- the database ------------------------------------------------------------------------------

restart() { # SECONDS
    local one code=0
    stop_postgres
    mkdir "$a/interrupted" &
    one=$!
    sleep "$1"
    # A signal ends a wait.
    kill "$one"
    until_true 2 process_gone "$one" || code=1
    start_postgres
    return "$code"
}

terminate() { # TIMES
    local n
    for n in $(seq "$1"); do
        sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'holdfast' ORDER BY random() LIMIT 3" >/dev/null
        pause 0.05
    done
}

# Others take each connection that the server has.
fill_connections() {
    local fd kind
    while :; do
        exec {fd}<>"/dev/tcp/127.0.0.1/$PORT"
        others+=("$fd")
        # The first message of the protocol, 41 bytes long.
        printf '\0\0\0\51\0\3\0\0user\0postgres\0database\0postgres\0\0' >&"$fd"
        kind=
        LC_ALL=C read -rN1 -t 5 kind <&"$fd" || true
        [ "$kind" = R ] || break
    done
}

drop_connections() {
    local fd
    for fd in "${others[@]}"; do exec {fd}>&-; done
}

no_connections() {
    local others=() code=0
    fill_connections
    timeout 60 "$HOLDFAST" mount "$DATABASE" "$c" </dev/null >"$WORK/full.log" 2>&1 || code=$?
    drop_connections
    [ "$code" != 0 ] && [ "$code" != 124 ] && grep -qi 'too many' "$WORK/full.log"
}

# A database in a file system of its own that is too small.
try_full_database() {
    local bad=0 number=0 one small="pg://postgres@127.0.0.1:$PORT/small?fs=small"
    mount_tmpfs "$WORK/small"
    mount -o "remount,size=$([ "$long" = 1 ] && echo 64 || echo 32)m,mode=700" "$WORK/small"
    chown postgres: "$WORK/small"
    head -c 1000000 /dev/zero >"$WORK/small/reserve"
    mkdir "$WORK/small-objects"
    sql "CREATE TABLESPACE small LOCATION '$WORK/small'" >/dev/null
    sql "CREATE DATABASE small TABLESPACE small" >/dev/null
    "$HOLDFAST" mkfs "$small&bucket=file://$WORK/small-objects" >/dev/null
    mount_c "$small"
    head -c 60000 /dev/urandom >"$WORK/body"
    while [ "$number" -lt 5000 ]; do
        number=$((number + 1))
        stores "$WORK/body" "$c/$number" 2>"$WORK/full.log" || break
        [ "$number" -lt 5000 ] || bad=1
    done
    grep -q 'No space left' "$WORK/full.log" || { bad=1; cat "$WORK/full.log"; }
    for one in 1 2 3; do
        timeout 20 rm "$c/$one" || bad=1
    done
    umount_c || bad=1
    # The server may have to write a file for a new connection ("could not write init file").
    rm "$WORK/small/reserve"
    mount_c "$small"
    for one in $(seq 4 $((number - 1))); do
        cmp -s "$WORK/body" "$c/$one" || bad=$((bad + 1))
    done
    timeout 60 rm -r "$c"/* || bad=1
    umount_c || bad=1
    "$HOLDFAST" fsck -q --content "$small" || bad=1
    [ "$bad" = 0 ] || grep -aE 'ERROR|FATAL|PANIC' "$WORK/pg/log" | tail -5
    promise "a full database says so, loses nothing, and lets remove" "$((number - 1))" "$bad"
    sql "DROP DATABASE small WITH (FORCE)" >/dev/null
    sql "DROP TABLESPACE small" >/dev/null
}

try_stopped_database() {
    under_writers down "writers wait for a server that is down" restart $((long ? 20 : 3))
}
try_ended_backends() {
    under_writers ended "writers go on when backends are terminated" terminate $((long ? 600 : 20))
}
try_no_connections() {
    under_writers full "without a free connection, a mount says so" no_connections
}
