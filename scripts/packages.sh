#!/usr/bin/env bash
# Makes the packages and tries them where users would: lintian; `apt install`, a mount, the manual,
# completions, udev and `apt purge` on Debian 12 and 13; the static program on Debian 10 and Alpine.
#
#   scripts/packages.sh [DIR]   packages of DIR, made by `cargo xtask dist --out DIR`; made in
#                               target/packages without this
#
# Needs root, the network, mmdebstrap, lintian and rpm. /dev/fuse and loop devices are used where they
# are there. Takes many minutes. Exit code 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "skipped: packages: not root"; exit 77; }
for tool in mmdebstrap lintian rpm unshare curl; do
    command -v "$tool" >/dev/null || { echo "skipped: packages: no $tool"; exit 77; }
done
packages=${1:-target/packages}
[ $# -gt 0 ] || cargo xtask dist --out "$packages"
packages=$(realpath "$packages")
work=$(mktemp -d)
roots=${CARGO_TARGET_DIR:-$PWD/target}/roots
mkdir -p "$roots"
trap 'rm -rf --one-file-system "$work"' EXIT

passed=0 failed=0
# check NAME COMMAND…: what it prints is shown if it fails.
check() {
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        tail -20 "$work/log"
    fi
}

# inside ROOT COMMAND: in the root, with processes and mounts of its own that end with it.
inside() {
    local root=$1
    shift
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --pid --fork --kill-child sh -c '
        root=$1; shift
        mount -t proc proc "$root/proc" && mount -t sysfs sysfs "$root/sys"
        [ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
        [ -e "$root/dev/fuse" ] || mknod "$root/dev/fuse" c 10 229
        for number in 0 1 2 3 4 5 6 7; do
            [ -e "$root/dev/loop$number" ] || mknod "$root/dev/loop$number" b 7 $number
        done
        [ -e "$root/dev/loop-control" ] || mknod "$root/dev/loop-control" c 10 237
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp DEBIAN_FRONTEND=noninteractive \
            LC_ALL=C.UTF-8 chroot "$root" /bin/sh -ec "$*"' sh "$root" "$@"
}

# debian SUITE [MIRROR…]: a fresh root of it.
debian() {
    local suite=$1 tar=$roots/$1.tar
    shift
    if [ ! -e "$tar" ]; then
        mmdebstrap --quiet --variant=minbase --format=tar "$suite" "$tar.part" "$@" || return 1
        mv "$tar.part" "$tar"
    fi
    mkdir -p "$work/$suite"
    tar -xf "$tar" -C "$work/$suite"
    cp /etc/resolv.conf "$work/$suite/etc/resolv.conf"
}

# What a user does first. The daemon ends with the mount.
minute='mkdir -p /tmp/mnt; cd /tmp
    holdfast mount --create --size 64m data.hf ./mnt
    echo kept >./mnt/file
    holdfast info ./mnt >/dev/null
    holdfast umount ./mnt
    holdfast fsck data.hf
    holdfast mount data.hf ./mnt
    grep -q kept ./mnt/file
    holdfast umount ./mnt
    rm -rf data.hf mnt'

deb=$(ls "$packages"/holdfast_*.deb)
check "lintian" lintian --fail-on error "$deb"
sed 's/^/    /' "$work/log"
check "rpm: contents" sh -c "rpm -qlp '$packages'/holdfast-*.rpm | grep -q /usr/sbin/mount.holdfast"
check "rpm: digests" rpm --checksig --nosignature "$packages"/holdfast-*.rpm
check "sums" sh -c "cd '$packages' && sha256sum --check --quiet SHA256SUMS"
check "size of the package" test "$(stat -c %s "$deb")" -le 5000000
dpkg-deb --extract "$deb" "$work/deb"
check "size of the program" test "$(stat -c %s "$work/deb/usr/bin/holdfast")" -le 11000000

# All files but those that every use of apt changes.
files='find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /var/log \
    -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -print | sort'
for suite in bookworm trixie; do
    debian "$suite"
    root=$work/$suite
    cp "$deb" "$root/tmp/"
    inside "$root" "apt-get update -qq && apt-get install -qq --no-install-recommends -y man-db \
        bash-completion zsh fish udev fuse3 libc6 libgcc-s1 >/dev/null 2>&1
        rm -f /etc/dpkg/dpkg.cfg.d/docker /etc/dpkg/dpkg.cfg.d/excludes"
    before=$(inside "$root" "$files")
    check "$suite: apt install" inside "$root" "apt-get install -y /tmp/$(basename "$deb")"
    check "$suite: runs" inside "$root" "holdfast --version"
    check "$suite: the first minute" inside "$root" "$minute"
    check "$suite: mount(8)" inside "$root" 'mkdir -p /tmp/mnt; cd /tmp
        mkfs -t holdfast --size 64m made.hf; mount -t holdfast made.hf ./mnt; touch ./mnt/a
        umount ./mnt; fsck.holdfast -n made.hf; rm -r made.hf mnt'
    check "$suite: manual" inside "$root" "for page in holdfast holdfast-mount mount.holdfast \
        umount.holdfast mkfs.holdfast fsck.holdfast mount.fuse.holdfast; do \
        man \$page | grep -q NAME; done"
    check "$suite: completion in bash" inside "$root" \
        'bash -c ". /usr/share/bash-completion/bash_completion
        _completion_loader holdfast || _comp_load holdfast; complete -p holdfast"'
    check "$suite: completion in zsh" inside "$root" \
        'zsh -c "autoload -U compinit && compinit -u -D && [[ -n \$_comps[holdfast] ]]"'
    check "$suite: completion in fish" inside "$root" \
        'fish -c "complete -C \"holdfast um\"" | grep -q umount'
    # Its own udev sees a loop device.
    check "$suite: udev" inside "$root" \
        'cd /tmp; holdfast mkfs -q --size 64m --label "some mail" udev.hf
        mkdir -p /run/udev; /lib/systemd/systemd-udevd --daemon 2>/dev/null
        loop=$(losetup --find --show udev.hf); trap "losetup -d $loop" EXIT
        udevadm trigger --settle --action=add "/sys/class/block/${loop#/dev/}"
        udevadm info "$loop"; lsblk --noheadings -o FSTYPE,LABEL "$loop"; ls -R /dev/disk
        udevadm info "$loop" | grep -q "ID_FS_LABEL=some_mail"
        lsblk --noheadings -o FSTYPE,LABEL "$loop" | grep -q "holdfast some mail"
        test -e /dev/disk/by-label/some\\x20mail'
    check "$suite: apt purge" inside "$root" "apt-get purge -y holdfast; rm -rf /run/udev /run/mount /tmp/*"
    after=$(inside "$root" "$files")
    check "$suite: purge leaves nothing" diff <(echo "$before") <(echo "$after")
done

# A static program asks nothing of its host but the kernel.
tarball=$(ls "$packages"/holdfast-*-"$(uname -m)"-unknown-linux-musl.tar.xz)
debian buster "deb [trusted=yes check-valid-until=no] http://archive.debian.org/debian buster main" ||
    echo "skipped: buster: archive.debian.org cannot be reached"
debian bullseye || echo "skipped: bullseye: no mirror has it"
alpine=$roots/alpine.tar.gz
mirror=https://dl-cdn.alpinelinux.org/alpine/latest-stable/releases/$(uname -m)
[ -e "$alpine" ] || {
    name=$(curl -fsS "$mirror/latest-releases.yaml" | sed -nE 's/.*file: (alpine-minirootfs.*)/\1/p') &&
        curl -fsS -o "$alpine" "$mirror/$name"
} || echo "skipped: alpine: $mirror cannot be reached"
[ ! -e "$alpine" ] || { mkdir -p "$work/alpine" && tar -xf "$alpine" -C "$work/alpine"; }
# Nothing but the shell of Debian's busybox-static: no library at all.
mkdir -p "$work"/busybox/{bin,dev,etc,proc,sys,tmp}
(cd "$work" && apt-get download -qq busybox-static && dpkg-deb --extract busybox-static_*.deb busybox)
for name in sh cat echo grep mkdir rm; do
    ln -sf busybox "$work/busybox/bin/$name"
done
for root in buster bullseye alpine busybox; do
    [ -e "$work/$root/bin/sh" ] || { echo "skipped: $root: no root"; continue; }
    mkdir -p "$work/$root/usr/local"
    tar -xf "$tarball" -C "$work/$root/usr/local" --strip-components=1
    path='PATH=/usr/local/bin:$PATH'
    check "$root: runs" inside "$work/$root" "$path; holdfast --version"
    check "$root: the first minute" inside "$work/$root" "$path; $minute"
done
echo "packages: $passed passed, $failed failed"
[ "$failed" = 0 ]
