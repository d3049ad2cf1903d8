"""`weir decompose` against Hugging Face's own modules in float64: norm, cosine, share and direct logit attribution of every edit, head and neuron.

Nothing is taken from weir's formulas: a part goes through the model's own final norm and head, without their constants, and with the scale
that the norm made of the part put back to the one that it had in the pass. Heads and neurons are what the output projections make of one
head's z and of one unit alone, through the norms behind them in the same way."""

import json

import numpy as np
import pytest
import torch

import models
import mutations
import reference
import weirdump

BOUND = 1e-4  # of the largest number of its kind: fp32 forward passes here, float64 there


def scale_of(norm, x):
    """What a norm divides by."""
    if isinstance(norm, torch.nn.LayerNorm):
        return (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    eps = norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps
    return (x.square().mean(-1, keepdim=True) + eps).sqrt()


def held(norm, x, scale):
    """The part of a norm's output that is linear in x, its scale held."""
    x = x.double()
    return (norm(x) - norm(torch.zeros_like(x))).double() * scale_of(norm, x) / scale


class Apart:
    """One position of a float64 model, taken apart."""

    def __init__(self, model, values, row):
        self.m, self.row = model, row
        self.roles = reference.ROLES[model.config.model_type]
        self.base = getattr(model, self.roles["base"])
        self.at = lambda name: torch.tensor(values[name][row])
        self.values = values
        self.x = self.at(f"blocks.{model.config.num_hidden_layers - 1}.hook_resid_post")

    def behind(self, layer, which, y):
        block = mutations.blocks(self.m)[layer]
        name, hook = (("ln1_post", "ln1_post.hook_scale") if which == "attn" else ("ln2_post", "ln2_post.hook_scale"))
        if not self.roles[name]:
            return y
        return held(getattr(block, self.roles[name]), y, self.at(f"blocks.{layer}.{hook}"))

    def parts(self):
        """[(kind, layer, unit)], [n, C]"""
        keys, rows = [("embed", None, None)], [self.at("hook_embed")[None]]
        if "hook_pos_embed" in self.values:
            keys.append(("pos_embed", None, None))
            rows.append(self.at("hook_pos_embed")[None])
        for l, block in enumerate(mutations.blocks(self.m)):
            keys += [("attn", l, None), ("mlp", l, None)]
            rows += [self.at(f"blocks.{l}.hook_attn_out")[None], self.at(f"blocks.{l}.hook_mlp_out")[None]]
            down, post = getattr(block.mlp, self.roles["down"]), self.at(f"blocks.{l}.mlp.hook_post")
            bias = {"attn_bias": getattr(block, self.roles["attn"]), "mlp_bias": None}
            one = torch.eye(len(post), dtype=torch.float64)
            neurons = post[:, None] * (down(one) - down(torch.zeros_like(one)))
            for which, kind, y in (("attn", "head", self.at(f"blocks.{l}.attn.hook_result")), ("mlp", "neuron", neurons)):
                keys += [(kind, l, i) for i in range(len(y))]
                rows.append(self.behind(l, which, y))
            for kind, module in (("attn_bias", getattr(bias["attn_bias"], self.roles["o"])), ("mlp_bias", down)):
                if module.bias is not None:
                    keys.append((kind, l, None))
                    rows.append(module.bias[None])
        return keys, torch.cat(rows)

    def measured(self, target, against=None):
        """{key: (norm, cosine, share, logit)}"""
        keys, y = self.parts()
        head, norm = self.m.get_output_embeddings(), getattr(self.base, self.roles["ln_final"])
        row = head.weight[target] - (head.weight[against] if against is not None else 0)
        logit = held(norm, y, self.at("ln_final.hook_scale")) @ row
        size = y.norm(dim=1)
        return dict(zip(keys, torch.stack([size, y @ self.x / (size * self.x.norm()), y @ self.x / self.x.square().sum(), logit], 1).numpy()))


def wrong(got, want):
    """Lines that say what differs. What is as good as 0 has no direction."""
    lines = [f"{key}: only in one" for key in sorted(map(str, got.keys() ^ want.keys()))]
    for i, field in enumerate(("norm", "cosine", "share", "logit")):
        top = max(abs(v[i]) for v in want.values() if np.isfinite(v[i]))
        lines += [f"{key} {field}: {got[key][i]} instead of {want[key][i]}" for key in got.keys() & want.keys()
                  if not (abs(got[key][i] - want[key][i]) <= BOUND * top or field == "cosine" and want[key][0] < 1e-6)]
    return lines


def decompose(path, ids, *args):
    out = json.loads(weirdump.run("weir", "decompose", "--model", path, "--ids", "--bos", "no", "--quiet", "--json", "--heads", "all", "--neurons", "all",
                                  *args, " ".join(map(str, ids))))
    return out["positions"]


def listed(position):
    number = lambda x: np.nan if x is None else x
    return {(p["kind"], p.get("layer"), p.get("unit")): tuple(number(p[k]) for k in ("norm", "cosine", "share", "logit"))
            for p in position["edits"] + position["heads"] + position["neurons"]}


def check(path, model64, ids, values, rows):
    target, against = ids[0], ids[-1] if ids[-1] != ids[0] else (ids[0] + 1)
    for how, args in (((target, None), ("--target", f"#{target}")), ((target, against), ("--contrast", f"#{target},#{against}"))):
        for p in decompose(path, ids, "--positions", ",".join(map(str, rows)), *args):
            row = p["pos"]
            with torch.inference_mode():
                want = Apart(model64, values, row).measured(*how)
            assert not wrong(listed(p), want), (path, row, how, wrong(listed(p), want)[:5])
            logits = values["unembed.hook_out"][row]
            want_logit = logits[target] - (logits[against] if how[1] is not None else 0)
            assert abs(p["sum"]["parts"] - want_logit) <= BOUND * np.abs(logits).max() and p["sum"]["holds"]


@pytest.mark.parametrize("n", [1, 13])
def test_every_part(loaded, n):
    ids, values, _ = loaded.reference(n)
    for path in loaded.case.paths:
        check(path, loaded.model64, ids, values, sorted({0, n - 1}))


def test_smollm2(smollm2, smollm2_model64):
    ids = models.ids_of(smollm2, 9)
    values = reference.capture(smollm2_model64, ids)
    check(smollm2.paths[0], smollm2_model64, ids, values, [8])


@pytest.mark.wants(only=lambda c: c.name in ("gemma2", "gpt2"))
def test_comparison_can_fail(loaded):
    ids, values, _ = loaded.reference(13)
    p, = decompose(loaded.case.paths[0], ids, "--positions", "5", "--target", f"#{ids[0]}")
    with torch.inference_mode():
        at = Apart(loaded.model64, values, 5)
        assert not wrong(listed(p), at.measured(ids[0]))
        assert any("logit" in x for x in wrong(listed(p), at.measured(ids[0] + 1)))
        assert any("norm" in x for x in wrong(listed(p), Apart(loaded.model64, values, 6).measured(ids[0])))
        assert any("only in one" in x for x in wrong({k: v for k, v in listed(p).items() if k[0] != "head"}, at.measured(ids[0])))
