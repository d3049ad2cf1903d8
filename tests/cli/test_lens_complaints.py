"""What users of other lenses have complained of, and the pitfalls of logit lenses (numbers: the project's notes on the field), each as a test of
logit-lens or a word on why it cannot come up. Those that compare numbers with float64 are in test_lens_oracle.py.

Complaint 5 asks for a mask of tokens whose norm is out of proportion: a lens shows each position by itself, and only a scale of colours could
suffer from them (pitfall 9). 13's templates: chat is not there yet; that BOS stands once is. Pitfall 5's logit scales (Cohere, Granite) and 10's
post-norm models (OPT-350m) belong to families that weir does not open."""
import os
import re
import subprocess

import numpy as np
import pytest

from lenses import Model, Rows, compare, oracle, order, tsv
from weircli import BIN, BROOK, ROOT, environment, tokens, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
SENTENCES = [line for line in (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines() if line]
CITY = "The capital city of Colombia is"
IDS = "5 9 13 2 30 31 32 7"


def tiny(name, *more):
    return tsv("--model", MODELS / name, "--ids", *more, IDS)


def rows_of(name, tmp_path, hooks="blocks.*.{hook_resid_pre,hook_resid_post},blocks.*.hook_attn_out"):
    trace("--model", MODELS / name, "--ids", "--hooks", hooks, "--dump", tmp_path / "d.h5", IDS).ok()
    return Model(MODELS / name), Rows(tmp_path / "d.h5")


def numbers(table, line, column):
    return np.array([float(c[column]) for k, c in table.cells.items() if k[2] == line])


# --- complaint 1, pitfall 1: cached statistics make early layers near uniform

def test_c1_the_norm_is_taken_of_each_row_unless_asked():
    usual, cached = tsv(CITY), tsv(CITY, "--norm", "cached")
    assert usual.head["norm"] == "recompute" and cached.head["norm"] == "cached"
    assert numbers(cached, "embed", "entropy").min() > 0.93 * np.log(4096), "the symptom, when it is asked for"
    assert numbers(usual, "embed", "entropy")[1:].mean() < 0.5 * np.log(4096)
    gap = numbers(usual, "out", "logit") - numbers(cached, "L7", "logit")
    assert np.abs(gap).max() < 1e-4 * np.abs(numbers(usual, "out", "logit")).max(), "the last layer is the same either way"


# --- complaint 2, pitfall 2: the last row is the model's, normed once

@pytest.mark.parametrize("name", ["gemma2", "gpt2", "neox-parallel", "mistral-window-f16"])
def test_c2_the_last_row_agrees_with_the_log_probabilities_of_a_run(name, tmp_path):
    """Another way to the same number (to the bit: test_lens_oracle.py): what trace records as each token's log-probability."""
    trace("--model", MODELS / name, "--ids", "--layer", 0, "--logprob", "--dump", tmp_path / "d.h5", IDS).ok()
    import h5py
    with h5py.File(tmp_path / "d.h5") as f:
        want = f["tokens/logprob"][:]
    got = -numbers(tiny(name, "--target", "next"), "out", "ce")
    assert np.allclose(got[:-1], want[1:], rtol=1e-5, atol=1e-6) and np.isnan(got[-1])


# --- complaint 13, pitfall 12: BOS once, and said

def test_c13_bos_stands_once_and_is_printed():
    spelt = weir("tokenize", "--json", CITY).ok().json
    for bos, first in (("yes", "0"), ("no", str(spelt["ids"][0]))):
        t = tsv(CITY, "--bos", bos, "--layers", 7)
        ids = [c["input_id"] for k, c in t.cells.items() if k[2] == "out"]
        assert ids[0] == first and ids.count("0") == (bos == "yes") and t.head["bos"] == (bos == "yes")
        assert f"BOS {bos}" in weir("logit-lens", CITY, "--bos", bos).ok().out.decode().split("\n\n")[0]
    assert tsv(CITY, "--bos", "no", "--layers", 7).cells[0, 2, "out"]["p1"] != tsv(CITY, "--layers", 7).cells[0, 3, "out"]["p1"]


# --- complaint 15: two runs can be compared

def test_c15_the_head_tells_two_runs_apart():
    head = tsv(CITY, "--layers", 7).head
    assert re.fullmatch("[0-9a-f]{64}", head["fingerprint"]) and re.fullmatch("[0-9a-f]{64}", head["tokenizer"])
    assert re.fullmatch("[0-9a-f]{64}", head["source"]["text"][0]["sha256"]) and head["weir"]
    assert tsv(CITY, "--layers", 7, "--batch", 2, "--kernel", "ref").head == head, "what decides nothing does not stand there"
    for change in (["--bos", "no"], ["--ctx", 100], ["--ablate", "L1N1"], ["--norm", "none"], ["--target", "next"], ["--no-softcap"], ["-k", 2]):
        assert tsv(CITY, "--layers", 7, *change).head != head, change
    assert tsv(CITY + " ", "--layers", 7).head["source"] != head["source"]


# --- pitfall 3: nothing is folded or centred

def test_p3_logits_are_the_models_own(tmp_path):
    model, rows = rows_of("gpt2", tmp_path)
    t = tiny("gpt2", "-k", model.V)
    z = oracle(model, rows, order(model, ("resid_post",)))["out"]["z"]
    assert np.abs(z.mean(axis=1)).max() > 0.01, "these are not centred"
    assert np.allclose(numbers(t, "out", "logit"), z.max(axis=1), rtol=1e-5)


# --- pitfall 4: gains and biases belong to the lens

@pytest.mark.parametrize("name, part", [("gpt2", "bias"), ("neox-parallel", "bias"), ("gemma2", "gain")])
def test_p4_gains_and_biases_count(name, part, tmp_path):
    model, rows = rows_of(name, tmp_path)
    t, lines = tiny(name), order(model, ("resid_post",))
    assert compare(t, rows, oracle(model, rows, lines)) == []
    setattr(model, part, getattr(model, part) * 0 if part == "bias" else model.gain - 1)  # Gemma's gain is 1 + what the file has
    assert compare(t, rows, oracle(model, rows, lines)), f"without the {part} it is another lens"


def test_p4_a_gain_that_a_gguf_file_has_whole_is_the_same():
    def cells(path):
        return weir("logit-lens", "--model", path, "--ids", "--format", "tsv", "-q", IDS).ok().out.split(b"\n", 1)[1]

    for name in ("gemma2", "gpt2", "neox-parallel"):
        assert cells(MODELS / f"{name}.gguf") == cells(MODELS / name), name


# --- pitfall 5: a soft cap changes probabilities and no rank

def test_p5_a_soft_cap_keeps_ranks():
    capped, raw = tiny("gemma2", "--target", "next"), tiny("gemma2", "--target", "next", "--no-softcap")
    for key, c in capped.cells.items():
        assert (c["top1_id"], c["rank"]) == (raw.cells[key]["top1_id"], raw.cells[key]["rank"])
    assert np.abs(numbers(capped, "L0", "prob")[:-1] / numbers(raw, "L0", "prob")[:-1] - 1).max() > 1e-3


# --- pitfall 6: scaled embeddings, post-norms

def test_p6_the_first_line_has_the_embedding_as_it_enters(tmp_path):
    """Gemma multiplies it by the root of its width; RMSNorm hides that, no norm shows it. What attention adds is behind its post-norm."""
    model, rows = rows_of("gemma2", tmp_path)
    t = tiny("gemma2", "--norm", "none", "--site", "resid-post,attn-out")
    lines = order(model, ("resid_post", "attn_out"), norm="none")
    assert lines[0][:2] == ("embed", "blocks.0.hook_resid_pre")
    assert compare(t, rows, oracle(model, rows, lines, norm="none")) == []
    rows.hooks["blocks.0.hook_resid_pre"] = rows.hooks["blocks.0.hook_resid_pre"] / np.sqrt(model.head.shape[1])
    wrong = [w for w in compare(t, rows, oracle(model, rows, lines, norm="none")) if "kl_prev" not in w]
    assert wrong and all("'embed')" in w for w in wrong)


# --- pitfall 7: tied embeddings echo the input

def test_p7_what_early_rows_echo_is_not_hidden():
    t = tsv(CITY, "--target", "final")
    echo = [c["top1_id"] == c["input_id"] for k, c in t.cells.items() if k[2] == "embed"]
    assert sum(echo) >= 5, "the row says what it says; --target and --stat look past the echo"
    assert min(float(c["rank"]) for k, c in t.cells.items() if k[2] == "embed") > 1


# --- pitfall 8 (padding): test_lens_tool.py, test_padding_is_named_or_left_out

# --- pitfall 9: the first position does not wreck the colours

def test_p9_the_first_position_has_no_say_in_the_colours():
    def coloured(*args):
        out = weir("logit-lens", CITY, "--stat", "kl", "--layers", "5-7", "--width", 200, "--color", "24bit", *args).ok().out.decode()
        rows = out.split("\n\n")[1]
        return [re.split(r"(?<=\d\.\d\d)(?:\x1b\[0m)? |(?<= \d\d\.\d)(?:\x1b\[0m)? ", row, maxsplit=1) for row in rows.split("\n")[1:4]]

    usual, massive = coloured(), coloured("--scale", "blocks.7.hook_resid_post[0]=-40")
    assert any("48;2;" in rest for _, rest in usual), "there are colours"
    for (_, was), (_, now) in zip(usual, massive, strict=True):
        assert was == now
    assert [a for a, _ in usual] != [a for a, _ in massive], "the first column did change"


# --- pitfall 10 (parallel blocks have no mid stream): test_lens_tool.py, test_what_a_model_lacks_is_said

# --- pitfall 11: memory does not grow with the text, nor with lines times tokens times vocabulary

def test_p11_memory_does_not_grow(tmp_path):
    def peak(sentences, *args):
        (tmp_path / "t.txt").write_text("\n".join(SENTENCES[:sentences]), encoding="utf-8")
        child = subprocess.Popen([str(BIN / "weir"), "logit-lens", "-q", "--file", str(tmp_path / "t.txt"), "-o",
                                  str(tmp_path / "x.tsv"), *args], env=environment(), stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0
        return usage.ru_maxrss

    few, many = peak(30, "--layers", "6,7"), peak(150, "--layers", "6,7")
    assert many < 1.15 * few, (few, many)
    cube = len((tmp_path / "x.tsv").read_bytes().splitlines()) * 4096 * 4 / 1024
    assert many < 0.9 * cube + few, "logits of all cells at once would be more"
