"""weir compose: against whole matrices [C, C] in numpy, made from the checkpoint's own tensors."""
import json

import numpy as np
import pytest

from checkpoints import weights
from weircli import BROOK, ROOT, weir

GOLDEN = ROOT / "tests/golden/models"
NAMES = ["gpt2", "llama-gqa-bf16", "llama-llama3-v4", "mistral-window-f16", "neox-parallel", "gemma2", "qwen3"]
UNITS = [0, 3, 7]


class Model:
    """Heads and neurons of a checkpoint, with vectors as columns: q, k, v [D, C], o [C, D], key, up, value [C]."""

    def __init__(self, path, meant="raw"):
        c = json.loads((path / "config.json").read_text())
        self.w, self.meant = weights(path), meant
        self.kind = c["model_type"]
        self.L = c.get("num_hidden_layers") or c["n_layer"]
        self.H = c.get("num_attention_heads") or c["n_head"]
        self.C = c.get("hidden_size") or c["n_embd"]
        self.D = c.get("head_dim") or self.C // self.H
        self.K = c.get("num_key_value_heads") or self.H
        self.rms = "rms_norm_eps" in c
        self.gated = self.rms

    def get(self, layer, name):
        return next((x for n, x in self.w.items() if n.endswith(f".{layer}.{name}") or n == f"{layer}.{name}"), None)

    def gain(self, layer, norm):
        """Gemma's 1 is added in fp32, as in the model."""
        w = self.get(layer, norm + ".weight")
        return (np.float32(1) + w.astype(np.float32)).astype(float) if self.kind == "gemma2" else w

    def reads(self, x, layer, norm):
        """x [n, C]: rows that read behind a norm."""
        if self.meant == "raw":
            return x
        x = x * self.gain(layer, norm)
        return x - x.mean(1, keepdims=True) if self.meant == "folded" and not self.rms else x

    def writes(self, x, layer, norm):
        """x [n, C]: rows that are added to the stream."""
        if self.meant == "raw":
            return x
        if self.kind == "gemma2":
            x = x * self.gain(layer, norm)
        return x - x.mean(1, keepdims=True) if self.meant == "folded" and not self.rms else x

    def head(self, layer, h):
        d, c, kv = self.D, self.C, h // (self.H // self.K)
        if self.kind == "gpt2":
            fused = self.get(layer, "attn.c_attn.weight").T.reshape(3, self.H, d, c)
            q, k, v = fused[:, h]
            o, norm = self.get(layer, "attn.c_proj.weight")[h * d:(h + 1) * d], "ln_1"
        elif self.kind == "gpt_neox":
            q, k, v = self.get(layer, "attention.query_key_value.weight").reshape(self.H, 3, d, c)[h]
            o, norm = self.get(layer, "attention.dense.weight").T[h * d:(h + 1) * d], "input_layernorm"
        else:
            q, k, v = (self.get(layer, f"self_attn.{n}_proj.weight").reshape(-1, d, c)[i]
                       for n, i in (("q", h), ("k", kv), ("v", kv)))
            o, norm = self.get(layer, "self_attn.o_proj.weight").T[h * d:(h + 1) * d], "input_layernorm"
        q, k, v = (self.reads(x, layer, norm) for x in (q, k, v))
        if self.kind == "qwen3" and self.meant != "raw":  # what the norms of heads multiply by
            q, k = (x * self.gain(layer, f"self_attn.{n}_norm")[:, None] for n, x in (("q", q), ("k", k)))
        return q.T @ k, self.writes(o, layer, "post_attention_layernorm").T @ v  # W_QK, W_OV

    def neuron(self, layer, n):
        """key, up (or None), value."""
        if self.kind == "gpt2":
            key, value, up, norm = self.get(layer, "mlp.c_fc.weight")[:, n], self.get(layer, "mlp.c_proj.weight")[n], None, "ln_2"
        elif self.kind == "gpt_neox":
            key, value, up = self.get(layer, "mlp.dense_h_to_4h.weight")[n], self.get(layer, "mlp.dense_4h_to_h.weight")[:, n], None
            norm = "post_attention_layernorm"
        else:
            key, up, value = (self.get(layer, f"mlp.{x}_proj.weight") for x in ("gate", "up", "down"))
            key, up, value = key[n], up[n], value[:, n]
            norm = "pre_feedforward_layernorm" if self.kind == "gemma2" else "post_attention_layernorm"
        key, up = (x if x is None else self.reads(x[None], layer, norm)[0] for x in (key, up))
        return key, up, self.writes(value[None], layer, "post_feedforward_layernorm")[0]


