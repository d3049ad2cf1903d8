"""notebook-export: what it writes, where, and what it says when it does not. Kinds have tests of their own, test_notebook_KIND.py."""
import ast
import html.parser
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import h5py
import nbformat
import pytest

import nblib
from weircli import BIN, ROOT, Run, environment, trace, weir

TEMPLATES = sorted((ROOT / "notebooks_export" / "templates").glob("*.ipynb"))
by_template = pytest.mark.parametrize("template", TEMPLATES, ids=lambda p: p.stem)


def export(*args, **more):
    return weir("notebook-export", *args, **more)


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump") / "mlp.h5"
    trace("-q", "--layer", "6", "--site", "post,resid_post", "--dump", path, "Boulder is in the state of", "Two boys went").ok()
    return path


@pytest.fixture
def at(dump, tmp_path):
    """A directory with the dump in it."""
    (tmp_path / "mlp.h5").write_bytes(dump.read_bytes())
    return tmp_path


# --- templates


@by_template
def test_templates_are_valid_notebooks(template):
    nb = nbformat.read(template, as_version=nbformat.NO_CONVERT)
    nbformat.validate(nb)
    assert (nb.nbformat, nb.nbformat_minor) == (4, 5)
    assert nb.metadata.kernelspec.name == "python3"
    ids = [c.id for c in nb.cells]
    assert len(ids) == len(set(ids))
    first, parameters = nb.cells[0], nb.cells[ids.index("parameters")]
    assert first.cell_type == "markdown" and first.id == "title" and first.source.startswith("# ")
    assert parameters.metadata.tags == ["parameters"] and ids.index("parameters") < ids.index("open")
    assert parameters.source.startswith("file = ")
    for c in nb.cells:
        if c.cell_type == "code":
            assert c.outputs == [] and c.execution_count is None, c.id
            for node in ast.walk(ast.parse(c.source)):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
                assert {n.split(".")[0] for n in names} <= {"h5py", "numpy", "matplotlib", "IPython", *sys.stdlib_module_names}, (c.id, names)
    assert max(map(len, template.read_text().splitlines())) < 4000  # a C string takes no more


def test_every_template_is_a_kind_in_the_program():
    listed = export("--list").ok().out.decode().splitlines()
    assert sorted(line.split()[0] for line in listed) == sorted(t.stem for t in TEMPLATES) and listed
    for line in listed:
        name, form, heading = line.split(None, 2)
        template = next(t for t in TEMPLATES if t.stem == name)
        assert form.startswith("weir-") and nblib.read(template).cells[0].source.startswith(f"# {heading}")


# --- the notebook


def parameters(path):
    """The assignments of the parameters cell, which must be nothing else."""
    cell = next(c for c in nblib.read(path).cells if c.id == "parameters")
    tree = ast.parse(cell.source)
    assert all(isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) for s in tree.body)
    return {s.targets[0].id: ast.literal_eval(s.value) for s in tree.body}


def test_notebook_is_as_jupyter_would_save_it(at):
    r = export("mlp.h5", cwd=at).ok()
    text = (at / "mlp.ipynb").read_text()
    nb = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(nb)
    assert nbformat.writes(nb) + "\n" == text
    assert r.out == b"" and r.err.startswith("notebook-export: mlp.ipynb: activations of mlp.h5")
    assert nb.metadata.weir.template == "activations" and len(nb.metadata.weir.cells_sha256) == 64
    template = nblib.read(ROOT / "notebooks_export/templates/activations.ipynb")
    assert [c.id for c in nb.cells] == [c.id for c in template.cells]
    changed = [a.id for a, b in zip(nb.cells, template.cells) if a.source != b.source]
    assert changed == ["title", "parameters"]
    title = nb.cells[0].source
    for words in ("- file: `mlp.h5`", "- format: `weir-dump`", "- model: `brook`", "15 tokens of 2 documents"):
        assert words in title
    assert parameters(at / "mlp.ipynb")["file"] == "mlp.h5"


def test_equal_calls_write_equal_bytes(at):
    for name in ("x.ipynb", "x.html"):
        export("mlp.h5", "-o", name, cwd=at).ok()
        once = (at / name).read_bytes()
        export("mlp.h5", "-o", name, "-q", cwd=at).ok()
        assert (at / name).read_bytes() == once
        assert export("--from", "mlp.h5", "-o", "-", *(["--html"] if name.endswith("html") else []), cwd=at).ok().out == once
        assert str(at).encode() not in once


