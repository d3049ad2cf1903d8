"""What the smaller tools have in common: a result replaces an earlier one of its own kind and nothing else; names and tokens of any
bytes do no harm to a terminal; an option that changes nothing is refused."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from hostile import hostile_tokenizer
from weircli import BIN, ROOT, environment, trace, weir

GPT2 = ROOT / "tests/golden/models/gpt2"
FORMS = [("loss", "1 2 3", *per, *form) for per in ((), ("--per", "doc"), ("--per", "token")) for form in ((), ("--format", "ndjson"))]
FORMS += [("health", "1 2 3", *per, *form) for per in ((), ("--per", "position"), ("--per", "dim"), ("--per", "token"))
          for form in ((), ("--format", "tsv"))]
FORMS += [(*tool, *form) for tool in (("loss", "1 2 3"), ("health", "1 2 3"), ("probe-pos", "1 2 3"), ("heads",), ("compose",), ("unembed", "L1N1"),
                                      ("unembed", "L1N1", "--as", "row")) for form in ((), ("--json",))]


def ask(tool, *args, **more):
    return weir(tool, "--model", GPT2, *(("--ids",) if tool in ("loss", "health", "probe-pos") else ()), *args, **more)


@pytest.mark.parametrize("form", sorted(set(FORMS)), ids=" ".join)
def test_an_earlier_result_is_replaced_and_notes_about_it_are_not(tmp_path, form):
    out = tmp_path / "out"
    first = ask(*form, "-o", out).ok() and out.read_bytes()
    ask(*form, "-o", out).ok()
    assert out.read_bytes() == first and first
    notes = b"my notes:\n" + first
    out.write_bytes(notes)
    r = ask(*form, "-o", out, "--quiet")
    assert r.code == 1 and "no earlier output" in r.err and out.read_bytes() == notes


@pytest.mark.parametrize("args", [("-f{t}", "-o", "{t}"), ("-f", "{t}", "-o{t}"), ("--file={t}", "--out={t}"),
                                  ("1 2", "--add", "blocks.0.hook_resid_pre={v}*2", "-o", "{v}"), ("1 2", "--add", "blocks.0.hook_resid_pre={v}@0", "-o", "{v}")], ids=str)
def test_what_is_read_is_not_written_over_however_it_is_named(tmp_path, args):
    (tmp_path / "t").write_text("1 2 3\n")
    np.save(tmp_path / "v", np.ones((2, 21), "f4"))
    names = {"t": str(tmp_path / "t"), "v": str(tmp_path / "v.npy")}
    ask("loss", *(a.format(**names) for a in args), "--force", "--quiet").fails(1, "also read")
    assert (tmp_path / "t").read_text() == "1 2 3\n" and np.load(names["v"]).shape == (2, 21)


ALL_NEURONS = ",".join(f"L{i}N0:768" for i in range(8))


@pytest.mark.parametrize("args", [("heads", "--sequences", "1000000"), ("compose", "--neurons", ALL_NEURONS, "--format", "ndjson")],
                         ids=["heads", "compose"])
def test_a_run_that_is_stopped_leaves_nothing(tmp_path, args):
    p = subprocess.Popen([BIN / "weir", *args, "-o", tmp_path / "out"], env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (tmp_path / "out.part").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    assert "stopped by signal 15" in p.communicate()[1].decode() and p.returncode == 1 and list(tmp_path.iterdir()) == []


# --- names and tokens

ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A model whose name and tokens are escapes, marks that turn text around, and spaces that are none."""
    path = tmp_path_factory.mktemp("evil") / "\x1b[31m\x9b31m\u202ename\t"
    path.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(GPT2 / name, path)
    hostile_tokenizer(path / "tokenizer.json")
    t = json.loads((path / "tokenizer.json").read_text())
    t["added_tokens"] += [{**t["added_tokens"][0], "id": 24 + i, "content": w} for i, w in enumerate(("\x7f", "\x9b31m", "\u2028", "\u2066x", "a\u00a0", "\u3000"))]
    (path / "tokenizer.json").write_text(json.dumps(t))
    return path


