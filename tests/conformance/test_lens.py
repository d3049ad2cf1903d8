"""The logit lens and all its statistics, against a few lines of torch over Hugging Face's float64 values: the final norm's gain
and bias applied, nothing folded or centred, the soft cap applied."""
import json

import numpy as np
import pytest
import torch

import compare
import models
import reference
import weirdump

K = 10
SITES = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")


# --- what must come out
def lens(model, x):
    """Logits of rows of the stream."""
    x = torch.as_tensor(x)
    norm = getattr(getattr(model, reference.ROLES[model.config.model_type]["base"]), reference.ROLES[model.config.model_type]["ln_final"])
    if isinstance(norm, torch.nn.LayerNorm):
        x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias
    else:
        gain = 1 + norm.weight if model.config.model_type == "gemma2" else norm.weight
        x = x / (x.square().mean(-1, keepdim=True) + (norm.eps if hasattr(norm, "eps") else norm.variance_epsilon)).sqrt() * gain
    z = x @ model.get_output_embeddings().weight.T
    cap = getattr(model.config, "final_logit_softcapping", None)
    return cap * torch.tanh(z / cap) if cap else z


def statistics(z, final, before):
    """Of rows z [T, V], against the final rows and those before."""
    p, f = z.log_softmax(-1), final.log_softmax(-1)
    m = torch.logaddexp(p, f) - np.log(2)
    kl = lambda a, b: (a.exp() * (a - b)).sum(-1)
    return {"entropy": -(p.exp() * p).sum(-1), "kl": kl(f, p), "jsd": (kl(p, m) + kl(f, m)) / 2,
            "kl_prev": None if before is None else kl(p, before.log_softmax(-1))}


# --- what comes out
def measured(path, ids, site, *more):
    """(names of the hooks, what each token's record says)"""
    out = weirdump.run("logit-lens", "--model", path, "--ids", "--bos", "no", "--site", site, "--target", "final", "--format", "ndjson", "-k", K,
                       "--ctx", max(len(ids), 2), "--quiet", *more, " ".join(map(str, ids)))
    about, *tokens = map(json.loads, out.splitlines())
    assert [t["input"]["id"] for t in tokens] == list(ids)
    return [line["hook"] for line in about["lines"]], tokens


def wrong_number(what, got, want, bound):
    if got is None or not abs(got - want) <= bound:
        return f"{what} is {got}, not {want:.8g} within {bound:.2g}"
    return None


def wrong_place(what, z, token, rank, near):
    """Tokens may change places when their logits are nearly the same."""
    y = z[token]
    if not 1 + (z > y + near).sum() <= rank <= (z >= y - near).sum():
        return f"{what}: token {token} is no. {rank}, not {1 + int((z > y).sum())}"
    return None


def wrong(line, token, z, want, near):
    """What is wrong with one cell, or None. z [V] and what follows from it; near: how exactly the logits are known."""
    p = z - np.logaddexp.reduce(z)
    bound = 4 * near * (1 + np.abs(p).max())  # how far a sum over ln p can be
    target, following = token["target"]["id"], token["next"]
    checks = [wrong_number("logit", line["logit"], z[target], 2 * near),
              wrong_number("prob", line["prob"], np.exp(p[target]), (4 * near + 1e-6) * np.exp(p[target]) + 1e-37),
              wrong_place("rank", z, target, line["rank"], 2 * near)]
    checks += [wrong_number(k, line[k], want[k], bound + 1e-6 * abs(want[k])) for k in ("entropy", "kl", "jsd")]
    checks += [wrong_number("kl_prev", line["kl_prev"], want["kl_prev"], bound)] if want["kl_prev"] is not None else []
    checks += [wrong_number("ce", line["ce"], -p[following["id"]], 4 * near)] if following else []
    checks += [None if len(line["top"]) == min(K, len(z)) else "too few tokens"]
    for i, t in enumerate(line["top"]):
        checks += [wrong_place("top", z, t["id"], i + 1, 2 * near), wrong_number("top", t["logprob"], p[t["id"]], 4 * near)]
    return next((c for c in checks if c), None)


