"""Tokens that neuron-top reads from the weights, against Hugging Face's own modules in float64.

Nothing is taken from weir's formulas: a key's scores are what the model's norm and projection make of each token's embedding, without
their biases and with the norm's scale taken back; a value's are what the down projection, the norms behind it and the head make of the
unit alone. Gains, their offsets, means, embedding scales and sandwich norms are those that the modules have."""
import h5py
import numpy as np
import pytest
import torch

import mutations
import reference
import weirdump

N = 10
BOUND = 2e-5  # of a neuron's largest score: fp32 chains here, Hugging Face's fp32 norms there
KEY = {"gpt2": "c_fc", "gpt_neox": "dense_h_to_4h"}  # else gate_proj


def scale_of(norm, x):
    """What a norm divides by."""
    if isinstance(norm, torch.nn.LayerNorm):
        return (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    eps = norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps
    return (x.square().mean(-1, keepdim=True) + eps).sqrt()


def linear_part(f, x, scale):
    """f without its constant, times the scale of the norm inside it."""
    return (f(x) - f(torch.zeros_like(x[:1]))).double() * scale


def embeddings(loaded):
    """What enters the first block for each token, without positions."""
    ids, ctx = np.arange(loaded.case.vocab), loaded.case.ctx
    rows = [reference.capture(loaded.model64, ids[i:i + ctx].tolist())["hook_embed"] for i in range(0, len(ids), ctx)]
    return torch.tensor(np.concatenate(rows), dtype=torch.float64)


def scores(loaded, layer, e):
    """{side: [F, V]}"""
    m = loaded.model64
    roles = reference.ROLES[m.config.model_type]
    block = mutations.blocks(m)[layer]
    ln2, mlp = getattr(block, roles["ln2"]), block.mlp
    out = {}
    for side, name in (("in", KEY.get(m.config.model_type, "gate_proj")), ("up", roles["up"])):
        if name:
            out[side] = linear_part(lambda x, name=name: getattr(mlp, name)(ln2(x).double()), e, scale_of(ln2, e)).T
    down = getattr(mlp, roles["down"])
    v = linear_part(down, torch.eye(out["in"].shape[0], dtype=torch.float64), 1)
    norms = ([getattr(block, roles["ln2_post"])] if roles["ln2_post"] else []) + [getattr(getattr(m, roles["base"]), roles["ln_final"])]
    for norm in norms:
        v = linear_part(norm, v, scale_of(norm, v))
    out["out"] = linear_part(m.get_output_embeddings(), v, 1)
    return {k: x.numpy() for k, x in out.items()}


def wrong(ids, listed, x, highest):
    """What is wrong with one list, or None. Tokens may change places when their scores are closer than the bound."""
    sign, bound = (1 if highest else -1), BOUND * np.abs(x).max()
    if len(set(ids.tolist())) != len(ids) or ids.min() < 0 or ids.max() >= len(x):
        return f"{ids} are not {len(ids)} tokens"
    if np.abs(x[ids] - listed).max() > bound:
        return f"scores {listed} instead of {x[ids]}"
    if (np.diff(sign * x[ids]) > 2 * bound).any():
        return f"{x[ids]} are not in order"
    rest = np.delete(sign * x, ids)
    if len(rest) and rest.max() > (sign * x[ids]).min() + 2 * bound:
        return f"a token with {sign * rest.max()} is missing; the last is {x[ids][-1]}"
    return None


def found(path, out):
    if not out.exists():
        weirdump.run("neuron-top", "--model", path, "--neurons", "all", "-k", "1", "--ids", "--weights", "yes", "--quiet", "-o", out, "1 2 3")
    with h5py.File(out) as f:
        return {name: {k: d[:] for k, d in g.items() if k.endswith(("_id", "_score"))}
                for name, g in f["neurons"].items() if isinstance(g, h5py.Group)}


def test_every_list(loaded, tmp_path):
    e = embeddings(loaded)
    layers = range(loaded.model.config.num_hidden_layers)
    with torch.inference_mode():
        want = [scores(loaded, layer, e) for layer in layers]
    for i, path in enumerate(loaded.case.paths):
        got = found(path, tmp_path / f"{i}.h5")
        for layer in layers:
            g = got[f"blocks.{layer}.mlp.hook_post"]
            assert {k.split("_")[0] for k in g if k.startswith(("in_", "up_", "out_"))} == set(want[layer])
            for side, x in want[layer].items():
                for end in ("pos", "neg"):
                    ids, listed = g[f"{side}_{end}_id"], g[f"{side}_{end}_score"]
                    assert ids.shape == (len(x), N)
                    bad = [(u, w) for u in range(len(x)) if (w := wrong(ids[u], listed[u], x[u], end == "pos"))]
                    assert not bad, f"{path} layer {layer} {side} {end}: unit {bad[0][0]}: {bad[0][1]}"


@pytest.mark.wants(only=lambda c: len(c.paths) > 1 and c.same_bits)
def test_layouts_give_the_same_bits(case, tmp_path):
    a, b = (found(p, tmp_path / f"{i}.h5") for i, p in enumerate(case.paths))
    for hook, g in a.items():
        for name, x in g.items():
            assert x.tobytes() == b[hook][name].tobytes(), (hook, name)


def test_comparison_can_fail():
    x = np.array([5.0, 1.0, 4.0, -2.0])
    right = np.array([0, 2]), np.array([5.0, 4.0])
    assert wrong(*right, x, True) is None
    assert "in order" in wrong(right[0][::-1], right[1][::-1], x, True)
    assert "missing" in wrong(np.array([0, 1]), np.array([5.0, 1.0]), x, True)
    assert "scores" in wrong(right[0], right[1] + 1e-3, x, True)
    assert "not 2 tokens" in wrong(np.array([0, 0]), np.array([5.0, 5.0]), x, True)
    assert wrong(np.array([3, 1]), np.array([-2.0, 1.0]), x, False) is None
    assert "missing" in wrong(right[0], right[1], x, False) or "in order" in wrong(right[0], right[1], x, False)
