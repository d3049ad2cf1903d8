# The engine: reads the tables above.

# Names of the hook points of the model on the command line, in `points`; * stands for all layers. None when the model
# cannot be opened soon.
_weir_list_points() {
    local program=${weir_program/#\~/$HOME} model name
    local -a command limit
    model=${opt_args[--model]:-${opt_args[-m]}}
    model=${${(Q)model}/#\~/$HOME}
    case ${program:t} in
        (weir) command=($program trace) ;;
        (trace) command=($program) ;;
        (*) command=(${program%${program:t}}weir trace) ;;
    esac
    (( $+commands[timeout] )) && limit=(timeout 0.3)
    points=(${${(f)"$($limit $command --list-hooks ${model:+--model} $model 2>/dev/null </dev/null)"}%% *})
    points+=(${(u)${(M)points:#blocks.*}/#blocks.<->./blocks.*.})
}

# Names with commas, each piece between dots by itself.
_weir_points() {
    local -a points
    _weir_list_points
    [[ $PREFIX == *[\[\{]* ]] || compset -P '*,'
    _multi_parts -q "$@" . points
}

# SEL=FILE and the like; the arguments up to the first dash are what may follow the sign.
_weir_selector() {
    local -a after points
    while (( $# )) && [[ $1 != -* ]]; do
        after+=($1)
        shift
    done
    if compset -P 1 '*='; then
        if compset -P 1 'mean:'; then
            _files
            return
        fi
        local ret=1
        (( ${#after:#FILE} )) && compadd - ${after:#FILE} && ret=0
        (( $after[(I)FILE] )) && _files && ret=0
        return ret
    fi
    _weir_list_points
    compset -P '*,'
    _multi_parts -q . points
}

_weir_hook() {
    if [[ $PREFIX == [./~]* ]]; then
        _files -g '*.so(-.)'
    elif compset -P 1 '*:'; then
        _weir_selector FILE
    else
        _describe -t hooks hook _weir_hooks -S :
    fi
}

_weir() {
    local curcontext=$curcontext tool=$service weir_program=$words[1] ret=1
    local -a commands specs line state
    typeset -A opt_args
    if [[ $tool == weir ]]; then
        if (( CURRENT == 2 )); then
            _describe -t tools tool _weir_tools && ret=0
            _arguments '(- *)'{-h,--help}'[list the tools]' '(- *)--version[print the version]' && ret=0
            compadd help && ret=0
            return ret
        fi
        tool=$words[2]
        shift words
        (( CURRENT-- ))
        if [[ $tool == help ]]; then
            _weir_help
            return
        fi
    fi
    _weir_table $tool
    if (( $#commands )); then
        if (( CURRENT == 2 )); then
            _describe -t commands command commands
            return
        fi
        _weir_table "$tool $words[2]"
        shift words
        (( CURRENT-- ))
    fi
    (( $#specs )) || return 1
    _arguments -s -S : $specs
}

# weir help [--man] [TOOL [COMMAND]]; words[1] is "help".
_weir_help() {
    local -a commands specs
    if [[ $words[2] == --man ]] && (( CURRENT > 2 )); then
        shift words
        (( CURRENT-- ))
    fi
    if (( CURRENT == 2 )); then
        _describe -t tools tool _weir_tools
        [[ $words[1] == help ]] && compadd - --man
        return 0
    fi
    _weir_table $words[2]
    (( CURRENT == 3 && $#commands )) && _describe -t commands command commands
}

if [[ $funcstack[1] == _weir ]]; then
    _weir "$@"
else
    compdef _weir $_weir_names
fi