def compare_site(model64, model32, ref64, ref32, path, ids, site):
    """Every line and token of a site. Returns how many cells were compared."""
    hooks, tokens = measured(path, ids, site)
    with torch.inference_mode():
        z64 = [lens(model64, ref64[h]) for h in hooks]
        z32 = [lens(model32, ref32[h]) for h in hooks]
        same = lambda r: r > 0 and hooks[r].split(".")[-1] == hooks[r - 1].split(".")[-1]
        want = [statistics(z64[r], z64[-1], z64[r - 1] if same(r) else None) for r in range(len(hooks))]
    near = np.stack([compare.tolerance(a.numpy(), b.numpy()) for a, b in zip(z64, z32)]).max(0)  # of all lines of a token
    for r, hook in enumerate(hooks):
        for t, token in enumerate(tokens):
            here = {k: None if v is None else v[t].item() for k, v in want[r].items()}
            bad = wrong(token["lines"][r], token, z64[r][t].numpy(), here, near[t])
            assert not bad, f"{path} {hook} token {t}: {bad}"
    last = z64[-1]
    for t, token in enumerate(tokens):
        end = token["lines"][-1]
        assert end["kl"] == 0 and end["jsd"] == 0
        assert last[t][token["target"]["id"]] >= last[t].max() - 2 * near[t]
    return len(hooks) * len(tokens)


def test_every_site(loaded):
    for n in models.lengths(loaded.case):
        ids, ref64, _ = loaded.reference(n)
        ref32 = reference.capture(loaded.model, ids)
        for site in SITES if n == 13 else SITES[2:3]:
            if not any(k.endswith("hook_" + site) for k in ref64):
                assert site == "resid_mid" and reference.ROLES[loaded.model.config.model_type]["parallel"](loaded.model.config)
                continue
            for path in loaded.case.paths:
                assert compare_site(loaded.model64, loaded.model, ref64, ref32, path, ids, site) > 0


def test_the_last_line_is_the_model(loaded):
    """What the lens makes of the last stream is what Hugging Face's own end makes of it."""
    ids, ref64, _ = loaded.reference(13)
    layers = loaded.model.config.num_hidden_layers
    with torch.inference_mode():
        z = lens(loaded.model64, ref64[f"blocks.{layers - 1}.hook_resid_post"]).numpy()
    own = ref64["hook_logits" if "hook_logits" in ref64 else "unembed.hook_out"]
    assert np.abs(z - own).max() <= 1e-9 * np.abs(own).max()


def test_smollm2(smollm2, smollm2_model, smollm2_model64):
    ids = models.ids_of(smollm2, 9)
    ref64, ref32 = reference.capture(smollm2_model64, ids), reference.capture(smollm2_model, ids)
    for site in ("resid_post", "mlp_out"):
        assert compare_site(smollm2_model64, smollm2_model, ref64, ref32, smollm2.paths[0], ids, site) > 200


# --- each mistake that lenses are known for would be noticed
def mistakes(model, x, f, before, z, want):
    """{what is wrong: (logits, statistics)} of one row of a layer; f: the final row's."""
    with torch.inference_mode():
        roles = reference.ROLES[model.config.model_type]
        norm = getattr(getattr(model, roles["base"]), roles["ln_final"])
        twice = lens(model, norm(x))
        p, q = z.log_softmax(-1), f.log_softmax(-1)
        reverse, jeffreys = (p.exp() * (p - q)).sum(-1), ((p.exp() - q.exp()) * (p - q)).sum(-1) / 2
    return {"norm taken twice": (twice, want), "KL the other way round": (z, {**want, "kl": reverse.item()}),
            "half of Jeffreys' divergence for JSD": (z, {**want, "jsd": jeffreys.item()}),
            "bits for nats": (z, {**want, "entropy": want["entropy"] / np.log(2)})}


@pytest.mark.wants(only=lambda c: c.name == "brook")
def test_mistakes_are_noticed(loaded):
    ids, ref64, _ = loaded.reference(13)
    hooks, tokens = measured(loaded.case.paths[0], ids, "resid_post")
    r, t = 3, 5
    x = torch.as_tensor(ref64[hooks[r]][t:t + 1])
    with torch.inference_mode():
        z, f, before = (lens(loaded.model64, ref64[h][t:t + 1]) for h in (hooks[r], hooks[-1], hooks[r - 1]))
    want = {k: v.item() for k, v in statistics(z, f, before).items()}
    line = tokens[t]["lines"][r]
    check = lambda line, z, want: wrong(line, tokens[t], z[0].numpy(), want, 1e-4)
    assert check(line, z, want) is None
    for name, (bad_z, bad_want) in mistakes(loaded.model64, x, f, before, z, want).items():
        assert check(line, bad_z, bad_want), name
    assert "rank" in check({**line, "rank": line["rank"] - 1}, z, want)
    assert "top" in check({**line, "top": line["top"][::-1]}, z, want)
    assert check({**line, "top": line["top"][:-1]}, z, want) == "too few tokens"
