#!/usr/bin/env bash
# Programs' own test suites and their everyday work on a mounted volume: for releases. It takes
# hours if all programs are there.
#
#   scripts/programs.sh [--transport auto|uring|dev] [--dir DIR] [--list] [PART…]
#
# Without parts: all of them. --list names them, with what each needs. --dir works in an existing
# folder, on any file system, to see what fails there as well. A part is skipped, and counted as
# skipped, if its programs are missing; nothing is installed.
#
# scripts/programs.expected lists the tests that fail on any FUSE mount, and why; another failure
# fails the part. The script prints a line a part and, last, `programs: N passed, M failed, K
# skipped`. It exits 0 only if none failed. The output of each part is in target/programs/PART.log.
#
# HOLDFAST_STORE is `volume` unless it is set. GIT, SQLITE, POSTGRES and COREUTILS name folders with
# sources that are built already.
set -euo pipefail
HOLDFAST_STORE=${HOLDFAST_STORE:-volume}
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

EXPECTED=$ROOT/scripts/programs.expected
LOGS=$ROOT/target/programs

# Exit code of a part that cannot be run here; it says why in its last line.
MISSING=77

missing() {
    echo "$*"
    exit "$MISSING"
}

needs() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || missing "there is no program $name"
    done
}

# built VARIABLE FILE…: the folder that the variable names has these, built.
built() {
    local folder=${!1:-} file
    [ -n "$folder" ] || missing "$1 names no built source"
    for file in "${@:2}"; do
        [ -e "$folder/$file" ] || missing "$folder has no $file: build it first"
    done
}

# compare PART FILE: the names of failed tests in FILE are those that are expected for the part.
compare() {
    local unexpected
    unexpected=$(comm -13 <(sed -n "s/^$1 \([^ ]*\).*/\1/p" "$EXPECTED" | sort -u) <(sort -u "$2"))
    [ -z "$unexpected" ] || die "$1: failed, and is not expected to: $unexpected"
}

# A tree of many kinds of files to back up, unpack and copy.
tree() {
    local dir=$1 number
    mkdir -p "$dir"
    for number in $(seq 1 60); do
        mkdir -p "$dir/d$((number % 7))/sub"
        head -c $((number * number * 100)) /dev/urandom >"$dir/d$((number % 7))/sub/f$number"
        printf '%s\n' "line $number" >"$dir/d$((number % 7))/text$number"
    done
    ln "$dir/d1/text1" "$dir/hard"
    ln -s d1/text1 "$dir/soft"
    truncate -s 10M "$dir/sparse"
    chmod 600 "$dir/d2/text2"
    find "$dir" -exec touch -h -d '2021-03-04 05:06:07.123456789' {} +
}

# The same names, kinds, modes, owners, times and content.
same_trees() {
    rsync -aHni --checksum --delete "$1/" "$2/" >"$WORK/differs"
    [ ! -s "$WORK/differs" ] || die "copies differ: $(head -20 "$WORK/differs")"
}

### Everyday work: name, what it needs, and the function

# GIT: a built source of git; its 21,820 tests
git_suite() {
    built GIT git t/test-lib.sh
    needs prove
    (cd "$GIT/t" && prove --jobs 2 --timer ./t[0-9]*.sh :: --root="$place/git" || true) |
        tee "$WORK/git.out"
    # prove's summary also names a script if its known breakage is gone, with nothing failed.
    sed -n '/(Wstat: 0 .*Failed: 0)/d; s#^\(\./\)\{0,1\}\(t[0-9][^ ]*\.sh\) *(Wstat: .*#\2#p' "$WORK/git.out" >"$WORK/git.failed"
    grep -q '^Files=' "$WORK/git.out" || die "the suite of git did not run to its end"
    compare git "$WORK/git.failed"
}

