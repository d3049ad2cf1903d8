"""Where text comes from: `tokenize` reads it the same way as every tool, and shows it."""
import json
import os
import pty
import subprocess
import time

import pytest

from weircli import BIN, BROOK, environment, trace, weir

SENTENCES = (BROOK / "sentences.txt").read_bytes()
IS_BROOK = "so the text is brook's sentences"


def texts(run):
    """The documents that a run of `tokenize --json` saw, as their sizes in bytes."""
    return [json.loads(line)["bytes"] for line in run.ok().out.splitlines()]


def tokenize(*args, **more):
    return weir("tokenize", "--json", *args, **more)


BROOK_SIZES = [len(line) for line in SENTENCES.splitlines()]


def start(*args, **streams):
    return subprocess.Popen([BIN / "weir", "tokenize", "--json", *args], env=environment(), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **streams)


def test_a_pipe_is_read():
    r = tokenize(stdin=b"one\ntwo two\r\n\nthree")
    assert texts(r) == [3, 7, 5] and r.err == ""


def test_a_file_is_read_from_where_it_stands(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"first line\nsecond\n")
    with open(tmp_path / "t.txt", "rb", buffering=0) as f:
        f.read(len("first line\n"))
        assert texts(tokenize(stdin=f)) == [6]


@pytest.mark.parametrize("dash", [(), ("-",), ("--file", "-")])
def test_an_empty_input_means_brooks_sentences(dash, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    for stdin in (b"", open(os.devnull, "rb"), open(tmp_path / "empty", "rb")):
        r = tokenize(*dash, stdin=stdin)
        assert texts(r) == BROOK_SIZES
        assert r.err == f"tokenize: standard input is empty, {IS_BROOK}\n"
        assert tokenize(*dash, "--quiet", stdin=b"").ok().err == ""


def test_a_closed_input_means_brooks_sentences():
    p = subprocess.run(f"'{BIN}/weir' tokenize --ids <&-", shell=True, env=environment(), capture_output=True,
                       text=True)
    assert p.returncode == 0 and IS_BROOK in p.stderr and len(p.stdout.splitlines()) == 1000


def test_a_terminal_means_brooks_sentences():
    master, slave = pty.openpty()
    try:
        r = tokenize(stdin=slave)
        assert texts(r) == BROOK_SIZES
        assert r.err == f"tokenize: no text was given, {IS_BROOK}\n"
    finally:
        os.close(master)
        os.close(slave)


def test_a_dash_reads_a_terminal():
    master, slave = pty.openpty()
    p = start("-", stdin=slave)
    os.close(slave)
    os.write(master, b"typed by hand\n\x04")
    out, err = p.communicate(timeout=60)
    os.close(master)
    assert p.returncode == 0 and json.loads(out)["bytes"] == 13 and err == ""


def test_an_empty_line_is_a_byte_and_not_brook():
    r = tokenize(stdin=b"\n\n")
    assert texts(r) == [] and r.err == ""


def test_it_waits_for_the_first_byte_and_says_so():
    p = start(stdin=subprocess.PIPE)
    time.sleep(2.6)
    assert p.poll() is None
    out, err = p.communicate("late\n", timeout=60)
    assert p.returncode == 0 and json.loads(out)["bytes"] == 4
    assert err == "tokenize: waiting for text on standard input\n"


def test_it_waits_for_a_late_end_too():
    p = start(stdin=subprocess.PIPE)
    time.sleep(2.6)
    p.stdin.close()
    p.stdin = None
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and len(out.splitlines()) == 1000
    assert err.splitlines() == ["tokenize: waiting for text on standard input",
                                f"tokenize: standard input is empty, {IS_BROOK}"]


def test_a_short_wait_is_silent():
    p = start(stdin=subprocess.PIPE)
    time.sleep(0.5)
    out, err = p.communicate("soon\n", timeout=60)
    assert json.loads(out)["bytes"] == 4 and err == ""


def test_standard_input_is_left_alone_when_a_text_is_named(tmp_path):
    (tmp_path / "t.txt").write_text("from the file")
    for args, size in ((("an argument",), 11), (("--file", tmp_path / "t.txt"), 13)):
        p = start(*args, stdin=subprocess.PIPE)  # never written, never closed: reading it would hang
        deadline = time.monotonic() + 30
        while p.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert p.poll() == 0
        out, _ = p.communicate()
        assert json.loads(out)["bytes"] == size


def test_each_argument_and_each_line_is_a_document(tmp_path):
    assert texts(tokenize("one two", "three\nfour")) == [7, 10]
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("first\n\nsecond\nlines\n")
    b.write_text("third")
    assert texts(tokenize("--file", a, "-f", b)) == [5, 6, 5, 5]
    assert texts(tokenize("--docs", "blank", "--file", a)) == [5, 12]
    assert texts(tokenize("--docs", "file", "--file", a, "--file", b)) == [len("first\n\nsecond\nlines\n"), 5]
    assert texts(tokenize("--docs", "second", "--file", a))[-1] == 5


def test_gzip_is_opened_by_content(tmp_path):
    import gzip
    (tmp_path / "plain-name").write_bytes(gzip.compress(b"packed\nlines\n"))
    assert texts(tokenize("--file", tmp_path / "plain-name")) == [6, 5]


def test_jsonl_by_name_by_option_and_by_field(tmp_path):
    records = b'{"text": "a\\u00e9", "n": 1}\n{"n": 2, "text": "bc", "title": "longer"}\n'
    (tmp_path / "x.jsonl").write_bytes(records)
    assert texts(tokenize("--file", tmp_path / "x.jsonl")) == [3, 2]
    assert texts(tokenize("--jsonl", stdin=records)) == [3, 2]
    assert texts(tokenize("--field", "text", stdin=records)) == [3, 2]
    assert texts(tokenize("--field", "title", stdin=b'{"title": "longer"}')) == [6]
    assert len(texts(tokenize(stdin=records))) == 2  # without a name it is plain text


def test_contradictions(tmp_path):
    (tmp_path / "t.txt").write_text("x")
    weir("tokenize", "text", "--file", tmp_path / "t.txt").fails(2, "--file", 'the text "text"', "exclude each other")
    weir("tokenize", "text", "-").fails(2, "standard input cannot be joined")
    weir("tokenize", "--file", "-", "--file", tmp_path / "t.txt").fails(2, "standard input cannot be joined")
    weir("tokenize", "--jsonl", "text").fails(2, "--jsonl", 'the text "text"')
    trace("--layer", "1", "--dump", tmp_path / "x.h5", "--ids").fails(2, "--ids", "no token ids were given")


def test_a_text_that_names_an_hdf5_file_is_a_slip(tmp_path):
    trace("--layer", "0", "--dump", tmp_path / "x.h5", "some text").ok()
    trace("--layer", "0", "--dump", tmp_path / "y.h5", tmp_path / "x.h5").fails(2, "x.h5 is an HDF5 file, not a text")
    weir("tokenize", "text", tmp_path / "x.h5").fails(2, "x.h5 is an HDF5 file, not a text")
    assert not (tmp_path / "y.h5").exists() and not (tmp_path / "y.h5.part").exists()


def test_a_text_that_names_another_file_is_a_text_with_a_remark(tmp_path):
    (tmp_path / "t.txt").write_text("contents")
    r = weir("tokenize", "--json", "t.txt", cwd=tmp_path)
    assert texts(r) == [5] and "is taken as text; --file t.txt" in r.err
