#!/usr/bin/env bash
# The library for C: built, installed into a folder, and used from C, C++, Go and Node.js.
#
#   scripts/capi.sh [--write-abi]
#
# The test from C is built by gcc and clang, as C99 and as C++17. It runs plainly, as another user,
# with the static library, with AddressSanitizer and under valgrind. abidiff compares the interface
# with the recorded one; --write-abi records it. Prints a line a check, in about a minute. Exit code
# 77 without a C compiler and pkg-config; a check whose tool is missing is skipped.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
have() { command -v "$1" >/dev/null; }
have cc && have pkg-config || { echo "capi: needs a C compiler and pkg-config" >&2; exit 77; }

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-capi.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
prefix=$work/prefix
passed=0 failed=0

# check NAME COMMAND…: runs it, and shows what it printed if it fails.
check() {
    local name=$1 code=0
    shift
    # Not in a condition, where a function would go on after a failure.
    (set -e; "$@") >"$work/log" 2>&1 &
    wait $! || code=$?
    if [ "$code" = 0 ]; then
        passed=$((passed + 1))
        echo "$name ... ok"
    else
        failed=$((failed + 1))
        echo "$name ... FAILED"
        tail -60 "$work/log"
    fi
}
skip() { # NAME REASON
    echo "skipped: capi-$1: $2"
}

check "the header is as cbindgen makes it" cargo xtask header --check
# With the profile of the tests, which were built before.
check "the library is built and installed" scripts/install-c.sh --prefix "$prefix" --profile test
[ "$failed" = 0 ] || { echo "test result: FAILED. $passed passed; $failed failed"; exit 1; }

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
read -ra flags <<<"$(pkg-config --cflags --libs holdfast)"
read -ra static <<<"$(pkg-config --cflags --static --libs holdfast)"
strict=(-g -Wall -Wextra -Werror -pedantic)
c99=(-std=c99 -D_GNU_SOURCE)
tests=crates/capi/tests examples=crates/capi/examples
version=$(pkg-config --modversion holdfast)

# The program that a build leaves in $work, run with a folder of its own.
run() { # PROGRAM [BEFORE…]
    local folder=$work/images.$1
    mkdir -p "$folder"
    chmod 777 "$folder"
    "${@:2}" "$work/$1" "$folder" "$version"
}

# The functions of the header with their version, and nothing else.
exported() {
    local library=$prefix/lib/libholdfast.so.0
    grep -oE '^[a-z].*\bhf_[a-z_]+\(' "$prefix/include/holdfast.h" | sed 's/.*\b\(hf_[a-z_]*\)($/\1/' |
        sort >"$work/functions"
    [ "$(wc -l <"$work/functions")" -gt 40 ]
    nm -D --defined-only "$library" | sed -n 's/.* T \(.*\)@@HOLDFAST_.*/\1/p' | sort >"$work/symbols"
    diff "$work/functions" "$work/symbols"
    [ "$(nm -D --defined-only "$library" | grep -c ' [TDBRVW] ')" = "$(wc -l <"$work/symbols")" ]
    readelf -d "$library" | grep -qF 'soname: [libholdfast.so.0]'
    readelf -lW "$library" | grep GNU_STACK | grep -q ' RW '
}
check "the functions of the header are exported" exported

printf '#include <holdfast.h>\n#include <holdfast_ioctl.h>\nint main(void) { return 0; }\n' >"$work/headers.c"
for compiler in gcc clang; do
    have "$compiler" || { skip "$compiler" "there is no $compiler"; continue; }
    plus=${compiler/gcc/g}++
    check "$compiler: the headers by themselves, as C99" \
        "$compiler" -std=c99 "${strict[@]}" "$work/headers.c" "${flags[@]}" -o "$work/headers"
    for source in "$tests/behaviour" "$examples/tree" "$examples/read_many"; do
        name=$(basename "$source")
        check "$compiler: $name as C99" \
            "$compiler" "${c99[@]}" "${strict[@]}" "$source.c" "${flags[@]}" -pthread -o "$work/$name"
        check "$plus: $name as C++17" "$plus" -std=c++17 "${strict[@]}" -x c++ "$source.c" -x none \
            "${flags[@]}" -pthread -o "$work/$name-c++"
    done
    check "$compiler: the test" run behaviour
    check "$plus: the test" run behaviour-c++
    check "$compiler: the test with AddressSanitizer is built" "$compiler" "${c99[@]}" -g \
        -fsanitize=address,undefined "$tests/behaviour.c" "${flags[@]}" -pthread -o "$work/sanitized"
    check "$compiler: the test with AddressSanitizer" run sanitized
done
check "the test with the static library is built" cc "${c99[@]}" "$tests/behaviour.c" \
    "${static[@]/-lholdfast/-l:libholdfast.a}" -o "$work/static"
check "the test with the static library" run static env -u LD_LIBRARY_PATH
if [ "$(id -u)" = 0 ] && have setpriv; then
    check "the test as an ordinary user" \
        run behaviour setpriv --reuid 65534 --regid 65534 --clear-groups
