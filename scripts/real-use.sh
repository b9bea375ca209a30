#!/usr/bin/env bash
# What people do with a file system, through the mount: unpack a source tree and compare it, git,
# cargo build, SQLite with several writers, rsync both ways, rm -rf.
#
#   scripts/real-use.sh [--quick] [--transport auto|uring|dev] [--dir DIR] [--only PART[,PART…]]
#
# Parts: unpack git build sqlite rsync. --quick takes a part of the tree and of the build. --dir
# runs in a folder that exists and leaves out what only a mount can show.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

quick=
transport=auto
dir=
only=unpack,git,build,sqlite,rsync
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1; shift ;;
    --transport) transport=${2:?--transport needs a name}; shift 2 ;;
    --dir) dir=${2:?--dir needs a folder}; shift 2 ;;
    --only) only=${2:?--only needs names}; shift 2 ;;
    *) die "unknown argument $1" ;;
    esac
done

need_root
[ -n "$dir" ] || need_mount
need_commands git:git sqlite3:sqlite3 rsync:rsync setfacl:acl setfattr:attr xz:xz-utils

if [ -n "$dir" ]; then
    place=$(mktemp -d "$(readlink -f "$dir")/real-use.XXXXXX")
    FOLDERS+=("$place")
else
    place=$WORK/mnt
    mount_holdfast "$place" --transport "$transport"
    check_transport "$place" "$transport"
fi

# A user's git configuration must not decide what is tested.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export LC_ALL=C

### The source tree

# Prints the name of the kernel source package of this release of Debian.
source_package() {
    local package
    package=$(apt-cache depends linux-source 2>/dev/null |
        sed -n 's/.*Depends: \(linux-source-[0-9.]*\)$/\1/p' | head -1)
    echo "${package:-linux-source-6.1}"
}

