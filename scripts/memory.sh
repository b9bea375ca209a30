#!/usr/bin/env bash
# Does a mount keep to its memory? Each part has a control group of its own, with a new volume in an
# image on disk, and prints what it measured beside its goal. The daemon must live, and its resident
# memory, sampled ten times a second, must never exceed its budget by more than a twentieth.
# `creates` and `walk` do the same without a limit first.
#
#   scripts/memory.sh [--quick] [--whole] [--only PART[,PART…]] [--dir DIR]
#
# Parts: file small creates walk replay. Without --quick or --whole a tenth of the files is used.
# --quick takes a hundredth of the files and a sixteenth of the large file, and compares no speeds.
# --whole takes all. --dir: the folder of the images, not in a tmpfs, where their pages would count
# as the daemon's.
set -euo pipefail
# shellcheck source=scripts/session.sh
source "$(dirname "$0")/session.sh"

part=10
only=file,small,creates,walk,replay
images=/var/tmp
while [ $# -gt 0 ]; do
    case $1 in
    --quick) part=100; shift ;;
    --whole) part=1; shift ;;
    --only) only=${2:?--only needs names}; shift 2 ;;
    --dir) images=${2:?--dir needs a folder}; shift 2 ;;
    *) die "unknown argument $1" ;;
    esac
done

need_mount
need_commands perl:perl-base rsync:rsync
[ "$(stat -f -c %T "$images")" != tmpfs ] || die "$images is a tmpfs: give another folder with --dir"
place=$(mktemp -d "$images/holdfast-memory.XXXXXX")
FOLDERS+=("$place")

GROUPS_MADE=()
FAILED=0

### Control groups: v2 where it has the memory controller, else v1.

unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
if [ -n "$unified" ] && grep -qw memory "$unified/cgroup.controllers" 2>/dev/null &&
    { grep -qw memory "$unified/cgroup.subtree_control" || echo +memory >"$unified/cgroup.subtree_control"; }; then
    hierarchy=$unified limit_file=memory.max used_file=memory.current
else
    hierarchy=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/self/mounts)
    limit_file=memory.limit_in_bytes used_file=memory.usage_in_bytes
fi
[ -n "$hierarchy" ] || unfit "no control groups limit memory here"

