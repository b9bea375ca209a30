#!/usr/bin/env bash
# Builds the library for C and installs it: the libraries, the headers and holdfast.pc.
#
#   scripts/install-c.sh --prefix DIR [--destdir DIR] [--libdir NAME] [--profile NAME]
#
#   --prefix DIR    where the library is used: the paths of holdfast.pc
#   --destdir DIR   put everything below DIR, as make's DESTDIR
#   --libdir NAME   the folder of the libraries in the prefix (lib)
#   --profile NAME  cargo's profile (release)
#
# The shared library is linked here from the static one, with versions for its symbols: rustc gives a
# `cdylib` a version script of its own, and linkers take only one. Needs Rust and a C compiler (CC).
set -euo pipefail
capi=$(cd "$(dirname "$0")/../crates/capi" && pwd)
prefix='' destdir='' libdir=lib profile=release
while [ $# -gt 0 ]; do
    value=${2:?"$1 needs a value"}
    case $1 in
    --prefix) prefix=$value ;;
    --destdir) destdir=$value ;;
    --libdir) libdir=$value ;;
    --profile) profile=$value ;;
    *) echo "install-c: unknown option $1; see the top of $0" >&2; exit 2 ;;
    esac
    shift 2
done
case $prefix in
/*) ;;
*) echo "install-c: --prefix needs an absolute path" >&2; exit 2 ;;
esac

# The last line with the package is that of its library.
archive=$(cd "$capi" && cargo build --quiet --package holdfast-capi --profile "$profile" \
    --message-format json | sed -n 's/.*"filenames":\["\([^"]*libholdfast_capi\.a\)".*/\1/p')
version=$(cd "$capi" && cargo pkgid | sed 's/.*[#@]//')
soname=libholdfast.so.0
# What the static library needs beside itself: `rustc --print native-static-libs`.
native="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"

lib=$destdir$prefix/$libdir include=$destdir$prefix/include
mkdir -p "$lib/pkgconfig" "$include"
install -m 644 "$capi"/include/holdfast.h "$capi"/include/holdfast_ioctl.h "$include"
install -m 644 "$archive" "$lib/libholdfast.a"
# Only objects that a function of the header needs: the archive can hold files with debug symbols,
# which would make the stack executable.
functions=$(grep -oE '\bhf_[a-z_]+\(' "$capi/include/holdfast.h" | sort -u | sed 's/^/-Wl,-u,/; s/($//')
# shellcheck disable=SC2086 # lists
"${CC:-cc}" -shared -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,defs,-z,noexecstack \
    "-Wl,-soname,$soname" "-Wl,--version-script=$capi/holdfast.map" $functions "$archive" $native \
    -o "$lib/libholdfast.so.$version"
ln -sf "libholdfast.so.$version" "$lib/$soname"
ln -sf "$soname" "$lib/libholdfast.so"
sed -e "s|@prefix@|$prefix|" -e "s|@libdir@|$libdir|" -e "s|@version@|$version|" \
    -e "s|@native@|$native|" "$capi/holdfast.pc.in" >"$lib/pkgconfig/holdfast.pc"
echo "installed libholdfast $version into $lib"