# Leaves the tarball, unpacked from the package and from xz, at $TOOLS/linux-source.tar. To be
# called `alone`: another run may come for it at the same time.
fetch_source() {
    local package folder=$TOOLS/linux-source
    if [ -s "$TOOLS/linux-source.tar" ]; then
        return
    fi
    apt-get update -qq
    package=$(source_package)
    say "apt-get download $package"
    rm -rf "$folder"
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root "$package")
    dpkg-deb --fsys-tarfile "$folder"/*.deb |
        tar -x -f - -O --wildcards './usr/src/*.tar.xz' | xz -dc -T0 >"$folder/tar"
    mv "$folder/tar" "$TOOLS/linux-source.tar"
    rm -rf "$folder"
}

# The folders of the tree that a run unpacks: about 8,000 files in quick mode, else all.
tree_parts() {
    [ -n "$quick" ] || return 0
    printf '%s\n' --wildcards '*/fs/*' '*/include/linux/*' '*/kernel/*' '*/mm/*' '*/lib/*' \
        '*/scripts/*' '*/arch/x86/*'
}

# unpack_to DIR: the tree, or its part, without the folder that the tarball puts round it.
unpack_to() {
    local parts
    mapfile -t parts < <(tree_parts)
    mkdir -p "$1"
    tar -x -f "$TOOLS/linux-source.tar" --strip-components=1 -C "$1" "${parts[@]}"
}

# Every name with its kind, mode, owner, time and target, and every file with its size and hash.
fingerprint() {
    (
        cd "$1"
        find . -printf '%p %y %#m %U:%G %n %l\n' | awk '$2 == "d" { $5 = "-" } { print }' | sort
        find . ! -type d -printf '%p %s %T@\n' | sort
        find . -type f -print0 | xargs -0 -P2 -n 500 sha256sum | sort -k2
    )
}

unpack() {
    alone fetch_source
    say "unpack linux-source on the host"
    unpack_to "$WORK/host"
    fingerprint "$WORK/host" >"$WORK/host.list"
    say "unpack linux-source into the mount"
    unpack_to "$place/tree"
    fingerprint "$place/tree" >"$WORK/tree.list"
    cmp "$WORK/host.list" "$WORK/tree.list" ||
        die "the trees differ: $(diff "$WORK/host.list" "$WORK/tree.list" | head -20)"
    say "$(grep -c ' f ' "$WORK/tree.list") files, the same names, attributes and checksums"
}

### git

git_tree() {
    local tree=$place/tree before
    [ -d "$tree" ] || { alone fetch_source && unpack_to "$tree"; }
    [ -z "$quick" ] || tree=$place/tree/fs
    say "git init, add, commit, fsck"
    # Without gc.auto=0, git may tidy up in the background while the rest goes on.
    git() { command git -C "$tree" -c user.name=Test -c user.email=test@example.org \
        -c gc.auto=0 "$@"; }
    git init -q -b main
    # The tree's own ignore rules would keep some of its files out.
    git add --all --force .
    git commit -q -m 'Everything'
    [ -z "$(git status --porcelain)" ] || die "git status is not clean after the commit"
    git fsck --full --strict --no-dangling
    before=$(git rev-parse 'HEAD^{tree}')
    rm -rf "${tree:?}"/ext4 "$tree"/fs/ext4 "$tree"/xfs "$tree"/fs/xfs
    git checkout -q -- .
    git gc -q --prune=now
    git fsck --full --strict --no-dangling
    git add --all --force .
    [ "$(git write-tree)" = "$before" ] || die "the tree changed by rm, checkout and gc"
    unset -f git
    rm -rf "$tree/.git"
}

### cargo build

build() {
    local source=$place/holdfast arguments=(--offline)
    say "cargo build of this project in the mount"
    mkdir "$source"
    if [ -e "$ROOT/.git" ]; then
        git -c "safe.directory=$ROOT" -C "$ROOT" archive HEAD | tar -x -C "$source"
    else
        tar -c -C "$ROOT" --exclude=./target . | tar -x -C "$source"
    fi
    # The network is none of the file system's business.
    (cd "$source" && cargo fetch --quiet)
    [ -z "$quick" ] || arguments+=(--package holdfast-fs-core)
    [ -n "$quick" ] || arguments+=(--workspace --all-targets)
    (
        cd "$source"
        export CARGO_TARGET_DIR=$source/target
        unset RUSTFLAGS
        cargo build --quiet "${arguments[@]}"
        # Times that are not stable would make cargo build again.
        cargo build "${arguments[@]}" 2>"$WORK/second-build"
    )
    if grep -q Compiling "$WORK/second-build"; then
        cat "$WORK/second-build"
        die "cargo compiled again what was already built"
    fi
    [ -n "$quick" ] || "$source/target/debug/holdfast" --version
}

### SQLite

sqlite() {
    local base=$place/base writer pids=() rows total transactions=500
    [ -z "$quick" ] || transactions=100
    say "SQLite in WAL mode, 4 writers of $transactions transactions"
    mkdir "$base"
    [ "$(sqlite3 "$base/db" 'PRAGMA journal_mode=WAL;')" = wal ] || die "no WAL mode"
    sqlite3 "$base/db" 'CREATE TABLE log (writer INTEGER, number INTEGER, text TEXT,
        PRIMARY KEY (writer, number)); CREATE TABLE sum (total INTEGER); INSERT INTO sum VALUES (0);'
    for writer in 1 2 3 4; do
        {
            echo '.timeout 120000'
            echo '.bail on'
            awk -v writer="$writer" -v count="$transactions" 'BEGIN {
                for (number = 1; number <= count; number++) {
                    print "BEGIN IMMEDIATE;"
                    print "INSERT INTO log VALUES (" writer "," number ", hex(randomblob(" 50 + number * 7 % 900 ")));"
                    print "UPDATE sum SET total = total + 1;"
                    print "COMMIT;"
                }
            }'
        } | sqlite3 "$base/db" >"$WORK/sqlite-$writer" 2>&1 &
        pids+=($!)
        PIDS+=($!)
    done
    check_database "$base/db"
    check_database "$base/db"
    for writer in 1 2 3 4; do
        wait "${pids[$((writer - 1))]}" || die "writer $writer: $(cat "$WORK/sqlite-$writer")"
        drop_pid "${pids[$((writer - 1))]}"
    done
    check_database "$base/db"
    rows=$(sqlite3 "$base/db" 'SELECT count(*) FROM log')
    total=$(sqlite3 "$base/db" 'SELECT total FROM sum')
    [ "$rows $total" = "$((4 * transactions)) $((4 * transactions))" ] ||
        die "SQLite lost updates: $rows rows, total $total of $((4 * transactions))"
    sqlite3 "$base/db" 'PRAGMA wal_checkpoint(TRUNCATE); VACUUM;' >/dev/null
    check_database "$base/db"
}

check_database() {
    local answer
    answer=$(sqlite3 -cmd '.timeout 120000' "$1" 'PRAGMA integrity_check;')
    [ "$answer" = ok ] || die "PRAGMA integrity_check: $answer"
}

### rsync

# A tree with everything that -aHAX carries.
odd_tree() {
    local dir=$1 number
    mkdir -p "$dir/deep/er/est" "$dir/setgid" "$dir/inherits"
    for number in $(seq 1 200); do
        head -c $((number * 37)) /dev/urandom >"$dir/deep/file-$number"
    done
    head -c 3000000 /dev/urandom >"$dir/large"
    truncate -s 5000000 "$dir/sparse"
    printf 'end' >>"$dir/sparse"
    ln "$dir/large" "$dir/deep/er/same"
    ln "$dir/deep/file-1" "$dir/deep/er/est/first"
    ln -s ../large "$dir/deep/link"
    ln -s nowhere "$dir/dangling"
    mkfifo "$dir/fifo"
    mknod "$dir/null" c 1 3
    printf x >"$dir/"$'new\nline'
    printf x >"$dir/"$'not-\xff\xfe-utf8'
    : >"$dir/empty"
    chmod 2775 "$dir/setgid"
    chmod 4755 "$dir/deep/file-2"
    chmod 0000 "$dir/deep/file-3"
    chown 12345:54321 "$dir/deep/file-4"
    setfacl -m u:1234:rw,g:4321:r "$dir/deep/file-6" "$dir/large"
    setfacl -d -m u:1234:rwx,g:4321:rx "$dir/inherits"
    mkdir "$dir/inherits/below"
    setfattr -n user.colour -v green "$dir/deep/file-7" "$dir/inherits"
    setfattr -n user.bytes -v 0x00ff00 "$dir/deep/file-8"
    setfattr -n trusted.mark -v 'of root' "$dir/large"
    # rsync leaves the time of a link or a device alone that is right to the second: none is new.
    find "$dir" -exec touch -h -d '2020-02-02 02:02:02.222222222' {} +
    touch -d '1999-12-31 23:59:59.123456789' "$dir/deep/file-5"
    touch -d '2100-01-01 00:00:00' "$dir/deep/er"
}

# All that rsync -aHAX promises to carry, in an order of its own.
odd_fingerprint() {
    fingerprint "$1"
    (
        cd "$1"
        find . -print0 | sort -z | xargs -0 getfacl --physical --numeric --absolute-names
        find . -print0 | sort -z | xargs -0 getfattr --no-dereference --absolute-names -m - -d -e hex
    )
}

both_ways() {
    local step
    say "rsync -aHAX --checksum both ways"
    mkdir "$WORK/rsync"
    odd_tree "$WORK/rsync/a"
    rsync -aHAX --checksum "$WORK/rsync/a/" "$place/rsync/"
    rsync -aHAX --checksum "$place/rsync/" "$WORK/rsync/b/"
    # The second time there is nothing left to do, in either direction.
    rsync -aHAXni --checksum --delete "$WORK/rsync/a/" "$place/rsync/" >"$WORK/rsync/again"
    rsync -aHAXni --checksum --delete "$place/rsync/" "$WORK/rsync/a/" >>"$WORK/rsync/again"
    [ ! -s "$WORK/rsync/again" ] || die "rsync still finds differences: $(cat "$WORK/rsync/again")"
    odd_fingerprint "$WORK/rsync/a" >"$WORK/rsync/a.list"
    odd_fingerprint "$place/rsync" >"$WORK/rsync/mount.list"
    odd_fingerprint "$WORK/rsync/b" >"$WORK/rsync/b.list"
    for step in mount b; do
        cmp "$WORK/rsync/a.list" "$WORK/rsync/$step.list" ||
            die "copies differ: $(diff -a "$WORK/rsync/a.list" "$WORK/rsync/$step.list" | head -20)"
    done
}

### Nothing left

only_root_left() {
    [ "$(info_value "$place" inodes)" = 1 ] && [ "$(info_value "$place" names)" = 0 ] &&
        [ "$(info_value "$place" pages)" = 0 ]
}

leave_nothing() {
    say "rm -rf"
    find "$place" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
    [ -z "$(ls -A "$place")" ] || die "rm -rf left $(ls -A "$place")"
    if [ -n "$dir" ]; then
        return
    fi
    # The kernel hands back the last inodes on its own time.
    until_true 20 only_root_left ||
        die "files are gone, holdfast info still counts them: $("$HOLDFAST" info --json "$place")"
    umount_holdfast "$place"
}

timed() { # PART COMMAND
    local started now
    case ",$only," in
    *",$1,"*) ;;
    *) return 0 ;;
    esac
    started=$(date +%s)
    "$2"
    now=$(date +%s)
    say "$1: ok, $((now - started)) s"
}

timed unpack unpack
timed git git_tree
timed build build
timed sqlite sqlite
timed rsync both_ways
leave_nothing
echo "real-use: all parts passed ($only)"
