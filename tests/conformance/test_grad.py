"""Gradients at every hook point against torch's autograd through Hugging Face's own code, in float64: a zero that requires a gradient is
added at each point.

The bound is that of the forward pass (compare.py): 4 x the error of fp32 gradients by torch, or 8e-6 of the row's largest. Two things are
different. The error is the largest of the hook, not that of the row: rows whose gradient nearly cancels (a norm's scale has one number a row)
are exact or not by luck, in torch as here. And there are several fp32 runs: torch as it is, torch with every point's values off by 2^-22 of
themselves at random, which shows what rounding does to a gradient that many layers pass on, and for SmolLM2, as for its forward pass, torch
with every dot product one chain of fp32 additions, forward and backward, as in weir (row 0 of layer 0, where the attention of 30 layers
looks, is a sum of large numbers that nearly cancel)."""
import contextlib
import os
import sys
from unittest import mock

import numpy as np
import pytest
import torch

import compare
import edited
import models
import reference
import weirdump

sys.path.insert(0, str(models.ROOT / "tests" / "grad"))
from probe import Probe  # noqa: E402

TOKENS = 13
NEAR = ({}, {"noise": 2.0 ** -22})  # the fp32 runs whose largest error makes the bound
DEEP = NEAR + ({"chain": 1},)       # and those of SmolLM2
FEW = ("brook", "llama-gqa-bf16", "gemma2", "neox-parallel", "qwen3")


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    build = os.environ.get("WEIR_BUILD")
    if not build:  # beside the programs that are tested
        bin_dir = os.path.abspath(os.environ["WEIR_BIN"])
        os.environ["WEIR_BUILD"] = os.path.join(bin_dir, os.pardir, "release") if os.path.basename(os.path.dirname(bin_dir)) == "build" else \
            os.path.dirname(bin_dir)
    return Probe(tmp_path_factory.mktemp("grad"))


class Leaves:
    """Edits of edited.py: at each name what a hook there would do, and then the zero whose gradient is asked for."""

    def __init__(self, names, changes, noise):
        self.names, self.changes, self.noise, self.zero = set(names), changes, noise, {}
        self.random = torch.Generator().manual_seed(1)

    def __contains__(self, name):
        return name in self.names

    def __getitem__(self, name):
        def change(x, first):
            with torch.no_grad() if not torch.is_grad_enabled() else contextlib.nullcontext():
                if name in self.changes:
                    x = self.changes[name](x)
                self.zero[name] = torch.zeros_like(x, requires_grad=True)
                if self.noise:
                    finite = torch.where(torch.isfinite(x), x, torch.zeros_like(x)).detach()
                    x = x + finite * torch.randn(x.shape, generator=self.random, dtype=x.dtype) * self.noise
                return x + self.zero[name]
        return change


class Graded(edited.Edited):
    def forward(self, ids):
        with torch.enable_grad():
            self.logits = super().forward(ids)
        return self.logits


def loss_of(logits, terms):
    lp, total = torch.log_softmax(logits[0], -1), 0
    for kind, row, token, weight, log_q in terms:
        if kind == "kl":
            total = total + weight * (lp[row].exp() * (lp[row] - torch.tensor(log_q, dtype=lp.dtype))).sum()
        else:
            total = total + weight * (-lp[row, token] if kind == "nll" else logits[0, row, token])
    return total


class ChainLinear(torch.autograd.Function):
    """F.linear whose products are chains, and so are those of its derivative."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(weight)
        return chain_linear(x, weight, bias)

    @staticmethod
    def backward(ctx, d):
        return chain_linear(d, ctx.saved_tensors[0].T), None, None


chain_linear = reference.chain_linear


def in_chains(x, weight, bias=None, step=1):
    return ChainLinear.apply(x, weight, bias)


def autograd(model, ids, names, terms, changes=None, noise=0, chain=0):
    """{name: gradient [T, ...]} and the loss."""
    for p in model.parameters():
        p.requires_grad_(False)
    leaves = Leaves(names, changes or {}, noise)
    run = Graded(model.eval(), leaves)
    with mock.patch.object(reference, "chain_linear", in_chains):
        run.run(ids, chain)
    with torch.enable_grad():
        loss = loss_of(run.logits, terms)
    order = list(leaves.zero)
    got = torch.autograd.grad(loss, [run.logits] + [leaves.zero[n] for n in order])
    grads = {n: g.numpy() for n, g in zip(order, got[1:])}
    for n in grads:
        if n.endswith("hook_pattern"):  # a masked key has no part in anything, whatever is added to its zero
            seen = np.isfinite(run.values[n.replace("hook_pattern", "hook_attn_scores")][0])
            grads[n] = grads[n] * seen.reshape(grads[n].shape)
    if getattr(model.config, "final_logit_softcapping", None):
        grads["hook_logits"] = got[0][0].numpy()
    return grads, float(loss.detach())


def terms_of(vocab, tokens):
    rng = np.random.default_rng(2)
    log_q = torch.log_softmax(torch.tensor(rng.normal(size=vocab)), -1).numpy()
    last = tokens - 1
    return [("nll", last // 2, 3, 1.0, None), ("logit", last, 5, 1.0, None), ("logit", last, 7, -1.0, None), ("kl", last - 1, 0, 2.0, log_q.astype(np.float32)),
            ("nll", last - 1, 9, 0.5, None)]


def names_of(path):
    """Points that torch can be asked about: hook_result is no tensor of Hugging Face's."""
    return [n for n in weirdump.points(path) if not n.endswith(("hook_result", "hook_logits"))]


