"""weir kv-read against brute force in numpy, float64: values through the unembedding of the checkpoint's own bytes, triggers, agreement
and the four-way split from the values that `weir trace` records of the same text."""
import json
from collections import Counter

import h5py
import numpy as np
import pytest

from checkpoints import copy_with, weights
from parts_oracle import FAMILY
from weircli import BROOK, ROOT, trace, weir

GOLDEN = ROOT / "tests/golden/models"
COUNTS = ("rows residual mlp agreement composition apart unlike_acting unlike_values positive negative compared residual_final "
          "layer_final lost").split()


# --- the oracle

class World:
    """A model read as memories: what it does with a text, and what its values are."""

    def __init__(self, path, dump, norm="none", masked=0):
        self.config = json.loads((path / "config.json").read_text())
        self.f, self.norm, self.made = FAMILY[self.config["model_type"]], norm, {}
        self.w = weights(path)
        if self.f is FAMILY["gpt2"] and not any(k.startswith("transformer.") for k in self.w):
            self.w = {"transformer." + k: x for k, x in self.w.items()}
        with h5py.File(dump) as f:
            self.raw = {k: d[:] for k, d in f["activations"].items()}  # fp32, as recorded
            self.id, self.doc, self.pos = (f[f"tokens/{n}"][:] for n in ("id", "doc", "pos"))
            self.counted = (f["tokens/flags"][:] & masked) == 0
        self.next = np.where(np.append(self.doc[1:] == self.doc[:-1], False), np.append(self.id[1:], 0), -1)
        self.layers = 1 + max(int(k.split(".")[1]) for k in self.raw if k.startswith("blocks."))
        self.head = self.w[f"{self.f['head']}.weight" if f"{self.f.get('head')}.weight" in self.w else f"{self.f['embed']}.weight"]

    def values(self, layer):
        """[F,C], as they reach the stream: behind a norm, through its gain."""
        v = self.w[f"{self.f['down'].format(layer)}.weight"]
        v = v.T if self.f["turned"] else v
        return v * (self.f["offset"] + self.w[f"{self.f['mlp_norm'].format(layer)}.weight"]) if "mlp_norm" in self.f else v

    def logits(self, x, norm=None):
        norm = norm or self.norm
        if norm != "none":
            x = x if self.f["rms"] else x - x.mean(-1, keepdims=True)
            eps = self.config.get("layer_norm_epsilon") or self.config.get("layer_norm_eps") or self.config.get("rms_norm_eps")
            scale = np.sqrt((x * x).mean(-1, keepdims=True) + eps) if norm == "recompute" else 1
            x = x / scale * (self.f["offset"] + self.w[f"{self.f['norm']}.weight"])
            x = x + self.w.get(f"{self.f['norm']}.bias", 0) if norm == "recompute" else x
        z = x @ self.head.T
        cap = self.config.get("final_logit_softcapping") if norm == "recompute" else None
        return cap * np.tanh(z / cap) if cap else z

    def promoted(self, layer, sign):
        """[F,V] logits of the values, or of their negatives."""
        if (layer, sign) not in self.made:
            linear = sign < 0 and self.norm != "recompute"  # else the norm's bias is not turned over
            self.made[layer, sign] = -self.promoted(layer, 1) if linear else self.logits(sign * self.values(layer))
        return self.made[layer, sign]

    def at(self, layer, site):
        return self.raw[f"blocks.{layer}.{site}"].astype(np.float64)

    def triggers(self, layer, site, sign, k):
        """[F] lists of rows, best first: each document once, none behind which the text ends."""
        x = sign * self.raw[f"blocks.{layer}.{site}"]
        rows = np.flatnonzero(self.counted & (self.next >= 0))
        out = []
        for u in range(x.shape[1]):
            best = {}
            for r in rows[np.lexsort((rows, -x[rows, u]))]:
                best.setdefault(self.doc[r], r)
            out.append(sorted(best.values(), key=lambda r: (-x[r, u], r))[:k])
        return out

    def figures(self, layer, site, sign, k):
        """A line of --per layer, but for the split; ranks [F, k]."""
        logits = self.promoted(layer, sign)
        top, found = logits.argmax(1), self.triggers(layer, site, sign, k)
        next_ = [self.next[rows] for rows in found]
        match = [n == t for n, t in zip(next_, top)]
        ranks = [[1 + int((z > z[t]).sum() + (z[:t] == z[t]).sum()) for t in n] for z, n in zip(logits, next_)]
        a, b = Counter(top.tolist()), Counter(int(n[0]) for n in next_)
        return {"keys": len(top), "agree": sum(int(m[0]) for m in match), "any": sum(bool(m.any()) for m in match),
                "places": sum(map(len, next_)), "matches": sum(int(m.sum()) for m in match),
                "chance": sum(a[t] * b[t] for t in a) / len(top) ** 2, "rank": np.median([r[0] for r in ranks])}, ranks

    def split(self, layer):
        pick = lambda x: x[self.counted]
        parallel = f"blocks.{layer}.hook_resid_mid" not in self.raw
        r = self.raw[f"blocks.{layer}.hook_resid_pre"] + self.raw[f"blocks.{layer}.hook_attn_out"] if parallel else self.at(layer, "hook_resid_mid")
        r, y, o = (self.logits(pick(x.astype(np.float64))).argmax(1) for x in (r, self.at(layer, "hook_mlp_out"), self.at(layer, "hook_resid_post")))
        final = self.logits(pick(self.at(self.layers - 1, "hook_resid_post")), "recompute").argmax(1)
        m = pick(self.at(layer, "mlp.hook_post"))
        up, down = (self.promoted(layer, s).argmax(1) for s in (1, -1))
        acting = [(((up == t) & (c > 0)) | ((down == t) & (c < 0))).any() for t, c in zip(y, m)]
        n = [len(r), (o == r) & (o != y), (o == y) & (o != r), (o == r) & (o == y), (o != r) & (o != y), (r == y) & (o != r),
             ~np.array(acting), ~np.isin(y, up), m > 0, m < 0, len(r), r == final, o == final, 0]
        return dict(zip(COUNTS, (int(np.sum(x)) for x in n)))


