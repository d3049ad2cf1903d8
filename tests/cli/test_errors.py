"""Bad input of every kind: one line that says what, where and what to do; exit 1 or 2; nothing under the final name."""
import gzip
import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import pytest

from weircli import BIN, BROOK, SHARED, environment, trace, weir

LAYER = ("--layer", "1")


@pytest.fixture
def out(tmp_path):
    """A target in an empty directory that must stay empty."""
    d = tmp_path / "out"
    d.mkdir()
    yield d / "x.h5"
    assert list(d.iterdir()) == []


@pytest.mark.parametrize("args, code, words", [
    (("--model", "/nonexistent"), 1, ("/nonexistent",)),
    (("--model", "/etc/passwd"), 1, ("/etc/passwd",)),
    (("--model", "/"), 1, ("config.json",)),
    (("--layer", "8"), 2, ("--layer", "layer 8 does not exist", "8 layers")),
    (("--layer", "6-"), 2, ("--layer",)),
    (("--layer", "x"), 2, ("--layer",)),
    (("--hooks", "blocks.1.mlp.hook_pst"), 2, ("blocks.1.mlp.hook_pst", "the nearest is")),
    (("--hooks", "blocks.1.hook_resid_mid[99999]"), 2, ("--hooks",)),
    (("--hooks", "blocks.1.hook_resid_mid[-1, 3]"), 2, ("position", "--positions")),
    (("--hooks", "blocks.[0.x"), 2, ("--hooks",)),
    (("--site", "resid_past"), 2, ("--site", "resid_past")),
    (("--ctx", "257"), 2, ("--ctx 257", "context of 256")),
    (("--ctx", "1"), 2, ("--ctx 1", "BOS")),
    (("--ctx", "8", "--stride", "9"), 2, ("--stride 9", "leaves out tokens")),
    (("--positions", "first"), 2, ("--positions", '"first"')),
    (("--positions", "1:2:3"), 2, ("--positions", "1:2:3")),
    (("--positions", "9223372036854775807"), 1, ("--positions", "no document has such a row")),
    (("--memory", "1K"), 1, ("1024", "--batch")),
    (("--hook", "nosuch"), 2, ("--hook nosuch",)),
    (("--hook", "abblate:post"), 2, ("did you mean ablate?",)),
    (("--hook", "ablate:L99N1"), 2, ("--hook ablate",)),
    (("--ids", "--positions", "@where"), 2, ("@where", "--ids")),
    (("--ids",), 1, ("arg", "is no token id")),
])
def test_arguments(out, args, code, words):
    args = args if any(a in args for a in ("--layer", "--hooks", "--site")) else (*LAYER, *args)
    trace(*args, "--dump", out, "a text").fails(code, *words)


def test_token_ids(out):
    trace(*LAYER, "--dump", out, "--ids", "5 4096").fails(1, "token id 4096", "vocabulary of 4096")
    trace(*LAYER, "--dump", out, "--ids", "5 -1").fails(1, "-1")
    trace(*LAYER, "--dump", out, "--ids", stdin=b"1 2\n3 four\n").fails(1, "stdin:2", '"four"')