def test_default_names(at):
    (at / "sub").mkdir()
    (at / "z.h5.part").write_bytes((at / "mlp.h5").read_bytes())
    export("z.h5.part", cwd=at).ok()
    assert parameters(at / "z.ipynb")["file"] == "z.h5.part"
    (at / "sub" / "y.h5").write_bytes((at / "mlp.h5").read_bytes())
    assert "y.ipynb: activations of sub/y.h5" in export("sub/y.h5", cwd=at).ok().err
    assert parameters(at / "y.ipynb")["file"] == "sub/y.h5"
    assert export("sub/y.h5", "--html", "-q", cwd=at).ok().err == ""
    assert (at / "y.html").exists()


NAMES = [b'a"; import os #.h5', b"a\nimport os\n.h5", b"a`b``c.h5", b"caf\xe9.h5", b"'''.h5", b"\\.h5", b"%matplotlib.h5", b"<script>x<b>&.h5",
         b"\x1b[31m.h5", "\u202e\u2028é.h5".encode(), b"-.h5", b"!ls.h5", b"{0}%s.h5", b"`.h5"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_file_names_are_only_text(at, name):
    from IPython.core.inputtransformer2 import TransformerManager
    file = os.fsencode(at) + b"/" + name
    os.rename(at / "mlp.h5", file)
    for out in ("x.ipynb", "x.html"):
        r = export("-o", out, "--", os.fsdecode(name), cwd=at).ok()
        assert len(r.err.splitlines()) == 1 and r.err[:-1].isprintable()
    assert os.fsencode(parameters(at / "x.ipynb")["file"]) == name
    cells = {c.id: c.source for c in nblib.read(at / "x.ipynb").cells}
    assert TransformerManager().transform_cell(cells["parameters"]) == cells["parameters"] + "\n"  # nothing of IPython's own
    told = next(line for line in cells["title"].splitlines() if line.startswith("- file: "))
    fence = re.match("`+", told[8:]).group()
    assert told.endswith(fence) and fence not in told[8 + len(fence):-len(fence)].strip("`") and told.isprintable()
    listed = export("--list", "--", os.fsdecode(name), cwd=at).ok().out.decode()
    assert all(line.isprintable() for line in listed.splitlines())
    Page().read(at / "x.html")


def test_hostile_words_of_the_file_are_only_text(at):
    bad = 'x"; import os\n%%bash `$(id)` <script>alert(1)<b>\\ '
    with h5py.File(at / "mlp.h5", "r+") as f:
        f.attrs["model"] = "<script>alert(1)</script>`\x1b[1m\n# x"
        f.move("activations/blocks.6.mlp.hook_post", f"activations/{bad}")
    export("mlp.h5", "-p", f"hook={bad}", cwd=at).ok()
    assert parameters(at / "mlp.ipynb")["hook"] == bad
    title = nblib.read(at / "mlp.ipynb").cells[0].source
    assert "- model: `` <script>alert(1)</script>`\\x1b[1m\\n# x ``" in title
    export("mlp.h5", "-p", f"hook={bad}", "--html", cwd=at).ok()
    page = Page().read(at / "mlp.html")
    assert "alert" not in page.scripts and "<script>alert(1)</script>`" in page.text


# --- parameters


def test_list_shows_the_parameters_of_the_file(at):
    export("mlp.h5", "-p", "bins=7", cwd=at).ok()
    listed = export("--list", "mlp.h5", "-p", "bins=7", cwd=at).ok().out.decode()
    assert listed.startswith("mlp.h5: activations, weir-dump\n\n")
    cell = next(c for c in nblib.read(at / "mlp.ipynb").cells if c.id == "parameters").source
    assert listed.split("\n\n", 1)[1] == cell + "\n"
    assert "bins = 7  # of histograms" in cell and not list(at.glob("*.html"))


def test_parameters_are_set_and_checked(at):
    export("mlp.h5", "-p", "unit=5", "-p", "document=1", "--param", "hook=blocks.6.hook_resid_post", cwd=at).ok()
    p = parameters(at / "mlp.ipynb")
    assert (p["unit"], p["document"], p["hook"]) == (5, 1, "blocks.6.hook_resid_post")
    for args, words in [
        (["-p", "binz=7"], ["-p binz", "did you mean bins?"]), (["-p", "zzzzzz=7"], ["-p zzzzzz", "--list mlp.h5 shows them"]),
        (["-p", "bins"], ["-p bins", "NAME=VALUE"]), (["-p", "bins=x"], ["-p bins=x: must be a whole number"]),
        (["-p", "bins=1", "-p", "bins=2"], ["-p bins is given twice"]), (["-p", "file=x.h5"], ["-p file", "the file is the argument"]),
        (["-p", "=3"], ["-p"]), (["-p", "bins\x1b[31m=2"], ["no such parameter"]), (["-p", "skip_first=1"], ["must be True or False"]),
    ]:
        export("mlp.h5", "-o", "other.ipynb", *args, cwd=at).fails(2, *words)
    assert not (at / "other.ipynb").exists()


# --- what is refused


def test_files_that_cannot_be_shown(at):
    with h5py.File(at / "alien.h5", "w") as f:
        f["x"] = [1]
    with h5py.File(at / "future.h5", "w") as f:
        f.attrs["format"] = "weir-future"
    trace("-q", "--hook", "stats:st.h5=blocks.6.hook_resid_post", "Boulder is in", cwd=at).ok()
    (at / "t.txt").write_text("hello")
    (at / "cut.h5").write_bytes((at / "mlp.h5").read_bytes()[:3000])
    os.mkfifo(at / "pipe.h5")
    for args, code, words in [
        ((), 2, ["which file?"]), (("mlp.h5", "st.h5"), 2, ["one file at a time", "st.h5"]), (("mlp.h5", "--from", "st.h5"), 2, ["--from st.h5"]),
        (("none.h5",), 1, ["cannot open none.h5"]), ((".",), 1, [". is a directory"]), (("t.txt",), 1, ["t.txt is no HDF5 file"]),
        (("pipe.h5",), 1, ["pipe.h5 is a pipe"]), (("alien.h5",), 1, ["alien.h5", "not a dump of weir's"]), (("future.h5",), 1, ['"weir-future"']),
        (("st.h5",), 1, ["st.h5 holds statistics", "no notebook"]), ((ROOT / "lib/brook/moments/layer-1.h5",), 1, ["second moments", "no notebook"]),
        (("cut.h5",), 1, ["cut.h5"]),
        (("mlp.h5", "--template", "activation"), 2, ["did you mean activations?"]), (("mlp.h5", "--template", "zzz"), 2, ["--template zzz", "activations"]),
        (("mlp.h5", "--template", "neurons"), 2, ["weir-neurons", "weir-dump", "its template is activations or attention"]),
    ]:
        export(*args, cwd=at).fails(code, *words)
    assert not list(at.glob("*.ipynb"))


def test_options_that_do_not_go_together(at):
    for args, words in [
        (["-o", "x.txt"], [".ipynb", ".html"]), (["-o", "x.ipynb", "--html"], ["no name of a page"]), (["--html", "--execute"], ["--execute", "--html"]),
        (["-o", "x.html", "--execute"], ["--execute runs a notebook"]), (["-o", "-", "--execute"], ["--execute"]), (["--timeout", "3"], ["--execute"]),
        (["--list", "-o", "x.ipynb"], ["--list"]), (["--list", "--html"], ["--list"]), (["--execute", "--timeout", "0"], ["--timeout"]),
    ]:
        export("mlp.h5", *args, cwd=at).fails(2, *words)
    assert sorted(p.name for p in at.iterdir()) == ["mlp.h5"]


# --- what is there already


def test_a_changed_notebook_is_not_replaced(at):
    export("mlp.h5", cwd=at).ok()
    path = at / "mlp.ipynb"
    nb = nblib.read(path)
    cell = next(c for c in nb.cells if c.id == "open")
    cell.outputs = [nbformat.v4.new_output("stream", text="ran")]
    cell.execution_count = 1
    nb.metadata.kernelspec.display_name = "another"
    nbformat.write(nb, path)
    export("mlp.h5", "-p", "bins=9", cwd=at).ok()  # it was only run
    cell.source += "\n# a remark"
    nbformat.write(nb, path)
    mine = path.read_bytes()
    export("mlp.h5", cwd=at).fails(1, "mlp.ipynb was changed since weir wrote it", "--force")
    assert path.read_bytes() == mine
    export("mlp.h5", "--force", cwd=at).ok()
    nb = nblib.read(path)
    nb.cells.insert(3, nbformat.v4.new_markdown_cell("mine"))
    nbformat.write(nb, path)
    export("mlp.h5", cwd=at).fails(1, "was changed")


def test_other_files_are_not_replaced(at):
    for name, text in [("a.ipynb", "{}"), ("b.ipynb", "hello"), ("c.ipynb", ""), ("d.ipynb", '{"metadata": {"weir": 3}, "cells": 4}'),
                       ("e.ipynb", nbformat.writes(nbformat.v4.new_notebook())), ("f.ipynb", "[" * 5000), ("a.html", "<!doctype html><p>mine")]:
        (at / name).write_text(text)
        export("mlp.h5", "-o", name, cwd=at).fails(1, name, "exists", "--force")
        assert (at / name).read_text() == text
        export("mlp.h5", "-o", name, "--force", cwd=at).ok()
        export("mlp.h5", "-o", name, cwd=at).ok()
    (at / "dir.ipynb").mkdir()
    os.mkfifo(at / "pipe.ipynb")
    export("mlp.h5", "-o", "dir.ipynb", cwd=at).fails(1, "dir.ipynb is a directory")
    export("mlp.h5", "-o", "pipe.ipynb", cwd=at).fails(1, "pipe.ipynb is a pipe")
    export("mlp.h5", "-o", "none/x.ipynb", cwd=at).fails(1, "none/x.ipynb")
    (at / "link.ipynb").symlink_to("mlp.h5")
    export("mlp.h5", "-o", "link.ipynb", "--force", cwd=at).fails(1, "is also read")
    assert h5py.is_hdf5(at / "mlp.h5")


def test_nothing_is_left_of_one_that_fails_or_is_killed(at):
    before = sorted(p.name for p in at.iterdir())
    for out in ("x.ipynb", "x.html"):
        full = subprocess.run(["sh", "-c", f"ulimit -f 1; exec {BIN}/weir notebook-export mlp.h5 -o {out}"], cwd=at, env=environment(),
                              stderr=subprocess.PIPE, text=True)
        assert full.returncode == 1 and len(full.stderr.splitlines()) == 1 and out in full.stderr
    assert sorted(p.name for p in at.iterdir()) == before
    for i in range(6):
        p = subprocess.Popen([BIN / "weir", "notebook-export", "mlp.h5", "-o", "x.html"], cwd=at, env=environment(), stderr=subprocess.DEVNULL)
        time.sleep(0.004 * i)
        p.send_signal(signal.SIGKILL if i % 2 else signal.SIGTERM)
        p.wait()
        assert sorted(p.name for p in at.iterdir()) in (before, [*before, "x.html"])


# --- the page


class Page(html.parser.HTMLParser):
    """A page as a browser reads it: nothing from outside, elements closed, the policy first."""
    VOID = {"meta", "link", "br", "hr", "input", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.text, self.scripts, self.policy = [], [], "", "", None

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        assert not any(a.startswith("on") or a == "src" for a in attrs), attrs
        assert tag not in ("iframe", "object", "embed", "base", "form")
        if tag == "link":
            assert attrs["href"] == "data:,"
        if tag == "a":
            assert re.match(r"https://|http://|#|[\w./-]+$", attrs["href"])
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open, self.getpos())

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts += data if "type" not in self.get_starttag_text() else ""
        else:
            self.text += data

    def read(self, path):
        self.feed(path.read_text())
        self.close()
        assert self.open == [] and len(self.ids) == len(set(self.ids))
        assert self.policy.startswith("default-src 'none'")
        return self


def test_page_has_the_cells_of_the_notebook(at):
    for out in ("x.ipynb", "x.html"):
        export("mlp.h5", "-p", "bins=9", "-o", out, cwd=at).ok()
    page, nb = Page().read(at / "x.html"), nblib.read(at / "x.ipynb")
    assert [i for i in page.ids if i in {c.id for c in nb.cells}] == [c.id for c in nb.cells]
    for c in nb.cells:
        assert c.cell_type != "code" or c.id == "parameters" or c.source in page.text, c.id
    for words in ("mlp.h5", "weir-dump", "brook", "15 tokens of 2 documents", "bins", "of histograms"):
        assert words in page.text
    assert nblib.page_numbers(at / "x.html")


# --- Jupyter


def fake(at, script):
    """A jupyter-nbconvert that does this, alone in PATH but for the shell's programs."""
    folder = at / "fake"
    folder.mkdir(exist_ok=True)
    (folder / "jupyter-nbconvert").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "jupyter-nbconvert").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_execute_without_jupyter(at):
    r = export("mlp.h5", "--execute", cwd=at, env={"PATH": "/nowhere"})
    assert r.code == 1 and "mlp.ipynb is written, but Jupyter is not here" in r.err.splitlines()[-1] and "nbconvert" in r.err
    nblib.read(at / "mlp.ipynb")


