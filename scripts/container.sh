#!/usr/bin/env bash
# The images of packaging/container with podman: what they mount, propagate, and leave.
#
#   HOLDFAST=PROGRAM scripts/container.sh
#
# PROGRAM is static. Where Debian's image cannot be had, a tree by mmdebstrap stands for it.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

need_mount
need_commands podman:podman runc:runc mmdebstrap:mmdebstrap
! ldd "$HOLDFAST" >/dev/null 2>&1 || [[ $(ldd "$HOLDFAST") == *statically* ]] ||
    unfit "$HOLDFAST is not static"

debian=docker.io/library/debian:bookworm-slim
if ! podman image exists "$debian" && ! podman pull --quiet "$debian" 2>/dev/null; then
    say "a tree of Debian instead of its image"
    mmdebstrap --quiet --variant=apt --include=fuse3 bookworm "$WORK/debian.tar"
    podman import --quiet "$WORK/debian.tar" "$debian"
fi

say "both images are built"
cp "$HOLDFAST" "$ROOT"/packaging/container/{Containerfile,entrypoint} "$WORK"
[ -e "$WORK/holdfast" ] || mv "$WORK/$(basename "$HOLDFAST")" "$WORK/holdfast"
build() {
    podman build --quiet --format docker --isolation chroot --network host --target "$1" -t "$2" \
        "$WORK" >/dev/null
}
build static localhost/holdfast-test:static
build fuse3 localhost/holdfast-test:fuse3
# Below the limits of this machine. `crun` does not know control groups of both kinds at once.
runtime=(--runtime runc)
flags=(--ulimit nofile=4096 --ulimit nproc=4096)
run() { podman "${runtime[@]}" run --rm --no-healthcheck "${flags[@]}" --network none "$@"; }

say "the static image works on a volume without root and without a capability"
mkdir "$WORK/volume" "$WORK/shared" "$WORK/shared/data"
chown -R 65532:65532 "$WORK/volume" "$WORK/shared"
files=(-v "$WORK/volume:/volume")
run --cap-drop all "${files[@]}" localhost/holdfast-test:static mkfs -q /volume/data.hf --size 64m
run --cap-drop all "${files[@]}" localhost/holdfast-test:static fsck /volume/data.hf
[ "$(stat -c %u "$WORK/volume/data.hf")" = 65532 ]

say "without /dev/fuse the entry point says what it needs"
said=$(run "${files[@]}" localhost/holdfast-test:fuse3 2>&1 || true)
[[ $said == *--device* ]] || die "it said: $said"

# Others may open /dev/fuse, as udev has it.
mknod -m 666 "$WORK/fuse" c 10 229
mount --bind "$WORK/shared" "$WORK/shared"
MOUNTS+=("$WORK/shared/data" "$WORK/shared")
mount --make-shared "$WORK/shared"
# mount_container NAME: starts a mount, which shows on the host.
mount_container() {
    podman "${runtime[@]}" run --detach --no-healthcheck "${flags[@]}" --name "$1" --network none \
        --device "$WORK/fuse:/dev/fuse:rwm" --cap-add SYS_ADMIN "${files[@]}" -v "$WORK/shared:/mnt:rshared" \
        -e OPTIONS=allow_other localhost/holdfast-test:fuse3 >/dev/null
    until_true 20 is_mounted "$WORK/shared/data" || die "not mounted: $(podman logs "$1" 2>&1)"
}
is_gone() { ! is_mounted "$WORK/shared/data" || die "still mounted: $(podman logs "$name" 2>&1)"; }
closed() { ! "$HOLDFAST" fsck "$WORK/volume/data.hf" | grep -q unclosed; }
name=holdfast-test-$$
trap 'podman rm --force --time 0 "$name" >/dev/null 2>&1; cleanup' EXIT

say "an ordinary user mounts, and the mount shows on the host and in another container"
mount_container "$name"
echo kept >"$WORK/shared/data/kept"
[ "$(podman exec "$name" id -u)" = 65532 ]
[ "$(run -v "$WORK/shared:/mnt:rslave" "$debian" cat /mnt/data/kept)" = kept ]

say "SIGTERM unmounts and closes the volume"
podman stop --time 60 "$name" >/dev/null
is_gone
[ "$(podman inspect --format '{{.State.ExitCode}}' "$name")" = 0 ]
podman rm "$name" >/dev/null
closed || die "the volume was not closed"

say "also while a file is open elsewhere"
mount_container "$name"
exec 9>"$WORK/shared/data/busy"
podman stop --time 60 "$name" >/dev/null 9>&-
is_gone
exec 9>&-
podman rm "$name" >/dev/null
closed || die "the volume was not closed"

say "a container that was killed is started again over its dead mount"
mount_container "$name"
podman kill --signal KILL "$name" >/dev/null
podman wait "$name" >/dev/null
podman start "$name" >/dev/null
is_live() { [ "$(cat "$WORK/shared/data/kept" 2>/dev/null)" = kept ]; }
until_true 20 is_live || die "not live: $(podman logs "$name" 2>&1)"
podman stop --time 60 "$name" >/dev/null
podman rm "$name" >/dev/null
closed || die "the volume was not closed"
say "all well"