else
    skip user "needs root and setpriv"
fi
if have valgrind; then
    check "the test under valgrind" run behaviour valgrind --quiet --leak-check=full \
        --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
        --error-exitcode=9
else
    skip valgrind "there is no valgrind"
fi

refused() { # TEXT COMMAND…
    local code=0
    "${@:2}" 2>"$work/said" || code=$?
    [ "$code" = 1 ] && grep -q "$1" "$work/said"
}

# What the examples print.
listed() {
    local image=$work/listed.hf
    cat >"$work/make.c" <<'EOF'
#include <fcntl.h>
#include <holdfast.h>
int main(int argc, char **argv)
{
    struct hf_fs *fs;
    struct hf_file *file;
    return argc != 2 || hf_create_volume(argv[1], NULL, &fs) || hf_mkdir(fs, "dir", 0755) ||
           hf_open(fs, "dir/file", O_CREAT | O_WRONLY, 0644, &file) ||
           hf_pwrite(file, "12345", 5, 0) != 5 || hf_close(fs);
}
EOF
    cc "$work/make.c" "${flags[@]}" -o "$work/make" && "$work/make" "$image"
    [ "$("$work/tree" "$image")" = $'dir/\n    file  5 bytes' ]
    [ "$("$work/tree" "$image" dir)" = "file  5 bytes" ]
    refused "none: No such file" "$work/tree" "$image" none
    refused "none.hf" "$work/tree" "$work/none.hf"
}
check "tree lists a volume" listed
check "read_many reads a thousand files in four calls" \
    test "$("$work/read_many")" = "1000 files, 200500 bytes, 4 calls"

# The code of a page of the reference.
block() { # PAGE LANGUAGE
    awk -v begin="\`\`\`$2" '$0 == "```" { inside = 0 } inside { print } $0 == begin { inside = 1 }' \
        "docs/book/reference/$1.md"
}
page_c() {
    block c c >"$work/page.c"
    cc "${strict[@]}" "$work/page.c" "${flags[@]}" -o "$work/page"
    [ "$("$work/page")" = hello ]
}
check "docs/book/reference/c.md" page_c
page_ioctl() {
    block prefetch c >"$work/prefetch.c"
    cc -std=c99 "${strict[@]}" -c "$work/prefetch.c" "${flags[@]}" -o "$work/prefetch.o"
}
check "docs/book/reference/prefetch.md" page_ioctl
if have go; then
    page_go() {
        mkdir "$work/go"
        block go go >"$work/go/main.go"
        cd "$work/go"
        go mod init example.org/holdfast
        go vet .
        go run . >said
        cat said
        grep -qx "1000 files, 1 missing" said
        grep -q "hf_open: /no/such/directory: No such file" said
    }
    check "docs/book/reference/go.md" page_go
else
    skip go "there is no go"
fi
node_headers=$(for folder in /usr/include/node /usr/include/nodejs/src; do
    [ ! -e "$folder/node_api.h" ] || echo "$folder"
done | head -1)
if have node && [ -n "$node_headers" ]; then
    page_node() {
        mkdir "$work/node"
        block node js >"$work/node/index.js"
        cc -std=c99 -D_GNU_SOURCE "${strict[@]}" -shared -fPIC "-I$node_headers" \
            "$examples/node/addon.c" -o "$work/node/holdfast.node" "${flags[@]}"
        [ "$(node "$work/node/index.js")" = "1001 files" ]
    }
    check "docs/book/reference/node.md" page_node
else
    skip node "there is no node, or it has no headers"
fi

abi=crates/capi/abi/$(uname -m).xml
# One unit, without what differs from build to build.
abi_of() {
    abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --drop-undefined-syms \
        "$prefix/lib/libholdfast.so" | awk '
        /^  <abi-instr / {
            if (!units++) print "  <abi-instr address-size='\''64'\'' path='\''crates/capi'\'' language='\''LANG_UNKNOWN'\''>"
            next
        }
        /^  <\/abi-instr>/ { next }
        /^<\/abi-corpus>/ { print "  </abi-instr>" }
        { print }'
}
same_abi() {
    abidiff "$abi" "$prefix/lib/libholdfast.so" || {
        echo "The interface differs from $abi. Added functions and fields at the end of a struct are"
        echo "recorded by scripts/capi.sh --write-abi; anything else needs another soname."
        return 1
    }
}
if ! have abidw; then
    skip abi "there is no abidw"
elif [ "${1:-}" = --write-abi ]; then
    mkdir -p "$(dirname "$abi")"
    abi_of >"$abi"
    echo "wrote $abi"
elif [ -e "$abi" ]; then
    check "the interface is the recorded one" same_abi
else
    skip abi "there is no $abi"
fi

[ "$failed" = 0 ] && word=ok || word=FAILED
echo "test result: $word. $passed passed; $failed failed"
[ "$failed" = 0 ]
