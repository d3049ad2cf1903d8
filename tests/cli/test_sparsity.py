"""weir sparsity: every number against numpy's brute force over a dump of the same text; losses under masks and with other activations
against the float64 model of tests/grad/model64.py; and the hook `mask`."""
import csv
import io
import itertools
import math
import sys

import h5py
import numpy as np
import pytest

from test_edits import write_adapter
from weircli import BROOK, ROOT, trace, weir

sys.path.insert(0, str(ROOT / "tests" / "grad"))
from model64 import ACTIVATIONS, Model, log_softmax  # noqa: E402

MODELS = ROOT / "tests/golden/models"
IDS = b"1 2 3 4 5 6 7 8 9 10 11 12\n8 9\n3 1 4 1 5 9 2 6\n7\n"
TEXT = ["Boulder is in the state of Colorado.", "The river bends.", "x"]
RELU = {"relu": lambda x: np.maximum(x, 0), "relu2": lambda x: np.maximum(x, 0) ** 2, "identity": lambda x: x}
BELOW = [0, 0.01, 0.1, 1]
SHARES = [0.25, 0.5, 0.75, 0.9]
HOT = [0.01, 0.1, 0.2]
QUANTILES = {"l0_min": 0, "l0_05": .05, "l0_25": .25, "l0_50": .5, "l0_75": .75, "l0_95": .95, "l0_max": 1}


def source(model):
    """(arguments, standard input)"""
    return (TEXT, b"") if model == "brook" else (["--model", MODELS / model, "--ids", "--file", "-"], IDS)


def dumped(tmp_path, model, *more, sites="pre,post"):
    """doc, pos, and the values of each hook."""
    args, stdin = source(model)
    dump = tmp_path / "d.h5"
    trace("--quiet", "--site", sites, "--dump", dump, "--force", *more, *args, stdin=stdin).ok()
    with h5py.File(dump) as f:
        return f["tokens/doc"][:], f["tokens/pos"][:], {n: x[:] for n, x in f["activations"].items()}


def sparsity(model, *more):
    args, stdin = source(model)
    return weir("sparsity", "--quiet", "--json", *more, *args, stdin=stdin).ok().json


def edges(x):
    """All floats of nine bits behind the leading one, as the smallest that is above each |x|."""
    bits = np.abs(x.ravel()).view(np.uint32) >> 14
    return ((bits + 1) << 14).view(np.float32)


def cut(x, share):
    """The smallest edge below which the share lies, of all that come into question."""
    x = np.sort(np.abs(x.astype(np.float32)).ravel())
    zeros = int((x == 0).sum())
    if zeros >= share * x.size:
        return {"share": share, "threshold": 0.0, "small": zeros, "values": x.size}
    edge = np.unique(edges(x))
    small = np.searchsorted(x, edge, "left")
    first = int(np.argmax(small >= share * x.size))
    return {"share": share, "threshold": float(edge[first]), "small": int(small[first]), "values": x.size}


def line(x, doc, pos, gate=None):
    """What the tool says of a site's values [rows, width], but for the curve."""
    y = x.astype(np.float64)
    n, m = x.shape[1], y.mean()
    norms = [(np.abs(r).sum(), math.sqrt((r ** 2).sum())) for r in y]
    out = {"rows": len(x), "lost": 0, "width": n, "zeros": int((x == 0).sum()), "mean": m, "sd": y.std(),
           "kurtosis": ((y - m) ** 4).mean() / y.var() ** 2,
           "hoyer": np.mean([(math.sqrt(n) - a / b) / (math.sqrt(n) - 1) for a, b in norms if b]),
           "teal": [cut(x, s) for s in SHARES], "active": []}
    if gate is not None:
        out["cats"] = [cut(gate, s) for s in SHARES]
    for t in BELOW:
        on = np.abs(x) >= np.float32(t) if t else x != 0
        counts, l0 = on.sum(0), np.sort(on.sum(1))
        pairs = [(on[i - 1], on[i]) for i in range(1, len(x)) if doc[i] == doc[i - 1] and pos[i] == pos[i - 1] + 1]
        jaccard = [(a & b).sum() / (a | b).sum() for a, b in pairs if (a | b).any()]
        sums = np.cumsum(np.sort(counts)[::-1])
        a = {"below": t, "small": int((~on).sum()), "dead": int((counts == 0).sum()), "always": int((counts == len(x)).sum()),
             "pairs": len(jaccard), "jaccard": np.mean(jaccard) if jaccard else None,
             "hot": [{"neurons": h, "firings": sums[math.ceil(h * n) - 1] / sums[-1] if sums[-1] else None} for h in HOT]}
        a.update({k: int(l0[max(math.ceil(q * len(x)), 1) - 1]) for k, q in QUANTILES.items()})
        out["active"].append(a)
    return out


