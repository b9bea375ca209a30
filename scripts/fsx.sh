#!/usr/bin/env bash
# fsx, random operations on one file checked against a copy in memory, through the mount.
#
#   scripts/fsx.sh [--quick] [--operations N] [--seeds "1 2 3 4"]
#                  [--transport auto|uring|dev] [--dir DIR]
#
# Two seeds run at a time, each on a file of its own. A failure prints the command that repeats it
# and leaves fsx's log and the expected bytes in target/fsx.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

VERSION=0.3.2
operations=1000000
seeds="1 2 3 4"
transport=auto
dir=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) operations=20000; shift ;;
    --operations) operations=${2:?--operations needs a number}; shift 2 ;;
    --seeds) seeds=${2:?--seeds needs numbers}; shift 2 ;;
    --transport) transport=${2:?--transport needs a name}; shift 2 ;;
    --dir) dir=${2:?--dir needs a folder}; shift 2 ;;
    *) die "unknown argument $1" ;;
    esac
done

[ -n "$dir" ] || need_mount
cargo_tool fsx "$VERSION"

# fsx never unmaps what it maps for reading (0.3.2): a process can have 65,530 maps, and each hole
# or truncation walks through all of them. About 1,000 such reads a run keep it quick.
mapread=$((680000 / operations))
mapread=$((mapread > 100 ? 100 : mapread < 1 ? 1 : mapread))

# Every operation fsx knows, none of no bytes: it takes the EINVAL of an empty fallocate for a
# failure. The weights keep the file from being short for most of the run, so that reads, maps and
# copies find something.
cat >"$WORK/fsx.toml" <<EOF
flen = 1048576

[opsize]
max = 131072
min = 1
align = 1

[weights]
close_open = 10
copy_file_range = 50
fdatasync = 10
fsync = 10
invalidate = 10
mapread = $mapread
mapwrite = 100
posix_fadvise = 30
posix_fallocate = 30
punch_hole = 50
read = 100
sendfile = 50
truncate = 30
write = 100
EOF

if [ -n "$dir" ]; then
    place=$(readlink -f "$dir")
else
    place=$WORK/mnt
    mount_holdfast "$place" --transport "$transport"
    check_transport "$place" "$transport"
fi

artifacts=$ROOT/target/fsx
mkdir -p "$artifacts"
# By a name of its own first: another run may keep its settings here at this moment, and cp fails
# where a file appears.
cp "$WORK/fsx.toml" "$artifacts/fsx.toml.$$"
mv -f "$artifacts/fsx.toml.$$" "$artifacts/fsx.toml"
say "fsx on $place: seeds $seeds, $operations operations each"

failed=0
passed=0
running=()
settle() { # waits for the oldest run
    local seed=${running[0]%%:*} pid=${running[0]#*:} code=0 now
    running=("${running[@]:1}")
    wait "$pid" || code=$?
    drop_pid "$pid"
    if [ "$code" = 0 ] && grep -q 'completed A-OK' "$artifacts/seed-$seed.log"; then
        now=$(date +%s)
        say "seed $seed: ok, $((now - started)) s after the start"
        rm -f "$artifacts/seed-$seed.log"
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        tail -40 "$artifacts/seed-$seed.log"
        echo "seed $seed failed; to repeat:"
        echo "  scripts/fsx.sh --operations $operations --seeds $seed --transport $transport"
    fi
}
started=$(date +%s)
for seed in $seeds; do
    rm -f "$artifacts/fsx-$seed.fsxgood"
    # Two hours is far beyond any healthy run: a hang becomes a failure.
    timeout --kill-after=10 7200 "$TOOLS/bin/fsx" -f "$WORK/fsx.toml" -N "$operations" -S "$seed" \
        -P "$artifacts" "$place/fsx-$seed" >"$artifacts/seed-$seed.log" 2>&1 &
    PIDS+=($!)
    running+=("$seed:$!")
    [ ${#running[@]} -lt 2 ] || settle
done
while [ ${#running[@]} -gt 0 ]; do
    settle
done

for seed in $seeds; do
    rm -f "$place/fsx-$seed"
done
if [ -z "$dir" ]; then
    umount_holdfast "$place"
fi
echo "fsx: $passed passed, $failed failed"
[ "$failed" = 0 ]
