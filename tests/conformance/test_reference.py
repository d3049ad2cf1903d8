"""The reference itself: it is float64, consistent, and its comparison can fail."""

import numpy as np
import pytest

import compare
import models
import mutations
import reference


def close(a, b):
    scale = np.abs(b).max()
    return np.abs(a - b).max() <= 1e-13 * max(scale, 1)


def test_identities_in_float64(loaded):
    """What flows into the stream is what the stream changes by; heads add up; norms are their parts."""
    _, v, _ = loaded.reference(13)
    model = loaded.model64
    roles = reference.ROLES[model.config.model_type]
    for i, block in enumerate(mutations.blocks(model)):
        p = f"blocks.{i}."
        pre, attn, mlp, post = (v[p + k] for k in ("hook_resid_pre", "hook_attn_out", "hook_mlp_out", "hook_resid_post"))
        assert close(pre + attn + mlp, post)
        if p + "hook_resid_mid" in v:
            assert close(pre + attn, v[p + "hook_resid_mid"])
        out = v[p + "attn.hook_result"].sum(axis=1)
        o = getattr(getattr(block, roles["attn"]), roles["o"])
        if o.bias is not None:
            out = out + o.bias.detach().numpy()
        if p + "ln1_post.hook_scale" not in v:
            assert close(out, attn)
        assert close(v[p + "attn.hook_pattern"].sum(axis=2), np.ones_like(v[p + "attn.hook_pattern"].sum(axis=2)))
        norm = getattr(block, roles["ln1"])
        gain = norm.weight.detach().numpy() + (1 if model.config.model_type == "gemma2" else 0)
        shift = norm.bias.detach().numpy() if getattr(norm, "bias", None) is not None else 0
        assert close(v[p + "ln1.hook_normalized"] * gain + shift, v[p + "ln1.hook_out"])


def test_fp32_stays_within_its_own_bound(loaded):
    for n in models.lengths(loaded.case):
        ids, ref64, tol = loaded.reference(n)
        wrong, _ = compare.compare(reference.capture(loaded.model, ids), ref64, tol)
        assert not wrong


def wiggle(values, name, change):
    out = dict(values)
    out[name] = change(values[name].copy())
    return out


def edit(index, value):
    def change(v):
        v[index] = value(v[index])
        return v
    return change


@pytest.mark.parametrize("kind", ["nothing", "value", "nan", "mask", "shape", "missing", "surplus", "row order"])
def test_comparison_can_fail(kind):
    gen = np.random.default_rng(3)
    ref = {"a": gen.normal(size=(5, 7)), "s": np.where(np.tri(5) > 0, gen.normal(size=(5, 5)), -np.inf)[:, None, :]}
    fp32 = {k: v.astype(np.float32) for k, v in ref.items()}
    tol = compare.tolerances(ref, fp32)
    bad = {
        "nothing": fp32,
        "value": wiggle(fp32, "a", edit((3, 2), lambda x: x + np.float32(3e-5 * np.abs(ref["a"][3]).max()))),
        "nan": wiggle(fp32, "a", edit((0, 0), lambda x: np.nan)),
        "mask": wiggle(fp32, "s", edit((2, 0, 1), lambda x: -np.inf)),
        "shape": wiggle(fp32, "a", lambda v: v[:, :-1]),
        "missing": {"a": fp32["a"]},
        "surplus": dict(fp32, b=fp32["a"]),
        "row order": wiggle(fp32, "a", lambda v: v[::-1]),
    }[kind]
    wrong, _ = compare.compare(bad, ref, tol)
    assert bool(wrong) == (kind != "nothing"), [str(w) for w in wrong]


def test_comparison_allows_what_it_says():
    ref = {"a": np.ones((1, 4))}
    tol = compare.tolerances(ref, ref)
    inside = {"a": np.array([[1, 1, 1, 1 + 0.99 * compare.RELATIVE]])}
    outside = {"a": np.array([[1, 1, 1, 1 + 1.01 * compare.RELATIVE]])}
    assert not compare.compare(inside, ref, tol)[0]
    assert compare.compare(outside, ref, tol)[0]