def curve(x, down):
    """[(edge, share, CETT)] of the rows, at every edge the output without what is below it."""
    norm = (np.abs(x.astype(float)) * np.sqrt((down ** 2).sum(1))).astype(np.float32)
    edge = (np.arange(1, 0x7f800000 >> 20, dtype=np.uint32) << 20).view(np.float32)
    edge = edge[(edge > norm.min()) & (edge <= edge[edge > norm.max()][0])]
    below = norm[:, None] < edge[:, None]  # [rows, edges, neurons]
    whole = np.linalg.norm(x.astype(float) @ down, axis=1)
    lost = np.linalg.norm((x[:, None].astype(float) * below) @ down, axis=2) / np.where(whole, whole, 1)[:, None]
    return list(zip(edge.astype(float), below.mean((0, 2)), np.where(whole[:, None], lost, 0).mean(0)))


def same(got, want, at=""):
    """got has all of want, whole numbers exactly and others to 1e-9."""
    if isinstance(want, dict):
        for k in want:
            same(got[k], want[k], f"{at}/{k}")
    elif isinstance(want, list):
        assert len(got) == len(want), at
        for i, (g, w) in enumerate(zip(got, want)):
            same(g, w, f"{at}/{i}")
    elif isinstance(want, (int, type(None))):
        assert got == want, at
    else:
        assert got == pytest.approx(want, rel=1e-9, abs=1e-12), at


def test_the_check_can_fail():
    rng = np.random.default_rng(1)
    x = rng.normal(0, .5, (9, 12)).astype("f4")
    x[:, 3] = 0
    doc, pos = np.repeat([0, 1], [5, 4]), np.array([*range(5), *range(4)])
    want = line(x, doc, pos)
    same(line(x, doc, pos), want)
    for other in (np.where(x == x.max(), x * 1.01, x), np.where(x == x.min(), 0, x), x[::-1].copy(), x[:8]):
        with pytest.raises(AssertionError):
            same(line(other.astype("f4"), doc[:len(other)], pos[:len(other)]), want)
    with pytest.raises(AssertionError):
        same(line(x, doc * 0, np.arange(9)), want)  # the pairs of another text


@pytest.mark.parametrize("model", ["brook", "gpt2", "llama-gqa-bf16", "neox-parallel"])
def test_every_number(tmp_path, model):
    layers = ("--layer", "0,7") if model == "brook" else ()
    doc, pos, values = dumped(tmp_path, model, *layers)
    got = sparsity(model, "--site", "pre,post", "--sample", "8", *layers)
    path = BROOK if model == "brook" else MODELS / model
    m = Model(path)
    assert [x["hook"] for x in got["lines"]] == list(values)
    seen = None
    for x in got["lines"]:
        name, l = x["hook"], x["layer"]
        gate = None
        if got["gated"] and name.endswith("hook_post"):
            gate = m.act(values[name.replace("post", "pre")].astype(float)).astype("f4")
        want = line(values[name], doc, pos)
        same(x, want, name)
        assert ("cats" in x) == (gate is not None)
        if gate is not None:  # the activation is rounded differently: counts may differ by the few on an edge
            for a, b in zip(x["cats"], (cut(gate, s) for s in SHARES)):
                assert a["threshold"] == pytest.approx(b["threshold"], rel=2 ** -8) and abs(a["small"] - b["small"]) <= 2
        assert ("cett" in x) == name.endswith("hook_post")
        if "cett" not in x:
            continue
        assert seen is None or seen == x["sample"]  # the same tokens in every layer
        seen = x["sample"]
        assert len(seen) == len({tuple(s) for s in seen}) == min(8, len(doc))
        rows = [int(np.flatnonzero((doc == d) & (pos == p))[0]) for d, p in seen]
        want = curve(values[name][rows], m.layer(l)["down"][0])
        assert len(want) == len(x["cett"])
        for point, (edge, share, cett) in zip(x["cett"], want):
            assert point["edge"] == edge and point["share"] == pytest.approx(share, abs=1e-12)
            assert point["cett"] == pytest.approx(cett, rel=1e-6, abs=1e-12)
        assert x["left_out_at_cett_0.2"] == pytest.approx(max([s for _, s, c in itertools.takewhile(lambda p: p[2] <= 0.2, want)], default=0))


