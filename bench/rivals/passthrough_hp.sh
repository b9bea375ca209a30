#!/usr/bin/env bash
# Builds libfuse's passthrough_hp, the fastest of its examples, from Debian's source package, and
# prints where it is. It shows a directory of the host through FUSE, so what it adds to that
# directory is FUSE and libfuse.
#
#   bench/rivals/passthrough_hp.sh
#
# Needs Debian (apt-get, dpkg-dev), a C++ compiler and the network the first time. Nothing is
# installed: packages are fetched with lists of their own and unpacked under target/tools.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
FOLDER=$ROOT/target/tools/passthrough_hp
PROGRAM=$FOLDER/passthrough_hp

say() { printf '== %s\n' "$*" >&2; }

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

if [ -x "$PROGRAM" ]; then
    echo "$PROGRAM"
    exit
fi

for command in apt-get dpkg dpkg-source c++; do
    command -v "$command" >/dev/null || die "needs $command (Debian: apt-get install dpkg-dev g++)"
done
# shellcheck source=/dev/null
codename=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || true
[ -n "$codename" ] || die "this is not Debian: build example/passthrough_hp.cc of libfuse yourself, as $PROGRAM"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || die "there is no $keyring"

mkdir -p "$FOLDER"
work=$(mktemp -d "$FOLDER/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"

# The machine's own sources stay as they are: source packages are usually not among them.
mkdir -p lists/partial cache/archives/partial packages
for kind in deb deb-src; do
    echo "$kind [signed-by=$keyring] http://deb.debian.org/debian $codename main"
done >sources.list
# Downloads go below a folder that apt's own user may not enter.
apt=(apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=-
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root)

say "fetching fuse3's source and libfuse3-dev of Debian $codename"
"${apt[@]}" update
"${apt[@]}" source --download-only fuse3
"${apt[@]}" download libfuse3-dev
dpkg-source --no-check -q -x ./fuse3_*.dsc source
dpkg -x ./libfuse3-dev_*.deb packages

library=$(find packages -name libfuse3.a)
[ -n "$library" ] || die "libfuse3-dev holds no libfuse3.a"
say "building passthrough_hp"
c++ -std=c++17 -O2 -D_FILE_OFFSET_BITS=64 -Ipackages/usr/include/fuse3 \
    source/example/passthrough_hp.cc "$library" -pthread -ldl -o passthrough_hp
sed -n 's/^Version: //p' ./fuse3_*.dsc | head -1 >"$FOLDER/version"
mv passthrough_hp "$PROGRAM"
echo "$PROGRAM"
