#!/usr/bin/env bash
# The conformance suite, and the differential tester against the kernel's tmpfs, on a mount.
#
#   scripts/conformance.sh [--quick] [--steps N] [--seeds K] [--transport auto|uring|dev]
#
# The differential tester leaves access times out: reads that the kernel's cache serves never
# reach the daemon.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

steps=100000
seeds=4
transport=auto
while [ $# -gt 0 ]; do
    case $1 in
    --quick) steps=15000; seeds=2; shift ;;
    --steps) steps=${2:?--steps needs a number}; shift 2 ;;
    --seeds) seeds=${2:?--seeds needs a number}; shift 2 ;;
    --transport) transport=${2:?--transport needs a name}; shift 2 ;;
    *) die "unknown argument $1" ;;
    esac
done

need_mount
cd "$ROOT"
mount_holdfast "$WORK/mnt" --transport "$transport" -o allow_other,nodev
check_transport "$WORK/mnt" "$transport"
chmod 777 "$WORK/mnt"

say "conformance suite on $WORK/mnt"
mkdir "$WORK/mnt/conformance"
chmod 777 "$WORK/mnt/conformance"
HOLDFAST_CONFORMANCE_DIR=$WORK/mnt/conformance \
    cargo test --quiet -p holdfast-testkit --test conformance -- the_directory --nocapture

for seed in $(seq 1 "$seeds"); do
    say "differential, $steps steps, seed $seed"
    mkdir -p "$WORK/mnt/diff-$seed"
    cargo run --quiet -p holdfast-testkit --bin differential -- --steps "$steps" --seed "$seed" \
        --against "dir:$WORK/mnt/diff-$seed" --atime ignored
done
umount_holdfast "$WORK/mnt"
echo "conformance: all passed on the mount ($seeds x $steps differential steps)"