def test_results_do_not_depend_on_the_cut_of_the_work(tmp_path):
    file = tmp_path / "ids"
    file.write_bytes(IDS)
    ways = [("--threads", "2"), ("--batch", "3", "--threads", "1"), ("--kernel", "ref", "--threads", "1")]
    for more in ((), ("--act", "relu", "--mask", "teal:0.5")):
        args = ("--quiet", "--json", "--model", MODELS / "llama-gqa-bf16", "--ids", "--file", file, *more)
        one, *others = [weir("sparsity", *args, *way).ok().out for way in ways]
        assert all(o == one for o in others)


# --- losses


def loss64(m, docs, edit=None):
    """Mean nats of the tokens behind the first, and the values at hook_post."""
    nats, posts = [], {}
    for ids in docs:
        def see(name, x):
            x = edit(name, x) if edit else x
            if name.endswith("hook_post"):
                posts.setdefault(name, []).append(x)
            return x
        lp = log_softmax(m.run(np.array(ids), see))
        nats += [-lp[i, ids[i + 1]] for i in range(len(ids) - 1)]
    return np.mean(nats), {k: np.concatenate(v) for k, v in posts.items()}


def documents():
    return [[int(i) for i in row.split()] for row in IDS.decode().splitlines()]


@pytest.mark.parametrize("model", ["gpt2", "llama-gqa-bf16", "neox-parallel", "gemma2"])
@pytest.mark.parametrize("act", list(RELU))
def test_other_activations(model, act):
    m = Model(MODELS / model)
    plain, _ = loss64(m, documents())
    m.act = RELU[act]
    want, posts = loss64(m, documents())
    got = sparsity(model, "--act", act, "--sample", "0")
    assert got["act"] == act and got["tokens"] == sum(len(d) - 1 for d in documents())
    assert got["plain_loss"] == pytest.approx(plain, rel=2e-5)
    assert got["loss"] == pytest.approx(want, rel=2e-5)
    assert abs(want - plain) > 1e-3 * plain or act != "identity"  # it matters
    for x in got["lines"]:
        zeros = (posts[x["hook"]] == 0).sum()
        assert x["zeros"] == pytest.approx(zeros, abs=1) and (zeros > 0) == (act != "identity")


def masked(keep, layers):
    def edit(name, x):
        if not name.endswith("hook_post") or int(name.split(".")[1]) not in layers:
            return x
        return np.where(keep(int(name.split(".")[1]), np.abs(x)), x, 0)
    return edit


@pytest.mark.parametrize("model", ["gpt2", "llama-gqa-bf16"])
def test_masks(model):
    m, docs = Model(MODELS / model), documents()
    plain, posts = loss64(m, docs)
    largest = lambda k: lambda l, a: a >= np.sort(a, 1)[:, -k, None]
    got = sparsity(model, "--mask", "topk:5")
    want, left = loss64(m, docs, masked(largest(5), range(m.L)))
    assert got["loss"] == pytest.approx(want, rel=2e-5) and got["plain_loss"] == pytest.approx(plain, rel=2e-5)
    assert abs(want - plain) > 1e-4
    for x in got["lines"]:
        assert x["zeros"] == x["rows"] * (x["width"] - 5)
    t = float(np.quantile(np.abs(posts["blocks.0.mlp.hook_post"]), .6))
    got = sparsity(model, "--mask", f"below:{t}", "--layer", "1")
    want, left = loss64(m, docs, masked(lambda l, a: a >= t, [1]))
    assert got["loss"] == pytest.approx(want, rel=2e-5)
    assert [x["layer"] for x in got["lines"]] == [1]
    assert got["lines"][0]["zeros"] == pytest.approx((left["blocks.1.mlp.hook_post"] == 0).sum(), abs=1)


@pytest.mark.parametrize("act", [(), ("--act", "relu2")])
def test_teal_masks_at_each_layers_own_threshold(tmp_path, act):
    """The thresholds of a first run over the same text; then the same loss as from masks that are spelled out."""
    (tmp_path / "ids").write_bytes(IDS)
    text = ("--model", MODELS / "llama-gqa-bf16", "--ids", "--file", tmp_path / "ids")
    first = weir("sparsity", "--quiet", "--json", *act, "--shares", "0.6", *text).ok().json
    got = weir("sparsity", "--quiet", "--json", *act, "--mask", "teal:0.6", *text).ok().json
    cuts = [x["teal"][0]["threshold"] for x in first["lines"]]
    assert got["mask_below"] == cuts
    hooks = [w for l, t in enumerate(cuts) if t > 0 for w in ("--hook", f"mask:blocks.{l}.mlp.hook_post,below={t!r}")]
    again = weir("sparsity", "--quiet", "--json", *act, *hooks, *text).ok().json
    assert (again["loss"], again["plain_loss"]) == (got["loss"], got["plain_loss"])
    assert again["lines"] == got["lines"]
    if not act:
        loss = weir("loss", "--quiet", "--json", *hooks, *text).ok().json
        assert (loss["loss"], loss["plain_loss"], loss["tokens"]) == (got["loss"], got["plain_loss"], got["tokens"])
        assert got["lines"][0]["zeros"] == first["lines"][0]["teal"][0]["small"]  # nothing before it was changed


