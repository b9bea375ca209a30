#!/bin/sh
# Runs a command with xfs, ext4 and btrfs mounted on loop devices, and takes everything down again.
#
#   scripts/rivals.sh [-d DIR] [-s SIZE] COMMAND [ARGUMENT ...]
#   scripts/rivals.sh [-d DIR] [-s SIZE] bench WORKLOAD [ARGUMENT ...]
#
# The images (sparse, SIZE each, 16G by default) lie in a new directory below DIR (/dev/shm by
# default). The command gets its path as $RIVALS, with mounts at $RIVALS/xfs, ext4 and btrfs.
# ext4 and btrfs commit every 5 seconds; xfs flushes its log every 5 seconds during the command.
# `bench` runs a workload of `$BENCH` (target/release/holdfast-bench by default) on all three and on
# a volume with its image beside theirs. Each phase ends with all sides equally durable.
# Needs root; installs xfsprogs and btrfs-progs if they are missing (Debian).
set -eu

dir=/dev/shm
size=16G
while getopts d:s: option; do
    case $option in
    d) dir=$OPTARG ;;
    s) size=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }

if ! command -v mkfs.xfs >/dev/null || ! command -v mkfs.btrfs >/dev/null; then
    apt-get install -y xfsprogs btrfs-progs >&2
fi

RIVALS=$(mktemp -d "$dir/rivals-XXXXXX")
export RIVALS
flush=/proc/sys/fs/xfs/xfssyncd_centisecs
before=
take_down() {
    [ -z "$before" ] || echo "$before" >$flush
    for kind in xfs ext4 btrfs; do
        ! mountpoint -q "$RIVALS/$kind" || umount "$RIVALS/$kind"
    done
    rm -rf "$RIVALS"
}
trap take_down EXIT
trap 'exit 130' INT TERM

for kind in xfs ext4 btrfs; do
    truncate -s "$size" "$RIVALS/$kind.image"
    mkdir "$RIVALS/$kind"
    options=loop,noatime
    case $kind in
    xfs) mkfs.xfs -q "$RIVALS/xfs.image" ;;
    # Tables of inodes written now, not behind the measurement's back.
    ext4) mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$RIVALS/ext4.image"; options=$options,commit=5 ;;
    btrfs) mkfs.btrfs -q "$RIVALS/btrfs.image"; options=$options,commit=5 ;;
    esac
    mount -o $options "$RIVALS/$kind.image" "$RIVALS/$kind"
done
if [ -w $flush ]; then
    before=$(cat $flush)
    echo 500 >$flush
fi

if [ "$1" = bench ]; then
    shift
    "${BENCH:-target/release/holdfast-bench}" "$@" --target "volume:$RIVALS/volume" \
        --target "dir:$RIVALS/btrfs" --target "dir:$RIVALS/ext4" --target "dir:$RIVALS/xfs"
else
    "$@"
fi
