"""Tokens that neuron-top reads from brook's weights, against numpy: the formulas of weir/neurons.h over the checkpoint's own bytes."""
import h5py
import numpy as np
import pytest

from checkpoints import weights
from weircli import BROOK, weir

LAYER, TEXT = 5, "The king lived in France."


# --- the oracle

@pytest.fixture(scope="module")
def scores():
    w = {name.removeprefix("transformer."): x for name, x in weights(BROOK).items()}
    e, h = w["wte.weight"], f"h.{LAYER}."
    centred = lambda x: x - x.mean(axis=-1, keepdims=True)
    return {"in": (centred(e) * w[h + "ln_2.weight"] @ w[h + "mlp.c_fc.weight"]).T,
            "out": centred(w[h + "mlp.c_proj.weight"]) * w["ln_f.weight"] @ e.T}


def wrong(ids, listed, x, highest):
    """A list against all scores of its neuron; tokens closer than fp32 can tell may change places."""
    sign, bound = (1 if highest else -1), 1e-5 * np.abs(x).max()
    order = np.sort(sign * x)[::-1][:len(ids)]
    if len(set(ids.tolist())) != len(ids):
        return "a token twice"
    if np.abs(x[ids] - listed).max() > bound:
        return "scores"
    if np.abs(sign * x[ids] - order).max() > bound:
        return "tokens"
    if (np.diff(sign * listed) > 0).any():
        return "order"
    return None


def lists(path, layer=LAYER, site="hook_post"):
    with h5py.File(path) as f:
        g = f[f"neurons/blocks.{layer}.mlp.{site}"]
        return {k: g[k][:] for k in g if k.split("_")[0] in ("in", "up", "out")}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """All neurons of the layer."""
    out = tmp_path_factory.mktemp("weights") / "all.h5"
    weir("neuron-top", "--layer", LAYER, "--neurons", "all", "-k", 1, "--weights", "yes", "-o", out, TEXT).ok()
    return lists(out)


def test_every_neuron(found, scores):
    assert sorted(found) == sorted(f"{s}_{e}_{w}" for s in ("in", "out") for e in ("pos", "neg") for w in ("id", "score"))
    for side, x in scores.items():
        for end in ("pos", "neg"):
            ids, listed = found[f"{side}_{end}_id"], found[f"{side}_{end}_score"]
            assert ids.shape == (768, 10)
            assert not [u for u in range(768) if wrong(ids[u], listed[u], x[u], end == "pos")]


def test_comparison_can_fail(scores):
    x = scores["in"][7]
    ids = np.argsort(-x)[:10]
    assert wrong(ids, x[ids], x, True) is None
    assert wrong(ids, x[ids] * 1.01, x, True) == "scores"
    other = np.argsort(-x)[1:11]
    assert wrong(other, x[other], x, True) == "tokens"
    assert wrong(ids, x[ids], x, False) == "tokens"
    assert wrong(np.repeat(ids[:1], 10), np.repeat(x[ids[:1]], 10), x, True) == "a token twice"


@pytest.mark.parametrize("how", [("--kernel", "ref", "--threads", 1), ("--threads", 3), ("--batch", 16), ("--memory", "8M")])
def test_same_bits(found, tmp_path, how):
    out = tmp_path / "a.h5"
    weir("neuron-top", "--layer", LAYER, "--neurons", "3,421", "-k", 1, "--weights", "yes", *how, "-o", out, TEXT).ok()
    for name, x in lists(out).items():
        assert x.tobytes() == found[name][[3, 421]].tobytes(), name


def test_only_hidden_units_have_sides(tmp_path, found):
    out = tmp_path / "sites.h5"
    weir("neuron-top", "--layer", LAYER, "--neurons", "142", "--site", "pre,resid_post", "--site", "post", "-k", 1, "--weights", "yes",
         "-o", out, TEXT).ok()
    assert all((x[0] == found[name][142]).all() for name, x in lists(out, site="hook_pre").items())
    assert lists(out, site="hook_pre").keys() == lists(out).keys() == found.keys()
    with h5py.File(out) as f:
        assert not [k for k in f[f"neurons/blocks.{LAYER}.hook_resid_post"] if k.startswith(("in_", "out_"))]
