# Completion of holdfast(1) for bash. The program itself answers what may follow.
_holdfast() {
    local line=$COMP_LINE index=-1 i word words=()
    # bash splits words at = and at :, which are parts of options and of paths in volumes.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 0)) && [[ $line != [[:space:]]* ]]; then
            words[index]+=$word
        else
            words[++index]=$word
        fi
        line=${line#*"$word"}
    done
    local whole=${words[index]}
    local before=${whole%"$2"} IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX="$index" COMPLETE=bash \
        holdfast -- "${words[@]}" 2>/dev/null)) || COMPREPLY=()
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _holdfast holdfast
