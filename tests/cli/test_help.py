"""--help, names and suggestions: everything that needs no model."""
import re
import subprocess

import pytest

from weircli import BIN, BROOK, Run, brook_with, commands, environment, tools, trace, weir

NOWHERE = {"WEIR_BROOK": "/nonexistent"}  # no model can be found


ALL = [(tool,) for tool in tools()] + [("rome", command) for command in commands("rome")]
every_tool = pytest.mark.parametrize("tool", ALL, ids=" ".join)


def test_there_are_tools():
    assert {"trace", "diff", "tokenize", "detokenize"} <= set(tools())
    assert set(commands("rome")) == {"diff", "edit", "eval", "list", "merge", "show", "stats", "verify"}


@every_tool
def test_help_needs_no_model_and_is_one_text(tool):
    ways = ((*tool, "--help"), (*tool, "-h"), ("help", *tool), (*tool, "x", "--help"))
    texts = [weir(*args, env=NOWHERE).ok() for args in ways]
    assert all(t.err == "" for t in texts)
    assert len({t.out for t in texts}) == 1
    text = texts[0].out.decode()
    form = "COMMAND [options]" if "\nCommands\n" in text else "[options]"
    assert text.startswith(f"usage: weir {' '.join(tool)} {form}") and not text.split("\n")[0].endswith(" ")
    assert "\nExample\n" in text
    before_example = text.split("\nExample\n")[0].splitlines()
    assert all(len(line) <= 80 or "  --" in line or ":" in line for line in before_example)


@pytest.fixture(scope="module")
def brook(tmp_path_factory):
    """With 40 sentences: examples read all of them, and would take minutes."""
    return brook_with(40, tmp_path_factory.mktemp("few") / "brook")


@every_tool
def test_examples_run_as_printed(tool, brook, tmp_path):
    """In a directory in which lib/brook is, as in weir's own."""
    text = weir(*tool, "--help").ok().out.decode()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "brook").symlink_to(brook)
    lines = [line[2:] for line in text.split("\nExample\n")[1].splitlines()]
    assert lines
    for line in lines:
        p = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment(WEIR_BROOK=str(brook)), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
        assert p.returncode == 0, (line, p.stderr)


def test_every_option_is_described_and_takes_no_other_name():
    text = trace("--help").ok().out.decode()
    names = re.findall(r"^  (?:-\w,|   ) --([a-z-]+)", text, re.M)
    assert len(names) == len(set(names)) > 25
    for name in ("model", "layer", "hooks", "site", "dump", "list-hooks", "positions", "bos", "ctx", "stride",
                 "max-tokens", "ids", "logprob", "docs", "field", "file", "compress", "force", "hook", "threads",
                 "kernel", "quiet", "json", "hash-full", "memory", "batch"):
        assert name in names


def test_built_in_hooks_stand_in_the_help():
    text = trace("--help").ok().out.decode().split("\nBuilt-in hooks\n")[1]
    for name in ("ablate", "log", "record", "stats", "template"):
        assert re.search(rf"^  {name}\b", text, re.M)


def test_weir_alone_lists_the_tools():
    for args in ((), ("--help",), ("-h",), ("help",)):
        r = weir(*args, env=NOWHERE).ok()
        assert r.err == "" and b"\nTools\n" in r.out


def test_version():
    assert re.fullmatch(rb"weir \d+\.\d+\.\d+\n", weir("--version").ok().out)


def test_misspelt_names_get_the_nearest():
    weir("trase").fails(2, 'no tool is called "trase"', "did you mean trace?")
    weir("help", "tokenise").fails(2, "did you mean tokenize?")
    weir("zzzzzzzz").fails(2, 'no tool is called "zzzzzzzz"')
    trace("--postions", "last").fails(2, "unknown option --postions", "did you mean --positions?")
    trace("--layr=6").fails(2, "did you mean --layer?")
    trace("--qqqqqqqq").fails(2, "unknown option --qqqqqqqq")
    assert "did you mean" not in weir("logit-lens", "--topk", "3").fails(2, "--topk").err  # --hook is another word
    trace("-Z").fails(2, "unknown option -Z")
    weir("--jsn").fails(2, "--jsn")


