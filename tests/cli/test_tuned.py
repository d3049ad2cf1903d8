"""Tuned lenses: `weir lens-fit` trains them, `weir logit-lens --tuned` reads through them. Everything is computed again in numpy, in
float64, from hooks that `trace` records."""
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from checkpoints import read
from lenses import Model
from weircli import BIN, BROOK, ROOT, Run, environment, trace, weir

TINY = ROOT / "tests" / "golden" / "models"
SENTENCES = (BROOK / "sentences.txt").read_text().splitlines()
FAST = ("--steps", 16, "--tokens-per-step", 128)


def kl(final, other):
    return (np.exp(final) * (final - other)).sum(-1)


def near(got, want, tolerance=2e-5):
    """None, or what is wrong."""
    error = np.abs(np.asarray(got) - want) / (1 + np.abs(want))
    return None if (error < tolerance).all() else f"off by {error.max():.3g} at {np.argmax(error)}"


def test_near_can_fail():
    assert near([1.0, 2.0], np.array([1.0, 2.0])) is None
    assert near([1.0, 2.001], np.array([1.0, 2.0])) and near([np.nan], np.array([0.0]))


@pytest.fixture(scope="module")
def end():
    """brook's final norm and unembedding, in float64."""
    return Model(BROOK)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    out = tmp_path_factory.mktemp("fit") / "lens"
    run = weir("lens-fit", "-o", out, *FAST, "--json", "--file", BROOK / "sentences.txt").ok()
    return out, run.json, run.err


# --- which documents are held out: FNV-1a over the ids, splitmix64's mix (tools/fit/corpus.c)
MASK = (1 << 64) - 1


