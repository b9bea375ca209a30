# A bucket that fails under two mounts; `scripts/cluster.sh` sources it after failures.sh.
# shellcheck shell=bash disable=SC2154 # variables of that script

stores() { timeout 60 dd if="$1" of="$2" bs=1M conv=fsync status=none; } # FROM TO

bucket_is() { echo "$1" >"$WORK/bucket-mode"; }

try_busy_bucket() {
    local bad=0 one two begun read note
    [ -n "${PROXY:-}" ] || return 0
    head -c 3000000 /dev/urandom >"$WORK/large"
    cp "$WORK/large" "$a/large"
    sync "$a/large"
    mount_c "$DATABASE"
    bucket_is busy
    # Names and small files do not need it.
    timeout 5 mkdir "$c/busy" && timeout 5 mv "$c/busy" "$c/moved" &&
        timeout 5 touch "$c/moved/x" && timeout 5 rm "$c/moved/x" &&
        echo small >"$c/moved/y" && reads_now "$b/moved/y" small || bad=1
    promise "without the bucket, names and small files go on" 1 "$bad"
    bad=0
    cat "$c/large" >"$WORK/read" 2>/dev/null &
    one=$!
    stores "$WORK/large" "$c/moved/z" 2>/dev/null &
    two=$!
    pause 3
    ! process_gone "$one" && ! process_gone "$two" || bad=1
    bucket_is well
    wait "$one" && wait "$two" && cmp -s "$WORK/large" "$WORK/read" || bad=1
    cmp -s "$WORK/large" "$b/moved/z" || bad=1
    promise "a read and an fsync wait for the bucket" 2 "$bad"
    bad=0
    umount_c || bad=1
    mount_c "$DATABASE"
    bucket_is busy
    cat "$c/large" >/dev/null 2>&1 &
    one=$!
    dd if="$WORK/large" of="$c/moved/w" bs=1M conv=fsync status=none 2>/dev/null &
    two=$!
    pause 2
    ! process_gone "$one" && ! process_gone "$two" || bad=1
    kill "$one" "$two"
    until_true 3 process_gone "$one" && until_true 3 process_gone "$two" || bad=1
    promise "a signal ends a wait for the bucket" 2 "$bad"
    bad=0
    bucket_is well
    umount_c || bad=1
    mount_c "$DATABASE" -o retry=3
    bucket_is busy
    begun=$SECONDS
    ! timeout 60 cat "$c/large" >/dev/null 2>"$WORK/read.log" || bad=1
    grep -q 'Input/output error' "$WORK/read.log" || bad=1
    read=$((SECONDS - begun))
    ! stores "$WORK/large" "$c/moved/v" 2>"$WORK/read.log" || bad=1
    grep -q 'Input/output error' "$WORK/read.log" || bad=1
    [ "$read" -le 12 ] && [ $((SECONDS - begun)) -le 30 ] || bad=1
    note="the read after $read s, all after $((SECONDS - begun)) s, with retry=3"
    umount_c || bad=1
    bucket_is well
    promise "without the bucket for retry=, both fail, and unmount ends" 2 "$bad" "$note"
    bad=0
    mount_c "$DATABASE"
    bucket_is late
    timeout 60 cmp -s "$WORK/large" "$c/large" || bad=1
    stores "$WORK/large" "$c/moved/u" || bad=1
    bucket_is well
    cmp -s "$WORK/large" "$b/moved/u" || bad=1
    umount_c || bad=1
    promise "a bucket that answers after 5 s is waited for" 2 "$bad"
    rm -r "$a/large" "$a/moved"
}