def test_execute_calls_nbconvert_in_the_notebooks_place(at):
    (at / "sub").mkdir()
    env = fake(at, 'pwd > pwd; printf "%s\\n" "$@" > args; cat')
    (at / "fake2").symlink_to(at / "fake")
    export("mlp.h5", "-o", "sub/*[x].ipynb", "--execute", "--timeout", "7", cwd=at, env={"PATH": "fake2:/usr/bin:/bin"}).ok()
    assert os.path.realpath((at / "sub/pwd").read_text().strip()) == os.path.realpath(at / "sub")
    args = (at / "sub/args").read_text().split()
    assert {"--execute", "--stdin", "--stdout", "--allow-errors", "--ExecutePreprocessor.timeout=7"} <= set(args)
    once = (at / "sub/*[x].ipynb").read_bytes()
    export("mlp.h5", "-o", "sub/*[x].ipynb", cwd=at, env=env).ok()
    assert (at / "sub/*[x].ipynb").read_bytes() == once
    assert sorted(p.name for p in (at / "sub").iterdir()) == ["*[x].ipynb", "args", "pwd"]


def failing(nb, ename, evalue):
    next(c for c in nb.cells if c.id == "open").outputs = [nbformat.v4.new_output("error", ename=ename, evalue=evalue, traceback=[])]
    return nbformat.writes(nb)


