# Races of two mounts; `scripts/cluster.sh` sources it. Each takes a folder, by both mounts.
# shellcheck shell=bash disable=SC2154 # `races` is of that script

# Rounds of races that wait go by tens, so that they wait together.
TEN=(1 2 3 4 5 6 7 8 9 10)

# Two directories are moved into each other at once.
race_of_moves() { # A B
    local n bad=0 found one yes
    for n in $(seq "$races"); do
        mkdir "$1/$n" "$1/$n/x" "$1/$n/y"
        soon test -d "$2/$n/y" || bad=$((bad + 1))
        mv -T "$1/$n/x" "$1/$n/y/x" 2>/dev/null &
        one=$! yes=0
        ! mv -T "$2/$n/y" "$2/$n/x/y" 2>/dev/null || yes=1
        ! wait "$one" || yes=$((yes + 1))
        [ "$yes" -lt 2 ] || bad=$((bad + 1))
    done
    pause 1.6
    # Of each round the root, x and y are reached.
    for found in "$(find "$1" | wc -l)" "$(find "$2" | wc -l)"; do
        [ "$found" = $((3 * races + 1)) ] || bad=$((bad + 1))
    done
    promise "directories moved into each other form no loop" "$races" "$bad"
}

# A file is opened with O_CREAT on one mount after it was removed on the other.
race_of_creation() { # A B
    local n bad=0
    for n in $(seq "$races"); do
        echo old >"$1/$n"
        soon test -e "$2/$n" || bad=$((bad + 1))
        rm "$1/$n"
        (: >"$2/$n") 2>/dev/null || bad=$((bad + 1))
    done
    promise "a file removed on one mount can be made on the other" "$races" "$bad"
}

# Files are replaced on one mount by the command, and read on the other.
race_of_reading() { # A B COMMAND TEXT
    local n k tried=0 bad=0 late=0 text longest=0
    for n in $(seq $(((races + 9) / 10))); do
        for k in "${TEN[@]}"; do "$3" "$1/$k" "text $n"; done
        for k in "${TEN[@]}"; do
            tried=$((tried + 1))
            text=error
            { read -r text <"$2/$k"; } 2>/dev/null || true
            # An error is never right; the old file is, within the lease.
            case $text in
            "text $n" | "text $((n - 1))") ;;
            *) [ "$n" = 1 ] || bad=$((bad + 1)) ;;
            esac
            [ "$text" = "text $n" ] || late=$((late + 1))
            within_lease reads_now "$2/$k" "text $n" || bad=$((bad + 1))
        done
    done
    promise "$4" "$tried" "$bad" "$late times not at once, the longest after $longest ms"
}

replaces() { echo "$2" >"$1.new" && mv -T "$1.new" "$1"; }
writes() { echo "$2" >"$1"; }
race_of_replacement() {
    race_of_reading "$1" "$2" replaces "a replaced file is read anew within the lease"
}
race_of_content() {
    race_of_reading "$1" "$2" writes "what was closed is read on the other mount"
}

# A directory is removed on one mount while a file is made in it on the other.
race_of_removal() { # A B
    local n bad=0 one yes
    for n in $(seq "$races"); do
        mkdir "$1/$n"
        soon test -d "$2/$n" || bad=$((bad + 1))
        rmdir "$1/$n" 2>/dev/null &
        one=$! yes=0
        ! (: >"$2/$n/f") 2>/dev/null || yes=1
        ! wait "$one" || yes=$((yes + 1))
        [ "$yes" -lt 2 ] || bad=$((bad + 1))
    done
    promise "no directory is removed under a file made in it" "$races" "$bad"
}

# Files are open on one mount and are removed on the other.
race_of_unlink() { # A B
    local n k tried=0 bad=0 text fds
    for n in $(seq $(((races + 9) / 10))); do
        fds=()
        for k in "${TEN[@]}"; do
            tried=$((tried + 1))
            echo "kept $n" >"$1/$n-$k"
            soon reads_now "$2/$n-$k" "kept $n" || bad=$((bad + 1))
            exec {fds[k]}<"$2/$n-$k"
        done
        rm "$1/$n"-*
        pause 0.5
        for k in "${TEN[@]}"; do
            text=
            read -r text <&"${fds[k]}" || true
            [ "$text" = "kept $n" ] || bad=$((bad + 1))
            exec {fds[k]}<&-
        done
    done
    promise "an open file that the other mount removed stays readable" "$tried" "$bad"
}

# A log grows on one mount, and is put aside from time to time; the other reads it meanwhile.
race_of_log() { # A B
    local n at bad=0 writer lines first
    (
        line=$(printf '%0200d' 0)
        for n in $(seq 100000); do
            [ ! -e "$1/end" ] || break
            echo "$n $line" >>"$1/log"
            [ $((n % 50)) != 0 ] || mv "$1/log" "$1/log.old"
        done
    ) &
    writer=$!
    soon test -e "$2/log" || bad=1
    for n in $(seq "$races"); do
        lines=()
        # Between two logs there is none.
        { mapfile lines <"$2/log"; } 2>/dev/null || true
        first=${lines[0]-}
        first=${first%% *}
        for at in "${!lines[@]}"; do
            case ${#lines[at]}-${lines[at]} in
            20?-"$((first + at)) "*000$'\n') ;;
            *) bad=$((bad + 1)) ;;
            esac
        done
        [ $((${first:-1} % 50)) = 1 ] || bad=$((bad + 1))
    done
    : >"$1/end"
    wait "$writer" || bad=$((bad + 1))
    promise "a log that grows and is renamed has whole lines" "$races" "$bad"
}

# Files get another owner on one mount; it changes them on the other, and asks nothing before.
race_of_owners() { # A B
    local n k tried=0 bad=0
    for n in $(seq $(((races + 9) / 10))); do
        for k in "${TEN[@]}"; do
            : >"$2/$n-$k"
            chown 65534 "$2/$n-$k"
        done
        pause 1.6
        chmod 700 "$1/$n"-*
        chown 0 "$2/$n"-*
        pause 1.6
        for k in "${TEN[@]}"; do
            tried=$((tried + 1))
            # Root, without its power over the files of others.
            setpriv --bounding-set=-fowner --inh-caps=-fowner \
                perl -e 'chmod 0640, @ARGV or exit 1' "$1/$n-$k" || bad=$((bad + 1))
        done
    done
    promise "a new owner can change a file on the other mount" "$tried" "$bad"
}

# All of them at once, each in a folder of its own: most of their time they wait.
all_races() { # A B
    local race jobs=()
    for race in moves creation replacement content removal unlink log owners; do
        mkdir "$1/$race"
        soon test -d "$2/$race"
        "race_of_$race" "$1/$race" "$2/$race" >"$WORK/race-$race" &
        jobs+=($!)
    done
    for race in "${jobs[@]}"; do
        wait "$race" || note_broken "a race ended early"
    done
    cat "$WORK"/race-*
    for race in moves creation replacement content removal unlink log owners; do
        rm -r "${1:?}/$race"
    done
}