# --- the same of the tool

def table(*args):
    lines = weir("kv-read", "--quiet", "--format", "tsv", *args).ok().out.decode().splitlines()
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"))) for line in lines[1:]]


def numbers(line):
    return {k: float(v) for k, v in line.items() if k not in ("layer", "unit", "key", "sign", "text", "top")}


def differences(line, want):
    """Names of what a line of --per layer has wrong. Ranks are of fp32 logits: neighbours may change places."""
    got = numbers(line)
    return [k for k, x in want.items() if not np.isclose(got[k], x, rtol=5e-3 if k == "rank" else 1e-8, atol=1 if k == "rank" else 0)]


SITE = {"coefficient": "mlp.hook_post", "gate": "mlp.hook_pre", "up": "mlp.hook_pre_linear"}
HOOKS = "*resid_mid,*resid_pre,*attn_out,*mlp_out,*resid_post,*mlp.hook_post,*mlp.hook_pre,*mlp.hook_pre_linear"
TEXT = ["Boulder is in the state of Colorado.", "The king lived in France.", "John gave the apple to Mary."]


def random_ids(vocab, seed=4):
    rng = np.random.default_rng(seed)
    return [" ".join(map(str, rng.integers(0, vocab, n))) for n in (20, 3, 17, 11, 20, 2)]


def world(tmp_path, name, norm, text, masked=0, more=()):
    path = BROOK if name == "brook" else GOLDEN / name
    hooks = ",".join(h for h in HOOKS.split(",") if h not in {"*resid_mid"} or "parallel" not in name)
    hooks = hooks if name.startswith(("llama", "gemma", "mistral")) else hooks.replace(",*mlp.hook_pre_linear", "")
    args = ["--model", path, *more, *text]
    trace("--quiet", "--hooks", hooks, "--dump", tmp_path / "d.h5", *args).ok()
    return World(path, tmp_path / "d.h5", norm, masked), args + ["--norm", norm]


