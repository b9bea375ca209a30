# Shared by the scripts of this folder: tools, mounts, and leaving nothing behind.
#
# Source it after `set -euo pipefail`. It sets ROOT (the checkout), TOOLS (a cache that survives
# runs), WORK (a folder of this run) and HOLDFAST (the binary), and installs a trap that unmounts
# what `mount_holdfast` mounted, ends by their ids the processes in PIDS, and then those in SERVERS,
# and removes WORK and what is in FOLDERS.
#
# Exit codes: 0 all well, 77 the machine lacks what the script needs, anything else a failure.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOLS=$ROOT/target/tools
mkdir -p "$TOOLS"
WORK=$(mktemp -d "${TMPDIR:-/tmp}/holdfast.XXXXXX")
# Other users have to pass through it to the mount point.
chmod 755 "$WORK"
HOLDFAST=${HOLDFAST:-${CARGO_TARGET_DIR:-$ROOT/target}/release/holdfast}

MOUNTS=()
TMPFS=()
PIDS=()
SERVERS=()
FOLDERS=()

say() { printf '== %s\n' "$*"; }

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

unfit() {
    printf '%s: skipped: %s\n' "$(basename "$0")" "$*" >&2
    exit 77
}

# Reads the arguments of a script that goes in rounds: $rounds is what --rounds says, $quick with
# --quick; $transport what --transport says, else auto.
# shellcheck disable=SC2034 # the caller uses them
rounds_and_transport() {
    transport=auto
    while [ $# -gt 0 ]; do
        case $1 in
        --quick) rounds=$quick; shift ;;
        --rounds) rounds=${2:?--rounds needs a number}; shift 2 ;;
        --transport) transport=${2:?--transport needs a name}; shift 2 ;;
        *) die "unknown argument $1" ;;
        esac
    done
}

cleanup() {
    local code=$? pid dir
    trap - EXIT
    set +e
    for pid in "${PIDS[@]}"; do
        kill "$pid" 2>/dev/null
    done
    for dir in "${MOUNTS[@]}"; do
        clear_mount "$dir"
    done
    for dir in "${TMPFS[@]}"; do
        umount "$dir" 2>/dev/null || umount -l "$dir"
    done
    # Behind the mounts, which use them. PostgreSQL ends all its processes, and leaves nothing.
    for pid in "${SERVERS[@]}"; do
        kill -INT "$pid" 2>/dev/null
    done
    for pid in "${SERVERS[@]}"; do
        until_true 10 process_gone "$pid"
    done
    for pid in "${PIDS[@]}" "${SERVERS[@]}"; do
        kill -9 "$pid" 2>/dev/null
    done
    rm -rf --one-file-system "$WORK" "${FOLDERS[@]}"
    exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Whether something is mounted at $1, alive or not: a dead mount answers no stat.
is_mounted() {
    local escaped
    escaped=$(printf '%s' "$1" | sed 's/ /\\040/g')
    awk -v dir="$escaped" '$2 == dir { found = 1 } END { exit !found }' /proc/self/mounts
}

# Ids of the holdfast processes that serve the mount point $1.
daemons_of() {
    local exe process
    exe=$(readlink -f "$HOLDFAST")
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/exe" 2>/dev/null)" = "$exe" ] &&
            tr '\0' '\n' <"$process/cmdline" 2>/dev/null | grep -qxF -- "$1"; then
            basename "$process"
        fi
    done
}

# Takes $1 down by whatever means it needs; for the end of a run, not for tests of unmounting.
clear_mount() {
    local pid
    if is_mounted "$1"; then
        "$HOLDFAST" umount "$1" >/dev/null 2>&1 || umount -l "$1"
    fi
    for pid in $(daemons_of "$1"); do
        kill "$pid" 2>/dev/null
        until_true 5 process_gone "$pid" || kill -9 "$pid" 2>/dev/null
    done
}

# drop_pid ID: a process that has been waited for; its id may belong to another by now.
drop_pid() {
    local id kept=()
    for id in "${PIDS[@]}"; do
        [ "$id" = "$1" ] || kept+=("$id")
    done
    PIDS=("${kept[@]}")
}

process_gone() { ! kill -0 "$1" 2>/dev/null; }

# Tries a command ten times a second for $1 seconds.
until_true() {
    local tries=$(($1 * 10))
    shift
    while ! "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

need_root() { [ "$(id -u)" = 0 ] || unfit "needs root (users of other names, mount options)"; }

need_mount() {
    need_root
    [ -c /dev/fuse ] || unfit "there is no /dev/fuse (modprobe fuse)"
    [ -x "$HOLDFAST" ] || die "no binary at $HOLDFAST: run cargo build --release -p holdfast-cli, or set HOLDFAST"
}

# alone COMMAND…: no other script of this checkout installs anything meanwhile. In a subshell: it
# sets no variables.
alone() { (flock 9 && "$@") 9>"$TOOLS/lock"; }

# Arguments COMMAND:PACKAGE; installs the package of each command that is missing.
need_commands() { alone install_commands "$@"; }

install_commands() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "missing packages: ${missing[*]}"
    [ "$(id -u)" = 0 ] || unfit "missing packages: ${missing[*]} (only root can install them)"
    say "apt-get install ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >/dev/null
}

