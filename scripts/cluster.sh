#!/usr/bin/env bash
# Two mounts of one file system of several machines: what is promised of them.
#
#   scripts/cluster.sh [--races N] [--kills N] [--long] [--beside juicefs] [PART…]
#
# Starts a PostgreSQL of its own on loopback. The objects go to an s3s-fs of its own where that is
# on PATH, otherwise to a folder. Prints one line for each promise: `kept` or `BROKEN`, and how
# often it was tried. `--long` lets failures last as long as the promises say; HOLDFAST_EFFORT=deep
# does the same, with 1,000 races and 50 kills. `--beside juicefs` tries the same races over two
# mounts of that file system, on the same database; its lines decide nothing. Parts are `tree`,
# `password`, `races` and the functions `try_...` of cluster/; without one, all are tried.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"
# shellcheck source=scripts/servers.sh
source "$(dirname "$0")/servers.sh"

races=30 kills=3 beside='' long=0 parts=()
ALL=(tree password races killed_clients stopped_client stopped_database ended_backends
    no_connections full_database busy_bucket)
[ "${HOLDFAST_EFFORT:-quick}" = quick ] || races=1000 kills=50 long=1
while [ $# -gt 0 ]; do
    case $1 in
    --races) races=${2:?--races needs a number}; shift 2 ;;
    --kills) kills=${2:?--kills needs a number}; shift 2 ;;
    --long) long=1; shift ;;
    --beside) beside=${2:?--beside needs a name}; shift 2 ;;
    -*) die "unknown argument $1 (--races N, --kills N, --long, --beside juicefs)" ;;
    *) parts+=("$1"); shift ;;
    esac
done
case $beside in
'' | juicefs) ;;
*) die "--beside takes juicefs" ;;
esac

need_mount
# promise NAME TRIED BAD [NOTE]
promise() {
    local state=kept
    [ "$3" = 0 ] || {
        state="BROKEN $3 times"
        note_broken "$1"
    }
    printf '%-58s %s, tried %s times%s\n' "${rival:-}$1" "$state" "$2" "${4:+; $4}"
}

# A file, since races run beside each other.
note_broken() { [ -n "${rival:-}" ] || echo "$1" >>"$WORK/broken"; }

# pause SECONDS: without a process.
exec {NEVER}<> <(:)
pause() { read -rt "$1" -u "$NEVER" || true; }

# soon COMMAND…: tries it for 10 s.
soon() {
    local tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 1000 ] || return 1
        pause 0.01
    done
}

# within_lease COMMAND…: tries for as long as two machines may differ; keeps the longest time.
within_lease() {
    local begun=${EPOCHREALTIME/./} took
    until "$@"; do
        [ $((${EPOCHREALTIME/./} - begun)) -lt 1600000 ] || return 1
        pause 0.002
    done
    took=$(((${EPOCHREALTIME/./} - begun) / 1000))
    [ "$took" -le "$longest" ] || longest=$took
}

reads_now() {
    local text=
    { read -r text <"$1"; } 2>/dev/null && [ "$text" = "$2" ]
}

# --- servers -----------------------------------------------------------------------------------

start_servers
DATABASE="$SERVER?fs=demo"
BUCKET=$(bucket_for demo)
sql() { as_postgres "$BIN/psql" -h 127.0.0.1 -p "$PORT" -qAtXc "$1"; }

# The bucket behind a proxy that fails as it is told to.
PROXY=
if [ -n "$OBJECTS" ]; then
    PROXY=$(free_port $((9700 + RANDOM % 200)))
    echo well >"$WORK/bucket-mode"
    python3 "$ROOT/scripts/cluster/bucket.py" "$PROXY" "$OBJECTS" "$WORK/bucket-mode" </dev/null \
        >"$WORK/proxy.log" 2>&1 &
    SERVERS+=($!)
    until_true 10 answers_at "$PROXY" || die "the proxy: $(tail -3 "$WORK/proxy.log")"
    BUCKET=${BUCKET/:$OBJECTS/:$PROXY}
fi

"$HOLDFAST" mkfs "$DATABASE&$BUCKET"
a=$WORK/a b=$WORK/b
for dir in "$a" "$b"; do
    mkdir "$dir"
    MOUNTS+=("$dir")
    "$HOLDFAST" mount "$DATABASE" "$dir" </dev/null
done

# --- a tree ------------------------------------------------------------------------------------