def ratio(a, b):
    """|a b| / (|a| |b|), Frobenius."""
    return np.linalg.norm(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b))


def expected(m, layers, units=()):
    """{(input, from, to): score}: heads are (layer, "head", h)."""
    heads = {(l, "head", h): m.head(l, h) for l in layers for h in range(m.H)}
    neurons = {(l, "neuron", n): m.neuron(l, n) for l in layers for n in units}
    out = {}
    for to, (qk, ov) in heads.items():
        for a, made in [*((k, x[1]) for k, x in heads.items()), *((k, x[2][:, None]) for k, x in neurons.items())]:
            if a[0] < to[0]:
                out["q", a, to], out["k", a, to], out["v", a, to] = (ratio(x, made) for x in (qk.T, qk, ov))
    for to, (key, up, _) in neurons.items():
        for name, x in (("key", key), ("up", up)):
            if x is None:
                continue
            out.update({(name, a, to): ratio(ov.T, x[:, None]) for a, (_, ov) in heads.items()
                        if a[0] < to[0] or (a[0] == to[0] and m.kind != "gpt_neox")})
            out.update({(name, a, to): x @ v / np.linalg.norm(x) / np.linalg.norm(v) for a, (_, _, v) in neurons.items() if a[0] < to[0]})
    return out


def scores(*args):
    lines = [json.loads(x) for x in weir("compose", "--format", "ndjson", *args).ok().out.splitlines()]
    got = {(x["input"], (x["from_layer"], x["from_kind"], x["from"]), (x["to_layer"], x["to_kind"], x["to"])): x["score"] for x in lines}
    assert len(got) == len(lines)
    return got


def check(got, want):
    assert got.keys() == want.keys()
    for key, score in want.items():
        assert got[key] == pytest.approx(score, rel=2e-7, abs=1e-9), key


@pytest.mark.parametrize("meant", ["raw", "folded"])
def test_brook(meant):
    m = Model(BROOK, meant)
    got = scores("--layer", "3,7", "--neurons", ",".join(f"L{l}N{n}" for l in (3, 7) for n in UNITS), "--weights", meant)
    want = expected(m, (3, 7), UNITS)
    check(got, want)
    assert len([k for k in want if k[0] == "q" and k[1][1] == "head"]) == 36
    first = next(iter(want))
    with pytest.raises(AssertionError):  # the check can fail
        check(got, {**want, first: want[first] * (1 + 1e-6)})


@pytest.mark.parametrize("meant", ["raw", "gain", "folded"])
@pytest.mark.parametrize("name", NAMES)
def test_every_family(name, meant):
    m = Model(GOLDEN / name, meant)
    layers = range(m.L)
    want = expected(m, layers, UNITS)
    check(scores("--model", GOLDEN / name, "--neurons", ",".join(map(str, UNITS)), "--weights", meant), want)
    assert any(x < 0 for k, x in want.items() if k[0] == "key")
    assert any(k[1][0] == k[2][0] for k in want) == (name != "neox-parallel")
    if meant == "gain":
        with pytest.raises(AssertionError):
            check(want, expected(Model(GOLDEN / name), layers, UNITS))


@pytest.mark.parametrize("name", NAMES)
def test_a_gguf_file_gives_the_same(name):
    args = ("--neurons", "1,5", "--weights", "gain")
    a, b = (scores("--model", GOLDEN / n, *args) for n in (name, name + ".gguf"))
    check(a, b)


def test_threads_and_tables_change_nothing():
    args = ("compose", "--format", "tsv", "--neurons", "L1N0:3")
    want = weir(*args).ok().out
    for more in (("--threads", "1"), ("--kernel", "ref"), ("--kernel", "avx2")):
        assert weir(*args, *more).ok().out == want


def test_the_kind_that_is_asked_for():
    units = ("--neurons", "L1N0:3,L4N7")
    whole = scores(*units)
    for kind in ("q", "k", "v", "key"):
        assert scores("--kind", kind, *units) == {k: x for k, x in whole.items() if k[0] == kind}


