# The engine: reads the tables above. Works with and without the package bash-completion.

# Takes a word apart at its quotes: `plain` is what it means, `done` how much of that stands before the place from which
# readline replaces it: behind an open quote, or behind the last sign of COMP_WORDBREAKS.
__weir_dequote() {
    local word=$1 c quote= i
    plain= done=0
    for ((i = 0; i < ${#word}; i++)); do
        c=${word:i:1}
        if [[ $quote ]]; then
            if [[ $c == "$quote" ]]; then
                quote=
            else
                plain+=$c
            fi
        elif [[ $c == \\ ]]; then
            i=$((i + 1))
            plain+=${word:i:1}
        elif [[ $c == \' || $c == \" ]]; then
            quote=$c done=${#plain}
        else
            plain+=$c
            [[ $COMP_WORDBREAKS == *"$c"* ]] && done=${#plain}
        fi
    done
}

# The words up to the cursor as the program will see them: readline cuts at = and : too.
__weir_words() {
    local line=$COMP_LINE rest piece i
    [[ $COMP_POINT ]] && line=${line:0:COMP_POINT}
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        rest=${line#"${line%%[![:space:]]*}"}
        if ((i == COMP_CWORD)) && [[ $rest && $piece == "$rest"* ]]; then
            piece=$rest
        fi
        if ((i == 0)) || [[ $rest != "$line" || $line != "$piece"* ]]; then
            words+=("$piece")
        else
            words[${#words[@]} - 1]+=$piece
        fi
        line=${rest#"$piece"}
    done
}

# The row of the option that is called $1, in `row`.
__weir_row() {
    for row in "${rows[@]}"; do
        [[ " ${row%%;*} " == *" $1 "* ]] && return
    done
    row=
    return 1
}

__weir_field() { # $1: row, $2: number; in `field`
    local i=$2
    field=$1
    while ((i-- > 0)); do field=${field#*;}; done
    field=${field%%;*}
}

# Offers $3... that begin with the value so far, $2; $1 is what stands before it in the word.
__weir_offer() {
    local before=$1 value=$2 word
    shift 2
    for word; do
        [[ $word == "$value"* ]] || continue
        word=$before$word
        COMPREPLY+=("${word:done}")
    done
}

# Files with one of the endings $3..., and directories; any file where there is none such.
__weir_files() {
    local before=$1 value=$2 ending file
    shift 2
    local -a found=()
    for ending; do
        while IFS= read -r file; do found+=("$file"); done < <(compgen -f -X "!*.$ending" -- "$value")
    done
    if ((${#found[@]} == 0)); then
        while IFS= read -r file; do found+=("$file"); done < <(compgen -f -- "$value")
    else
        while IFS= read -r file; do found+=("$file"); done < <(compgen -d -- "$value")
    fi
    compopt -o filenames 2>/dev/null
    __weir_offer "$before" "$value" "${found[@]}"
}

__weir_dirs() {
    local file
    local -a found=()
    while IFS= read -r file; do found+=("$file"); done < <(compgen -d -- "$2")
    compopt -o filenames 2>/dev/null
    __weir_offer "$1" "$2" "${found[@]}"
}

# Words with commas, each once.
__weir_list() {
    local before=$1 value=$2 word
    local -a left=()
    shift 2
    if [[ $value == *,* ]]; then
        before+=${value%,*},
    fi
    for word; do
        [[ ,$value, == *",$word,"* && ${value##*,} != "$word" ]] || left+=("$word")
    done
    compopt -o nospace 2>/dev/null
    __weir_offer "$before" "${value##*,}" "${left[@]}"
}

# Names of the model's hook points, one a line; * stands for all layers. Nothing when the model cannot be opened soon.
__weir_list_points() {
    local program=${words[0]} limit=
    local -a command
    program=${program/#\~/$HOME}
    case ${program##*/} in
    weir) command=("$program" trace) ;;
    trace) command=("$program") ;;
    */*) command=("${program%/*}/weir" trace) ;;
    *) command=("${program%"${program##*/}"}weir" trace) ;;
    esac
    command -v timeout >/dev/null 2>&1 && limit='timeout 0.3'
    $limit "${command[@]}" --list-hooks ${model:+--model "${model/#\~/$HOME}"} 2>/dev/null </dev/null
}

# Hook points, up to the next dot.
__weir_points() {
    local before=$1 value=$2 name _ rest seen=' '
    compopt -o nospace 2>/dev/null
    while read -r name _; do
        for name in "$name" "${name/#blocks.+([0-9])./blocks.*.}"; do
            [[ $name == "$value"* ]] || continue
            rest=${name#"$value"}
            [[ $rest == *.* ]] && name=$value${rest%%.*}.
            [[ $seen == *" $name "* ]] && continue
            seen+="$name "
            __weir_offer "$before" "$value" "$name"
        done
    done < <(__weir_list_points)
}

# SEL=FILE and the like; the words after = are $3...
__weir_selector() {
    local before=$1 value=$2 word
    local -a left=()
    shift 2
    if [[ $value != *=* ]]; then
        if [[ $value == *,* ]]; then
            before+=${value%,*},
        fi
        __weir_points "$before" "${value##*,}"
        return
    fi
    before+=${value%%=*}= value=${value#*=}
    for word; do
        [[ $word == FILE ]] || left+=("$word")
    done
    __weir_offer "$before" "$value" "${left[@]}"
    if [[ " $* " == *' FILE '* ]]; then
        if [[ $value == mean:* ]]; then
            before+=mean: value=${value#mean:}
        fi
        __weir_files "$before" "$value"
    fi
}

__weir_hook() {
    local before=$1 value=$2
    if [[ $value == [./~]* ]]; then
        __weir_files "$before" "$value" so
    elif [[ $value == *:* ]]; then
        __weir_selector "$before${value%%:*}:" "${value#*:}" FILE
    else
        compopt -o nospace 2>/dev/null
        __weir_offer "$before" "$value" $__weir_hooks
    fi
}

# $1: kind, $2: words of the table, $3: what stands before the value, $4: the value so far.
__weir_value() {
    set -f
    case $1 in
    words) __weir_offer "$3" "$4" $2 ;;
    list) __weir_list "$3" "$4" $2 ;;
    file) __weir_files "$3" "$4" $2 ;;
    dir) __weir_dirs "$3" "$4" ;;
    points)
        if [[ $4 == *,* && $4 != *[{\[]* ]]; then
            __weir_points "$3${4%,*}," "${4##*,}"
        else
            __weir_points "$3" "$4"
        fi ;;
    selector) __weir_selector "$3" "$4" $2 ;;
    hook) __weir_hook "$3" "$4" ;;
    esac
}

__weir_value_of() { # $1: option, $2: what stands before the value, $3: the value so far
    local row field kind
    __weir_row "$1" || return
    __weir_field "$row" 1; kind=$field
    __weir_field "$row" 2
    __weir_value "$kind" "$field" "$2" "$3"
}

# An option $1 was given, with the value $2 if it stands in the same word: what that excludes, and which value is next.
__weir_given() {
    local field
    __weir_row "$1" || return
    __weir_field "$row" 3
    excluded+=" $field "
    [[ $row == *';flag;'* ]] && return
    if (($# > 1)); then
        [[ $1 == --model || $1 == -m ]] && model=$2
    else
        next=$1
    fi
}

# Letters joined: -jq, -l6. The one that takes the rest as its value is left in `next`, that value in `value`.
__weir_letters() {
    local word=$1 i row
    next= value=
    for ((i = 1; i < ${#word}; i++)); do
        __weir_given "-${word:i:1}"
        if [[ $next ]]; then
            value=${word:i+1}
            return
        fi
    done
}

# Reads the options of words[$1..] before the cursor.
__weir_scan() {
    local i plain done row value
    for ((i = $1; i < ${#words[@]} - 1; i++)); do
        __weir_dequote "${words[i]}"
        if [[ $next && $plain == --* ]] && { [[ $plain == -- ]] || __weir_row "${plain%%=*}"; }; then
            next= # the program, too, takes this for the next option
        fi
        if [[ $next ]]; then
            __weir_given "$next" "$plain"
            next=
        elif ((ended)); then
            continue
        else
            case $plain in
            --) ended=1 ;;
            --*=*) __weir_given "${plain%%=*}" "${plain#*=}" ;;
            --*) __weir_given "$plain" ;;
            -?*)
                __weir_letters "$plain"
                if [[ $value ]]; then
                    __weir_given "$next" "$value"
                    next=
                fi ;;
            esac
        fi
    done
}

# Options that may still be given. Other names of theirs and letters only where no long name fits.
__weir_names() {
    local value=$1 row name which
    local -a long=() other=()
    for row in "${rows[@]}"; do
        which=0
        for name in ${row%%;*}; do
            [[ $excluded == *" $name "* ]] && continue
            if ((which++ == 0)); then
                long+=("$name")
            else
                other+=("$name")
            fi
        done
    done
    __weir_offer '' "$value" "${long[@]}"
    if ((${#COMPREPLY[@]} == 0)) || [[ $value == - ]]; then
        __weir_offer '' "$value" "${other[@]}"
    fi
}

_weir() {
    local tool commands= operands= next= model= excluded=' ' ended=0 at=1 plain done value row field
    local -a words rows=()
    COMPREPLY=()
    local restore
    restore=$(shopt -p extglob; [[ $- == *f* ]] || echo 'set +f')
    shopt -s extglob
    __weir_words
    __weir_complete
    eval "$restore"
}

__weir_complete() {
    local last=$((${#words[@]} - 1)) before
    tool=${words[0]##*/}
    if [[ " $__weir_tools " != *" $tool "* ]]; then
        tool=${words[1]} at=2
    fi
    __weir_dequote "${words[last]}"
    before=${words[last > 0 ? last - 1 : 0]}
    if [[ $before =~ ^[0-9]*(\<|\>|\>\>)$ ]]; then
        __weir_files '' "$plain"
        return
    fi
    if ((last < at)); then
        __weir_offer '' "$plain" $__weir_tools help --help --version
        return
    fi
    if ((at == 2)) && [[ $tool == help ]]; then
        [[ ${words[2]} == --man ]] && ((last > 2)) && at=3
        ((last == 2)) && __weir_offer '' "$plain" --man
        ((last == at)) && __weir_offer '' "$plain" $__weir_tools
        __weir_table "${words[at]}"
        ((last == at + 1)) && __weir_offer '' "$plain" $commands
        return
    fi
    __weir_table "$tool"
    if [[ $commands ]]; then
        if ((last == at)); then
            __weir_offer '' "$plain" $commands --help
            return
        fi
        __weir_table "$tool ${words[at]}"
        at=$((at + 1))
    fi
    __weir_scan $at
    if [[ $next ]]; then
        __weir_value_of "$next" '' "$plain"
    elif ((ended)); then
        __weir_value "${operands%%;*}" "${operands#*;}" '' "$plain"
    elif [[ $plain == --*=* ]]; then
        __weir_value_of "${plain%%=*}" "${plain%%=*}=" "${plain#*=}"
    elif [[ $plain == -[!-]* ]] && __weir_letters "$plain" && [[ $next && $value ]]; then
        __weir_value_of "$next" "${plain%"$value"}" "$value"
    elif [[ $plain == -* ]]; then
        __weir_names "$plain"
    else
        __weir_value "${operands%%;*}" "${operands#*;}" '' "$plain"
        [[ $plain || ${#COMPREPLY[@]} -gt 0 ]] || __weir_names --
    fi
}