def tolerances(want, near):
    """{name: [T]}: compare.py's bound, with the largest error of the hook for that of the row."""
    return {n: np.maximum(compare.tolerance(w, *(one[n] for one in near)), compare.FACTOR * max(compare.row_error(one[n], w).max() for one in near))
            for n, w in want.items()}


def check(case, probe, model, model64, paths, changes=None, lines=(), names=None, near=NEAR):
    ids = models.ids_of(case, TOKENS)
    terms = terms_of(case.vocab, TOKENS)
    names = names or names_of(paths[0])
    want, loss = autograd(model64, ids, names, terms, changes)
    tol = tolerances(want, [autograd(model, ids, names, terms, changes, **how)[0] for how in near])
    used = 0
    for path in paths:
        got = probe.ask(path, *lines, *(f"want {n}" for n in want), "seq -1 " + " ".join(map(str, ids)), terms=terms)
        assert got["loss"] == pytest.approx(loss, rel=1e-4), path
        rows = {n: got["grad:" + n] for n in want}
        wrong, parts = compare.compare(rows, {n: v.reshape(TOKENS, -1) for n, v in want.items()}, tol)
        assert not wrong, f"{path}: " + "; ".join(map(str, wrong[:5])) + f" ({len(wrong)} of {len(want)})"
        used = max(used, *parts.values())
    return used


def test_every_point(case, loaded, probe):
    check(case, probe, loaded.model, loaded.model64, case.paths)


@pytest.mark.wants(only=lambda c: c.name == "gpt2")
def test_a_wrong_gradient_is_noticed(case, loaded):
    """The bound is worth something: one element changed by 1e-4 of the hook's largest."""
    ids, terms = models.ids_of(case, TOKENS), terms_of(case.vocab, TOKENS)
    names = names_of(case.paths[0])
    want, _ = autograd(loaded.model64, ids, names, terms)
    tol = tolerances(want, [autograd(loaded.model, ids, names, terms, **how)[0] for how in NEAR])
    for n, v in want.items():
        x = v.reshape(TOKENS, -1).copy()
        x[5, 0] += 1e-4 * np.abs(x).max()
        wrong, _ = compare.compare({n: x}, {n: v.reshape(TOKENS, -1)}, tol)
        assert wrong, n


def put(x, index, value):
    x = x.clone()
    x[index] = value
    return x


@pytest.mark.wants(only=lambda c: c.name in FEW)
def test_through_interventions(case, loaded, probe):
    lines = ("hook scale blocks.0.hook_mlp_out=-1.5", "hook ablate blocks.1.attn.hook_z[:,1]", "hook scale blocks.1.ln2.hook_scale=0.8",
             "hook scale blocks.0.attn.hook_pattern[5,0]=0.25")
    size = loaded.model.config.head_dim if getattr(loaded.model.config, "head_dim", None) else \
        loaded.model.config.hidden_size // loaded.model.config.num_attention_heads
    heads = loaded.model.config.num_attention_heads

    def pattern(x):
        x = x.clone().reshape(TOKENS, heads, -1)
        x[5, 0] = x[5, 0] * 0.25
        return x.reshape(TOKENS, -1)
    changes = {"blocks.0.hook_mlp_out": lambda x: -1.5 * x, "blocks.1.attn.hook_z": lambda x: put(x, (slice(None), slice(size, 2 * size)), 0),
               "blocks.1.ln2.hook_scale": lambda x: 0.8 * x, "blocks.0.attn.hook_pattern": pattern}
    check(case, probe, loaded.model, loaded.model64, case.paths[:1], changes, lines)


def test_smollm2(smollm2, smollm2_model, smollm2_model64, probe):
    names = [n for n in names_of(smollm2.paths[0]) if not n.startswith("blocks.") or n.split(".")[1] in ("0", "15", "29")]
    check(smollm2, probe, smollm2_model, smollm2_model64, smollm2.paths, names=names, near=DEEP)
