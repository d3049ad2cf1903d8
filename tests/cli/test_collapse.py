"""weir collapse: every number against the float64 model of tests/grad/model64.py and numpy, on the trained weights and on the random ones
that the tool saves; and what must fail."""
import sys

import numpy as np
import pytest

from weircli import BROOK, ROOT, weir

sys.path.insert(0, str(ROOT / "tests" / "grad"))
from model64 import Model  # noqa: E402

MODELS = ROOT / "tests" / "golden" / "models"
CELLS = {"attention": ("skip", "mlp"), "attention+skip": ("mlp",), "attention+mlp": ("skip",), "whole": ()}
IDS = "5 9 14 3 27 8 8 41 40 2"


def without(parts, seen, norms=True):
    """An edit for Model.run: the stream is what it would be without these parts; its values go into seen."""
    at = {}

    def see(name, x):
        site = name.split(".")[-1]
        if not norms:
            if name.endswith("hook_resid_pre"):
                at["stream"] = x
            if name.endswith(("ln1.hook_out", "ln2.hook_out")):
                x = at["stream"]
            if "_post.hook_scale" in name:
                at["scale"] = x
            if "_post.hook_normalized" in name:
                at["unnormed"] = x * at["scale"]
            if site in ("hook_attn_out", "hook_mlp_out") and "unnormed" in at:
                x = at.pop("unnormed")
        if site == "hook_mlp_out" and "mlp" in parts:
            x = 0 * x
        if site == "hook_attn_out":
            at["attn"], at["mid"] = x, False
        if site == "hook_mlp_out":
            at["mlp"] = x
        if "skip" in parts and site == "hook_resid_mid":
            x, at["mid"] = at["attn"], True
        if site == "hook_resid_mid":
            at["stream"] = x
        if "skip" in parts and site == "hook_resid_post":
            x = at["mlp"] if at["mid"] and "mlp" not in parts else at["attn"] if at["mid"] else at["attn"] + at["mlp"]
        seen[name] = x
        return x
    return see


def composite(x):
    return np.sqrt(np.abs(x).sum(0).max() * np.abs(x).sum(1).max())


def numbers(x):
    """What a line says of a matrix."""
    rest, unit = x - x.mean(0), x / np.linalg.norm(x, axis=1)[:, None]
    cosine = unit @ unit.T
    n = len(x)
    return {"norm": composite(x), "rest": composite(rest), "relative": composite(rest) / composite(x),
            "norm_fro": np.linalg.norm(x), "rest_fro": np.linalg.norm(rest), "relative_fro": np.linalg.norm(rest) / np.linalg.norm(x),
            "cosine": (cosine.sum() - np.trace(cosine)) / (n * (n - 1)), "singular": np.linalg.svd(x)[1][:4],
            "rest_singular": np.linalg.svd(rest)[1][:4]}


def stream(m, ids, parts, norms):
    seen = {}
    m.run(ids, without(parts, seen, norms))
    return [seen["blocks.0.hook_resid_pre"]] + [seen[f"blocks.{l}.hook_resid_post"] for l in range(m.L)]


def check_grid(lines, matrices, where, bound):
    assert len(lines) == len(matrices)
    for line, x in zip(lines, matrices):
        if line["lost"]:  # products of small numbers that fp32 rounds to 0
            assert np.abs(x).max() < 1e-37, (where, line["layer"])
            continue
        own = numbers(x)
        for key, expected in own.items():
            scale = np.max(own["singular"]) if "singular" in key else np.abs(expected)
            assert np.allclose(line[key], expected, rtol=0, atol=bound * scale + (1e-6 if key == "cosine" else 1e-36)), (where, line["layer"], key, line[key], expected)


@pytest.mark.parametrize("model, norms", [("brook", True), ("gpt2", False), ("neox-parallel", True), ("neox-parallel", False),
                                          ("gemma2", True), ("gemma2", False)])