@pytest.mark.parametrize("args, words", [
    (("--ctx", "12x"), ("--ctx 12x", "not a whole number")),
    (("--ctx", "0"), ("--ctx 0", "at least 1")),
    (("--ctx", " 12"), ("--ctx  12", "not a whole number")),
    (("--ctx", "99999999999999999999"), ("not a whole number",)),
    (("--ctx", "0x10"), ("not a whole number",)),
    (("--compress", "10", "--dump", "x"), ("--compress 10", "at most 9")),
    (("--compress", "-1", "--dump", "x"), ("--compress -1", "at least 0")),
    (("--threads", "1.5"), ("--threads 1.5", "not a whole number")),
    (("--memory", "4T"), ("--memory 4T", "K, M or G")),
    (("--memory", "9999999999G"), ("not a whole number",)),
    (("--bos", "maybe"), ("--bos maybe", "auto|yes|no")),
    (("--kernel", "neon"), ("--kernel neon", "best|ref|avx2|avx512")),
    (("--dump", ""), ("--dump", "empty")),
    (("--dump",), ("--dump needs a value", "FILE.h5")),
    (("--dump", "--layer", "6"), ("--dump needs a value",)),
    (("--json=yes",), ("--json takes no value",)),
    (("--ctx", "8", "--ctx", "9"), ("--ctx is given twice",)),
    (("--logprob", "--hook", "log"), ("--logprob", "--dump")),
    (("--list-hooks", "--dump", "x.h5"), ("--list-hooks and --dump exclude each other",)),
    (("--list-hooks", "text"), ("--list-hooks", "text")),
    (("--layer", "6", "text"), ("--layer", "--dump FILE.h5")),
    ((), ("nothing to do",)),
])
def test_wrong_command_lines(args, words, tmp_path):
    trace(*args, cwd=tmp_path).fails(2, *words, "weir trace --help")
    assert list(tmp_path.iterdir()) == []


def test_short_options_join_and_double_dash_ends_them(tmp_path):
    r = trace("-l1", "-o", tmp_path / "x.h5", "-jq", "--", "--layer").ok()
    assert r.json["documents"] == 1 and r.err == ""
    trace("-l", "1", "-o", tmp_path / "y.h5", "-jq", "-Q").fails(2, "unknown option -Q")


def test_a_link_named_after_a_tool_is_that_tool(tmp_path):
    link = tmp_path / "tokenize"
    link.symlink_to(BIN / "weir")
    p = subprocess.run([link, "--ids", "hi"], env=environment(WEIR_BROOK=str(BROOK)), capture_output=True, text=True)
    assert p.returncode == 0 and p.stdout == weir("tokenize", "--ids", "hi").out.decode()
    assert Run("--help", program="trace").ok().out == trace("--help").out


def test_a_full_or_closed_standard_output_is_a_failure():
    with open("/dev/full", "wb") as full:
        p = subprocess.run([BIN / "weir", "trace", "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert p.returncode == 1 and p.stderr == "trace: cannot write to standard output\n"
    p = subprocess.run(f"{BIN}/weir trace --help >&-", shell=True, stderr=subprocess.PIPE, text=True)
    assert p.returncode == 1 and "cannot write" in p.stderr


def test_a_reader_that_goes_away_does_not_crash_it():
    text = "a line of text\n" * 20000
    p = subprocess.run(["bash", "-c", f"set -o pipefail; '{BIN}/weir' tokenize | head -c 10 >/dev/null"],
                       input=text.encode(), env=environment(), stderr=subprocess.PIPE)
    assert p.returncode == 1 and p.stderr == b"", "`| head` has seen enough: nothing to be told"
