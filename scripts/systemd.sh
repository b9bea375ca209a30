#!/usr/bin/env bash
# The units of packaging/systemd under a real systemd: a container of Debian by systemd-nspawn.
#
#   scripts/systemd.sh [--suite bookworm]
#
# Start, stop, restart, a busy stop, a daemon that is killed and comes back, one that hangs, a source
# that is missing, fstab and an automount; then the container is shut down while volumes are mounted,
# and each of them must have been closed. Takes root, mmdebstrap and systemd-container.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

suite=bookworm
while [ $# -gt 0 ]; do
    case $1 in
    --suite) suite=${2:?--suite needs a name}; shift 2 ;;
    *) die "unknown argument $1" ;;
    esac
done

need_mount
need_commands mmdebstrap:mmdebstrap systemd-nspawn:systemd-container

# The tree is made once.
base=$TOOLS/systemd-$suite
if [ ! -e "$base/done" ]; then
    say "a tree of Debian $suite"
    rm -rf --one-file-system "$base"
    mmdebstrap --quiet --variant=apt --include=systemd,systemd-sysv,dbus,fuse3,procps \
        "$suite" "$base" || unfit "mmdebstrap failed"
    touch "$base/done"
fi
tree=$WORK/tree
cp -a "$base" "$tree"

install -m 755 "$HOLDFAST" "$tree/usr/bin/holdfast"
for name in mount mount.fuse mount.fuseblk umount umount.fuse umount.fuseblk mkfs fsck; do
    ln -s ../bin/holdfast "$tree/usr/sbin/$name.holdfast"
done
install -m 644 "$ROOT/packaging/systemd/holdfast@.service" "$tree/usr/lib/systemd/system/"
mkdir -p "$tree/etc/holdfast" "$tree/srv" "$tree/mnt/data" "$tree/mnt/boot" "$tree/mnt/auto"
printf 'SOURCE=/srv/data.hf\nMOUNT_POINT="/mnt/data"\nOPTIONS=noatime,commit=60\n' \
    >"$tree/etc/holdfast/data.conf"
printf 'SOURCE=/srv/none.hf\nMOUNT_POINT=/mnt/none\n' >"$tree/etc/holdfast/none.conf"
for kind in mount automount; do
    sed 's,/mnt/data,/mnt/auto,; s,/srv/data.hf,/srv/auto.hf,; s,5min,30s,' \
        "$ROOT/packaging/systemd/mnt-data.$kind.example" \
        >"$tree/etc/systemd/system/mnt-auto.$kind"
done
for volume in data boot auto; do
    "$HOLDFAST" mkfs --quiet --size 64m "$tree/srv/$volume.hf"
done
echo '/srv/boot.hf /mnt/boot holdfast nofail 0 0' >"$tree/etc/fstab"

install -m 755 "$ROOT/scripts/systemd.inside" "$tree/inside"
cat >"$tree/etc/systemd/system/inside.service" <<UNIT
[Unit]
After=multi-user.target
SuccessAction=poweroff
FailureAction=poweroff
[Service]
Type=oneshot
ExecStart=/inside
StandardOutput=file:/inside.log
StandardError=inherit
TimeoutStartSec=10min
[Install]
WantedBy=graphical.target
UNIT
mkdir -p "$tree/etc/systemd/system/graphical.target.wants"
ln -s ../inside.service "$tree/etc/systemd/system/graphical.target.wants/"

autofs=()
[ ! -c /dev/autofs ] || autofs=(--bind=/dev/autofs)
say "a container boots"
timeout --signal=KILL 900 systemd-nspawn --quiet --directory "$tree" --boot --register=no \
    --keep-unit --machine "holdfast-$$" --bind=/dev/fuse "${autofs[@]}" \
    </dev/null >"$WORK/boot.log" 2>&1 || true
[ -e "$tree/inside.log" ] || die "the container did not boot: $(tail -n 20 "$WORK/boot.log")"
cat "$tree/inside.log"
[ -e "$tree/inside.ok" ] || die "a step failed"

say "all volumes were closed at shutdown"
for volume in data boot auto; do
    report=$("$HOLDFAST" fsck "$tree/srv/$volume.hf")
    case $report in
    *unclosed*) die "$volume.hf was not closed: $report" ;;
    esac
done
say "all well"
