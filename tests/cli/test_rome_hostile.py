"""What others send: second moments, records and outputs that cannot be right are one line, and nothing is written."""
import fcntl
import json
import os
import shutil
import subprocess
import time

import numpy as np
import pytest

from checkpoints import write
from romelib import CHEAP, HOOD, edit, record, write_records
from weircli import BIN, BROOK, environment, weir

F = 6


def imported(path, *more):
    return weir("rome", "stats", "--import", path, "--layer", 1, "-o", path.parent / "m.h5", "-q", *more)


def save(path, count, sums, **more):
    np.savez(path, **{"mom2.count": count, "mom2.mom2": sums, **more})
    return path


def test_what_is_symmetric_but_for_rounding_is_taken(tmp_path):
    rng = np.random.default_rng(2)
    k = rng.standard_normal((50, F)).astype("f4")
    sums = k.T @ k
    sums[1, 2] = np.nextafter(sums[1, 2], np.float32(9e9))
    imported(save(tmp_path / "a.npz", 50, sums, sample_size=3)).ok()


@pytest.mark.parametrize("at, value, words", [
    ((4, 2), 7, ("mom2.mom2[2,4] is 0, and its mirror image 7",)), ((3, 5), np.nan, ("[3,5] is nan",)), ((5, 3), np.nan, ("mirror image nan",)),
    ((2, 2), -1, ("[2,2] is -1",))])
def test_what_is_no_sum_is_refused(at, value, words, tmp_path):
    sums = np.eye(F)
    sums[at] = value
    imported(save(tmp_path / "a.npz", 50, sums)).fails(1, "a.npz", *words)
    assert [f.name for f in tmp_path.iterdir()] == ["a.npz"]


def test_archives_that_are_cut_or_flipped(tmp_path):
    whole = save(tmp_path / "a.npz", 50, np.eye(F)).read_bytes()
    for n in (0, 3, 30, len(whole) // 2, len(whole) - 1):
        (tmp_path / "a.npz").write_bytes(whole[:n])
        imported(tmp_path / "a.npz").fails(1, "a.npz")
    rng = np.random.default_rng(3)
    directory = whole.index(b"PK\1\2")
    for _ in range(12):
        bad = bytearray(whole)
        bad[rng.integers(directory, len(bad))] ^= 1 << rng.integers(8)
        (tmp_path / "a.npz").write_bytes(bad)
        r = imported(tmp_path / "a.npz", "--force")
        assert r.code in (0, 1) and len(r.err.splitlines()) == r.code, r.err


def test_a_text_beside_an_import_is_not_passed_over(tmp_path):
    imported(save(tmp_path / "a.npz", 50, np.eye(F)), "--file", tmp_path / "t").fails(2, "--import and --file exclude")


@pytest.mark.parametrize("bad", [record("{} {} is", "Hood", "Rome"), record("{} is", "a\0b", "Rome"), record("{} is", "Hood", "  "),
                                 record("{} is", "Hood", "word " * 1000), record("{} is", "", "Rome"), record("{} is", 5, "Rome")])
def test_records_that_cannot_be_edited_write_nothing(bad, tmp_path):
    file = write_records(tmp_path / "r.jsonl", record("{} is in", "Hood", "Oregon"), bad)
    edit(tmp_path / "new", "--batch", file, "--method", "memit", "--force", fact=(), how=CHEAP).fails(1)
    assert [f.name for f in tmp_path.iterdir()] == ["r.jsonl"]


def tiny(path, ctx, c=2, f=4):
    """A GPT-2 of one block, with brook's tokenizer and a context of `ctx` tokens."""
    path.mkdir()
    v = json.loads((BROOK / "config.json").read_text())["vocab_size"]
    config = dict(model_type="gpt2", n_embd=c, n_head=1, n_inner=f, n_layer=1, n_positions=ctx, vocab_size=v, activation_function="gelu_new",
                  layer_norm_epsilon=1e-5, tie_word_embeddings=True)
    (path / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(BROOK / name, path)
    rng = np.random.default_rng(1)
    block = {"attn.c_attn": (c, 3 * c), "attn.c_proj": (c, c), "mlp.c_fc": (c, f), "mlp.c_proj": (f, c)}
    tensors = {"wte.weight": rng.normal(size=(v, c)), "wpe.weight": rng.normal(size=(ctx, c)), "ln_f.weight": np.ones(c), "ln_f.bias": np.zeros(c)}
    for name in ("ln_1", "ln_2"):
        tensors |= {f"h.0.{name}.weight": np.ones(c), f"h.0.{name}.bias": np.zeros(c)}
    for name, shape in block.items():
        tensors |= {f"h.0.{name}.weight": rng.normal(size=shape), f"h.0.{name}.bias": np.zeros(shape[1])}
    write(path / "model.safetensors", {f"transformer.{n}": x for n, x in tensors.items()})
    return path


def test_a_context_that_bos_fills(tmp_path):
    """No window has room for text: an end, not a loop."""
    (tmp_path / "t.txt").write_text("The river bends.\n")
    how = ("--layer", 0, "--stats-text", tmp_path / "t.txt", "--ridge", 1, "--no-prefixes", "--model", tiny(tmp_path / "m", 1))
    edit(tmp_path / "x", how=how).fails(1, "BOS fills the model's context of 1: --bos no leaves room")
    edit(tmp_path / "x", "--bos", "no", how=how).fails(1, "layer 0 is the last")  # past the counting
    assert not (tmp_path / "x").exists()


def test_what_another_run_has_just_written_is_replaced_whole(tmp_path):
    """It holds the lock of its directory until it has ended: who takes the directory's place waits, and leaves nothing of it behind."""
    edit(tmp_path / "e", "--force").ok()
    first = os.open(tmp_path / "e", os.O_RDONLY)
    fcntl.flock(first, fcntl.LOCK_EX)
    args = ("rome", "edit", *HOOD, *CHEAP, "--force", "-t", 1, "-q", "-o", tmp_path / "e")
    p = subprocess.Popen([str(BIN / "weir"), *map(str, args)], env=environment(), stdout=subprocess.DEVNULL)
    while os.fstat(first).st_ino == (tmp_path / "e").stat().st_ino:
        time.sleep(0.01)
    assert p.poll() is None and (tmp_path / "e.part").exists()
    os.close(first)
    assert p.wait() == 0 and [f.name for f in tmp_path.iterdir()] == ["e"]