def test_edits_of_the_down_projection_count(tmp_path):
    """A curve is that of the model that runs."""
    m, rng = Model(BROOK), np.random.default_rng(3)
    a, b = rng.standard_normal((1, 4 * m.C)).astype("f4") * .2, rng.standard_normal((m.C, 1)).astype("f4") * .2
    edit = write_adapter(tmp_path / "edit", {"transformer.h.5.mlp.c_proj": (a, b)})
    doc, pos, values = dumped(tmp_path, "brook", "--edit", edit)
    x = sparsity("brook", "--layer", "5", "--edit", edit, "--sample", "4")["lines"][0]
    rows = [int(np.flatnonzero((doc == d) & (pos == p))[0]) for d, p in x["sample"]]
    down, post = m.layer(5)["down"][0], values["blocks.5.mlp.hook_post"][rows]
    got = [p["cett"] for p in x["cett"]]
    assert got == pytest.approx([c for _, _, c in curve(post, down + (b @ a).T.astype(float))], rel=1e-5)
    assert len(got) != len(curve(post, down)) or got != pytest.approx([c for _, _, c in curve(post, down)], rel=1e-2)


# --- forms


def rows(*args):
    return list(csv.DictReader(io.StringIO(weir("sparsity", "--quiet", "--format", "tsv", *args, *TEXT).ok().out.decode()), delimiter="\t"))


def test_tsv_says_what_json_says():
    whole = sparsity("brook", "--layer", "2-3")["lines"]
    for x, r in zip(whole, rows("--layer", "2-3"), strict=True):
        assert r["hook"] == x["hook"] and int(r["zeros"]) == x["zeros"]
        for key in ("mean", "sd", "kurtosis", "hoyer", "left_out_at_cett_0.2"):
            assert float(r[key]) == x[key]
        assert [float(np.float32(r[f"teal_{s}"])) for s in SHARES] == [c["threshold"] for c in x["teal"]]
        assert [int(r[f"teal_{s}_small"]) for s in SHARES] == [c["small"] for c in x["teal"]]
    flat = [a for x in whole for a in x["active"]]
    for a, r in zip(flat, rows("--layer", "2-3", "--per", "active"), strict=True):
        assert all(int(r[k]) == a[k] for k in ("small", "dead", "always", "pairs", *QUANTILES)) and float(r["jaccard"]) == a["jaccard"]
        assert [float(r[f"hot_{h}"]) for h in HOT] == [h["firings"] for h in a["hot"]]
    points = [p for x in whole for p in x["cett"]]
    for p, r in zip(points, rows("--layer", "2-3", "--per", "cett"), strict=True):
        assert (float(r["share"]), float(r["cett"])) == (p["share"], p["cett"])
    neurons = rows("--layer", "2-3", "--per", "neuron")
    assert len(neurons) == sum(x["width"] for x in whole)
    for x in whole:
        own = [r for r in neurons if int(r["layer"]) == x["layer"]]
        for t, a in zip(BELOW, x["active"]):
            counts = [int(r[f"active_{t}"]) for r in own]
            assert counts.count(0) == a["dead"] and counts.count(x["rows"]) == a["always"]
            assert x["rows"] * x["width"] - sum(counts) == a["small"]


def test_text_and_picture(tmp_path):
    svg = tmp_path / "c.svg"
    out = weir("sparsity", "--mask", "topk:64", "--svg", svg, *TEXT).ok().out.decode()
    for word in ("sparsity over", "perplexity", "Values", "TEAL", "Active neurons", "CETT", "L7"):
        assert word in out
    assert "CATS" not in out  # no gate
    picture = svg.read_text()
    assert picture.startswith("<?xml") and picture.count("</title></path>") == 8
    weir("sparsity", "--svg", svg, "x").ok()  # its own picture may be replaced
    (tmp_path / "other.svg").write_text("mine")
    weir("sparsity", "--svg", tmp_path / "other.svg", "x").fails(1, "other.svg")


