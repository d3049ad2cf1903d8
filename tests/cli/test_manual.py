"""Pages for man(1), made from the tables of options: all of --help is in them, roff takes them without a word, and what is copied
from them runs."""
import re
import shutil
import subprocess

import pytest

from optionlist import ALL, help_of, options_of
from weircli import BUILD, ROOT, built, environment, weir


def page(*tool):
    return weir("help", "--man", *tool, env={"WEIR_BROOK": "/nonexistent", "GOMP_SPINCOUNT": "2000"}).ok().out.decode()


MAKE = ["make", f"BUILD={BUILD.relative_to(ROOT)}", "PREFIX=/usr/local"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What `make install` puts there of the manual and of completion."""
    path = tmp_path_factory.mktemp("installed")
    subprocess.run([*MAKE, f"DESTDIR={path}", "install-manual"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True,
                   env=environment(GOMP_SPINCOUNT="2000"))
    return path


@pytest.fixture(scope="module")
def pages(installed):
    """Their source, by tool; () is the program."""
    made = installed / "usr/local/share/man/man1"
    return {tool: (made / ("-".join(("weir", *tool)) + ".1")).read_text() for tool in [(), *ALL]}


@pytest.fixture(scope="module")
def files(pages, tmp_path_factory):
    path = tmp_path_factory.mktemp("man")
    for tool, text in pages.items():
        (path / ("-".join(("weir", *tool)) + ".1")).write_text(text)
    return sorted(path.iterdir())


@pytest.fixture(scope="module")
def read(files):
    """Pages as a reader sees them, without bold and italics; by tool."""
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    out = {}
    for f in files:
        text = subprocess.run(["mandoc", "-Tutf8", "-Owidth=900", f], stdout=subprocess.PIPE, check=True, text=True).stdout
        out[f.stem] = re.sub(".\b", "", text)
    return out


def escaped(text):
    return text.replace("-", "\\-")


def missing(text, page_text):
    """What --help says and the page does not: names of options, in the lines in which a page introduces them."""
    heads = "\n".join(re.findall(r"^\.TP\n(.*)$", page_text, re.M))
    return [n for o in options_of(text) for n in o.names if not re.search(rf"\\fB{re.escape(escaped(n))}\\fP", heads)]


def test_there_are_options_to_look_for():
    assert len(options_of(help_of(("trace",)))) > 40 and sum(len(options_of(help_of(t))) for t in ALL) > 700
    by_name = {o.name: o for o in options_of(help_of(("trace",)))}
    assert by_name["layer"].names == ["--layer", "--layers", "-l"] and by_name["layer"].repeatable
    assert by_name["kernel"].choices == ["best", "ref", "avx2", "avx512"] and by_name["kernel"].default == "best"


@pytest.mark.parametrize("tool", ALL, ids=" ".join)
def test_every_option_is_in_the_page(tool, pages):
    text, made = help_of(tool), pages[tool]
    assert missing(text, made) == []
    for title in re.findall(r"^([A-Z].*)\n  (?:-\w,|   ) --", text, re.M):
        if title not in ("Options", "Output"):
            assert f'.SS "{title}"' in made
    assert "\n.SH EXAMPLE\n.EX\n" in made and "\n.SH EXIT STATUS\n" in made and "\\fBweir\\fP(1)" in made
    options = options_of(text)
    assert flat(made).count("May be repeated.") == sum(o.repeatable for o in options)
    assert [o.default for o in options if o.default] == re.findall(r"Default: (.*?)\.(?: |\n|$)", flat(made))
    if options:
        assert missing(text, made.replace(escaped("--" + options[0].name), "")) != [], "the check can fail"


def flat(text):
    """Source as text: lines joined within a paragraph, escapes undone."""
    text = re.sub(r"\n(?!\.)", " ", text)
    for a, b in (("\\fB", ""), ("\\fI", ""), ("\\fP", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(dq", '"'), ("\\(ti", "~"), ("\\(ha", "^"),
                 ("\\(ga", "`"), ("\\&", ""), ("\\e", "\\")):
        text = text.replace(a, b)
    return text


def entry(page_text, name):
    """The text beside an option."""
    return flat(re.search(rf"^\.TP\n\S*.*\\fB{re.escape(escaped(name))}\\fP.*\n((?:[^.].*\n)*)", page_text, re.M)[1])


def test_what_holds_between_options(pages):
    trace = pages[("trace",)]
    assert "Not with --list-hooks. " in entry(trace, "--dump") + " "
    assert "Not with --dump, --hook, --edit, --ablate" in entry(trace, "--list-hooks")
    assert "Only with --dump" in entry(trace, "--logprob") and "Only with --dump or --edit" in entry(trace, "--force")
    assert "One of auto, yes, no. Default: auto." in entry(trace, "--bos")
    assert "Only with --batch." in entry(pages[("rome", "edit")], "--records")
    weir("trace", "--list-hooks", "--dump", "x.h5").fails(2, "exclude each other")  # the rule that the page tells of


def test_hooks_and_machines_stand_in_the_page(read):
    text = help_of(("trace",)).split("\nBuilt-in hooks\n")[1].split("\n\n")[0]
    hooks = re.findall(r"^  (\S+)", text, re.M)
    assert len(hooks) > 10
    for hook in hooks:
        assert re.search(rf"^ +{re.escape(hook)}( |$)", read["weir-trace"], re.M), hook
    for line in help_of(("roofline",)).split("\nMachines")[1].split("\n\n")[0].splitlines()[1:]:
        assert line.strip() in read["weir-roofline"]


@pytest.mark.parametrize("tool", ALL, ids=" ".join)
def test_examples_and_options_can_be_copied(tool, read):
    text = read["-".join(("weir", *tool))]
    for line in help_of(tool).split("\nExample\n")[1].splitlines():
        assert re.search(rf"^ *{re.escape(line.strip())}$", text, re.M), line
    for o in options_of(help_of(tool)):
        assert re.search(rf"(^|[ ,])--{o.name}[ ,\n]", text), o.name  # ASCII hyphens: found by / in a pager


def test_roff_takes_them_without_a_word(files):
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    p = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (p.stdout, p.returncode) == ("", 0)


def test_groff_takes_them_without_a_word(files):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    p = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (p.stdout, p.returncode) == ("", 0)


def test_man_reads_one(files):
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    file = next(f for f in files if f.stem == "weir-trace")
    p = subprocess.run(["man", "--warnings", "-l", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100"})
    assert p.stderr == "" and "weir-trace - run a model on text" in p.stdout


def test_the_same_bytes_each_time(pages):
    version = weir("--version").ok().out.decode().split()[1]
    for tool, text in pages.items():
        head = re.search(r'^\.TH (\S+) 1 \d{4}-\d\d-\d\d "weir (\S+)" "weir"$', text, re.M)
        assert head[1] == escaped("-".join(("weir", *tool))).upper() and head[2] == version
        assert text.isascii() and not re.search(r"(?<!\\)-", re.sub(r"^\.(TH|\\\").*$", "", text, flags=re.M)), "a bare hyphen"
    assert page("trace") == pages[("trace",)]


def test_the_program_s_own_page_names_all(read):
    text = read["weir"]
    for tool in ALL:
        if len(tool) == 1:
            assert re.search(rf"^ +weir-{tool[0]}\(1\)", text, re.M), tool
    for variable in ("WEIR_MODEL", "WEIR_BROOK", "WEIR_KERNEL", "NO_COLOR", "TMPDIR", "OMP_WAIT_POLICY"):
        assert variable in text


def test_every_variable_that_is_read_is_told_of(pages):
    used = set()
    for f in [*ROOT.glob("lib/**/*.c"), *ROOT.glob("tools/**/*.c"), *ROOT.glob("notebooks_export/**/*.c"), *ROOT.glob("hooks/*.c")]:
        used |= set(re.findall(r'\bgetenv\("(\w+)"\)', f.read_text()))
    assert len(used) > 6
    assert [v for v in used if v not in flat(pages[()])] == []


def test_help_says_where_both_are():
    text = weir("--help").ok().out.decode()
    assert "weir help --man" in text and "weir\ncompletion bash|zsh" in text
    weir("help", "--man", "trase").fails(2, "did you mean trace?")
    weir("help", "--man", "rome", "verfy").fails(2, "did you mean verify?")


def test_roff_takes_any_text(tmp_path):
    """Leading dots and quotes, backslashes, what is not ASCII: read back as it was written."""
    program = built("roff_text.c", tmp_path)
    text = ".TH is no request 'nor this\n\\fB is \\e no font -- --layer= (--all-of_it \"quoted\" `x` ^ ~ \\\n" \
           ".so /etc/passwd\n\n'br é ✓ \xff"
    given = text.encode().replace(b"\xc3\xbf", b"\xff")  # a byte that is no UTF-8
    out = subprocess.run([program, given], stdout=subprocess.PIPE, check=True).stdout
    source = '.TH X 1 2026-01-01 "x" "x"\n.SH NAME\nx \\- y\n.SH TEXT\n' + out.decode("ascii")
    shown = subprocess.run(["mandoc", "-Tutf8", "-Owidth=500"], input=source, stdout=subprocess.PIPE, check=True, text=True).stdout
    body = re.sub(".\b", "", shown).split("TEXT\n")[1].split("\n\nx  ")[0]
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    expected = [line.replace("\xff", "?") for line in text.splitlines() if line]
    assert lines[:len(expected)] == expected
    literal = lines[len(expected):2 * len(expected)]
    assert literal == expected


def test_installed_and_taken_away(installed, pages):
    share = installed / "usr/local/share"
    names = {f.name for f in (share / "man/man1").iterdir()}
    assert names >= {"trace.1", "neuron-top.1", "rome.1"} and len(pages) == len(ALL) + 1
    assert (share / "man/man1/trace.1").readlink().name == "weir-trace.1"
    assert (share / "man/man1/rome-edit.1").read_text() == page("rome", "edit")
    assert (share / "bash-completion/completions/trace").resolve() == share / "bash-completion/completions/weir"
    assert re.match("#compdef weir .*trace", (share / "zsh/site-functions/_weir").read_text())
    subprocess.run([*MAKE, f"DESTDIR={installed}", "uninstall"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    assert [f for f in installed.rglob("*") if f.is_symlink() or not f.is_dir()] == []
