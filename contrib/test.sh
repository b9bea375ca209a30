#!/usr/bin/env bash
# Applies contrib/*.patch to util-linux and file as Debian 12 has them, builds those, and tests that
# they know a volume: blkid, lsblk, wipefs, file; and that mke2fs, mkfs.xfs and mkfs.btrfs with that
# libblkid do not overwrite one.
#
#   contrib/test.sh [DIR]      where it builds: target/contrib without this
#
# Environment: HOLDFAST, the program (default target/release/holdfast). Needs the network, a C
# compiler, automake, autopoint, bison, gettext, libtool and pkg-config; root and loop devices for
# lsblk and the mkfs programs. Exit code 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
HOLDFAST=$(realpath "${HOLDFAST:-${CARGO_TARGET_DIR:-target}/release/holdfast}")
patches=$PWD/contrib
work=$(realpath -m "${1:-target/contrib}")
mkdir -p "$work"
cd "$work"

[ -x "$HOLDFAST" ] || { echo "no program at $HOLDFAST: cargo build --release -p holdfast-cli" >&2; exit 1; }
for tool in apt-get autoreconf autopoint bison libtoolize make cc; do
    command -v "$tool" >/dev/null || { echo "skipped: contrib: no $tool"; exit 77; }
done

# Sources of Debian 12, whatever this host takes its own from.
if [ ! -e sources ]; then
    mkdir -p lists/partial
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb-src [signed-by=$key] http://deb.debian.org/debian bookworm main" >sources.list
    apt() {
        apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
            -o Dir::State::Lists="$work/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
    }
    apt update || { echo "skipped: contrib: no network"; exit 77; }
    rm -rf util-linux-* file-*
    apt source util-linux file
    patch -d util-linux-2.* -p1 <"$patches/libblkid.patch"
    patch -d file-5.* -p1 <"$patches/file.patch"
    touch sources
fi
if [ ! -e built ]; then
    (
        cd util-linux-2.*
        GTKDOCIZE=true autoreconf -fi
        ./configure --disable-asciidoc --disable-nls --without-python --without-systemd \
            --without-udev --without-ncurses --without-ncursesw \
            --disable-login --disable-su --disable-runuser --disable-chfn-chsh
        make -j"$(nproc)" blkid lsblk wipefs
    ) >util-linux.log 2>&1 || { tail -20 util-linux.log; exit 1; }
    (cd file-5.*/magic && file --compile --magic-file Magdir) >file.log 2>&1 || { tail file.log; exit 1; }
    touch built
fi
bin=$(echo "$work"/util-linux-2.*)
magic=$(echo "$work"/file-5.*/magic/Magdir.mgc)
# The libtool wrappers set the path of the built libblkid for themselves.
libraries=$bin/.libs

passed=0 failed=0
# expect NAME WHAT TEXT: TEXT must have WHAT in it.
expect() {
    if [[ $3 == *"$2"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s: no "%s" in: %s\n' "$1" "$2" "$3"
    fi
}

image=$work/volume.hf
rm -f "$image"
truncate -s 300m "$image"
make_volume() {
    "$HOLDFAST" mkfs --force --quiet --label "some mail" "$image"
    uuid=$("$HOLDFAST" info --json "$image" | sed -E 's/.*"uuid":"([^"]+)".*/\1/')
}
make_volume

said=$("$bin/blkid" -p -o export "$image")
expect "blkid: type" "TYPE=holdfast" "$said"
expect "blkid: usage" "USAGE=filesystem" "$said"
expect "blkid: UUID" "UUID=$uuid" "$said"
expect "blkid: label" 'LABEL=some\ mail' "$said"
expect "blkid: block size" "BLOCK_SIZE=4096" "$said"
expect "blkid: version" "VERSION=1" "$said"
said=$(file -m "$magic" "$image")
expect "file" "Holdfast volume version 1, label \"some mail\", UUID=$uuid" "$said"
said=$("$bin/wipefs" "$image")
expect "wipefs: lists" "holdfast" "$said"

# A torn first copy: the second one is whole.
dd if=/dev/zero of="$image" bs=1 seek=200 count=100 conv=notrunc status=none
expect "blkid: torn first copy" "UUID=$uuid" "$("$bin/blkid" -p -o export "$image")"
dd if=/dev/zero of="$image" bs=1 seek=4300 count=100 conv=notrunc status=none
expect "blkid: both torn" "none" "$("$bin/blkid" -p -o export "$image" || echo none)"
make_volume
# Erases both copies: nothing is left to find.
"$bin/wipefs" --all --quiet "$image"
expect "wipefs: erases" "none" "$("$bin/blkid" -p -o export "$image" || echo none)"
expect "wipefs: for Holdfast too" "no volume" "$("$HOLDFAST" info "$image" 2>&1 || echo "no volume")"

if [ "$(id -u)" = 0 ] && make_volume && loop=$(losetup --find --show "$image" 2>/dev/null); then
    trap 'losetup --detach "$loop"' EXIT
    # lsblk asks udev first; without its database it reads the device.
    said=$("$bin/lsblk" --noheadings --output FSTYPE,LABEL,UUID "$loop")
    expect "lsblk" "holdfast some mail $uuid" "$said"
    # mke2fs asks on a terminal; at the end of input it goes no further. The others refuse.
    for program in mke2fs mkfs.xfs mkfs.btrfs; do
        if ! command -v "$program" >/dev/null; then
            echo "skipped: $program: not installed"
            continue
        fi
        said=$(LD_LIBRARY_PATH=$libraries script --quiet --return --command "$program $loop" /dev/null \
            </dev/null 2>&1 || true)
        expect "$program: names it" holdfast "$said"
        expect "$program: does not overwrite it" "$uuid" "$("$HOLDFAST" info "$image" 2>&1 || true)"
        make_volume
    done
else
    echo "skipped: lsblk and mkfs programs: no loop devices"
fi
echo "contrib: $passed passed, $failed failed"
[ "$failed" = 0 ]