@pytest.mark.parametrize("name, content, words", [
    ("missing.txt", None, ("No such file",)),
    ("x.jsonl", b'{"text": "a"}\n{"text": 5}\n', (":2:", "text")),
    ("x.jsonl", b'{"text": "a"}\n{"txt": "b"}\n', (":2:", "text")),
    ("x.jsonl", b'{"text": "a"}\n{"text": "b"\n', (":2:",)),
    ("x.jsonl", b'{"text": "a"}\n["text"]\n', (":2:",)),
    ("x.txt", gzip.compress(b"a few words\nb\n")[:-9], ()),
    ("x.txt", b"\n\n\n", ("no document",)),
])
def test_files(out, tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    r = trace(*LAYER, "--dump", out, "--file", path).fails(1, *words)
    assert name in r.err or "no document" in r.err


def test_a_broken_model_is_named(out, tmp_path):
    model = tmp_path / "brook"
    shutil.copytree(BROOK, model, ignore=shutil.ignore_patterns("recipe"))
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[:-1000])
    trace("--model", model, *LAYER, "--dump", out, "a").fails(1, "model.safetensors")
    (model / "model.safetensors").write_bytes(whole)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "model_type": "perceiver"}))
    trace("--model", model, *LAYER, "--dump", out, "a").fails(1, "config.json", "perceiver")
    (model / "config.json").write_text(json.dumps(config))
    (model / "tokenizer.json").write_text('{"version": "1.0", "model": {}')
    trace("--model", model, *LAYER, "--dump", out, "a").fails(1, "tokenizer.json")
    (model / "tokenizer.json").unlink()
    trace("--model", model, *LAYER, "--dump", out, "a").fails(1, "tokenizer")


def test_ids_need_no_tokenizer(tmp_path):
    model = tmp_path / "brook"
    shutil.copytree(BROOK, model, ignore=shutil.ignore_patterns("recipe", "tokenizer*"))
    r = trace("--model", model, *LAYER, "--dump", tmp_path / "x.h5", "--ids", "1 2 3").ok()
    assert "the ids are run without a tokenizer" in r.err
    with h5py.File(tmp_path / "x.h5") as f:
        assert f["tokens/id"][...].tolist() == [1, 2, 3]
    with_bos = trace("--model", model, *LAYER, "--dump", tmp_path / "y.h5", "--ids", "--bos", "yes", "1", "--quiet")
    with_bos.fails(2, "no BOS token")


def test_unwritable_target(out, tmp_path):
    trace(*LAYER, "--dump", tmp_path / "no" / "x.h5", "a").fails(1, "x.h5")
    trace(*LAYER, "--dump", tmp_path / "out", "a").fails(1, "out")


def test_a_foreign_file_is_not_replaced(tmp_path):
    import numpy as np
    text, foreign = tmp_path / "notes.txt", tmp_path / "other.h5"
    text.write_text("my notes")
    with h5py.File(foreign, "w") as f:
        f["data"] = np.arange(3)
    for path in (text, foreign):
        before = path.read_bytes()
        trace(*LAYER, "--dump", path, "a").fails(1, path.name)
        trace(*LAYER, "--dump", path, "--force", "a").fails(1, path.name)
        assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "other.h5"]


def test_our_own_file_is_replaced_and_a_part_is_respected(tmp_path):
    path = tmp_path / "x.h5"
    trace(*LAYER, "--dump", path, "one text").ok()
    first = path.read_bytes()
    trace(*LAYER, "--dump", path, "another text that is longer").ok()
    assert path.read_bytes() != first
    part = tmp_path / "x.h5.part"
    part.write_bytes(first)
    trace(*LAYER, "--dump", path, "a").fails(1, "x.h5.part", "--force")
    assert part.read_bytes() == first
    trace(*LAYER, "--dump", path, "--force", "a").ok()
    assert not part.exists()


def test_an_error_in_the_middle_leaves_the_old_file(tmp_path):
    path, records = tmp_path / "x.h5", tmp_path / "r.jsonl"
    trace(*LAYER, "--dump", path, "the old one").ok()
    before = path.read_bytes()
    records.write_text('{"text": "' + "many words " * 60 + '"}\n' + '{"text": "b"}\n' * 500 + "oops\n")
    trace(*LAYER, "--dump", path, "--file", records).fails(1, "r.jsonl:502:")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.jsonl", "x.h5"]


def test_a_hook_that_is_attached_prints_and_one_object_stays_one(tmp_path):
    r = trace("--hook", "stats:blocks.2.hook_resid_post", "a few words").ok()
    assert b"blocks.2.hook_resid_post" in r.out
    r = trace("--hook", "stats:blocks.2.hook_resid_post", "--json", "a few words").ok()
    assert "blocks.2.hook_resid_post" in r.json["hook_output"] and r.json["dump"] is None


