"""weir heads: against patterns that trace records of the same sequences, made here once more."""
import json

import h5py
import numpy as np
import pytest

from checkpoints import copy_with
from weircli import BROOK, ROOT, trace, weir

MASK = (1 << 64) - 1


def random_ids(seed, usable, size):
    """splitmix64 (Steele, Lea and Flood 2014), drawn again until the token is one of text."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        i = (z ^ z >> 31) % size
        if usable(i):
            yield i


def expected(tmp_path, model, seqs, first, n, ctx):
    text = "\n".join(" ".join(map(str, s)) for s in seqs)
    dump = tmp_path / "p.h5"
    trace("--model", model, "--ids", "--bos", "no", "--file", "-", "--hooks", "*pattern", "--dump", dump, "--force",
          stdin=text.encode()).ok()
    scores = {}
    with h5py.File(dump) as f:
        for name in f["activations"]:
            p = f["activations"][name][:].astype(float).reshape(len(seqs), first + 2 * n, -1, ctx)
            t = np.arange(first + 1, first + 2 * n)
            late = np.arange(first + n, first + 2 * n)
            layer = int(name.split(".")[1])
            for h in range(p.shape[2]):
                scores[layer, h] = (p[:, t, h, t - 1].mean(), p[:, late, h, late - n].mean(), p[:, late, h, late - n + 1].mean())
    return scores


def check(lines, want):
    got = {(x["layer"], x["head"]): (x["previous"], x["duplicate"], x["induction"]) for x in lines}
    assert got.keys() == want.keys()
    for head, scores in want.items():
        assert got[head] == pytest.approx(scores, rel=1e-9, abs=1e-12), head


def brook_sequences(n, count, seed):
    vocab = json.loads((BROOK / "tokenizer.json").read_text())
    special = {t["id"] for t in vocab["added_tokens"] if t["special"]}
    size = max(list(vocab["model"]["vocab"].values()) + [t["id"] for t in vocab["added_tokens"]]) + 1
    draw = random_ids(seed, lambda i: i not in special, size)
    parts = [[next(draw) for _ in range(n)] for _ in range(count)]
    return [[min(special)] + p + p for p in parts]


def ask(*args):
    return weir("heads", "--format", "ndjson", *args).ok()


def test_scores_are_means_of_patterns(tmp_path):
    want = expected(tmp_path, BROOK, brook_sequences(7, 3, 5), 1, 7, 256)
    args = ("--length", "7", "--sequences", "3", "--seed", "5")
    r = ask(*args)
    check([json.loads(x) for x in r.out.splitlines()], want)
    with pytest.raises(AssertionError):  # the check can fail
        wrong = dict(want)
        wrong[0, 0] = tuple(x + 1e-6 for x in want[0, 0])
        check([json.loads(x) for x in r.out.splitlines()], wrong)
    assert ask(*args, "--threads", "1", "--kernel", "ref").out == r.out
    assert ask(*args[:-1], "6").out != r.out
    tsv = weir("heads", "--format", "tsv", *args).ok().out.decode().splitlines()
    assert tsv[0] == "layer\thead\tprevious\tduplicate\tinduction" and len(tsv) == 1 + len(want)
    one = weir("heads", "--json", "--layer", "3", *args).ok().json
    assert {(x["layer"], x["head"]) for x in one["heads"]} == {h for h in want if h[0] == 3}
    check(one["heads"], {h: s for h, s in want.items() if h[0] == 3})


@pytest.mark.parametrize("model", ["gemma2", "neox-parallel", "gpt2"])
def test_models_without_a_tokenizer(tmp_path, model):
    path = ROOT / "tests/golden/models" / model
    config = json.loads((path / "config.json").read_text())
    if (path / "tokenizer.json").exists():
        pytest.fail("this test wants a model without a tokenizer")
    draw = random_ids(0, lambda i: True, config["vocab_size"])
    parts = [[next(draw) for _ in range(4)] for _ in range(2)]
    ctx = config.get("max_position_embeddings") or config.get("n_positions")
    want = expected(tmp_path, path, [p + p for p in parts], 0, 4, ctx)
    check([json.loads(x) for x in ask("--model", path, "--length", "4", "--sequences", "2").out.splitlines()], want)


def test_text_names_the_best_of_each_kind():
    lines = weir("heads", "-k", "2").ok().out.decode().splitlines()
    all_heads = weir("heads", "--json").ok().json["heads"]
    for kind, line in zip(("previous", "duplicate", "induction"), lines[2::2]):
        best = sorted(all_heads, key=lambda x: -x[kind])[:2]
        assert line.split() == [w for x in best for w in (f"L{x['layer']}H{x['head']}", f"{x[kind]:.3f}")]


def test_an_intervention_is_seen():
    plain = weir("heads", "--json", "--length", "20").ok().json
    without = weir("heads", "--json", "--length", "20", "--ablate", "L1H3").ok().json
    assert without["interventions"][0]["rows_changed"] > 0 and without["heads"] != plain["heads"]


def test_scores_that_are_no_numbers_come_last(tmp_path):
    """A NaN in the query weights of L0H0 of a model of two layers: its other heads still have scores."""
    path = copy_with(ROOT / "tests/golden/models/gpt2", tmp_path / "nan", "h.0.attn.c_attn.weight", (0, 0), np.nan)
    lines = weir("heads", "--model", path, "--length", "5", "-k", "9").ok().out.decode().splitlines()
    for line in lines[2::2]:
        scores = line.split()[1::2]
        n = scores.index("nan") if "nan" in scores else len(scores)
        assert 0 < n < len(scores) and all(x == "nan" for x in scores[n:]) and scores[:n] == sorted(scores[:n], key=float, reverse=True)


def test_complaints(tmp_path):
    weir("heads", "some text").fails(2, "some text")
    weir("heads", "--length", "128").fails(2, "--length 128", "context of 256")
    weir("heads", "--layer", "99").fails(2, "--layer")
    mine = tmp_path / "mine"
    mine.write_text("x")
    weir("heads", "-o", mine).fails(1, "mine exists")
