"""The final stream taken apart in numpy, float64: from the values that `weir trace` recorded and the checkpoint's own weights.

    w = World("tests/golden/models/gemma2", dump)
    parts = w.parts(position, target)       # {("attn", 1, None): Part(norm, cosine, share, logit), ...}
"""
import json
from collections import namedtuple
from pathlib import Path

import h5py
import numpy as np

from checkpoints import weights

Part = namedtuple("Part", "norm cosine share logit")

# Where each family keeps what attribution needs; {} is the layer. o and down as [in, out] once `turned` is applied.
GPT2 = dict(o="transformer.h.{}.attn.c_proj", down="transformer.h.{}.mlp.c_proj", norm="transformer.ln_f", embed="transformer.wte",
            turned=False, rms=False, offset=0)
NEOX = dict(o="gpt_neox.layers.{}.attention.dense", down="gpt_neox.layers.{}.mlp.dense_4h_to_h", norm="gpt_neox.final_layer_norm",
            embed="gpt_neox.embed_in", head="embed_out", turned=True, rms=False, offset=0)
LLAMA = dict(o="model.layers.{}.self_attn.o_proj", down="model.layers.{}.mlp.down_proj", norm="model.norm", embed="model.embed_tokens",
             head="lm_head", turned=True, rms=True, offset=0)
GEMMA2 = dict(LLAMA, offset=1, attn_norm="model.layers.{}.post_attention_layernorm", mlp_norm="model.layers.{}.post_feedforward_layernorm")
FAMILY = {"gpt2": GPT2, "gpt_neox": NEOX, "llama": LLAMA, "gemma2": GEMMA2, "qwen2": LLAMA, "qwen3": LLAMA}


def hooks(path):
    """What to record for all of it."""
    model = json.loads((Path(path) / "config.json").read_text())["model_type"]
    post = ",*_post.hook_scale,hook_logits" if model == "gemma2" else ""
    return "hook_*embed,*hook_attn_out,*hook_mlp_out,*hook_z,*mlp.hook_post,*hook_resid_post,ln_final.hook_scale,unembed.hook_out" + post


