#!/usr/bin/env bash
# pjdfstest over two mounts of one file system of several machines, in turn: each call is made on
# the other mount than the call before. What one makes the other looks at.
#
#   PJDFSTEST=DIR scripts/in-turn.sh [--jobs N] [PART…]
#
# PJDFSTEST names the source of the suite in C and shell (github.com/pjd/pjdfstest), which makes each
# call in a process of its own. Parts are folders of its tests, or tests: `rename`, `open/00.t`.
#
# Each call that may change something is followed by a pause: after it, the other mount must know.
# It is as long as two machines may differ. Tests run side by side, in directories of their own, so
# that they wait at the same time.
set -euo pipefail
export HOLDFAST_STORE=cluster
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

# The lease, and what the programs take.
PAUSE=1.1
jobs=24
parts=()
while [ $# -gt 0 ]; do
    case $1 in
    --jobs) jobs=${2:?--jobs needs a number}; shift 2 ;;
    -*) die "unknown argument $1 (usage: [--jobs N] [PART…])" ;;
    *) parts+=("tests/$1"); shift ;;
    esac
done

need_mount
[ -e "${PJDFSTEST:-}/pjdfstest.c" ] || unfit "PJDFSTEST names no source of pjdfstest"
need_commands cc:gcc prove:perl openssl:openssl

suite=$WORK/suite
mkdir "$suite" "$suite/calls" "$suite/said"
cp -r "$PJDFSTEST/tests" "$suite/"
# What its configure script finds on Linux.
: >"$suite/config.h"
found=()
for name in SYS_SYSMACROS_H FACCESSAT FCHMODAT FCHOWNAT FSTATAT LINKAT MKDIRAT MKFIFOAT MKNODAT \
    OPENAT POSIX_FALLOCATE READLINKAT RENAMEAT SYMLINKAT UTIMENSAT STRUCT_STAT_ST_ATIM \
    STRUCT_STAT_ST_CTIM STRUCT_STAT_ST_MTIM; do
    found+=("-DHAVE_$name")
done
cc -w -I "$suite" -D_GNU_SOURCE "${found[@]}" -o "$suite/call" "$PJDFSTEST/pjdfstest.c"

a=$WORK/a b=$WORK/b
mount_holdfast "$a" -o allow_other
mkdir "$b"
MOUNTS+=("$b")
"$HOLDFAST" mount "${IMAGE_AT[$a]}" "$b" -o allow_other </dev/null
[ "$(info_value "$a" coherence)" = told ] || die "not told: $("$HOLDFAST" info "$a")"

# The tests take this for the program of the suite. They are in a directory of the first mount.
cat >"$suite/pjdfstest" <<EOF
#!/bin/sh
below=\${PWD#$a/}
calls=$suite/calls/\${below%%/*}
echo >>"\$calls"
here=$a
[ \$((\$(wc -l <"\$calls") % 2)) = 0 ] || here=$b
cd "\$here/\$below" || exit
"$suite/call" "\$@"
code=\$?
case " \$* " in
*" : "*) sleep $PAUSE ;;
*" stat "* | *" lstat "* | *" pathconf "*) ;;
*) sleep $PAUSE ;;
esac
exit \$code
EOF
# A test in a directory of its own.
cat >"$suite/one" <<EOF
#!/bin/sh
dir=\$(mktemp -d $a/XXXXXXXX) && chmod 755 "\$dir" && cd "\$dir" || exit
sleep $PAUSE
sh "$suite/\$1" | tee "$suite/said/\$(echo "\$1" | tr / -)"
EOF
chmod 755 "$suite/pjdfstest" "$suite/one"

say "pjdfstest on $a and $b in turn"
cd "$suite"
code=0
prove --jobs "$jobs" --exec "$suite/one" --recurse "${parts[@]:-tests}" >"$WORK/out" 2>&1 || code=$?
grep -v '\. ok$' "$WORK/out" || true
tests=$(sed -n 's/^Files=.* Tests=\([0-9]*\),.*/\1/p' "$WORK/out")
[ -n "$tests" ] || die "the suite did not run to its end"
failed=$(sed -n 's/.*(Wstat: .* Failed: \([0-9]*\))$/\1/p' "$WORK/out" | awk '{ sum += $1 } END { print sum + 0 }')
grep -r '^not ok' said || true
calls=$(cat calls/* | wc -l)
cd /
umount_holdfast "$b"
umount_holdfast "$a"
say "$calls calls, in turn on the two mounts"
echo "pjdfstest: $((tests - failed)) passed, $failed failed"
[ "$code" = 0 ]
