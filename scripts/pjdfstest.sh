#!/usr/bin/env bash
# pjdfstest, a suite of POSIX claims about a file system, through the mount.
#
#   scripts/pjdfstest.sh [--transport auto|uring|dev] [--dir DIR]
#
# --dir runs on a folder that exists (tmpfs, say) instead of mounting, and compares no counts.
# The counts must be those of pjdfstest.expected; every test that is skipped or fails stands in
# pjdfstest.exclusions with its reason, and nothing else stands there.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

VERSION=0.2.2
HERE=$ROOT/scripts
transport=auto
dir=
while [ $# -gt 0 ]; do
    case $1 in
    --transport) transport=${2:?--transport needs a name}; shift 2 ;;
    --dir) dir=${2:?--dir needs a folder}; shift 2 ;;
    *) die "unknown argument $1 (usage: [--transport auto|uring|dev] [--dir DIR])" ;;
    esac
done

need_root
[ -n "$dir" ] || need_mount
need_commands mount:mount useradd:passwd
cargo_tool pjdfstest "$VERSION"

# The tests act as two users without rights: `nobody`, and one made here.
if ! id -u pjdfstest >/dev/null 2>&1; then
    say "useradd pjdfstest"
    useradd --system --user-group --no-create-home --home-dir / --shell /usr/sbin/nologin pjdfstest
fi
nobody_group=$(id -gn nobody)

configuration() { # ALLOW_REMOUNT
    cat <<EOF
# chflags, nfsv4_acls and file_flags are left out: Linux has none of them.
[features]
posix_fallocate = {}
rename_ctime = {}
stat_st_birthtime = {}
utime_now = {}
utimensat = {}

[settings]
# Times taken by the kernel are as coarse as its tick, 10 ms at most.
naptime = 0.011
allow_remount = $1
expected_failures = [$(sed -n 's/^fail  *\([^ ]*\) .*/"\1",/p' "$HERE/pjdfstest.exclusions" | tr -d '\n')]

[dummy_auth]
entries = [["nobody", "$nobody_group"], ["pjdfstest", "pjdfstest"]]
EOF
}
configuration false >"$WORK/plain.toml"
configuration true >"$WORK/remount.toml"

# A remount goes to the kernel; mount(8) would look for a helper of the file system's type.
mkdir "$WORK/bin"
printf '#!/bin/sh\nexec %s -i "$@"\n' "$(command -v mount)" >"$WORK/bin/mount"
chmod 755 "$WORK/bin/mount"

# For the tests that cross from one file system to another.
mount_tmpfs "$WORK/second"

if [ -n "$dir" ]; then
    place=$(readlink -f "$dir")
else
    place=$WORK/mnt
    mount_holdfast "$place" -o allow_other --transport "$transport"
    check_transport "$place" "$transport"
fi

# Two runs, since some tests leave a file open for writing until their process ends, and a file
# system with such a file cannot be remounted read-only.
say "pjdfstest on $place"
status=0
run() { # CONFIGURATION [PATTERN…]
    local config=$1
    shift
    PATH=$WORK/bin:$PATH NO_COLOR=1 RUST_BACKTRACE=0 timeout --kill-after=10 900 \
        "$TOOLS/bin/pjdfstest" -c "$config" -p "$place" -s "$WORK/second" "$@" 2>&1 || status=$?
}
run "$WORK/plain.toml" >"$WORK/plain.out"
run "$WORK/remount.toml" erofs >"$WORK/remount.out"

for out in plain remount; do
    grep -q '^Summary: ' "$WORK/$out.out" || {
        tail -20 "$WORK/$out.out"
        die "pjdfstest ended without a summary (exit code $status)"
    }
done

# One line for each test, "NAME RESULT", of both runs: the remounting tests only from the second.
{
    grep -E '^[a-z_0-9:]+ +[A-Za-z ]+$' "$WORK/plain.out" | grep -v '::erofs_'
    grep -E '^[a-z_0-9:]+ +[A-Za-z ]+$' "$WORK/remount.out" | grep '::erofs_'
} >"$WORK/results" || true

count() { grep -cE "$1" "$WORK/results" || true; }
passed=$(count ' ok$')
skipped=$(count ' skipped$')
failed=$(count ' (FAILED|PASSED UNEXPECTEDLY|failed as expected)$')

# What the two summaries count is what the lines above show.
total=$(sed -n 's/^Summary: .*, \([0-9]*\) total$/\1/p' "$WORK/plain.out")
[ "$((passed + skipped + failed))" = "$total" ] ||
    die "read $((passed + skipped + failed)) results of $total: the output has another form"

if [ "$failed" -gt 0 ]; then
    grep -hA8 -E ' (FAILED|PASSED UNEXPECTEDLY)$' "$WORK/plain.out" "$WORK/remount.out" || true
fi
awk '/ (skipped|FAILED|failed as expected)$/ { print ($2 == "skipped" ? "skip" : "fail"), $1 }' \
    "$WORK/results" | sort -u >"$WORK/seen"
sed 's/#.*//' "$HERE/pjdfstest.exclusions" | awk 'NF { print $1, $2 }' | sort -u >"$WORK/excluded"

if [ -z "$dir" ]; then
    umount_holdfast "$place"
fi

wrong=0
if [ -z "$dir" ]; then
    if ! diff -u --label pjdfstest.exclusions --label seen "$WORK/excluded" "$WORK/seen"; then
        echo "skipped and failing tests differ from scripts/pjdfstest.exclusions"
        wrong=1
    fi
    for name in passed failed skipped; do
        expected=$(awk -v name="$name" '$1 == name { print $2 }' "$HERE/pjdfstest.expected")
        if [ "${!name}" != "$expected" ]; then
            echo "$name: ${!name}, scripts/pjdfstest.expected has $expected"
            wrong=1
        fi
    done
else
    cat "$WORK/seen"
fi
# Exit code 1 is a failed test, already counted; others are the runner's own.
[ "$status" -le 1 ] || { echo "pjdfstest ended with exit code $status"; wrong=1; }
unexpected=$(count ' (FAILED|PASSED UNEXPECTEDLY)$')
[ "$unexpected" = 0 ] || wrong=1

echo "pjdfstest: $passed passed, $failed failed, $skipped skipped"
exit "$wrong"