def test_complaints(tmp_path):
    for args, words in (
            (("--mask", "topk:0"), ("--mask topk:0", "1 or more")), (("--mask", "teal:1"), ("between 0 and 1",)),
            (("--mask", "some"), ("topk:K, below:T or teal:SHARE",)), (("--mask", "below:-1"), ("above 0",)),
            (("--act", "cosine"), ("cosine", "weir act")), (("--act", "gpt_oss"), ("no kernel",)),
            (("--below", "0,x"), ("--below", "\"x\"")), (("--below", "1,1"), ("twice",)), (("--shares", "2"), ("--shares", "0 to 1")),
            (("--site", "pots"), ("post",)), (("--site", "z"), ("heads",)), (("--layer", "9"), ("--layer",)),
            (("--per", "cett"), ("--format tsv",)), (("--sample", "0", "--svg", tmp_path / "x.svg"), ("no curve",))):
        weir("sparsity", *args, "x").fails(2, *words)
    weir("sparsity", "--mask", "teal:0.5", "--file", "-", stdin=b"x y\n").fails(2, "twice", "file", "standard input")
    weir("sparsity", "--mask", "teal:0.5", "--file", "/dev/stdin", stdin=b"x y\n").fails(2, "twice", "file", "/dev/stdin")
    weir("sparsity", "--positions", "@nothing", "x")
    assert not (tmp_path / "x.svg").exists()


def test_rows_that_are_not_finite_are_left_out():
    ids = ("--model", MODELS / "gpt2", "--ids", "--file", "-")
    got = weir("sparsity", "--quiet", "--json", "--set", "blocks.0.mlp.hook_post[1,3]=nan", "--layer", "0", *ids, stdin=IDS)
    if got.code:  # a value that is not a number is refused where it is set: scale it there instead
        got = weir("sparsity", "--quiet", "--json", "--scale", "blocks.0.mlp.hook_post[1,3]=3e38", "--scale",
                   "blocks.0.mlp.hook_post[1,3]=3e38", "--layer", "0", *ids, stdin=IDS)
    x = got.ok().json["lines"][0]
    assert x["lost"] == 3 and x["rows"] == 23 - 3


def test_a_layer_without_a_finite_row_has_no_statistics():
    args = ("sparsity", "--quiet", "--scale", "blocks.0.mlp.hook_post=3e38", "--scale", "blocks.0.mlp.hook_post=3e38", "--layer", "0",
            "--model", MODELS / "gpt2", "--ids", "1 2 3")
    x = weir(*args, "--json").ok().json["lines"][0]
    assert x["rows"] == 0 and x["lost"] == 3 and [x[k] for k in ("mean", "sd", "kurtosis", "hoyer")] == [None] * 4
    assert "-nan" not in weir(*args, "--format", "tsv").ok().out.decode()
    values = weir(*args).ok().out.decode().partition("\nValues\n")[2].partition("\n\n")[0]  # above it stands the loss, which is no number
    assert values and "nan" not in values


# --- the hook


def test_hook_mask(tmp_path):
    doc, pos, plain = dumped(tmp_path, "gpt2", sites="post")
    name = "blocks.1.mlp.hook_post"
    for args, keep in ((f"{name},topk=4", lambda a: a >= np.sort(a, 1)[:, -4, None]), (f"{name},below=0.05", lambda a: a >= np.float32(.05)),
                       (f"{name},topk=9999", lambda a: a >= 0)):
        _, _, got = dumped(tmp_path, "gpt2", "--hook", f"mask:{args}", sites="post")
        assert np.array_equal(got["blocks.0.mlp.hook_post"], plain["blocks.0.mlp.hook_post"])
        assert np.array_equal(got[name], np.where(keep(np.abs(plain[name])), plain[name], 0))
    _, _, got = dumped(tmp_path, "gpt2", "--hook", f"mask:{name}[0,2:8],topk=1", sites="post")
    want = plain[name].copy()
    part = want[pos == 0, 2:8]
    want[pos == 0, 2:8] = np.where(np.abs(part) == np.abs(part).max(1, keepdims=True), part, 0)
    assert np.array_equal(got[name], want)
    for args, words in (("post", "topk or below"), ("topk=3", "selectors"), ("post,topk=3,below=1", "topk or below"),
                        ("post,topk=0", "whole number"), ("post,below=0", "above 0")):
        assert words in trace("--hook", f"mask:{args}", "x").err
