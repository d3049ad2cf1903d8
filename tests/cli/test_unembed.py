"""weir unembed: against numpy over the checkpoint's own bytes, and against the lens."""
import json
import re

import h5py
import numpy as np
import pytest

from checkpoints import weights
from weircli import BROOK, ROOT, trace, weir


@pytest.fixture(scope="module")
def brook():
    return {name.removeprefix("transformer."): x for name, x in weights(BROOK).items()}


def scores(w, x):
    """A direction in a stream of scale 1, GPT-2's way: centred, times the gain, through the tied unembedding."""
    return (x - x.mean()) * w["ln_f.weight"] @ w["wte.weight"].T


def check(found, x, key, both=True):
    bound = 1e-5 * np.abs(x).max()
    for end, sign in (("top", 1), ("bottom", -1)) if both else (("top", 1),):
        ids = [t["id"] for t in found[end]]
        listed = np.array([t[key] for t in found[end]])
        assert len(set(ids)) == len(ids)
        assert np.abs(x[ids] - listed).max() <= bound
        assert np.abs(np.sort(sign * x)[::-1][:len(ids)] - sign * x[ids]).max() <= bound


def test_a_neuron_by_its_value(brook):
    x = scores(brook, brook["h.5.mlp.c_proj.weight"][12])
    found = weir("unembed", "L5N12", "-k", "30", "--format", "ndjson").ok().json
    check(found, x, "score")
    with pytest.raises(AssertionError):  # another neuron's: the check can fail
        check(found, scores(brook, brook["h.5.mlp.c_proj.weight"][13]), "score")
    vocab = {i: t for t, i in json.loads((BROOK / "tokenizer.json").read_text())["model"]["vocab"].items()}
    assert [t["text"].replace(" ", "Ġ") for t in found["top"]][:3] == [vocab[t["id"]] for t in found["top"]][:3]


def test_rows_of_a_file(tmp_path, brook):
    rows = np.random.default_rng(3).normal(size=(3, brook["ln_f.weight"].size)).astype("f4")
    np.save(tmp_path / "v.npy", rows)
    found = [json.loads(line) for line in weir("unembed", tmp_path / "v.npy", "--format", "ndjson").ok().out.splitlines()]
    assert [f["row"] for f in found] == [0, 1, 2]
    for f, x in zip(found, rows.astype(float)):
        check(f, scores(brook, x), "score")
    check(weir("unembed", f"{tmp_path}/v.npy@1*-2", "--json").ok().json, scores(brook, -2 * rows[1].astype(float)), "score")
    for more in (("--threads", "1"), ("--kernel", "ref")):
        assert weir("unembed", tmp_path / "v.npy", "--json", *more).ok().out == weir("unembed", tmp_path / "v.npy", "--json").ok().out


def test_as_a_row_it_is_the_models_prediction(tmp_path):
    dump = tmp_path / "d.h5"
    trace("--layer", "7", "--site", "resid_post", "--hooks", "unembed.hook_out", "--positions", "last", "--dump", dump,
          "Boulder is in the state of").ok()
    with h5py.File(dump) as f:
        logits = f["activations/unembed.hook_out"][0].astype(float)
    p = np.exp(logits - logits.max())
    found = weir("unembed", "--as", "row", f"{dump}::blocks.7.hook_resid_post", "--json").ok().json
    check(found, p / p.sum(), "prob", both=False)
    assert "bottom" not in found


@pytest.mark.parametrize("model", ["gemma2", "neox-parallel", "llama-gqa-bf16"])
def test_models_without_a_tokenizer_name_ids(tmp_path, model):
    path = ROOT / "tests/golden/models" / model
    text = weir("unembed", "--model", path, "L1N3", "-k", "2").ok().out.decode()
    assert text.count("<#") == 4


def test_text_and_table(tmp_path):
    text = weir("unembed", "L5N12", "L5N13", "-k", "2").ok().out.decode().splitlines()
    assert text[0].startswith("L5N12:") and text[3] == "" and text[4].startswith("L5N13:") and len(text) == 7
    many = weir("unembed", "L5N12", "-k", "900").ok().out.decode().splitlines()[1:]
    assert all(re.fullmatch(r' *\d+ +[+-]\d+\.?\d* "[^"]*.*" + [+-]\d+\.?\d* ".*"', line) for line in many)
    assert sum("\\x" in line for line in many) > 0, "bytes that are no text are shown as bytes"
    table = weir("unembed", "L5N12", "-k", "2", "--format", "tsv").ok().out.decode().splitlines()
    assert table[0].split("\t") == ["vector", "end", "rank", "id", "score", "text"] and len(table) == 5
    one = weir("unembed", "L5N12", "-k", "2", "--json").ok().json
    assert [int(x.split("\t")[3]) for x in table[1:]] == [t["id"] for t in one["top"] + one["bottom"]]


def test_complaints(tmp_path):
    weir("unembed").fails(2, "which vector")
    weir("unembed", "L99N1").fails(2, "L99N1", "layers 0 to 7")
    weir("unembed", "L1N99999").fails(2, "L1N99999", "neuron 99999")
    weir("unembed", tmp_path / "none.npy").fails(1, "none.npy")
    np.save(tmp_path / "short.npy", np.zeros(5, "f4"))
    weir("unembed", tmp_path / "short.npy").fails(2, "short.npy", "5 numbers", "wide")
    weir("unembed", "L1N1", tmp_path / "short.npy", "--format", "tsv").fails(2, "short.npy")  # before anything is written
    (tmp_path / "mine").write_text("x")
    weir("unembed", "L1N1", "-o", tmp_path / "mine").fails(1, "mine exists")
