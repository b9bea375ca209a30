#!/usr/bin/env bash
# Runs tests of xfstests on volumes over FUSE, with `holdfast fsck` after each, and compares the
# outcomes with a list.
#
#   XFSTESTS=DIR scripts/xfstests.sh [--transport auto|uring|dev] [TEST…]
#
# DIR is a built checkout of xfstests. Without arguments: the quick tests of its group *generic*. A
# test is named `generic/001`. scripts/xfstests.list has a line for each test: `passed`, `not-run`
# or `failed`, and why.
#
# Prints each test with another outcome, and each that the list does not have. Exits 0 if no test
# that passes by the list failed, and no volume was unsound. The outcomes of the run are left in
# target/xfstests.outcomes, in the form of the list. Needs root. Makes the users that xfstests asks
# for (fsgqa, 123456-fsgqa, fsgqa2) if they are missing, and removes them again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/session.sh"
LIST=$ROOT/scripts/xfstests.list
OUTCOMES=$ROOT/target/xfstests.outcomes
SECONDS_MAX=${SECONDS_MAX:-300}

transport=auto
tests=()
while [ $# -gt 0 ]; do
    case $1 in
    --transport) transport=${2:?--transport needs a name}; shift 2 ;;
    generic/*) tests+=("$1"); shift ;;
    *) die "unknown argument $1" ;;
    esac
done
[ -n "${XFSTESTS:-}" ] || unfit "XFSTESTS names no checkout of xfstests that is built"
[ -x "$XFSTESTS/check" ] && [ -x "$XFSTESTS/ltp/fsstress" ] ||
    unfit "$XFSTESTS is no checkout of xfstests that is built: run make in it"
need_mount

# The names by which mount(8) and umount(8) find the binary.
LINKS=()
USERS=()
leave() {
    local code=$? name
    for name in "${LINKS[@]}"; do rm -f "$name"; done
    for name in "${USERS[@]}"; do userdel --remove "$name" 2>/dev/null || true; done
    (exit "$code") || true
    cleanup
}
trap leave EXIT
for name in mount umount; do
    link=/sbin/$name.fuse.holdfast
    if [ -e "$link" ] && [ "$(readlink -f "$link")" != "$(readlink -f "$HOLDFAST")" ]; then
        die "$link leads to another program than $HOLDFAST"
    elif [ ! -e "$link" ]; then
        ln -s "$(readlink -f "$HOLDFAST")" "$link"
        LINKS+=("$link")
    fi
done
for name in fsgqa 123456-fsgqa fsgqa2; do
    if ! id "$name" >/dev/null 2>&1 && useradd --badname --create-home "$name" 2>/dev/null; then
        USERS+=("$name")
    fi
done

# xfstests compares the type that df(1) says with `fuse`, and knows of no subtypes.
mkdir -p "$WORK/test" "$WORK/scratch" "$WORK/bin"
cat >"$WORK/bin/df" <<END
#!/bin/sh
$(command -v df) "\$@" | sed 's/fuse\\.holdfast/fuse/'
END
chmod +x "$WORK/bin/df"
for name in test scratch; do
    MOUNTS+=("$WORK/$name")
    "$HOLDFAST" mkfs --quiet --size 2g "$WORK/$name.hf"
done
options="-o transport=$transport,nonempty,fuseblk=off"
cat >"$WORK/local.config" <<END
export FSTYP=fuse
export FUSE_SUBTYP=.holdfast
export TEST_DEV=$WORK/test.hf
export TEST_DIR=$WORK/test
export SCRATCH_DEV=$WORK/scratch.hf
export SCRATCH_MNT=$WORK/scratch
export FUSE_MOUNT_OPTIONS="$options"
export TEST_FS_MOUNT_OPTS="$options"
export RESULT_BASE=$WORK/results
END

if [ ${#tests[@]} -eq 0 ]; then
    mapfile -t tests < <(awk '$0 !~ /^#/ && / quick( |$)/ { print "generic/" $1 }' "$XFSTESTS/tests/generic/group.list")
fi

# outcome TEST: passed, not-run or failed, and the reason.
outcome() {
    local said code=0
    said=$(cd "$XFSTESTS" && PATH=$WORK/bin:$PATH HOST_OPTIONS=$WORK/local.config timeout -k 10 "$SECONDS_MAX" ./check "$1" 2>&1 </dev/null) || code=$?
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        echo "failed: not done after $SECONDS_MAX s"
    elif grep -q "^Not run: $1" <<<"$said"; then
        echo "not-run: $(sed -n "s#^$1 .*\[not run\] *##p" <<<"$said" | head -1)"
    elif grep -q '^Passed all 1 tests' <<<"$said"; then
        echo passed
    else
        echo "failed: $(sed -n 's/^ *+//p' <<<"$said" | grep -v '^++' | head -1 | cut -c -100)"
    fi
}

sound_or_told() {
    local name=$1 dir=$WORK/$1
    if is_mounted "$dir"; then
        "$HOLDFAST" umount "$dir" >/dev/null 2>&1 || umount -l "$dir"
    fi
    until_true 20 no_daemon "$dir" || die "the daemon of $dir does not end"
    "$HOLDFAST" fsck "$WORK/$name.hf" >"$WORK/fsck" 2>&1
}

expected_of() { awk -v test="$1" '$1 == test { $1 = ""; print substr($0, 2) }' "$LIST"; }

mkdir -p "$ROOT/target"
: >"$OUTCOMES"
declare -A count=([passed]=0 [not-run]=0 [failed]=0)
worse=0 other=0
for test in "${tests[@]}"; do
    found=$(outcome "$test")
    kind=${found%%:*}
    count[$kind]=$((count[$kind] + 1))
    echo "$test $found" >>"$OUTCOMES"
    expected=$(expected_of "$test")
    if [ "${expected%%:*}" != "$kind" ]; then
        other=$((other + 1))
        say "$test: $found (the list says: ${expected:-nothing})"
        case ${expected%%:*}/$kind in passed/failed | /failed) worse=$((worse + 1)) ;; esac
    fi
    for name in test scratch; do
        if ! sound_or_told "$name"; then
            worse=$((worse + 1))
            say "$test: the volume $name is unsound"
            cat "$WORK/fsck"
            "$HOLDFAST" mkfs --quiet --force --size 2g "$WORK/$name.hf"
        fi
    done
done
say "${count[passed]} passed, ${count[not-run]} not run, ${count[failed]} failed; $other otherwise than the list says, $worse worse"
[ "$worse" = 0 ]