def mix(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def is_held_out(ids, share, seed=0):
    h = 0xcbf29ce484222325
    for i in ids:
        h = (h ^ int(i)) * 0x100000001b3 & MASK
    return (mix(h ^ mix(seed)) >> 11) * 2.0**-53 < share


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """Streams of the first sentences: one [docs] list of (ids, [L + 1, n, C])."""
    path = tmp_path_factory.mktemp("stream") / "stream.h5"
    trace("--hooks", "blocks.*.hook_resid_pre,blocks.7.hook_resid_post", "--dump", path, "--", *SENTENCES[:160]).ok()
    with h5py.File(path) as f:
        places = [f"blocks.{l}.hook_resid_pre" for l in range(8)] + ["blocks.7.hook_resid_post"]
        x = np.stack([f["activations"][p][:] for p in places]).astype(float)
        ids = f["tokens/id"][:]
        return [(ids[a:a + n], x[:, a:a + n]) for a, n in zip(f["docs/start"][:], f["docs/count"][:])]


# --- what is trained
def test_better_than_the_plain_lens_at_every_layer(fitted):
    out, said, err = fitted
    assert [k["translator"] for k in said["kl"]] == list(range(8))
    assert all(0 < k["tuned"] < 0.7 * k["plain"] for k in said["kl"])
    assert said["tokens"] >= 16 * 128 and said["held_out_tokens"] > 100 and "the rest of the text is not needed" in err
    assert sorted(p.name for p in out.iterdir()) == ["config.json", "fit.json", "params.safetensors"]
    about = json.loads((out / "fit.json").read_text())
    assert [(k["plain"], k["tuned"]) for k in about["kl"]] == [(k["plain"], k["tuned"]) for k in said["kl"]]
    assert about["fingerprint"] == said["fingerprint"] and about["steps"] == 16 and about["interventions"] == []
    config = json.loads((out / "config.json").read_text())
    assert config["d_model"] == 192 and config["num_hidden_layers"] == 8 and config["lens_type"] == "linear_tuned_lens"


def test_held_out_numbers(end, stream, tmp_path):
    """Plain and tuned loss of exactly the rows that the hash of a document's kept tokens holds out."""
    said = weir("lens-fit", "-o", tmp_path / "lens", "--positions", "-2:", "--steps", 4, "--tokens-per-step", 60, "--json", "--file",
                BROOK / "sentences.txt").ok().json
    t = read(tmp_path / "lens" / "params.safetensors")
    docs = said["documents"] + said["held_out_documents"]
    assert docs <= len(stream)
    held = [x[:, -2:] for ids, x in stream[:docs] if is_held_out(ids[-2:], 0.1)]
    assert len(held) == said["held_out_documents"] > 5
    x = np.concatenate(held, axis=1)
    assert x.shape[1] == said["held_out_tokens"] and said["tokens"] >= 240
    final = end.logprobs(x[8])
    plain = [kl(final, end.logprobs(x[i])).mean() for i in range(8)]
    tuned = [kl(final, end.logprobs(x[i] + x[i] @ t[f"{i}.weight"].T + t[f"{i}.bias"])).mean() for i in range(8)]
    assert near([k["plain"] for k in said["kl"]], np.array(plain)) is None
    assert near([k["tuned"] for k in said["kl"]], np.array(tuned)) is None


def same_lens(a, b):
    about = [json.loads((d / "fit.json").read_text()) for d in (a, b)]
    for x in about:
        x.pop("command_line")
    return all((a / n).read_bytes() == (b / n).read_bytes() for n in ("config.json", "params.safetensors")) and about[0] == about[1]


IDS = "\n".join(" ".join(str((7 * d + 5 * i + d * i) % 61) for i in range(3 + d % 19)) for d in range(40)) + "\n"


@pytest.mark.parametrize("model", ["gemma2", "neox-parallel", "llama-q4_0.gguf"])
def test_result_does_not_depend_on_the_machine(model, tmp_path):
    """Threads, instruction set, and batches so small that documents are run in pieces."""
    ids = "\n".join(" ".join(str(int(i) % 40) for i in line.split()) for line in IDS.splitlines())
    (tmp_path / "ids").write_text(ids)
    common = ("lens-fit", "--model", TINY / model, "--ids", "--bos", "no", "--steps", 5, "--tokens-per-step", 70, "--file", tmp_path / "ids", "-q")
    ways = {"a": (), "b": ("--threads", 1, "--kernel", "ref"), "c": ("--batch", 5, "--threads", 3)}
    for name, more in ways.items():
        weir(*common, "-o", tmp_path / name, *more).ok()
    assert same_lens(tmp_path / "a", tmp_path / "b") and same_lens(tmp_path / "a", tmp_path / "c")
    weir(*common, "-o", tmp_path / "d", "--seed", 1).ok()
    assert not same_lens(tmp_path / "a", tmp_path / "d")


def test_copies_of_a_document_are_on_one_side(tmp_path):
    (tmp_path / "ids").write_text(IDS * 2)
    run = weir("lens-fit", "--model", TINY / "gemma2", "--ids", "--bos", "no", "-o", tmp_path / "lens", "--steps", 40, "--tokens-per-step", 50,
               "--held-out", 0.3, "--json", "--file", tmp_path / "ids").ok().json
    assert run["held_out_documents"] % 2 == 0 and run["documents"] % 2 == 0
    assert run["held_out_documents"] + run["documents"] == 80 and 8 <= run["held_out_documents"] <= 40


def test_positions_choose_rows(tmp_path):
    run = weir("lens-fit", "-o", tmp_path / "lens", "--positions", "last", "--steps", 2, "--tokens-per-step", 20, "--json", "--", *SENTENCES[:60]).ok().json
    assert run["tokens"] == run["documents"] and run["held_out_tokens"] == run["held_out_documents"]


def test_table(tmp_path):
    run = weir("lens-fit", "-o", tmp_path / "lens", "--steps", 1, "--tokens-per-step", 50, stdin="\n".join(SENTENCES[:60]).encode()).ok()
    head, names, *lines = run.out.decode().splitlines()
    assert head.startswith("KL(final || lens)") and names.split()[-3:] == ["plain", "tuned", "ratio"] and len(lines) == 8
    for i, line in enumerate(lines):
        hook, plain, tuned, ratio = line.split()
        assert hook == f"blocks.{i}.hook_resid_pre" and abs(float(tuned) / float(plain) - float(ratio)) < 1e-3
    assert "rows in" in run.err


# --- a lens in use
def cells(*args):
    """[positions][lines] of logit-lens."""
    head, *rows = [json.loads(line) for line in weir("logit-lens", "--format", "ndjson", *args).ok().out.splitlines()]
    return head, [row["lines"] for row in rows]


def test_logit_lens_reads_through_it(fitted, end, stream, tmp_path):
    out, _, _ = fitted
    t = read(out / "params.safetensors")
    ids, x = stream[3]
    final = end.logprobs(x[8])
    want = [end.logprobs(x[i] + x[i] @ t[f"{i}.weight"].T + t[f"{i}.bias"]) for i in range(8)] + [final]
    head, rows = cells("--tuned", out, "-k", 5, SENTENCES[3])
    which = hashlib.sha256((out / "params.safetensors").read_bytes()).hexdigest()
    assert head["lens"] == f"tuned lens of {out} ({which[:12]})" and len(rows) == len(ids)
    assert json.loads((out / "fit.json").read_text())["params_sha256"] == which
    assert [line["line"] for line in head["lines"]] == ["embed", *(f"L{i}" for i in range(7)), "out"]
    for pos, row in enumerate(rows):
        assert near([c["kl"] for c in row], np.array([kl(final[pos], w[pos]) for w in want])) is None
        for cell, w in zip(row, want):
            top = [c["id"] for c in cell["top"]]
            assert near([c["logprob"] for c in cell["top"]], w[pos][top]) is None
            assert top[0] == w[pos].argmax() or near(w[pos][top[0]], w[pos].max()) is None
        assert row[-1]["kl"] == 0
    plain = cells("-k", 5, SENTENCES[3])[1]
    assert all(p[i]["kl"] != c[i]["kl"] for p, c in zip(plain, rows) for i in range(8))
    assert all(p[8][key] == c[8][key] for p, c in zip(plain, rows) for key in ("top", "entropy"))  # the final row is the model's own
    assert cells("--tuned", out, "-k", 5, "--site", "resid-pre", SENTENCES[3])[1][0][3]["kl"] == rows[0][3]["kl"]  # L3 pre, L2 post
    trace("--site", "resid_post", "--layer", "all", "--dump", tmp_path / "d.h5", SENTENCES[3]).ok()
    dumped = cells("--tuned", out, "-k", 5, tmp_path / "d.h5")[1]
    assert [c[-7:] for c in rows] == [c[-7:] for c in dumped]  # without embed, L0 has nothing before it


def test_a_lens_is_known_by_its_bytes(fitted, tmp_path):
    """Another lens in the same place is another lens; a name cannot speak to the terminal."""
    lens = tmp_path / "\x1b[31m\u202e"
    shutil.copytree(fitted[0], lens)
    text = ["--corpus", "--ids", "--docs", "line", "--file", tmp_path / "ids", "--tuned", lens]
    (tmp_path / "ids").write_text("1 2 3\n4 5\n")
    weir("logit-lens", *text, "--shard", "0/2", "-o", tmp_path / "0.h5").ok()
    params = bytearray((lens / "params.safetensors").read_bytes())
    params[-4] ^= 1
    (lens / "params.safetensors").write_bytes(params)
    r = weir("logit-lens", *text, "--shard", "1/2", "-o", tmp_path / "1.h5").ok()
    assert "params.safetensors has other bytes than were fitted: changed, or damaged" in r.err
    weir("logit-lens", "--merge", tmp_path / "0.h5", tmp_path / "1.h5").fails(1, "they differ in the lens: tuned lens of ")
    for form in ("text", "tsv"):
        assert not set(weir("logit-lens", tmp_path / "0.h5", "--format", form).ok().out.decode()) & {"\x1b", "\u202e"}


def test_two_runs_do_not_write_one_lens(tmp_path):
    (tmp_path / "lens.part").mkdir()
    other = os.open(tmp_path / "lens.part", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    fit = ["lens-fit", "-q", "--steps", 1, "--tokens-per-step", 8, "--file", BROOK / "sentences.txt", "-o", tmp_path / "lens"]
    weir(*fit).fails(1, "lens.part", "another run is writing it")
    os.close(other)  # that run is gone, and what it left is replaced
    weir(*fit).ok()
    assert os.listdir(tmp_path) == ["lens"]


def test_other_sites_have_no_translator(fitted):
    for site in ("resid-mid", "attn-out", "resid-post,mlp-out"):
        weir("logit-lens", "--tuned", fitted[0], "--site", site, "x").fails(2, "--tuned", "resid-pre and resid-post")
    weir("logit-lens", "--tuned", fitted[0], "--norm", "cached", "x").fails(2, "--tuned", "--norm")


def test_lens_of_another_model(fitted, tmp_path):
    weir("logit-lens", "--tuned", fitted[0], "--model", TINY / "gpt2", "--ids", "--bos", "no", "1 2 3").fails(1, "d_model", "192", "21")
    weir("logit-lens", "--tuned", tmp_path, "x").fails(1, "config.json", "no such file")
    about = json.loads((fitted[0] / "fit.json").read_text())
    (tmp_path / "lens").mkdir()
    for name in ("config.json", "params.safetensors"):
        (tmp_path / "lens" / name).write_bytes((fitted[0] / name).read_bytes())
    about["fingerprint"] = "0" * 64
    (tmp_path / "lens" / "fit.json").write_text(json.dumps(about))
    run = weir("logit-lens", "--tuned", tmp_path / "lens", "x").ok()
    assert "the lens was fitted to brook, which has other bytes than this model" in run.err
    weir("logit-lens", "--tuned", fitted[0], "x").ok()


# --- complaints
def test_wrong_command_lines(tmp_path):
    lens = tmp_path / "lens"
    weir("lens-fit", "x").fails(2, "-o DIR")
    for share in ("0", "1", "7"):
        weir("lens-fit", "-o", lens, "--held-out", share, "x").fails(2, "--held-out")
    weir("lens-fit", "-o", lens, "--steps", 0, "x").fails(2, "--steps")
    weir("lens-fit", "-o", lens, "--lr", 0, "x").fails(2, "learning rate")
    weir("lens-fit", "-o", lens, "-q", "one document").fails(1, "was held out: more documents")
    (tmp_path / "empty").write_text("\n\n")
    weir("lens-fit", "-o", lens, "-q", "--file", tmp_path / "empty").fails(1, "no row to train on")
    assert not lens.exists() and not (tmp_path / "lens.part").exists()


def test_foreign_directories_are_left_alone(fitted, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    weir("lens-fit", "-o", tmp_path / "notes", "x").fails(1, "notes", "nothing in it says that it is a lens of weir's")
    assert [p.name for p in tmp_path.rglob("*")] == ["notes", "mine.txt"]
    before = (fitted[0] / "params.safetensors").read_bytes()
    (tmp_path / "again").mkdir()
    for name in ("config.json", "params.safetensors", "fit.json"):
        (tmp_path / "again" / name).write_bytes((fitted[0] / name).read_bytes())
    weir("lens-fit", "-o", tmp_path / "again", "--steps", 1, "--tokens-per-step", 20, "-q", "--", *SENTENCES[:60]).ok()
    assert (tmp_path / "again" / "params.safetensors").read_bytes() != before


def test_diverging_rate_is_an_error(tmp_path):
    (tmp_path / "ids").write_text(IDS)
    weir("lens-fit", "--model", TINY / "gpt2", "--ids", "--bos", "no", "-o", tmp_path / "lens", "--lr", "1e38", "--steps", 30, "--tokens-per-step",
         20, "-q", "--file", tmp_path / "ids").fails(1, "not finite")
    assert not (tmp_path / "lens").exists()


def test_interrupted_run_leaves_nothing(tmp_path):
    p = subprocess.Popen([BIN / "weir", "lens-fit", "-o", tmp_path / "lens", "--steps", "100000", "--file", BROOK / "sentences.txt"],
                         env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "held out" in p.stderr.readline()  # it trains from here on
    time.sleep(0.1)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 1 and out == "" and "stopped by signal 2; nothing was written" in err
    assert os.listdir(tmp_path) == []


def test_interventions_are_told(tmp_path):
    run = weir("lens-fit", "-o", tmp_path / "lens", "--steps", 1, "--tokens-per-step", 20, "--ablate", "L2N5", "--json", "--", *SENTENCES[:60]).ok().json
    assert run["interventions"][0]["rows_changed"] > 0
    assert json.loads((tmp_path / "lens" / "fit.json").read_text())["interventions"] != []