def test_text_and_json_name_the_best():
    whole = scores()
    one = weir("compose", "--json", "-k", "4").ok().json
    text = weir("compose", "-k", "4").ok().out.decode()
    assert one["chance"] == pytest.approx(192 ** -0.5, rel=1e-12) and not one["rope_left_out"] and one["weights"] == "raw"
    assert [g["input"] for g in one["groups"]] == ["q", "k", "v"]
    assert "chance is 0.0722, 1 / sqrt(192)\n" in text
    for g in one["groups"]:
        mine = {k: x for k, x in whole.items() if k[0] == g["input"]}
        best = sorted(mine, key=lambda k: -mine[k])[:4]
        found = [(x["input"], (x["from_layer"], "head", x["from"]), (x["to_layer"], "head", x["to"])) for x in g["top"]]
        assert found == best
        for k in best:
            assert f"  L{k[1][0]}H{k[1][2]}      L{k[2][0]}H{k[2][2]}       {mine[k]:.4f}" in text
        assert g["pairs"] == len(mine) and g["mean"] == pytest.approx(np.mean(list(mine.values())), rel=1e-12)
        for a, row in enumerate(g["layers"]):
            for b, mean in enumerate(row):
                here = [x for k, x in mine.items() if (k[1][0], k[2][0]) == (a, b)]
                assert mean == (pytest.approx(np.mean(here), rel=1e-12) if here else None)
    assert "; RoPE is left out" in weir("compose", "--model", GOLDEN / "llama-llama3-v4").ok().out.decode()
    assert "lengths that norms of heads divide by, are left out" in weir("compose", "--model", GOLDEN / "qwen3").ok().out.decode()


def test_directions_that_have_nothing_to_do_with_each_other_score_chance():
    """Random weights: the golden models' are, and small; the mean of squares is 1 / C."""
    squares = [x * x for n in ("gpt2", "neox-parallel") for k, x in scores("--model", GOLDEN / n).items()]
    assert np.mean(squares) == pytest.approx(np.mean([1 / 21, 1 / 30]), rel=0.15)


def test_the_table_of_layers_pages_by_width():
    def tables(width):
        """{(from, to): mean} of the pages, and the widest of their lines."""
        lines = weir("compose", "--kind", "k", "-k", "1", "--layer", "0-2,5-7", "--width", width).ok().out.decode().splitlines()[3:]
        found = {}
        for line in lines:
            name, *cells = line.replace("to ", "").replace("from ", "").split()
            to = cells if name == "mean" else to
            if name != "mean":
                assert len(cells) == len(to) and not set(found) & {(name, layer) for layer in to}
                found.update({(name, layer): x for layer, x in zip(to, cells) if x != "-"})
        return found, max(map(len, lines))
    whole, wide = tables(120)
    assert len(whole) == 15 and wide == 51
    for width in (20, 40):
        assert tables(width)[0] == whole and tables(width)[1] <= width


def test_complaints(tmp_path):
    weir("compose", "some text").fails(2, "some text")
    weir("compose", "--layer", "99").fails(2, "--layer")
    weir("compose", "--layer", "3").fails(1, "no pair")
    weir("compose", "--model", GOLDEN / "llama-q4_0").fails(1, "no pair")  # one layer
    weir("compose", "--kind", "key").fails(2, "--neurons")
    weir("compose", "--kind", "up", "--neurons", "3").fails(2, "not gated")
    weir("compose", "--neurons", "all").fails(2, "name some")
    weir("compose", "--neurons", "L9N1").fails(2, "no neuron 1 in layer 9")
    weir("compose", "--neurons", "5,768").fails(2, "no neuron 768")
    weir("compose", "--neurons", "x").fails(2, "--neurons")
    weir("compose", "--json", "--format", "tsv").fails(2, "--json")
    for kind in ("tsv", "ndjson"):
        out = tmp_path / f"c.{kind}"
        for _ in range(2):  # an earlier output may be replaced
            weir("compose", "--layer", "0-1", "--format", kind, "-o", out).ok()
        assert out.read_text().count("\n") in (108, 109)
    mine = tmp_path / "mine"
    mine.write_text("dear diary")
    weir("compose", "-o", mine).fails(1, "mine exists")