def test_grid_against_numpy(tmp_path, model, norms):
    path = BROOK if model == "brook" else MODELS / model
    args = [] if norms else ["--no-norms"]
    got = weir("collapse", "--what", "grid", "--model", path, "--bos", "no", "--ids", "--json", "--save", tmp_path / "random", *args, IDS).ok().json
    assert got["format"] == "weir-collapse" and got["rows"] == 10 and got["windows"] == 1
    ids = np.array(IDS.split(), int)
    for kind, of in (("trained", path), ("random", tmp_path / "random")):
        m = Model(of)
        for cell, parts in CELLS.items():
            check_grid(got["grid"][kind][cell], stream(m, ids, parts, norms), (model, kind, cell, norms), 3e-4 if norms else 2e-3)  # scores grow without norms


def test_means_over_windows():
    """Of several documents each window counts alike; one of a single row does not count."""
    docs = [IDS, "3 4 5 6", "7"]
    got = weir("collapse", "--what", "grid", "--weights", "trained", "--bos", "no", "--ids", "--json", stdin="\n".join(docs).encode()).ok().json
    assert got["windows"] == 2 and got["windows_of_one_row"] == 1 and got["rows"] == 15
    m = Model(BROOK)
    each = [[numbers(x)["relative"] for x in stream(m, np.array(d.split(), int), ("skip", "mlp"), True)] for d in docs[:2]]
    assert np.allclose([line["relative"] for line in got["grid"]["trained"]["attention"]], np.mean(each, 0), rtol=1e-3)


def test_random_weights_are_as_said(tmp_path):
    weir("collapse", "--what", "grid", "--weights", "random", "--seed", "7", "--deviation", "0.05", "--save", tmp_path / "r", "A b c d").ok()
    m, trained = Model(tmp_path / "r"), Model(BROOK)
    assert m.w.keys() == {k for k in trained.w if k != "lm_head.weight"}
    for name, x in m.w.items():
        assert x.shape == trained.w[name].shape
        if x.ndim == 2:
            assert abs(x.std() / 0.05 - 1) < 5 / np.sqrt(x.size) and abs(x.mean()) < 5 * 0.05 / np.sqrt(x.size), name
            assert abs((x ** 4).mean() / x.var() ** 2 - 3) < 60 / np.sqrt(x.size), name
        else:
            assert np.all(x == (1 if name.endswith("weight") else 0)), name
    a, b = m.w["transformer.h.0.mlp.c_fc.weight"], m.w["transformer.h.1.mlp.c_fc.weight"]
    assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.02
    weir("collapse", "--save", tmp_path / "r", "A b c d").fails(1, "exists")


# --- hulls

def splitmix(seed):
    mask, state = (1 << 64) - 1, seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        yield ((z ^ z >> 31) >> 11) * 2.0 ** -53


def directions(seed, n, *widths):
    """n unit vectors of each width, drawn in turns."""
    u, out = splitmix(seed), [[] for _ in widths]
    for _ in range(n):
        for to, width in zip(out, widths):
            v = np.array([np.sqrt(-2 * np.log(1 - next(u))) * np.cos(2 * np.pi * next(u)) for _ in range(width)])
            to.append(v / np.linalg.norm(v))
    return [np.array(x) for x in out]


@pytest.mark.parametrize("model", ["llama-gqa-bf16", "neox-parallel"])
def test_hulls_against_numpy(model):
    path = BROOK if model == "brook" else MODELS / model
    got = weir("collapse", "--what", "hull", "--weights", "trained", "--model", path, "--bos", "no", "--ids", "--json", "--directions", "16",
               IDS).ok().json["hull"]["trained"]
    m, seen = Model(path), {}
    m.run(np.array(IDS.split(), int), without((), seen))
    wide, _ = directions(1, 16, m.C, m.D)
    assert len(got) == m.L
    for l, layer in enumerate(got):
        value = {s: seen.get(f"blocks.{l}.hook_resid_{s}") for s in ("pre", "mid", "post")}
        steps = {"attention": ("pre", "mid"), "mlp": ("mid", "post")} if value["mid"] is not None else {"mlp": ("pre", "post")}
        for step, (a, b) in steps.items():
            beyond = value[b] @ wide.T > (value[a] @ wide.T).max(0)
            assert layer[step] == {"points": 10, "outside": beyond.any(1).sum(), "pairs": 160, "beyond": beyond.sum()}, (l, step)
        if value["mid"] is None:
            assert layer["attention"]["points"] == 0
        assert layer["heads"] == {"points": 10 * m.H, "outside": 0, "pairs": 160 * m.H, "beyond": 0}
        pattern = seen[f"blocks.{l}.attn.hook_pattern"]
        least = min(pattern[t, :, :t + 1].min() for t in range(10))
        assert abs(layer["least_weight"] - least) <= 1e-4 * least and layer["sum_off_one"] < 1e-6