class World:
    def __init__(self, path, dump):
        self.config = json.loads((Path(path) / "config.json").read_text())
        self.f = FAMILY[self.config["model_type"]]
        self.w = weights(Path(path))
        if not any(k.startswith("transformer.") for k in self.w) and self.f is GPT2:
            self.w = {"transformer." + k: x for k, x in self.w.items()}
        with h5py.File(dump) as f:
            self.raw = {k: d[:] for k, d in f["activations"].items()}  # fp32, as recorded
            self.ids = f["tokens/id"][:].tolist()
            self.heads = int(f["activations/blocks.0.attn.hook_z"].attrs["heads"])
        self.layers = 1 + max(int(k.split(".")[1]) for k in self.raw if k.startswith("blocks."))
        self.stream32 = self.raw[f"blocks.{self.layers - 1}.hook_resid_post"]
        self.rows = len(self.stream32)
        self.parallel = bool(self.config.get("use_parallel_residual", False))

    def at(self, hook, row):
        return self.raw[hook][row].astype(np.float64)

    def tensor(self, role, layer=None, part="weight"):
        return self.w.get(f"{self.f[role].format(layer)}.{part}") if role in self.f else None

    def unembedding(self, token):
        head = self.tensor("head")
        return (self.tensor("embed") if head is None else head)[token]

    def logit(self, token, row):
        """The model's own, before a soft cap."""
        return self.at("unembed.hook_out", row)[token]

    def constant(self, token):
        bias = self.tensor("norm", part="bias")
        return 0.0 if bias is None else bias @ self.unembedding(token)

    def attribution(self, v, token, row):
        """The logit's share of a vector of the stream: centred (LayerNorm), over the cached scale, through gain and unembedding."""
        if not self.f["rms"]:
            v = v - v.mean()
        return v / self.at("ln_final.hook_scale", row)[0] @ ((self.f["offset"] + self.tensor("norm")) * self.unembedding(token))

    def measure(self, v, row, token, against=None):
        x = self.stream32[row].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = v @ x / (np.linalg.norm(v) * np.linalg.norm(x))
        logit = np.nan if token is None else self.attribution(v, token, row)
        if against is not None:
            logit -= self.attribution(v, against, row)
        return Part(np.linalg.norm(v), cosine, v @ x / (x @ x), logit)

    # --- vectors
    def edits(self, row):
        """[(kind, layer, unit), vector] in the order of addition."""
        out = [(("embed", None, None), self.at("hook_embed", row))]
        if "hook_pos_embed" in self.raw:
            out.append((("pos_embed", None, None), self.at("hook_pos_embed", row)))
        for l in range(self.layers):
            out += [(("attn", l, None), self.at(f"blocks.{l}.hook_attn_out", row)), (("mlp", l, None), self.at(f"blocks.{l}.hook_mlp_out", row))]
        return out

    def fp32_sum(self):
        """All rows, added as the model adds them."""
        x = self.raw["hook_embed"]
        if "hook_pos_embed" in self.raw:
            x = x + self.raw["hook_pos_embed"]
        for l in range(self.layers):
            a, m = self.raw[f"blocks.{l}.hook_attn_out"], self.raw[f"blocks.{l}.hook_mlp_out"]
            x = x + (a + m) if self.parallel else x + a + m
        return x

    def through(self, v, row, layer, which):
        """A norm behind the sublayer, its scale held."""
        gain = self.tensor(f"{which}_norm", layer)
        if gain is None:
            return v
        scale = self.at(f"blocks.{layer}.{'ln1' if which == 'attn' else 'ln2'}_post.hook_scale", row)[0]
        return v * (self.f["offset"] + gain) / scale

    def units(self, row, layer, which):
        """Heads ("attn") or neurons ("mlp") of a layer and the bias: [(kind, layer, unit), vector]."""
        role, unit, bias = ("o", "head", "attn_bias") if which == "attn" else ("down", "neuron", "mlp_bias")
        w = self.tensor(role, layer)
        w = w.T if self.f["turned"] else w
        x = self.at(f"blocks.{layer}." + ("attn.hook_z" if which == "attn" else "mlp.hook_post"), row)
        n = self.heads if which == "attn" else len(x)
        x, w = x.reshape(n, -1), w.reshape(n, -1, w.shape[-1])
        out = [((unit, layer, i), self.through(x[i] @ w[i], row, layer, which)) for i in range(n)]
        b = self.tensor(role, layer, "bias")
        if b is not None:
            out.append(((bias, layer, None), self.through(b, row, layer, which)))
        return out

    def parts(self, row, token, against=None):
        found = self.edits(row)
        for l in range(self.layers):
            found += self.units(row, l, "attn") + self.units(row, l, "mlp")
        return {key: self.measure(v, row, token, against) for key, v in found}


def listed(position):
    """The same of one position of `weir decompose --json`: what is listed, in order."""
    lines = position["edits"] + position.get("heads", []) + position.get("neurons", [])
    number = lambda x: np.nan if x is None else x
    return {(p["kind"], p.get("layer"), p.get("unit")): Part(*(number(p[k]) for k in Part._fields)) for p in lines}


def differences(got, want, bound=1e-5):
    """Lines that say where two sets of parts differ; numbers may by `bound` of the largest of their kind."""
    lines = [f"{key}: only in one" for key in sorted(map(str, got.keys() ^ want.keys()))]
    for field in Part._fields:
        sizes = [abs(getattr(v, field)) for v in want.values() if np.isfinite(getattr(v, field))]
        top = max(sizes, default=0.0) or 1.0
        for key in got.keys() & want.keys():
            a, b = getattr(got[key], field), getattr(want[key], field)
            if np.isnan(a) != np.isnan(b) or abs(a - b) > bound * top:
                lines.append(f"{key} {field}: {a} instead of {b}")
    return lines