def test_execute_says_what_failed_and_keeps_it(at):
    export("mlp.h5", cwd=at).ok()
    plain = (at / "mlp.ipynb").read_bytes()
    cases = [("echo 'x'; echo warm >&2; echo 'No such kernel\x1b[1m' >&2; echo >&2; exit 3", ["jupyter-nbconvert failed: No such kernel?[1m"]),
             ("echo '{}'", ["is no notebook"]), ("head -c 1000", ["is no notebook"]), ("kill -9 $$", ["killed by signal 9"]), ("true", ["is no notebook"]),
             ("exit 3", ["failed, without a word (exit code 3)"])]
    for script, words in cases:
        r = export("mlp.h5", "--execute", "-q", cwd=at, env=fake(at, script)).fails(1, "mlp.ipynb is written", *words)
        assert (at / "mlp.ipynb").read_bytes() == plain, r.err
    for ename, evalue, words in [("ModuleNotFoundError", "No module named 'h5py'", ["No module named 'h5py'; notebooks need h5py"]),
                                 ("KeyboardInterrupt", "", ["KeyboardInterrupt; --timeout"]), ("ValueError", "a\x1b\nb", ["ValueError: a?"])]:
        made = failing(nblib.read(at / "mlp.ipynb"), ename, evalue)
        (at / "made").write_text(made)
        export("mlp.h5", "--execute", "-q", "--force", cwd=at, env=fake(at, "cat made")).fails(1, "mlp.ipynb: its cell open failed", *words)
        assert (at / "mlp.ipynb").read_text() == made