def model_world(tmp_path, name, norm):
    vocab = json.loads((GOLDEN / name / "config.json").read_text())["vocab_size"]
    w, args = world(tmp_path, name, norm, random_ids(vocab), more=("--ids", "--bos", "no"))
    return w, args + ["--mask", "none"]


MODELS = [("gpt2", "none", ["coefficient"]), ("gpt2", "recompute", ["coefficient"]), ("neox-parallel", "gain", ["coefficient"]),
          ("llama-gqa-bf16", "none", list(SITE)), ("gemma2", "none", list(SITE)), ("gemma2", "recompute", list(SITE))]


@pytest.mark.parametrize("name,norm,keys", MODELS)
def test_layers_of_every_kind_of_model(tmp_path, name, norm, keys):
    """Ungated and gated, tied and untied, [in, out] and [out, in], a norm behind the MLP, parallel blocks."""
    w, args = model_world(tmp_path, name, norm)
    lines = table("--sign", "both", "-k", "4", *args)
    assert [(x["layer"], x["key"], x["sign"]) for x in lines] == [(str(l), k, s) for l in range(w.layers) for k in keys for s in "+-"]
    for line in lines:
        sign = 1 if line["sign"] == "+" else -1
        want, _ = w.figures(int(line["layer"]), SITE[line["key"]], sign, 4)
        want.update(w.split(int(line["layer"])))
        assert differences(line, want) == [], (line["layer"], line["key"], line["sign"])


def test_the_check_can_fail(tmp_path):
    w, args = model_world(tmp_path, "llama-gqa-bf16", "none")
    line = table("-k", "4", "--layer", "1", "--key", "coefficient", *args)[0]
    own = dict(w.figures(1, SITE["coefficient"], 1, 4)[0], **w.split(1))
    assert differences(line, own) == []
    assert {"rank", "chance"} <= set(differences(line, w.figures(2, SITE["coefficient"], 1, 4)[0]))
    assert {"residual", "composition", "positive", "residual_final"} <= set(differences(line, w.split(0)))
    w.head = w.head[:, ::-1]
    assert {"residual", "composition"} <= set(differences(line, w.split(1)))
    w.head = w.head[:, ::-1]
    w.next = np.roll(w.next, 1)  # the token itself in place of the next one
    assert {"chance", "matches"} <= set(differences(line, w.figures(1, SITE["coefficient"], 1, 4)[0]))


def wrong(ids, probs, logits):
    """A list of likeliest tokens against all logits; tokens closer than fp32 can tell may change places."""
    p = np.exp(logits - logits.max())
    p /= p.sum()
    if len(set(ids)) != len(ids):
        return "a token twice"
    if not np.allclose(p[ids], probs, rtol=2e-5, atol=0):
        return "probabilities"
    return None if np.allclose(np.sort(p)[::-1][:len(ids)], p[ids], rtol=2e-5, atol=0) else "tokens"