# cargo_tool NAME VERSION: an executable of crates.io, kept in TOOLS.
cargo_tool() { alone install_cargo_tool "$@"; }

install_cargo_tool() {
    local stamp=$TOOLS/$1-$2
    if [ -e "$stamp" ] && [ -x "$TOOLS/bin/$1" ]; then
        return
    fi
    say "cargo install $1 $2"
    # What it stands on is nowhere near its time, and most of its build.
    RUSTFLAGS='' CARGO_TARGET_DIR=$TOOLS/build cargo install --quiet --locked --force \
        --config 'profile.release.package."*".opt-level = 0' --root "$TOOLS" --version "$2" "$1"
    touch "$stamp"
}

# What is mounted: `memory`, `volume`, `host`, a directory of the host, or `cluster`, on servers of
# this run; a new one each time.
STORE=${HOLDFAST_STORE:-memory}
VOLUMES=0
# The volume, or the address, mounted at a mount point.
declare -A IMAGE_AT=()
if [ "$STORE" = cluster ]; then
    # shellcheck source=scripts/servers.sh
    source "$ROOT/scripts/servers.sh"
fi

# mount_holdfast DIR [ARGUMENT…]: mounts an empty file system and checks that it is live.
mount_holdfast() {
    local dir=$1 source=mem: how=()
    shift
    mkdir -p "$dir"
    case $STORE in
    memory) ;;
    volume)
        VOLUMES=$((VOLUMES + 1))
        source=$WORK/volume-$VOLUMES.hf
        how=(--create --size 4g)
        [ -z "${HOLDFAST_MEMORY:-}" ] || how+=(-o "memory=$HOLDFAST_MEMORY")
        IMAGE_AT[$dir]=$source
        ;;
    host)
        source=$(mktemp -d "$WORK/host.XXXXXX")
        # As new file systems are.
        chmod 755 "$source"
        [ -z "${HOLDFAST_COHERENCE:-}" ] || how=(-o "$HOLDFAST_COHERENCE")
        ;;
    cluster)
        # What a suite reads back is in the server's memory: no power fails.
        [ -n "${SERVER:-}" ] || start_servers fsync=off
        VOLUMES=$((VOLUMES + 1))
        source="$SERVER?fs=suite$VOLUMES"
        "$HOLDFAST" mkfs "$source&$(bucket_for "suite$VOLUMES")"
        [ -z "${HOLDFAST_MEMORY:-}" ] || how=(-o "memory=$HOLDFAST_MEMORY")
        IMAGE_AT[$dir]=$source
        ;;
    *) die "HOLDFAST_STORE is $STORE: memory, volume, host and cluster are the ones there are" ;;
    esac
    say "holdfast mount $source $dir ${how[*]} $*"
    MOUNTS+=("$dir")
    "$HOLDFAST" mount "$source" "$dir" "${how[@]}" "$@" </dev/null
    is_mounted "$dir" || die "holdfast mount returned, but nothing is mounted at $dir"
}

# sound IMAGE: what is not mounted must be without findings.
sound() {
    local found how=()
    [ "$STORE" != cluster ] || how=(--content)
    found=$("$HOLDFAST" fsck "${how[@]}" "$1") || die "holdfast fsck: exit code $?"$'\n'"$found"
    say "$found"
}

# umount_holdfast DIR: unmounts as a user would, and fails if anything stays behind, or if what was
# mounted is unsound.
umount_holdfast() {
    local dir=$1 other kept=()
    "$HOLDFAST" umount "$dir"
    ! is_mounted "$dir" || die "still mounted after holdfast umount: $dir"
    until_true 10 no_daemon "$dir" || die "the daemon of $dir outlives its mount: $(daemons_of "$dir")"
    for other in "${MOUNTS[@]}"; do
        [ "$other" = "$dir" ] || kept+=("$other")
    done
    MOUNTS=("${kept[@]}")
    [ -z "${IMAGE_AT[$dir]:-}" ] || sound "${IMAGE_AT[$dir]}"
}

no_daemon() { [ -z "$(daemons_of "$1")" ]; }

# mount_tmpfs DIR: a second file system, gone with the run.
mount_tmpfs() {
    mkdir -p "$1"
    mount -t tmpfs holdfast-test "$1"
    TMPFS+=("$1")
}

# info_value DIR NAME: one value of `holdfast info --json`.
info_value() {
    "$HOLDFAST" info --json "$1" | tr -d '\n' |
        sed -n "s/.*\"$2\"[[:space:]]*:[[:space:]]*\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# check_transport DIR auto|uring|dev: what was asked for is what runs.
check_transport() {
    local now
    now=$(info_value "$1" transport)
    case "$2/$now" in
    auto/io_uring | auto/dev_fuse | uring/io_uring | dev/dev_fuse) say "transport: $now" ;;
    *) die "asked for transport $2, holdfast info says '$now'" ;;
    esac
}