@pytest.mark.parametrize("form", [(), ("--format", "tsv"), ("--format", "ndjson"), ("--json",)], ids=" ".join)
def test_nothing_acts_on_a_terminal(evil, tmp_path, form):
    ids = " ".join(str(i) for i in range(5, 30))
    vector = tmp_path / "v\x1b[1m\x9b\u202e.npy"
    np.save(vector, np.ones(21, "f4"))
    many = () if form == ("--json",) else ("--per", "token")
    for args in (("loss", ids, *many), ("health", ids, "--norm-ratio", "1", *many), ("attention", ids, "--heads", "L0H0"), ("heads",),
                 ("compose",), ("unembed", "L0N0", vector, "-k", "70"), *([("probe-pos", ids)] if form in ((), ("--json",)) else [])):
        text = ("--ids",) if ids in args else ()
        r = weir(*args, *text, *form, "--model", evil).ok()
        assert not ACTS.search(r.out.decode()) and not ACTS.search(r.err), (args, ACTS.findall(r.out.decode())[:5])
        if form == ():  # a table's cells show what cannot be seen
            assert not re.search("[\u00a0\u3000]", r.out.decode())
            assert args[0] not in ("loss", "attention") or {b"a\\xc2\\xa0", b"\\xe3\\x80\\x80"} <= set(re.findall(rb"a?(?:\\x\w\w)+", r.out))
        if form == ("--format", "tsv"):
            assert len({line.count("\t") for line in r.out.decode().split("\n") if line and line[0] != "#"}) == 1


def test_pages_and_tables_show_the_same_characters_as_bytes():
    tables = re.findall(r"ranges\[\] = \{.*?\n    \};", (ROOT / "lib/base/printable.c").read_text(), re.S)
    tables += re.findall(r"blank\[\] = \{.*?\n\};", (ROOT / "tools/cli/printable.c").read_text(), re.S)
    pairs = re.findall(r"\{0x(\w+), +0x(\w+)\}", "".join(tables))
    page = re.search(r'unseen = new RegExp\((.*?), "u"\);', (ROOT / "tools/page/text.js").read_text(), re.S)[1]
    unseen = re.sub(r"\\+u\{?(\w+)\}?", lambda m: "\\U" + m[1].zfill(8), "".join(re.findall('"(.*?)"', page)))
    every = "".join(chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000)
    assert len(tables) == 2 and set(re.findall(unseen, every)) == {chr(c) for a, b in pairs for c in range(int(a, 16), int(b, 16) + 1)}


def test_names_of_hooks_and_files(evil, tmp_path):
    dump = tmp_path / "\x9bdump\u202e.h5"
    r = trace("--model", evil, "--ids", "--bos", "no", "--hooks", "blocks.0.hook_resid_pre", "--dump", dump, "1 2 3").ok()
    assert not ACTS.search(r.err)
    with h5py.File(dump, "a") as f:
        f["activations"].move("blocks.0.hook_resid_pre", "blocks.0.\x1b[31m\x9b")
    for args in (("diff", dump, dump), ("direction", dump, "-m", "pca", "--rows", "all"), ("direction", dump, "-m", "pca", "--hook", "x")):
        r = weir(*args)
        assert r.out or r.code == 1
        assert not ACTS.search(r.out.decode()) and not ACTS.search(r.err), args


# --- options

@pytest.mark.parametrize("args, word", [
    (("heads", "-k", "3", "--format", "tsv"), "--k is about"), (("heads", "-k", "3", "--json"), "--k is about"),
    (("compose", "-k", "3", "--format", "ndjson"), "--k is about"), (("compose", "--batch", "2"), "--batch"), (("heads", "--batch", "2"), "--batch"),
    (("unembed", "L0N0", "--memory", "1G"), "--memory"), (("health", "1", "-k", "3", "--json"), "--k changes nothing"),
    (("health", "1", "--per", "dim", "--norm-ratio", "2"), "--norm-ratio changes nothing"),
    (("health", "1", "--per", "token", "--dim-ratio", "2"), "--dim-ratio changes nothing")], ids=str)
def test_an_option_that_would_change_nothing_is_refused(args, word):
    ask(*args).fails(2, word)


@pytest.mark.parametrize("args", [("loss", "--per", "doc", "--format", "tsv", ""), ("unembed", "L1N1", "none.npy", "--format", "tsv"),
                                  ("health", "--per", "position", "--format", "tsv", "")], ids=str)
def test_a_run_that_fails_at_once_has_written_nothing(args):
    r = ask(*args)
    assert r.code == 1 and r.out == b""


# --- progress

def test_direction_has_a_progress_bar(tmp_path):
    (tmp_path / "t.txt").write_text("1 2 3\n" * 4000)
    dump = tmp_path / "d.h5"
    trace("--model", GPT2, "--ids", "--bos", "no", "--layer", "0", "--site", "resid_pre", "--file", tmp_path / "t.txt", "--dump", dump).ok()
    ours, theirs = pty.openpty()
    p = subprocess.run([BIN / "weir", "direction", dump, "-m", "pca", "--rows", "all"], env=environment(), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode(errors="replace")
    os.close(ours)
    assert p.returncode == 0 and re.search(r"\[[#.]+\] +\d+%", shown) and shown.endswith("\r\x1b[K")