def test_the_recording_sees_what_a_hook_wrote(tmp_path):
    path = tmp_path / "x.h5"
    trace("--hook", "ablate:L1N5", "--hooks", "blocks.1.mlp.hook_post", "--dump", path, "words to ablate").ok()
    with h5py.File(path) as f:
        values = f["activations/blocks.1.mlp.hook_post"][...]
    assert (values[:, 5] == 0).all() and (values[:, 4] != 0).any()


@pytest.mark.parametrize("hooks, says", [
    ((), []),
    (("stats:post",), []),  # it only reads
    (("ablate:L1N5", "stats:post", 'ablate:blocks.{0,1}.attn.hook_z[0, 1]'),
     [{"kind": "ablate", "selector": "L1N5", "value": "zero"},
      {"kind": "ablate", "selector": "blocks.{0,1}.attn.hook_z[0, 1]", "value": "zero"}]),
])
def test_a_dump_says_what_changed_its_values(tmp_path, hooks, says):
    path = tmp_path / "x.h5"
    options = [word for hook in hooks for word in ("--hook", hook)]
    trace(*LAYER, *options, "--dump", path, "a few words").ok()
    with h5py.File(path) as f:
        assert json.loads(f.attrs["interventions"]) == says


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_closed_part(tmp_path, number):
    path, text = tmp_path / "x.h5", tmp_path / "t.txt"
    text.write_text("a long text that runs for a while\n" * 300000)
    p = subprocess.Popen([BIN / "weir", "trace", "--layer", "all", "--dump", path, "--file", text], env=environment(),
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    part = tmp_path / "x.h5.part"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 500_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    p.send_signal(number)
    _, err = p.communicate(timeout=120)
    assert p.returncode == 1
    assert err == f"trace: stopped by signal {int(number)}; the rows so far are in {path}.part: --resume goes on with them\n"
    assert not path.exists()
    with h5py.File(part) as f:
        assert f.attrs["complete"] == 0


def test_a_signal_ends_a_run_without_a_dump(tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("a long text that runs for a while\n" * 300000)
    p = subprocess.Popen([BIN / "weir", "trace", "--hook", "stats:blocks.7.hook_resid_post", "--file", text],
                         env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.5)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=120)
    assert p.returncode == 1 and out == b"" and err == b"trace: stopped by signal 2\n"


def test_summary_and_json(tmp_path):
    path = tmp_path / "x.h5"
    r = trace(*LAYER, "--dump", path, "one two three", "four").ok()
    lines = r.err.splitlines()
    assert r.out == b"" and len(lines) == 3 and all(line.startswith("trace: ") for line in lines)
    assert "\r" not in r.err and "\x1b" not in r.err  # no progress where there is no terminal
    r = trace(*LAYER, "--dump", path, "--json", "--quiet", "one two three", "four").ok()
    assert r.err == "" and len(r.out.splitlines()) == 1
    s = r.json
    with h5py.File(path) as f:
        rows = f["tokens/id"].shape[0]
        widths = sum(d.shape[1] for d in f["activations"].values())
    assert s["tokens"] == s["rows"] == s["rows_run"] == rows and s["documents"] == 2 and s["hooks"] == 8
    assert s["raw_bytes"] == rows * widths * 4
    assert s["file_bytes"] == os.path.getsize(path)
    assert set(s["memory"]) == {"peak", "mapped", "panels", "model_other", "arena", "packed_again"}
    assert s["memory"]["mapped"] >= os.path.getsize(BROOK / "model.safetensors")
    assert s["memory"]["peak"] > s["memory"]["arena"] > 0


def test_progress_stands_on_a_terminal_and_is_cleared(tmp_path):
    import pty
    master, slave = pty.openpty()
    text = tmp_path / "t.txt"
    text.write_text("a line of several words for the bar\n" * 500)
    p = subprocess.Popen([BIN / "weir", "trace", *LAYER, "--dump", tmp_path / "x.h5", "--file", text],
                         env=environment(), stderr=slave, stdin=subprocess.DEVNULL)
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    assert p.wait() == 0
    os.close(master)
    assert b"tokens/s" in seen and b"%" in seen
    bars = seen.split(b"trace: ")[0]
    assert bars.endswith(b"\r\x1b[K") and b"\n" not in bars


def test_what_is_left_out_of_the_input_is_told(tmp_path):
    r = trace(*LAYER, "--dump", tmp_path / "x.h5", "--json", stdin=b"one\n\n\ntwo\n").ok()
    assert r.json["skipped_documents"] == 2 and "2 empty documents" in r.err
    records = b'{"text": "a", "n": 1}\n{"text": "b", "n": "one"}\n{"text": "c", "n": 2, "m": 3}\n'
    r = trace(*LAYER, "--dump", tmp_path / "x.h5", "--json", "--jsonl", stdin=records).ok()
    assert r.json["dropped_fields"] == 2 and "2 fields not kept" in r.err
    assert r.json["lost_bytes"] == 0 and "lost" not in r.err and "not kept (n, m): " in r.err
    records = b'{"text": "a"}\n{"text": "b", "x": 1, "y": [], "z": {}, "v": 0, "w": 0}\n'
    assert "5 fields not kept (x, y, z, ...): " in trace(*LAYER, "--dump", tmp_path / "y.h5", "--jsonl", stdin=records).ok().err


def test_lost_bytes_are_told(tmp_path):
    model = SHARED / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not model.exists():
        pytest.skip("a model whose vocabulary lacks bytes is not here")
    r = trace("--model", model, "--layer", "0", "--dump", tmp_path / "x.h5", "--json", stdin=b"fine\nsome \xf5\xff\n").ok()
    assert r.json["lost_bytes"] > 0 and f"{r.json['lost_bytes']} bytes in 1 document lost" in r.err
    with h5py.File(tmp_path / "x.h5") as f:
        assert (f["tokens/flags"][...] & 4).any()
    assert b"are lost" in weir("tokenize", "--model", model, stdin=b"some \xf5\xff\n").ok().err.encode()


def test_weir_model_names_the_default(tmp_path):
    trace(*LAYER, "--dump", tmp_path / "x.h5", "a", env={"WEIR_MODEL": "/nonexistent"}).fails(1, "/nonexistent")
    trace(*LAYER, "--dump", tmp_path / "x.h5", "a", env={"WEIR_MODEL": str(BROOK)}).ok()
    trace(*LAYER, "--model", BROOK, "--dump", tmp_path / "x.h5", "a", env={"WEIR_MODEL": "/nonexistent"}).ok()


def test_list_hooks(tmp_path):
    table = trace("--list-hooks").ok().out.decode().splitlines()
    listed = trace("--list-hooks", "--json").ok().json["hooks"]
    assert [line.split()[0] for line in table] == [h["name"] for h in listed]
    by_name = {h["name"]: h for h in listed}
    assert by_name["blocks.6.mlp.hook_post"]["shape"] == [None, 768]
    assert by_name["blocks.6.attn.hook_q"]["shape"] == [None, 6, 32]
    assert by_name["blocks.6.attn.hook_pattern"]["shape"] == [None, 6, None]
    assert by_name["hook_embed"]["layer"] is None and by_name["blocks.6.mlp.hook_post"]["layer"] == 6
    six = trace("--list-hooks", "--layer", "6", "--json").ok().json["hooks"]
    assert [h["name"] for h in six] == [h["name"] for h in listed if h["layer"] == 6]
    trace("--list-hooks", "--layer", "9").fails(2, "--layer")
    assert weir("trace", "--list-hooks", "--hooks", "blocks.0.attn.hook_[").code == 2