# make_group MIB: leaves its folder in $group.
make_group() {
    group=$hierarchy/holdfast-$$-${#GROUPS_MADE[@]}
    mkdir "$group" 2>/dev/null || unfit "no control group can be made"
    GROUPS_MADE+=("$group")
    echo $(($1 << 20)) >"$group/$limit_file"
}

# Once its processes are gone.
remove_group() {
    until_true 10 rmdir "$group" 2>/dev/null || say "$group stays"
}

kills() {
    { cat "$group"/memory.events "$group"/memory.oom_control 2>/dev/null || true; } |
        awk '$1 == "oom_kill" { kills = $2 } END { print kills + 0 }'
}

### Watching

# Writes `MOST-RESIDENT SAMPLES` in KiB to $1 until process $2 is gone.
watch() {
    exec perl -e 'my ($to, $pid) = @ARGV;
        my ($most, $samples) = (0, 0);
        while (open(my $statm, "<", "/proc/$pid/statm")) {
            my (undef, $resident) = split(" ", <$statm> // last);
            last unless $resident;
            $samples++;
            $most = $resident if $resident > $most;
            open(my $out, ">", "$to.new") or die;
            print $out $most * 4, " $samples\n";
            close $out;
            rename("$to.new", $to);
            select(undef, undef, undef, 0.1);
        }' "$@"
}

# In KiB, of all times, as the kernel knows it.
peak() { awk '$1 == "VmHWM:" { print $2 }' "/proc/$daemon/status" 2>/dev/null || echo 0; }

# shown NAME VALUE UNIT GOAL OK
shown() {
    local word=ok
    [ "$5" = 1 ] || { word=MISSED FAILED=$((FAILED + 1)); }
    printf '%-44s %12s %-5s  goal %-14s %s\n' "$1" "$2" "$3" "$4" "$word"
}

# without_limit NAME: mounts outside of all groups, with all the memory there is. Leaves $mnt.
without_limit() {
    name=$1 mnt=$place/$1.mnt
    say "$name: without a limit"
    mkdir -p "$mnt"
    MOUNTS+=("$mnt")
    "$HOLDFAST" mount "$place/$name.hf" "$mnt" -o memory=max --create --size 64g </dev/null
}

# in_group NAME MIB: mounts in a control group of so many MiB. Leaves $mnt.
in_group() {
    name=$1 mib=$2 mnt=$place/$1.mnt
    make_group "$mib"
    say "$name: a control group of $mib MiB"
    mkdir -p "$mnt"
    MOUNTS+=("$mnt")
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        exec "$HOLDFAST" mount "$place/$name.hf" "$mnt" --create --size 64g </dev/null
    )
    daemon=$(info_value "$mnt" pid)
    budget=$("$HOLDFAST" info --json "$mnt" | sed -n 's/.*"budget_bytes": *\([0-9]*\).*/\1/p')
    watch "$place/$name.watched" "$daemon" &
    watcher=$!
    PIDS+=("$watcher")
}

# Sees how it went, and unmounts.
out_of_group() {
    local most samples killed goal
    killed=$(kills)
    read -r most samples <"$place/$name.watched"
    goal=$((budget / 1024 * 21 / 20))
    shown "$name: kills by the kernel" "$killed" '' 0 $((killed == 0))
    shown "$name: most resident in $samples samples" $((most / 1024)) MiB "<= $((goal / 1024))" $((most <= goal))
    say "most resident at any time: $(($(peak) / 1024)) MiB"
    say "$("$HOLDFAST" info "$mnt" 2>/dev/null | grep -E '^(memory|by class)' || echo 'no daemon')"
    say "the group holds $(($(cat "$group/$used_file") >> 20)) MiB"
    clear_mount "$mnt"
    wait "$watcher" 2>/dev/null || true
    drop_pid "$watcher"
    remove_group
    rm -f "$place/$name.hf"
}

# timed NAME COUNT COMMAND…: prints how many a second, and leaves it in $rate; what fails is
# counted.
timed() {
    local what=$1 count=$2 begun ended code=0
    shift 2
    begun=$(date +%s%N)
    "$@" || code=$?
    ended=$(date +%s%N)
    rate=$((count * 1000 / ((ended - begun) / 1000000 + 1)))
    shown "$name: $what" "$rate" '/s' 'done' $((code == 0))
}

# compared NAME LIMITED FREE GOAL: two rates, the first at least so many hundredths of the second.
compared() {
    local hundredths=$(($2 * 100 / $3))
    [ "$part" = 100 ] || shown "$name: $1, of that without a limit" "$hundredths" '%' ">= $4" $((hundredths >= $4))
}

### Work

forget_all() { echo 3 >/proc/sys/vm/drop_caches; }

write_file() { dd if=/dev/zero of="$mnt/file" bs=1M count="$1" conv=fsync status=none; }
read_file() { [ "$(cat "$mnt/file" | wc -c)" = $(($1 << 20)) ]; }

# make_files COUNT PER-FOLDER BYTES [MAKERS]: by so many processes side by side, each a part of the
# folders.
make_files() {
    local maker makers=${4:-1} own=() code=0
    for ((maker = 0; maker < makers; maker++)); do
        perl -e 'my ($dir, $count, $each, $bytes, $makers, $maker) = @ARGV;
            for my $i (0 .. $count - 1) {
                next if int($i / $each) % $makers != $maker;
                my $folder = "$dir/" . int($i / $each);
                mkdir $folder or die "$folder: $!" if $i % $each == 0;
                open(my $file, ">", "$folder/$i") or die "$folder/$i: $!";
                print $file "x" x $bytes if $bytes;
                close $file or die "$folder/$i: $!";
            }' "$mnt" "$1" "$2" "$3" "$makers" "$maker" &
        own+=($!)
    done
    for maker in "${own[@]}"; do
        wait "$maker" || code=1
    done
    return "$code"
}

# look_at COUNT: all of them, with their attributes.
look_at() { [ "$(find "$mnt" -type f -size -9k | wc -l)" = "$1" ]; }
copy_part() { rsync -a "$mnt/0" "$mnt/1" "$mnt/2" "$mnt/copy/"; }
remove_all() { rm -rf "${mnt:?}"/*; }

file() {
    local mib=$((4096 / (part > 1 ? (part > 10 ? 16 : 4) : 1)))
    in_group file 128
    timed "MiB written" "$mib" write_file "$mib"
    forget_all
    timed "MiB read" "$mib" read_file "$mib"
    out_of_group
}

small() {
    local count=$((1000000 / part))
    in_group small 128
    timed "small files made" "$count" make_files "$count" 1000 100
    forget_all
    timed "found" "$count" look_at "$count"
    timed "copied by rsync" 3000 copy_part
    timed "removed" "$count" remove_all
    out_of_group
}

creates() {
    local count=$((10000000 / part)) free
    without_limit creates
    timed "empty files made" "$count" make_files "$count" 10000 0 4
    free=$rate
    clear_mount "$mnt"
    rm -f "$place/creates.hf"
    in_group creates 512
    timed "empty files made" "$count" make_files "$count" 10000 0 4
    compared "made" "$rate" "$free" 95
    timed "found" "$count" look_at "$count"
    out_of_group
}

# Each walk has a mount of its own, and finds nothing in the kernel's memory.
walk() {
    local count=$((30000000 / part)) free
    without_limit walk
    timed "empty files made" "$count" make_files "$count" 10000 0 4
    clear_mount "$mnt"
    forget_all
    without_limit walk
    timed "found" "$count" look_at "$count"
    free=$rate
    clear_mount "$mnt"
    forget_all
    in_group walk 512
    timed "found" "$count" look_at "$count"
    compared "found" "$rate" "$free" 90
    out_of_group
}

# What a daemon with all the memory there is had in the journal when it was killed is replayed with
# little.
replay() {
    local count=$((3000000 / part))
    without_limit replay
    timed "empty files made" "$count" make_files "$count" 10000 0 4
    say "$("$HOLDFAST" info "$mnt" | grep -E '^(by class|journal)')"
    sync -f "$mnt"
    kill -9 "$(info_value "$mnt" pid)"
    clear_mount "$mnt"
    forget_all
    in_group replay 128
    shown "replay: most resident until it was mounted" $(($(peak) / 1024)) MiB "<= $((budget / 1024 / 1024 * 21 / 20))" \
        $(($(peak) <= budget / 1024 * 21 / 20))
    timed "found" "$count" look_at "$count"
    out_of_group
}

for each in ${only//,/ }; do
    case $each in
    file | small | creates | walk | replay) "$each" ;;
    *) die "no part is called $each" ;;
    esac
done
say "$FAILED missed"
[ "$FAILED" = 0 ]
