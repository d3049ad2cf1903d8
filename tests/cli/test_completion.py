"""Completion of bash and zsh, in the shells themselves: every option of --help, words, files, hook points of the model, and what is
not offered any more."""
import fcntl
import functools
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import termios
import time

import pytest

from optionlist import ALL, help_of, options_of
from weircli import BIN, BROOK, ROOT, environment, weir

BREAKS = " \t\n\"'><=;|&(:"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    path = tmp_path_factory.mktemp("scripts")
    (path / "weir.bash").write_bytes(weir("completion", "bash").ok().out)
    (path / "fpath").mkdir()
    (path / "fpath" / "_weir").write_bytes(weir("completion", "zsh").ok().out)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory to complete in."""
    path = tmp_path_factory.mktemp("place")
    for name in ("mlp.h5", "my dump.h5", "cut.h5.part", "config.json", "notes.txt"):
        (path / name).touch()
    (path / "an edit").mkdir()
    (path / "gpt2").mkdir()
    os.symlink(BIN / "weir", path / "weir")
    return path


def cut(line):
    """COMP_WORDS as readline makes them of a line whose end is the cursor: cut at signs that separate, but not between quotes."""
    words, quote, glued, bare = [""], None, False, False
    for c in line:
        if bare or c == "\\" and not quote:
            words[-1] += c
            bare = not bare
        elif quote:
            words[-1] += c
            quote = None if c == quote else quote
        elif c == " ":
            words += [""] if words[-1] else []
            glued = False
        elif c in BREAKS and c not in "\"'":
            if words[-1] and not (glued and set(words[-1]) <= set(BREAKS)):
                words.append("")
            words[-1] += c
            glued = True
        else:
            if glued:
                words.append("")
            glued = False
            quote = c if c in "\"'" else None
            words[-1] += c
    return words


def in_bash(script, lines, cwd):
    """What is offered for each line, as bash's COMPREPLY."""
    code = [f"source {shlex.quote(str(script))}"]
    for line in lines:
        words = cut(line)
        quoted = " ".join(map(shlex.quote, words))
        code.append(f"COMP_LINE={shlex.quote(line)} COMP_POINT=${{#COMP_LINE}} COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n"
                    "_weir; printf '%s\\n' \"${COMPREPLY[@]}\" ==")
    p = subprocess.run(["bash", "--norc", "--noprofile", "-c", "\n".join(code)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env=environment(WEIR_BROOK=str(BROOK)), text=True)
    assert p.stderr == "" and p.returncode == 0, p.stderr
    return [[w for w in part.split("\n") if w] for part in p.stdout.split("==\n")[:-1]]


def at_a_terminal(argv, keys, cwd, **env):
    """Types keys into a shell until it ends; what is seen there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 1000, 250, 0, 0))  # nothing is cut, nothing asked
    p = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, start_new_session=True,
                         env=environment(WEIR_BROOK=str(BROOK), TERM="dumb", INPUTRC="/nonexistent", **env))
    os.close(theirs)
    os.write(ours, keys)
    seen, end = b"", time.monotonic() + 60
    while p.poll() is None and time.monotonic() < end:
        if select.select([ours], [], [], 0.05)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:
                break
    if p.poll() is None:
        os.close(ours)
        p.kill()
    p.wait()
    return seen.decode(errors="replace")


@pytest.fixture(scope="module")
def in_zsh(scripts, place, tmp_path_factory):
    """What zsh offers for each line of this file's tests: {word: description or None}, and under "" a list of descriptions that stand
    in a column of their own. One zsh does them all: starting it takes longer than they do. The command `broken` is `trace` with a
    script in which an option is missing."""
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    tmp = tmp_path_factory.mktemp("zsh")
    shutil.copytree(scripts / "fpath", tmp / "fpath")
    text = (tmp / "fpath" / "_weir").read_text().replace("_weir", "_broken").split("\n", 1)[1]
    broken = "\n".join(line for line in text.split("\n") if "--logprob'[" not in line)
    (tmp / "fpath" / "_broken").write_text("#compdef broken=trace\n" + broken)
    lines = sorted({asked_of(tool) for tool in every_name()} | {line for line, _ in CASES} | set(SOME_CHOICES)
                   | {"broken -"})
    (tmp / "lines").write_text("".join(line + "\n" for line in lines))
    seen = at_a_terminal(["zsh", "-f", "-i"], f"source {ROOT}/tests/support/capture.zsh\n\x14".encode(), place, CAPTURE=str(tmp))
    parts = (tmp / "offered").read_text().split("== ")[1:]
    assert [part.split("\n")[0] for part in parts] == lines, seen
    offered = {}
    for line, part in zip(lines, parts):
        rows = [row.partition("\t") for row in part.split("\n")[1:] if row]
        offered[line] = {word: text.partition(" -- ")[2].strip() or None for word, _, text in rows if word}
        alone = [text.removeprefix("-- ").strip() for word, _, text in rows if not word]
        if alone:
            offered[line][""] = alone
    return offered


# --- every option, in both

def asked_of(tool):
    """The line that must offer every name of every option of a tool."""
    return " ".join(("weir", *tool, "-"))


@functools.cache
def every_name():
    return {tool: {n for o in options_of(help_of(tool)) for n in o.names} | {"-h", "--help"} for tool in ALL if tool != ("rome",)}


def lacking(names, lines, offered):
    """Of each tool, the names that were not offered."""
    lack = {}
    for tool, wanted in names.items():
        got = {w for line, words in zip(lines, offered) if line == asked_of(tool) for w in words if w}
        if wanted - got or got - wanted:
            lack[tool] = wanted ^ got
    return lack


def test_bash_offers_every_option(scripts, tmp_path):
    names = every_name()
    assert sum(map(len, names.values())) > 900
    lines = [asked_of(tool) for tool in names]
    assert lacking(names, lines, in_bash(scripts / "weir.bash", lines, tmp_path)) == {}


@pytest.mark.parametrize("gone", ["--logprob", "-o"])
def test_bash_s_check_can_fail(scripts, tmp_path, gone):
    text = (scripts / "weir.bash").read_text()
    broken = tmp_path / "weir.bash"
    start = text.index("'trace')\n")
    broken.write_text(text[:start] + re.sub(rf"(?<=[' ]){gone}(?=[; ])", "", text[start:]))
    names = {tool: n for tool, n in every_name().items() if tool == ("trace",)}
    lines = [asked_of(("trace",))]
    assert gone in lacking(names, lines, in_bash(broken, lines, tmp_path))[("trace",)]


def test_zsh_offers_every_option_with_its_help(in_zsh):
    names = every_name()
    lines = [asked_of(tool) for tool in names]
    assert lacking(names, lines, [in_zsh[line] for line in lines]) == {}
    texts = in_zsh["weir trace -"][""]
    assert "also record the log-probability of each token given those before it" in texts and len(texts) > 40


def test_zsh_s_check_can_fail(in_zsh):
    names = {("trace",): every_name()[("trace",)]}
    assert lacking(names, [asked_of(("trace",))], [in_zsh["broken -"]]) == {("trace",): {"--logprob"}}


# --- values

CHOICES = {f"{' '.join(('weir', *tool))} --{o.name} ": set(o.choices) for tool in ALL for o in options_of(help_of(tool)) if o.choices}
SOME_CHOICES = [line for i, (line, words) in enumerate(CHOICES.items()) if i % 8 == 0 or "+" in words]


def test_words_of_choices(scripts, tmp_path):
    assert len(CHOICES) > 60
    for lines in (list(CHOICES), [line.rstrip() + "=" for line in SOME_CHOICES]):
        offered = in_bash(scripts / "weir.bash", lines, tmp_path)
        assert [set(words) for words in offered] == [CHOICES[line.replace("=", " ")] for line in lines]


def test_words_of_choices_in_zsh(in_zsh):
    assert len(SOME_CHOICES) > 8
    assert [set(in_zsh[line]) for line in SOME_CHOICES] == [CHOICES[line] for line in SOME_CHOICES]


# A line, and what is offered: exactly these, or with "..." first at least these, or with "not" first none of these.
SITES = {"resid_pre", "ln1", "q", "k", "v", "pattern", "z", "attn_out", "resid_mid", "ln2", "pre", "up", "post", "mlp_out", "resid_post"}
BLOCK = {"hook_resid_pre", "ln1.", "attn.", "hook_attn_out", "hook_resid_mid", "ln2.", "mlp.", "hook_mlp_out", "hook_resid_post"}
FILES = {"mlp.h5", "my dump.h5", "an edit", "gpt2"}
CASES = [
    ("weir tr", {"trace"}),
    ("weir ", {"...", "trace", "rome", "completion", "help", "--version"}),
    ("./weir tr", {"trace"}),
    ("trace --la", {"--layer"}),
    ("/some/where/trace --logp", {"--logprob"}),
    ("weir rome ", {"...", "edit", "verify", "stats"}),
    ("weir rome edit --targ", {"--target"}),
    ("rome edit --targ", {"--target"}),
    ("weir help ro", {"rome", "roofline"}),
    ("weir help rome ed", {"edit"}),
    ("weir help --man rome ed", {"edit"}),
    ("weir completion ", {"bash", "zsh"}),
    # what is given is not offered again, by any of its names, nor what it excludes
    ("trace --logprob --", {"not", "--logprob"}),
    ("trace --out x.h5 -", {"not", "--dump", "--out", "-o"}),
    ("trace -ox.h5 --d", {"--docs", "--dtype"}),
    ("trace -jq --", {"not", "--json", "--quiet"}),
    ("trace --list-hooks --", {"not", "--dump", "--hook", "--ablate", "--list-hooks"}),
    ("trace --dump x.h5 --li", set()),
    ("trace --hook log --hook lens --", {"...", "--hook", "--layer"}),  # repeatable
    ("trace --positions --logprob --log", set()),
    ("trace -- --", set()),
    # values
    ("trace --bos=n", {"no"}),
    ("trace --site ", SITES),
    ("trace --site resid_p", {"resid_pre", "resid_post"}),
    ("trace --site resid_pre,ln1,r", {"resid_pre,ln1,resid_mid", "resid_pre,ln1,resid_post"}),
    ("neuron-top --site gate", {"gate", "gate-act"}),
    ("logit-lens --site=resid-p", {"resid-pre", "resid-post"}),
    ("generate -s mlp", {"mlp_out"}),
    ("trace --docs ", {"line", "blank", "file"}),
    ("trace --edit ", {"an edit", "gpt2"}),
    ("weir diff ", FILES),
    ("weir diff mlp.h5 my", {"my dump.h5"}),
    ("weir diff 'my", {"my dump.h5"}),
    ("weir diff my\\ d", {"my dump.h5"}),
    ("trace --dump ", FILES),
    ("trace -o ", FILES),
    ("trace -jo ", FILES),
    ("weir repair ", {"cut.h5.part", "an edit", "gpt2"}),
    ("weir count c", {"config.json"}),
    ("trace --file ", {"mlp.h5", "my dump.h5", "cut.h5.part", "config.json", "notes.txt", "an edit", "gpt2", "weir"}),
    ("weir rome show ", {"an edit", "gpt2"}),
    ("trace --layer ", set()),
    # hooks, and hook points of the model
    ("trace --hook st", {"stats:", "steer:"}),
    ("trace --hooks hook_e", {"hook_embed"}),
    ("trace --hooks bl", {"blocks."}),
    ("trace --hooks blocks.7.", {f"blocks.7.{p}" for p in BLOCK}),
    ("trace --hooks 'blocks.*.m", {"blocks.*.mlp."}),
    ("trace --hooks blocks.0.mlp.,blocks.1.m", {"blocks.0.mlp.,blocks.1.mlp."}),
    ("trace --ablate blocks.0.mlp.hook_p", {"blocks.0.mlp.hook_pre", "blocks.0.mlp.hook_post"}),
    ("./weir generate --ablate blocks.0.hook_m", {"blocks.0.hook_mlp_out"}),
    ("trace --model /nonexistent --hooks bl", set()),
]


def fits(got, wanted):
    if "..." in wanted:
        return wanted - {"..."} <= got
    if "not" in wanted:
        return len(got) > 5 and not got & wanted
    return got == wanted


def test_bash_offers_what_fits(scripts, place):
    offered = in_bash(scripts / "weir.bash", [line for line, _ in CASES], place)
    assert [(line, got) for (line, wanted), got in zip(CASES, offered) if not fits(set(got), wanted)] == []


def test_bash_behind_signs_that_cut_words(scripts, place):
    """After = and : readline replaces only what stands behind them."""
    lines = ["trace --dump=m", "trace --add=blocks.0.mlp.hook_pre=ml", "trace --ablate=blocks.0.mlp.hook_pre=", "trace --hook ablate:hook_e",
             "trace --hook=steer:hook_embed=ml", "trace --bos='a", 'trace "--bos=a']
    wanted = [["mlp.h5", "my dump.h5"], ["mlp.h5"], ["an edit", "config.json"], ["hook_embed"], ["mlp.h5"], ["auto"], ["--bos=auto"]]
    got = in_bash(scripts / "weir.bash", lines, place)
    assert [sorted(g)[:2] for g in got] == [sorted(w) for w in wanted]


def test_zsh_offers_what_fits(in_zsh):
    """But for what zsh does by itself: signs behind a word, backslashes, what stands before =, and all names of an option."""
    own = {"trace --la": {"--layer", "--layers"}}
    cases = [(line, own.get(line, wanted)) for line, wanted in CASES if "--positions --logprob" not in line]
    offered = [in_zsh[line] for line, _ in cases]
    same = lambda words: {re.sub(r"^--[a-z]+=|[/, ]+$|(?<=[a-z0-9])\.$|\\", "", w) for w in words if w}
    assert [(line, got) for (line, wanted), got in zip(cases, offered) if not fits(same(got), same(wanted))] == []


def test_a_real_tab_in_bash(scripts, place):
    """Lines typed at a terminal, TAB pressed, run: what the program is given."""
    typed = [(r"trace --la\t6", ["--layer", "6"]), (r"trace --bos=a\t", ["--bos=auto"]), (r"weir diff my\t", ["diff", "my dump.h5"]),
             (r"weir diff 'my\t", ["diff", "my dump.h5"]), (r"weir diff my\ d\t", ["diff", "my dump.h5"]),
             (r"weir rome sh\tan\t", ["rome", "show", "an edit/"]),
             (r"trace --add blocks.0.hook_resid_p\to\t=m\tlp\t", ["--add", "blocks.0.hook_resid_post=mlp.h5"]),
             (r"trace --hook stat\tblocks.1.mlp.hook_po\t", ["--hook", "stats:blocks.1.mlp.hook_post"])]
    out = place / "given"
    keys = f"source {scripts}/weir.bash; weir() {{ printf '%s\\n' \"$@\" == >> given; }}; trace() {{ weir \"$@\"; }}; bind 'set bell-style none'\n"
    keys += "".join(line.replace(r"\t", "\t") + "\n" for line, _ in typed)
    seen = at_a_terminal(["bash", "--norc", "--noprofile", "-i"], keys.encode() + b"exit\n", place)
    given = [part.split("\n")[:-1] for part in out.read_text().split("==\n")[:-1]]
    out.unlink()
    assert given == [wanted for _, wanted in typed], seen


def test_the_shell_s_settings_stay(scripts, place):
    code = f"shopt -u extglob; set +f; source {scripts}/weir.bash; COMP_LINE='weir diff m' COMP_WORDS=(weir diff m) COMP_CWORD=2; _weir; " \
           "shopt extglob; echo $- *.json; compgen -v | grep -v '^[A-Z_]'"
    p = subprocess.run(["bash", "--norc", "-c", code], cwd=place, stdout=subprocess.PIPE, text=True, env=environment(WEIR_BROOK=str(BROOK)))
    assert p.stdout.split() == ["extglob", "off", "hBc", "config.json"], "no variable is left behind"


def test_completion_says_what_there_is(tmp_path):
    weir("completion").fails(2, "bash or zsh")
    weir("completion", "fish").fails(2, "fish", "bash and zsh")
    assert weir("completion", "bash").ok().out.decode().isascii()
    for name in ("bash", "zsh"):
        (tmp_path / name).write_bytes(weir("completion", name).ok().out)
        if shutil.which(name):
            subprocess.run([name, "-n", tmp_path / name], check=True)


def test_it_is_there_at_once(scripts, place):
    """A press of TAB that asks a model for its hook points costs a few hundredths of a second, of the 0.3 that it may."""
    start = os.times()
    assert len(in_bash(scripts / "weir.bash", ["trace --hooks blocks.3."] * 2, place)) == 2
    end = os.times()
    assert end.children_user + end.children_system - start.children_user - start.children_system < 2 * 0.3