@pytest.mark.parametrize("name,norm", [("llama-gqa-bf16", "none"), ("gemma2", "recompute"), ("neox-parallel", "gain")])
def test_values_and_triggers_of_all_memories(tmp_path, name, norm):
    w, args = model_world(tmp_path, name, norm)
    layer, k, tokens = 1, 3, 4
    both = ("--layer", layer, "--sign", "both", "-k", k, "--key", "coefficient", "--tokens", tokens, *args)
    logits = {s: w.promoted(layer, x) for s, x in (("+", 1), ("-", -1))}
    values = table("--per", "value", *both)
    assert len(values) == 2 * tokens * len(logits["+"])
    for first in range(0, len(values), tokens):
        some = values[first:first + tokens]
        unit, sign = int(some[0]["unit"]), some[0]["sign"]
        ids, probs = [int(x["id"]) for x in some], [float(x["prob"]) for x in some]
        assert wrong(ids, probs, logits[sign][unit]) is None, (unit, sign)
        assert wrong(ids, probs, logits[sign][(unit + 1) % len(logits[sign])]) == "probabilities"
    place = {(d, p): r for r, (d, p) in enumerate(zip(w.doc.tolist(), w.pos.tolist()))}
    x = w.raw[f"blocks.{layer}.mlp.hook_post"]
    for s, sign in (("+", 1), ("-", -1)):
        found, (_, ranks) = w.triggers(layer, "mlp.hook_post", sign, k), w.figures(layer, "mlp.hook_post", sign, k)
        lines = [t for t in table("--per", "trigger", *both) if t["sign"] == s]
        got = [[t for t in lines if int(t["unit"]) == u] for u in range(x.shape[1])]
        rows = [[place[int(t["doc"]), int(t["pos"])] for t in g] for g in got]
        assert rows == found
        assert all(np.float32(t["value"]) == x[r, u] and int(t["next"]) == w.next[r] and int(t["id"]) == w.id[r]
                   for u in range(x.shape[1]) for t, r in zip(got[u], rows[u]))
        assert max(abs(int(t["next_rank"]) - r) for u in range(x.shape[1]) for t, r in zip(got[u], ranks[u])) <= 1
        keys = [line for line in table("--per", "key", *both) if line["sign"] == s]
        assert [int(x["agree"]) for x in keys] == [sum(w.next[r] == logits[s][u].argmax() for r in found[u]) for u in range(x.shape[1])]


def test_brook_with_its_text(tmp_path):
    w, args = world(tmp_path, "brook", "none", TEXT, masked=3)
    want, _ = w.figures(5, SITE["coefficient"], 1, 10)
    assert differences(table("--layer", "5", *args)[0], dict(want, **w.split(5))) == []


# --- one result however it is made

@pytest.mark.parametrize("name", ["gpt2", "gemma2"])
def test_the_result_does_not_depend_on_how_it_is_made(name):
    vocab = json.loads((GOLDEN / name / "config.json").read_text())["vocab_size"]
    args = ("kv-read", "--quiet", "--json", "--model", GOLDEN / name, "--ids", "--mask", "none", "--bos", "no", "--sign", "both", *random_ids(vocab))
    whole = weir(*args).ok().out
    for more in (("--threads", "1", "--batch", "7"), ("--kernel", "ref"), ("--kernel", "avx2", "--threads", "3", "--batch", "30")):
        assert weir(*args, *more).ok().out == whole, more
    assert weir(*args, "--norm", "gain").ok().out != whole


def test_every_draws_the_same_positions():
    args = ("--model", GOLDEN / "gpt2", "--ids", "--bos", "no", "--mask", "none", "--layer", "1", *random_ids(67))
    whole, some = table(*args)[0], table(*args, "--every", "3")[0]
    assert 0 < int(some["rows"]) < int(whole["rows"]) and table(*args, "--every", "3", "--batch", "7")[0] == some
    assert [some[k] for k in ("keys", "agree", "rank")] == [whole[k] for k in ("keys", "agree", "rank")]
    drawn = {table(*args, "--every", "3", "--seed", seed)[0]["positive"] for seed in (0, 1, 2)}
    assert len(drawn) > 1


def test_text_json_and_svg_say_the_same(tmp_path):
    args = ("--layer", "5", "--neurons", "L5N12", "-k", "2", *TEXT)
    whole = weir("kv-read", "--json", *args).ok().json
    assert whole["format"] == "weir-kv-read" and [m["unit"] for m in whole["memories"]] == [12]
    line = table(*args)[0]
    layer = whole["layers"][0]
    assert {k: str(v) for k, v in layer["split"].items()} == {k: line[k] for k in layer["split"]}
    assert layer["agreement"][0]["agree"] == int(line["agree"]) and layer["agreement"][0]["median_rank"] == float(line["rank"])
    split = layer["split"]
    assert sum(split[k] for k in ("residual", "mlp", "agreement", "composition")) == split["rows"] and split["apart"] == 0
    text = weir("kv-read", *args).ok().out.decode()
    trigger = whole["memories"][0]["keys"][0]["triggers"][0]
    assert "\nL5N12\n  value promotes" in text and f'-> "{trigger["next_text"]}" (rank {trigger["next_rank"]})' in text
    assert trigger["prefix"].endswith(trigger["text"])
    assert weir("kv-read", *args, "-o", tmp_path / "s.svg").ok().out == b""
    weir("kv-read", *args, "-o", tmp_path / "s.svg").ok()  # an earlier output may be replaced
    assert "layer 5, residual: " in (tmp_path / "s.svg").read_text()


