#!/usr/bin/env bash
# The conformance suite, and the differential tester against the kernel's tmpfs, on a mount.
#
#   scripts/conformance.sh [--quick] [--steps N] [--seeds K] [--transport auto|uring|dev]
#                          [--options LIST]
#
# --options adds to -o: each option that changes which requests are sent passes as the defaults do.
# With noxattr the cases that need attributes have to fail. The differential tester, which compares
# them, is left out. Where the kernel opens files by itself (the default), truncate(2) of an empty
# file may move its times.
#
# Over a directory of the host (HOLDFAST_STORE=host) the differential tester is left out, because
# it compares the inode numbers and the space of Holdfast's own files.
#
# The differential tester leaves access times out: reads that the kernel's cache serves never
# reach the daemon.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

steps=100000
seeds=4
transport=auto
options=allow_other,nodev
opens=local
while [ $# -gt 0 ]; do
    case $1 in
    --quick) steps=15000; seeds=2; shift ;;
    --steps) steps=${2:?--steps needs a number}; shift 2 ;;
    --seeds) seeds=${2:?--seeds needs a number}; shift 2 ;;
    --transport) transport=${2:?--transport needs a name}; shift 2 ;;
    --options)
        options+=,${2:?--options needs a list}
        case $2 in *noxattr*) seeds=0; export HOLDFAST_CONFORMANCE_NOXATTR=1 ;; esac
        case $2 in *opens=served* | *locks=served*) opens=served ;; esac
        shift 2
        ;;
    *) die "unknown argument $1" ;;
    esac
done

# A host's numbers and space are its own.
[ "$STORE" != host ] || seeds=0

need_mount
cd "$ROOT"
mount_holdfast "$WORK/mnt" --transport "$transport" -o "$options"
check_transport "$WORK/mnt" "$transport"
chmod 777 "$WORK/mnt"

say "conformance suite on $WORK/mnt"
mkdir "$WORK/mnt/conformance"
chmod 777 "$WORK/mnt/conformance"
# As the tests are built, so that nothing is built after them; the differential tester is built with
# it.
HOLDFAST_CONFORMANCE_DIR=$WORK/mnt/conformance \
    cargo test --quiet --workspace --test it -- conformance::the_directory --ignored --nocapture

# Side by side, in directories of their own: each mostly waits for the other side of the mount.
running=()
for seed in $(seq 1 "$seeds"); do
    mkdir -p "$WORK/mnt/diff-$seed"
    "${CARGO_TARGET_DIR:-target}/debug/differential" --steps "$steps" --seed "$seed" \
        --against "dir:$WORK/mnt/diff-$seed" --atime ignored --opens $opens >"$WORK/differential-$seed" 2>&1 &
    running+=($!)
done
failed=0
for seed in $(seq 1 "$seeds"); do
    wait "${running[seed - 1]}" || failed=1
    say "differential, $steps steps, seed $seed"
    cat "$WORK/differential-$seed"
done
[ "$failed" = 0 ] || die "the mount does not answer as the kernel does"
umount_holdfast "$WORK/mnt"
echo "conformance: all passed on the mount (-o $options; differential: $seeds seeds of $steps steps)"