# SQLITE: a built source of SQLite (make testfixture) that everybody may read
sqlite_suite() {
    built SQLITE testfixture test/veryquick.test
    needs setpriv
    mkdir "$place/sqlite"
    chown 65534:65534 "$place/sqlite"
    # Its tests of files that may not be written do not run as root.
    (cd "$place/sqlite" && setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$SQLITE/testfixture" "$SQLITE/test/veryquick.test" || true) | tee "$WORK/sqlite.out"
    grep -qE '^[0-9]+ errors out of' "$WORK/sqlite.out" || die "the suite of SQLite did not run to its end"
    sed -n 's/^!Failures on these tests: //p' "$WORK/sqlite.out" | tr ' ' '\n' | sed '/^$/d' >"$WORK/sqlite.failed"
    compare sqlite "$WORK/sqlite.failed"
}

# initdb, pgbench, and root to become postgres
postgres_bench() {
    local programs data=$place/postgres round before after
    programs=$(find /usr/lib/postgresql -name bin -type d 2>/dev/null | sort -V | tail -1)
    [ -n "$programs" ] && id postgres >/dev/null 2>&1 || missing "there is no PostgreSQL with its user"
    needs setpriv
    mkdir "$data"
    chown postgres "$data"
    as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
    server() {
        as "$programs/postgres" -D "$data/db" -c listen_addresses= -c "unix_socket_directories=$data" \
            -c fsync=on >>"$WORK/postgres.log" 2>&1 &
        PIDS+=($!)
        until_true 60 as "$programs/pg_isready" -q -h "$data" || die "no server: $(tail -5 "$WORK/postgres.log")"
    }
    ask() { as "$programs/psql" -h "$data" -d postgres -Atc "$1"; }
    as "$programs/initdb" -D "$data/db" -A trust >/dev/null
    server
    as "$programs/pgbench" -h "$data" -i -q -s 2 postgres
    for round in 1 2 3; do
        as "$programs/pgbench" -h "$data" -c 4 -j 2 -T 5 -n postgres
        before=$(ask 'SELECT count(*) FROM pgbench_history')
        # Without notice: what was committed has to be there.
        kill -9 "$(head -1 "$data/db/postmaster.pid")"
        wait "${PIDS[-1]}" 2>/dev/null || true
        unset 'PIDS[-1]'
        sleep 1
        server
        after=$(ask 'SELECT count(*) FROM pgbench_history')
        [ "$after" -ge "$before" ] || die "round $round: $before transactions before the kill, $after behind it"
        [ "$(ask 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)')" = t ] ||
            die "round $round: sums differ"
    done
    as "$programs/pg_ctl" -D "$data/db" stop -m fast >/dev/null
    as "$programs/pg_checksums" -D "$data/db" --enable >/dev/null
}

# POSTGRES: a built source of PostgreSQL, configured with --enable-tap-tests
postgres_tap() {
    built POSTGRES src/test/recovery/Makefile src/backend/postgres
    cp -a "$POSTGRES" "$place/postgresql"
    chown -R postgres "$place/postgresql"
    # It knows the folder where it was built by these.
    setpriv --reuid=postgres --regid=postgres --clear-groups make -C "$place/postgresql/src/test/recovery" check \
        abs_top_builddir="$place/postgresql" abs_top_srcdir="$place/postgresql"
}

# python3 with its own test package
python_suite() {
    local python=${PYTHON:-python3}
    needs "$python"
    "$python" -c 'import test.test_os, test.libregrtest' 2>/dev/null || missing "$python has no package \`test\`"
    mkdir "$place/python"
    "$python" -m test --tempdir "$place/python" test_os test_posix test_posixpath test_shutil test_tempfile test_pathlib \
        test_glob test_io test_fileio test_largefile test_mmap test_fcntl test_file test_zipfile test_tarfile test_stat \
        test_dbm test_mailbox test_filecmp test_fnmatch test_genericpath test_bz2 test_gzip 2>&1 |
        tee "$WORK/python.out" || true
    # Each version of Python writes this line in its own way.
    grep -qE '^(== )?(Tests r|R)esult: ' "$WORK/python.out" || die "the suite of Python did not run to its end"
    sed -n 's/^\(FAIL\|ERROR\): \([^ ]*\) (\([^)]*\)).*/\3/p' "$WORK/python.out" | sort -u >"$WORK/python.failed"
    # A module that fails as a whole names no test.
    grep -qE '^(== )?(Tests r|R)esult: SUCCESS' "$WORK/python.out" || [ -s "$WORK/python.failed" ] || echo whole-module >"$WORK/python.failed"
    compare python "$WORK/python.failed"
}

# go with its source
go_suite() {
    needs go
    mkdir "$place/go"
    TMPDIR=$place/go GOFLAGS=-mod=mod go test -count=1 -json os io/fs io/ioutil path/filepath archive/tar archive/zip os/exec \
        internal/poll >"$WORK/go.out" || true
    grep -q '"Action":"pass","Package":"io/fs"' "$WORK/go.out" || die "the suite of Go did not run: $(tail -3 "$WORK/go.out")"
    sed -n 's/.*"Action":"fail","Package":"\([^"]*\)","Test":"\([^"]*\)".*/\1.\2/p' "$WORK/go.out" | sort -u >"$WORK/go.failed"
    compare go "$WORK/go.failed"
}

# COREUTILS: a built source of coreutils
coreutils_suite() {
    built COREUTILS src/ls tests/local.mk
    cp -a "$COREUTILS" "$place/coreutils"
    make -C "$place/coreutils" check VERBOSE=no SUBDIRS=. RUN_EXPENSIVE_TESTS=no RUN_ROOT_TESTS=yes -k || true
    [ -e "$place/coreutils/tests/test-suite.log" ] || die "the suite of coreutils did not run to its end"
    grep -rlxE ':test-result: (FAIL|ERROR)' "$place/coreutils/tests" --include='*.trs' |
        sed "s:^$place/coreutils/::; s:\.trs\$::" >"$WORK/coreutils.failed" || true
    compare coreutils "$WORK/coreutils.failed"
}

# fio
fio_verify() {
    needs fio
    local engine direct pattern
    mkdir "$place/fio"
    for engine in psync libaio io_uring mmap; do
        for direct in 0 1; do
            [ "$engine/$direct" != mmap/1 ] || continue
            for pattern in write randwrite randrw; do
                fio --name="$engine-$direct-$pattern" --directory="$place/fio" --ioengine="$engine" --direct="$direct" \
                    --rw="$pattern" --bs=4k-64k --size=16m --numjobs=2 --iodepth=8 --verify=crc32c --verify_fatal=1 \
                    --do_verify=1 --verify_state_save=0 --fsync=32 --minimal >/dev/null
            done
        done
    done
}

# restic, rsync
restic_backup() {
    needs restic rsync
    export RESTIC_PASSWORD=secret RESTIC_REPOSITORY=$place/restic RESTIC_CACHE_DIR=$place/restic-cache
    tree "$place/restic-tree"
    restic init -q
    restic backup -q "$place/restic-tree"
    echo more >>"$place/restic-tree/d3/text3"
    restic backup -q "$place/restic-tree"
    restic check -q --read-data
    restic restore -q latest --target "$place/restic-back"
    same_trees "$place/restic-tree" "$place/restic-back$place/restic-tree"
    restic forget -q --keep-last 1 --prune
    restic check -q --read-data
}

# borg, rsync
borg_backup() {
    needs borg rsync
    export BORG_REPO=$place/borg BORG_BASE_DIR=$place/borg-base BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
    tree "$place/borg-tree"
    borg init -e none
    (cd "$place" && borg create ::one borg-tree)
    echo more >>"$place/borg-tree/d3/text3"
    (cd "$place" && borg create --stats ::two borg-tree) | tee "$WORK/borg.out"
    borg check --verify-data
    mkdir "$place/borg-back"
    (cd "$place/borg-back" && borg extract ::two)
    same_trees "$place/borg-tree" "$place/borg-back/borg-tree"
    borg delete ::one
    borg compact
    borg check --verify-data
}

# rsync, setfacl, setfattr, sqlite3 (those of scripts/real-use.sh)
rsync_ways() {
    needs rsync setfacl setfattr sqlite3 git xz
    "$ROOT/scripts/real-use.sh" --only rsync --dir "$place"
}

# python3 with venv and ensurepip
pip_install() {
    local python=${PYTHON:-python3}
    needs "$python"
    "$python" -c 'import venv, ensurepip' 2>/dev/null || missing "$python has no venv and ensurepip"
    "$python" -m venv "$place/venv"
    "$place/venv/bin/pip" check
    # A package of our own: nothing comes from the network.
    mkdir -p "$place/package/held"
    printf 'def answer():\n    return 42\n' >"$place/package/held/__init__.py"
    printf '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "held"\nversion = "1"\n[tool.setuptools]\npackages = ["held"]\n' \
        >"$place/package/pyproject.toml"
    "$place/venv/bin/python" -c 'import setuptools, wheel' 2>/dev/null ||
        "$place/venv/bin/pip" install -q setuptools wheel || missing "neither setuptools nor a network"
    "$place/venv/bin/pip" install -q --no-index --no-build-isolation "$place/package"
    [ "$("$place/venv/bin/python" -c 'import held; print(held.answer())')" = 42 ] || die "the package does not work"
    "$place/venv/bin/pip" uninstall -q -y held
    ! "$place/venv/bin/python" -c 'import held' 2>/dev/null || die "the package is still there"
}

# npm, and a network
npm_install() {
    needs npm node
    node_packages npm ci
}

# pnpm, and a network
pnpm_install() {
    needs pnpm node
    node_packages pnpm install
}

# node_packages PROGRAM AGAIN: installs a few packages, again from what it noted, and runs one.
node_packages() {
    local dir=$place/$1
    mkdir "$dir"
    printf '{"name": "held", "version": "1.0.0", "private": true}\n' >"$dir/package.json"
    (
        cd "$dir"
        export npm_config_cache=$place/$1-cache npm_config_store_dir=$place/$1-store npm_config_update_notifier=false
        "$1" install express typescript eslint || missing "no network"
        node -e 'require("express"); require("typescript")'
        rm -rf node_modules
        "$1" "$2"
        node -e 'require("express"); require("typescript")'
    )
}

# cargo
cargo_build() {
    needs cargo
    local dir=$place/cargo
    mkdir -p "$dir/src/bin"
    printf '[package]\nname = "held"\nversion = "0.1.0"\nedition = "2021"\n' >"$dir/Cargo.toml"
    printf 'pub fn answer() -> u32 { 42 }\n' >"$dir/src/lib.rs"
    printf 'fn main() { println!("{}", held::answer()); }\n' >"$dir/src/bin/held.rs"
    (
        cd "$dir"
        export CARGO_TARGET_DIR=$dir/target
        unset RUSTFLAGS
        cargo build --quiet --offline
        cargo build --offline 2>"$WORK/again"
        ! grep -q Compiling "$WORK/again" || die "cargo compiled again what was already built"
        [ "$(target/debug/held)" = 42 ] || die "the program does not run"
        # Within the same second, and of the same length.
        printf 'pub fn answer() -> u32 { 43 }\n' >src/lib.rs
        cargo build --quiet --offline
        [ "$(target/debug/held)" = 43 ] || die "cargo missed a change"
    )
}

# podman, and a static busybox
podman_run() {
    local busybox
    needs podman
    busybox=$(command -v busybox) || missing "there is no program busybox"
    ! ldd "$busybox" >/dev/null 2>&1 || missing "$busybox is not static"
    mkdir -p "$place/podman/root/bin" "$place/podman/tmp"
    cp "$busybox" "$place/podman/root/bin/"
    ln -s busybox "$place/podman/root/bin/sh"
    local runtime=
    pod() {
        TMPDIR=$place/podman/tmp podman ${runtime:+--runtime "$runtime"} --root "$place/podman/storage" --runroot "$WORK/podman" \
            --storage-driver vfs --events-backend file --cgroup-manager cgroupfs "$@"
    }
    answers() {
        pod run --rm --network none "$@" --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 held:latest \
            /bin/sh -c 'echo 42' >"$WORK/podman.out" 2>"$WORK/podman.err"
    }
    # Behind a container that failed a process of its own clears up.
    cleared() { ! pgrep -f -- "--runroot $WORK/podman" >/dev/null; }
    tar -c -C "$place/podman/root" . | pod import - held:latest
    if ! answers --cgroups disabled; then
        until_true 20 cleared
        # Where there are control groups of both versions, only runc runs, and only within them.
        runtime=runc
        answers || {
            until_true 20 cleared
            missing "podman runs nothing on this machine: $(tail -1 "$WORK/podman.err")"
        }
    fi
    [ "$(cat "$WORK/podman.out")" = 42 ] || die "the container printed $(cat "$WORK/podman.out")"
    pod rmi held:latest
}

PARTS=(git:git_suite sqlite:sqlite_suite postgres:postgres_bench postgres-tap:postgres_tap python:python_suite go:go_suite
    coreutils:coreutils_suite fio:fio_verify restic:restic_backup borg:borg_backup rsync:rsync_ways pip:pip_install
    npm:npm_install pnpm:pnpm_install cargo:cargo_build podman:podman_run)

# What stands above the function of a part.
need_of() { grep -B1 "^$1() {" "${BASH_SOURCE[0]}" | sed -n 's/^# //p'; }

transport=auto
dir=
wanted=()
while [ $# -gt 0 ]; do
    case $1 in
    --transport) transport=${2:?--transport needs a name}; shift 2 ;;
    --dir) dir=${2:?--dir needs a folder}; shift 2 ;;
    --list)
        for part in "${PARTS[@]}"; do printf '%-14s %s\n' "${part%%:*}" "$(need_of "${part#*:}")"; done
        exit 0
        ;;
    -*) die "unknown argument $1" ;;
    *)
        [[ " ${PARTS[*]}" == *" $1:"* ]] || die "there is no part $1: --list names them"
        wanted+=("$1")
        shift
        ;;
    esac