@pytest.mark.parametrize("change", ["--scale=blocks.2.attn.hook_pattern=-1", "--scale=blocks.2.attn.hook_pattern=2", "--scale=blocks.2.attn.hook_z=1.01"])
def test_what_is_no_mixture_is_found(change):
    r = weir("collapse", "--what", "hull", "--weights", "trained", "--quiet", change, "The river bends where the old mill stands.")
    assert r.code == 3 and len(r.err.splitlines()) == 1 and "layer 2" in r.err, r.err
    assert b"L2" in r.out


# --- MLPs

@pytest.mark.parametrize("model", ["llama-gqa-bf16", "neox-parallel", "gemma2", "gpt2"])
def test_lipschitz_against_dense_jacobians(model):
    got = weir("collapse", "--what", "lipschitz", "--weights", "trained", "--model", MODELS / model, "--bos", "no", "--ids", "--json", "--tokens", "3",
               "--iterations", "3000", IDS).ok().json["lipschitz"]["trained"]
    m, seen = Model(MODELS / model), {}
    m.run(np.array(IDS.split(), int), without((), seen))
    for l, layer in enumerate(got):
        w, see = m.layer(l), lambda name, x: x
        assert len({t["pos"] for t in layer["tokens"]}) == 3
        for t in layer["tokens"]:
            x = seen[f"blocks.{l}.ln2.hook_out"][t["pos"]]
            h = 1e-5 * np.abs(x).max()
            steps = h * np.eye(m.C)
            j = (m.mlp(see, l, x + steps, w) - m.mlp(see, l, x - steps, w)) / (2 * h)
            exact = np.linalg.svd(j)[1][0]
            assert t["residual"] <= 0.011 and t["iterations"] < 3000
            assert exact * (1 - 5e-3) <= t["factor"] <= exact * (1 + 1e-5), (model, l, t, exact)
        assert layer["largest"] == max(t["factor"] for t in layer["tokens"])


# --- promises

def test_same_bytes_for_any_threads_batch_and_kernel():
    args = ["collapse", "--model", MODELS / "llama-gqa-bf16", "--ids", "--bos", "no", "--singular", "0", "--json", "--quiet", "--tokens", "4"]
    docs = f"{IDS}\n3 4 5 6\n9 9 1 30 2\n".encode()
    first = weir(*args, stdin=docs).ok().out
    for more in (["--threads", "1", "--kernel", "ref"], ["--batch", "12"]):
        assert weir(*args, *more, stdin=docs).ok().out == first
    assert weir(*args, "--seed", "2", stdin=docs).ok().out != first


def test_interventions_act_and_are_told():
    args = ["collapse", "--model", MODELS / "gpt2", "--ids", "--bos", "no", "--what", "grid", "--weights", "trained", "--json", IDS]
    got = weir(*args, "--ablate", "blocks.1.hook_attn_out").ok().json
    assert [i["rows_changed"] for i in got["interventions"]] == [10]
    assert got["grid"]["trained"]["attention+skip"][1]["relative"] == got["grid"]["trained"]["attention+skip"][2]["relative"]


def test_complaints(tmp_path):
    weir("collapse", "--weights", "trained", "--save", tmp_path / "x", "a").fails(2, "--save")
    weir("collapse", "--ids", "--bos", "no", "7").fails(1, "two rows")
    weir("collapse", "--batch", "4", "The river bends where the old mill stands.").fails(1, "--batch", "one pass here")
