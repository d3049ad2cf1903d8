"""logit-lens as numpy in float64, and readers of its outputs, for the tests of this directory. It knows the checkpoint's own files and the
rows that `weir trace` recorded, and nothing of how weir computes."""
import json

import h5py
import numpy as np

from checkpoints import weights
from weircli import weir

STATS = ("prob", "logit", "rank", "entropy", "kl", "kl_prev", "jsd", "ce", "contrast")
STREAM = "blocks.0.hook_resid_pre,blocks.*.hook_resid_post"
EVERYTHING = "blocks.*.{hook_resid_pre,hook_resid_mid,hook_resid_post,hook_attn_out,hook_mlp_out}"


# --- the model

class Model:
    """The end of a model: final norm, unembedding, soft cap."""

    def __init__(self, path):
        c = json.loads((path / "config.json").read_text())
        w = weights(path)

        def find(*ends):
            return next((w[n] for e in ends for n in w if n == e or n.endswith("." + e)), None)

        self.rms = "rms_norm_eps" in c
        self.eps = next(c[k] for k in ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon") if c.get(k) is not None)
        self.gain = find("ln_f.weight", "final_layer_norm.weight", "model.norm.weight") + (c["model_type"].startswith("gemma"))
        self.bias = find("ln_f.bias", "final_layer_norm.bias")
        self.head = find("lm_head.weight", "embed_out.weight", "wte.weight", "embed_tokens.weight")
        self.head_bias = find("lm_head.bias")
        self.cap = c.get("final_logit_softcapping")
        self.L = c.get("num_hidden_layers") or c["n_layer"]
        self.V = self.head.shape[0]

    def scale(self, x):
        y = x if self.rms else x - x.mean(axis=-1, keepdims=True)
        return np.sqrt((y * y).mean(axis=-1, keepdims=True) + self.eps)

    def logits(self, x, norm="recompute", final=None, cap=True, vocab=None):
        x = x.astype(np.float64)
        if norm != "none":
            scale = self.scale(x if norm == "recompute" else final.astype(np.float64))
            x = (x if self.rms else x - x.mean(axis=-1, keepdims=True)) / scale * self.gain
            x = x + self.bias if self.bias is not None else x
        z = x @ self.head.T
        z = z + self.head_bias if self.head_bias is not None else z
        if self.cap and cap:
            z = self.cap * np.tanh(z / self.cap)
        z = z.copy()
        z[..., vocab or self.V:] = -np.inf
        return z

    def logprobs(self, x, **more):
        return log_softmax(self.logits(x, **more))


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def kl(p, q):
    """KL(p || q) of log-probabilities."""
    with np.errstate(invalid="ignore"):
        return np.where(p > -np.inf, np.exp(p) * (p - q), 0).sum(axis=-1)


def jsd(p, q):
    m = np.logaddexp(p, q) - np.log(2)
    return (kl(p, m) + kl(q, m)) / 2


# --- the rows

class Rows:
    """The dump: tokens, and the stream at each line of a table."""

    def __init__(self, path):
        with h5py.File(path) as f:
            self.id, self.doc, self.pos = (f[f"tokens/{n}"][:] for n in ("id", "doc", "pos"))
            self.hooks = {name: d[:] for name, d in f["activations"].items() if d.ndim == 2}
        follows = (self.doc[1:] == self.doc[:-1]) & (self.pos[1:] == self.pos[:-1] + 1)
        self.next = np.where(np.append(follows, False), np.append(self.id[1:], 0), -1)


def order(model, sites, layers=None, norm="recompute"):
    """[(line, hook, index of the line before it or None)] as README.md says."""
    lines = []

    def add(name, hook, site):
        before = [i for i, line in enumerate(lines) if line[2] == site]
        lines.append((name, hook, site, before[-1] if before else None))

    last = model.L - 1
    if "resid_post" in sites and layers is None:
        add("embed", "blocks.0.hook_resid_pre", "resid_post")
    for layer in range(model.L) if layers is None else layers:
        for site, mark in (("resid_pre", " pre"), ("attn_out", " attn"), ("resid_mid", " mid"), ("mlp_out", " mlp"), ("resid_post", "")):
            if site in sites and not (site == "resid_post" and layer == last and norm == "recompute"):
                add(f"L{layer}{mark}", f"blocks.{layer}.hook_{site}", site)
    stream = [i for site in ("resid_post", "resid_mid", "resid_pre") for i in [[j for j, x in enumerate(lines) if x[2] == site]] if i]
    lines.append(("out", f"blocks.{last}.hook_resid_post", "resid_post", stream[0][-1] if stream else None))
    return [(name, hook, before) for name, hook, _, before in lines]


def oracle(model, rows, lines, norm="recompute", cap=True, vocab=None, target=None, contrast=None):
    """{line: {"z": logits, statistics...}}, arrays over rows."""
    final_rows = rows.hooks[lines[-1][1]]
    final = model.logits(final_rows, cap=cap, vocab=vocab)
    f = log_softmax(final)
    every = np.arange(len(rows.id))
    out, p = {}, []
    for name, hook, before in lines:
        z = final if name == "out" else model.logits(rows.hooks[hook], norm, final_rows, cap, vocab)
        lp = log_softmax(z)
        p.append(lp)
        asked = {"next": rows.next, "final": final.argmax(axis=1), None: None}.get(target, np.full(len(every), target) if target else None)
        own = z.argmax(axis=1) if asked is None else asked
        ranked = final.argmax(axis=1) if asked is None else asked

        def at(table, ids):
            ids = np.where(ids < (vocab or model.V), ids, -1)
            return np.where(ids >= 0, table[every, ids], np.nan)

        s = {"z": z, "prob": np.exp(at(lp, own)), "logit": at(z, own), "ranked": ranked, "entropy": kl(lp, np.zeros_like(lp)) * -1,
             "kl": kl(f, lp), "kl_prev": kl(lp, p[before]) if before is not None else np.full(len(every), np.nan), "jsd": jsd(lp, f),
             "ce": -at(lp, rows.next)}
        if contrast:
            s["contrast"] = z[:, contrast[0]] - z[:, contrast[1]]
        out[name] = s
    return out


# --- the outputs

class Table:
    """A TSV: head, columns, and {(doc, pos, line): {column: text}}."""

    def __init__(self, text):
        head, columns, *lines = text.decode().split("\n")
        assert lines.pop() == ""
        self.head = json.loads(head.removeprefix("# "))
        self.columns = columns.split("\t")
        self.cells = {}
        for line in lines:
            cell = dict(zip(self.columns, line.split("\t"), strict=True))
            key = int(cell["doc"]), int(cell["pos"]), cell["line"]
            assert key not in self.cells
            self.cells[key] = cell

    @property
    def lines(self):
        return [line["line"] for line in self.head["lines"]]

    def number(self, doc, pos, line, column):
        text = self.cells[doc, pos, line][column]
        return None if text == "" else float(text)


def tsv(*args, **more):
    return Table(weir("logit-lens", "--format", "tsv", *args, **more).ok().out)


def records(*args, **more):
    """NDJSON: head, positions."""
    head, *rest = map(json.loads, weir("logit-lens", "--format", "ndjson", *args, **more).ok().out.splitlines())
    return head, rest


# --- comparing

def compare(table, rows, want, k=1, near=2e-5):
    """What of a table differs from the oracle, as text. near: relative error of logits, by the row's largest magnitude."""
    wrong, seen = [], 0
    for r in range(len(rows.id)):
        for name, s in want.items():
            key = int(rows.doc[r]), int(rows.pos[r]), name
            cell = table.cells.get(key)
            if cell is None:
                wrong.append(f"{key} is missing")
                continue
            seen += 1
            z = s["z"][r]
            eps = near * np.abs(z[np.isfinite(z)]).max()
            wrong += [f"{key} {what}" for what in differences(cell, s, r, z, eps, k)]
    if seen != len(table.cells):
        wrong.append(f"{len(table.cells) - seen} cells too many")
    return wrong


def differences(cell, s, r, z, eps, k):
    for stat in STATS:
        text = cell[stat]
        if stat == "rank":
            ranked = s["ranked"][r]
            least, most = (1 + np.count_nonzero(z > z[ranked] + sign * eps) for sign in (1, -1)) if 0 <= ranked < len(z) else (0, 0)
            if ranked >= 0 and np.isfinite(z[ranked]) and not least <= int(text) <= most or ranked < 0 and text != "0":
                yield f"rank {text}, not {least} to {most}"
        elif stat not in s:
            if text != "":
                yield f"{stat} {text}, but it was not asked for"
        elif np.isnan(want := s[stat][r]):
            if text != "nan":
                yield f"{stat} {text}, not nan"
        elif not abs(float(text) - want) <= (2 * eps * want + 1e-38 if stat == "prob" else eps if stat == "logit" else 4 * eps + 1e-6):
            yield f"{stat} {text}, not {want}"
    p, best = np.exp(log_softmax(z)), np.sort(z)[::-1]
    for j in range(1, k + 1):
        if cell[f"top{j}_id"] == "":
            yield f"top{j} is missing"
            continue
        i = int(cell[f"top{j}_id"])
        if not abs(z[i] - best[j - 1]) <= eps or not abs(float(cell[f"p{j}"]) - p[i]) <= 2 * eps * p[i] + 1e-38:
            yield f"top{j} is token {i} of {float(cell[f'p{j}'])}, which has logit {z[i]}, not {best[j - 1]}, and probability {p[i]}"