done
[ -n "$dir" ] || need_mount

mkdir -p "$LOGS"
export LC_ALL=C
passed=0 failed=0 skipped=0
for part in "${PARTS[@]}"; do
    name=${part%%:*}
    [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $name "* ]] || continue
    started=$(date +%s)
    if [ -n "$dir" ]; then
        place=$(mktemp -d "$(readlink -f "$dir")/programs.XXXXXX")
        FOLDERS+=("$place")
    else
        # Each part has a mount of its own: what one leaves is none of the next one's business.
        place=$WORK/$name
        mount_holdfast "$place" --transport "$transport" >/dev/null
    fi
    chmod 755 "$place"
    code=0
    # In a subshell that stops at the first failure, which `if` and `||` around it would not let it
    # do.
    set +e
    (
        trap 'kill "${PIDS[@]}" 2>/dev/null || true; wait' EXIT
        set -e
        "${part#*:}"
    ) >"$LOGS/$name.log" 2>&1
    code=$?
    set -e
    took=$(($(date +%s) - started))
    case $code in
    0) passed=$((passed + 1)); say "$name: passed, $took s" ;;
    "$MISSING") skipped=$((skipped + 1)); say "$name: skipped: $(tail -1 "$LOGS/$name.log")" ;;
    *) failed=$((failed + 1)); say "$name: FAILED, $took s: $(tail -3 "$LOGS/$name.log")" ;;
    esac
    if [ -z "$dir" ]; then
        umount_holdfast "$place" >/dev/null
        rm -f "${IMAGE_AT[$place]:-}"
    fi
done
echo "programs: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
