# Completes lines in zsh as TAB would, and prints what is offered.   capture.zsh: sourced by an interactive zsh
# $CAPTURE/fpath/_weir: the script; $CAPTURE/lines: the lines; $CAPTURE/offered: for each line "== LINE", then an offer
# a line with what is already typed of the word: WORD, or WORD<tab>WORD -- DESCRIPTION, or <tab>-- DESCRIPTION alone
# where zsh would show descriptions in a column of their own.
fpath=($CAPTURE/fpath $fpath)
autoload -Uz compinit
compinit -u -D
LISTMAX=100000

compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a hits shown
    local named tab=$'\t'
    local -i i
    local -A o
    if (( $@[(I)-d] )); then
        named=${@[$(( ${@[(i)-d]} + 1 ))]}
        shown=("${(@P)named}")
    fi
    if (( $@[(I)-E*] )); then # a column of descriptions, of what the calls before have added
        print -rl -- $tab${^shown} >> $CAPTURE/offered
        builtin compadd "$@"
        return
    fi
    builtin compadd -A hits -D shown "$@"
    zparseopts -E -A o S: P: p: s: W:
    for (( i = 1; i <= $#hits; i++ )); do
        print -r -- "$IPREFIX${o[-P]}${o[-p]}$hits[i]${o[-S]}${shown[i]:+$tab$shown[i]}" >> $CAPTURE/offered
    done
    builtin compadd "$@"
}

zle -C offer complete-word _main_complete
all() {
    local line
    for line in ${(f)"$(<$CAPTURE/lines)"}; do
        print -r -- "== $line" >> $CAPTURE/offered
        BUFFER=$line CURSOR=$#line
        zle offer
    done
    exit
}
zle -N all
bindkey '^T' all