def test_execute_stops_with_a_signal(at):
    env = fake(at, "trap 'touch seen; exit 1' TERM; touch begun; while :; do sleep 0.05; done")
    p = subprocess.Popen([BIN / "weir", "notebook-export", "mlp.h5", "--execute"], cwd=at, env=environment(**env), stderr=subprocess.PIPE, text=True)
    while not (at / "begun").exists():
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    assert p.wait() == 1 and p.stderr.read().splitlines()[-1] == "notebook-export: stopped; mlp.ipynb is written, but was not run"
    assert (at / "seen").exists()
    nblib.read(at / "mlp.ipynb")


# --- nblib itself: comparisons must be able to fail


def test_comparison_can_fail():
    mine = {"a": 1.0, "b": [1.0, 2.0], "c": 3, "d": math.nan, "e": [[1.0], [math.inf]], "f": "word"}
    nblib.compare({"a": 1 + 1e-10, "b": [1, 2], "c": 3.0, "d": "nan", "e": [[1.0], ["inf"]], "f": "word"}, mine)
    for numbers in ({}, {"a": 1 + 1e-8}, {"a": "nan"}, {"a": None}, {"b": [1.0]}, {"b": [1.0, 2.1]}, {"b": 1.0}, {"c": 4}, {"c": True}, {"d": 1.0},
                    {"d": "inf"}, {"e": [[1.0], ["-inf"]]}, {"e": [1.0, math.inf]}, {"z": 1}, {"f": "other"}, {"a": [1.0]}):
        with pytest.raises(AssertionError):
            nblib.compare(numbers, mine)
    page = '<script type="application/json" id="numbers">%s</script>'
    assert nblib.page_numbers(page % '{"a":1}') == {"a": 1}
    for text in ("", page % "{}" * 2, page % '{"a":1,"a":2}'):
        with pytest.raises(AssertionError):
            nblib.page_numbers(text)
