#!/usr/bin/env bash
# Wrong uses of the commands, and what they are answered: runs each line of scripts/wrong-uses.txt
# in a folder that has what the line names.
#
#   scripts/wrong-uses.sh
#
# A line holds if the exit code is right, and the output has the thing and the remedy. Parts that
# take a mount are left out without /dev/fuse, and those of ordinary users without root.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

[ -x "$HOLDFAST" ] || die "$HOLDFAST is not there: build it, or set HOLDFAST"
passed=0 failed=0
list=$ROOT/scripts/wrong-uses.txt
# Other users may not reach the program where it is.
cp "$HOLDFAST" "$WORK/holdfast"
place=$WORK/place
mkdir -p "$place/d/full/dir" "$place/from/dir"
chmod 755 "$place"
cd "$place"

# furnish: makes what the lines name.
furnish() {
    printf x >from/file
    "$HOLDFAST" mkfs -q --size 64m --from from v.hf
    cp --sparse=always v.hf root.hf
    chmod 600 root.hf
    cp --sparse=always v.hf headless.hf
    dd if=/dev/zero of=headless.hf bs=8192 count=1 conv=notrunc status=none
    : >empty
    printf 'hello\n' >short
    head -c 4194304 /dev/zero >zeros
    tr '\0' x <zeros >other
    cp zeros e4
    printf '\123\357' | dd of=e4 bs=1 seek=1080 conv=notrunc status=none
    mkfifo pipe
}

# part NAME COMMAND…: the lines of a part, each run by this command.
part() {
    local name=$1 words code thing remedy said got within=no
    shift
    while IFS= read -r line; do
        case $line in
        "[$name]") within=yes; continue ;;
        "["*) within=no; continue ;;
        "" | "#"*) continue ;;
        esac
        [ "$within" = yes ] || continue
        IFS='|' read -r words code thing remedy <<<"$line"
        thing=$(trim "$thing") remedy=$(trim "$remedy")
        got=0
        # shellcheck disable=SC2086 # words of a command line
        said=$("$@" $words </dev/null 2>&1) || got=$?
        if [ "$got" = $code ] && [[ $said == *"$thing"* && $said == *"$remedy"* ]] &&
            [[ $said != *"panicked"* && $said != *"holdfast: Invalid argument"* ]]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf 'holdfast %s: exit code %s for %s, "%s", "%s":\n%s\n' \
                "$words" "$got" "$code" "$thing" "$remedy" "$said"
        fi
    done <"$list"
}

trim() {
    local text=${1#"${1%%[![:space:]]*}"}
    printf %s "${text%"${text##*[![:space:]]}"}"
}

# unchanged NAME…: nothing of these was made.
unchanged() {
    local name
    for name in "$@"; do
        [ ! -e "$name" ] || { failed=$((failed + 1)); echo "$name was made"; }
    done
    "$HOLDFAST" fsck --quiet v.hf || { failed=$((failed + 1)); echo "v.hf was changed"; }
}

furnish
before=$(cksum <e4)
part "any user, nothing mounted" "$HOLDFAST"
unchanged x.hf x m none /dev/holdfast-typo
[ "$before" = "$(cksum <e4)" ] || { failed=$((failed + 1)); echo "e4 was changed"; }

if [ -w /dev/fuse ]; then
    part mounts "$HOLDFAST"
    unchanged m
    MOUNTS+=("$place/mnt")
    "$HOLDFAST" mount v.hf mnt
    part "within a mount" "$HOLDFAST"
    [ "$(cat mnt/file)" = x ] || { failed=$((failed + 1)); echo "mnt/file was changed"; }
    "$HOLDFAST" umount mnt
    unchanged m
else
    echo "skipped: wrong-uses: mounts: there is no /dev/fuse to write to"
fi
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    part "ordinary users" setpriv --reuid=12345 --regid=12345 --clear-groups "$WORK/holdfast"
else
    echo "skipped: wrong-uses: ordinary users: becoming another user takes root and setpriv"
fi

echo "test result: $([ "$failed" = 0 ] && echo ok || echo FAILED). $passed passed; $failed failed;"
[ "$failed" = 0 ]