try_tree() {
    local bad=0
    cp -a "$ROOT/crates" "$a/" && diff -r "$ROOT/crates" "$b/crates" >"$WORK/diff" || bad=1
    promise "a tree copied on one mount is on the other" 1 "$bad"
    bad=0
    # What was read a moment ago may be shown for the lease.
    rm -r "$b/crates" && sleep 1.6 && [ -z "$(ls -A "$a")" ] || bad=1
    promise "a tree removed on the other is gone on the first" 1 "$bad"
    bad=0
    head -c 40000000 /dev/urandom >"$WORK/big"
    cp "$WORK/big" "$a/big" && cmp -s "$WORK/big" "$b/big" || bad=1
    dd if=/dev/zero of="$b/big" bs=4096 seek=1000 count=300 conv=notrunc status=none
    dd if=/dev/zero of="$WORK/big" bs=4096 seek=1000 count=300 conv=notrunc status=none
    sleep 1.6
    cmp -s "$WORK/big" "$a/big" || bad=1
    promise "a large file, changed in its midst, is the same on both" 1 "$bad"
    rm "$a/big"
}

# --- a password --------------------------------------------------------------------------------

try_password() {
    local bad=0 p=$WORK/p pid
    local with_password=${DATABASE/postgres@/postgres:verysecret@}
    mkdir "$p"
    MOUNTS+=("$p")
    "$HOLDFAST" mount "$with_password" "$p" -o "log=$WORK/password.log" </dev/null \
        2>"$WORK/warning" || bad=1
    grep -q 'pgpass' "$WORK/warning" || bad=1
    for pid in $(daemons_of "$p"); do tr '\0' ' ' <"/proc/$pid/cmdline"; done >"$WORK/shown"
    {
        cat /proc/self/mounts "$WORK/warning" "$WORK/password.log"
        "$HOLDFAST" info "$p"
        "$HOLDFAST" info --json "$p"
        "$HOLDFAST" list
    } >>"$WORK/shown" || bad=1
    grep -q "$p" "$WORK/shown" || bad=1
    ! grep -q verysecret "$WORK/shown" || bad=1
    "$HOLDFAST" umount "$p" || bad=1
    promise "a password in the address is shown nowhere" 1 "$bad"
}

# --- races and failures ------------------------------------------------------------------------

# shellcheck source=scripts/cluster/races.sh
source "$ROOT/scripts/cluster/races.sh"
# shellcheck source=scripts/cluster/failures.sh
source "$ROOT/scripts/cluster/failures.sh"
# shellcheck source=scripts/cluster/bucket.sh
source "$ROOT/scripts/cluster/bucket.sh"

try_races() { all_races "$a" "$b"; }
[ ${#parts[@]} -gt 0 ] || parts=("${ALL[@]}")
for part in "${parts[@]}"; do "try_$part"; done

bad=0
"$HOLDFAST" info "$DATABASE" >"$WORK/info"
for client in $(awk '$1 == "client" { print $2 }' "$WORK/info"); do
    # Those that live have beaten within the last seconds.
    silent=$(sed -n "s/^client *$client .*silent for \([0-9,]*\) ms.*/\1/p" "$WORK/info" | tr -d ,)
    # One may have ended by itself meanwhile.
    [ "${silent:-0}" -lt 5000 ] || "$HOLDFAST" fence "$DATABASE" "$client" >/dev/null 2>&1 || true
done
rm -rf "${a:?}"/* || bad=1
"$HOLDFAST" fsck --content "$DATABASE" >"$WORK/fsck" || bad=1
promise "the file system is without findings afterwards" 1 "$bad"
[ "$bad" = 0 ] || cat "$WORK/fsck"
bad=0
"$HOLDFAST" gc "$DATABASE" >/dev/null && "$HOLDFAST" fsck -q --content "$DATABASE" || bad=1
promise "and after a collection" 1 "$bad"

for dir in "$a" "$b"; do
    "$HOLDFAST" umount "$dir" || note_broken "a mount ends"
done

# --- beside it ---------------------------------------------------------------------------------

if [ -n "$beside" ]; then
    command -v "$beside" >/dev/null || unfit "$beside is not on PATH"
    rival="$beside: "
    store=(--storage file --bucket "$WORK/rival/")
    mkdir "$WORK/rival"
    meta="postgres://postgres@127.0.0.1:$PORT/postgres?sslmode=disable"
    "$beside" format --no-update "${store[@]}" "$meta" rival >"$WORK/rival.log" 2>&1 ||
        die "$beside: $(tail -3 "$WORK/rival.log")"
    for dir in "$WORK/ra" "$WORK/rb"; do
        mkdir "$dir"
        TMPFS+=("$dir")
        "$beside" mount -d --no-usage-report --cache-dir "$dir.cache" "$meta" "$dir" \
            >>"$WORK/rival.log" 2>&1 || die "$beside: $(tail -3 "$WORK/rival.log")"
    done
    set +e
    all_races "$WORK/ra" "$WORK/rb" 2>/dev/null
    set -e
fi

[ ! -e "$WORK/broken" ] || die "broken: $(paste -sd';' "$WORK/broken")"
say "all promises are kept"