TINY = ("--ids", "--bos", "no", "--mask", "none", "--layer", "1", *random_ids(67))


def test_certain_values_come_first():
    args = ("--model", GOLDEN / "gpt2", *TINY)
    memories = weir("kv-read", "--json", "--limit", "6", *args).ok().json["memories"]
    sure = [m["value"][0]["prob"] for m in memories]
    every = sorted((float(x["top_prob"]) for x in table("--per", "key", *args)), reverse=True)
    assert len(sure) == 6 and np.allclose(sure, every[:6], rtol=1e-8)


def test_a_value_that_is_changed_promotes_something_else(tmp_path):
    """One large number in the value: it promotes the token whose unembedding is largest there."""
    model, args = GOLDEN / "gpt2", ("--per", "key", "--neurons", "L1N12", *TINY)
    e = next(x for name, x in weights(model).items() if name.endswith("wte.weight"))
    before = table("--model", model, *args)[0]
    column = int(np.abs(e[int(before["next"])]).argmax())
    size = 6000 * np.sign(e[int(before["next"]), column])
    after = table("--model", copy_with(model, tmp_path / "m", "h.1.mlp.c_proj.weight", (12, column), size), *args)[0]
    assert int(after["top_id"]) == int((e[:, column] * size).argmax()) != int(before["top_id"])
    assert float(after["top_prob"]) > 0.9 > 0.1 > float(before["top_prob"])


def test_what_is_not_finite_is_lost_and_said(tmp_path):
    model = ("--model", copy_with(GOLDEN / "gpt2", tmp_path / "m", "wpe.weight", (5, 9), np.nan))
    line = table(*model, *TINY)[0]
    assert 0 < int(line["lost"]) and int(line["rows"]) > 0
    assert "not finite" in weir("kv-read", "--quiet", *model, *TINY).ok().out.decode()


def test_complaints(tmp_path):
    weir("kv-read", "--layer", "99", "x").fails(2, "--layer")
    weir("kv-read", "--key", "gate", "x").fails(2, "--key gate", "brook")
    weir("kv-read", "--neurons", "L3N999", "x").fails(2, "999", "768")
    weir("kv-read", "--neurons", "L3N9", "--layer", "4", "x").fails(2, "layer 3 is not among")
    weir("kv-read", "--per", "key", "x").fails(2, "--per")
    weir("kv-read", "--limit", "3", "--format", "tsv", "x").fails(2, "--limit")
    weir("kv-read", "--json", "--format", "tsv", "x").fails(2, "--json")
    weir("kv-read", "--mask", "nothing", "x").fails(2, "--mask")
    weir("kv-read", "--quiet", "--file", "-", stdin=b"\n").fails(1, "holds no document")
    (tmp_path / "mine.txt").write_text("dear diary")
    weir("kv-read", "-o", tmp_path / "mine.txt", "x").fails(1, "mine.txt exists")


@pytest.mark.parametrize("name", ["gpt2", "neox-parallel", "llama-gqa-bf16", "gemma2"])
def test_how_a_file_stores_its_matrices_does_not_show(name):
    """[in, out] of GPT-2's checkpoint, [out, in] of the same model's GGUF file."""
    vocab = json.loads((GOLDEN / name / "config.json").read_text())["vocab_size"]
    args = ("--ids", "--mask", "none", "--bos", "no", "--per", "value", *random_ids(vocab))
    assert table("--model", GOLDEN / name, *args) == table("--model", GOLDEN / f"{name}.gguf", *args)
