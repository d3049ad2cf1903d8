"""The forward pass of the tiny models of tests/golden in float64, with numpy alone and independently of the library, for central
differences: `Model(directory).run(ids, edit)` calls edit(name, value) at every hook point and goes on with what that returns."""
import json
import math
import struct
from pathlib import Path

import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def read_safetensors(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        x = np.frombuffer(data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]], TYPES[t["dtype"]])
        if t["dtype"] == "BF16":
            x = (x.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = x.astype(np.float64).reshape(t["shape"])
    return tensors


erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}
ACTIVATIONS["gelu_pytorch_tanh"] = ACTIVATIONS["gelu_new"]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, directory):
        directory = Path(directory)
        c = json.loads((directory / "config.json").read_text())
        self.config, self.family = c, c["model_type"]
        self.w = {}
        for f in sorted(directory.glob("*.safetensors")):
            self.w.update(read_safetensors(f))
        self.L = c.get("num_hidden_layers") or c["n_layer"]
        self.C = c.get("hidden_size") or c["n_embd"]
        self.H = c.get("num_attention_heads") or c["n_head"]
        self.K = c.get("num_key_value_heads") or self.H
        self.D = c.get("head_dim") or self.C // self.H
        self.V = c["vocab_size"]
        self.gemma, self.neox, self.gpt2 = (self.family == f for f in ("gemma2", "gpt_neox", "gpt2"))
        self.rms = not (self.neox or self.gpt2)
        self.eps = c.get("rms_norm_eps") or c.get("layer_norm_eps") or c["layer_norm_epsilon"]
        self.act = ACTIVATIONS[c.get("hidden_activation") or c.get("hidden_act") or c["activation_function"]]
        self.cap, self.final_cap = c.get("attn_logit_softcapping"), c.get("final_logit_softcapping")
        self.scale = (c.get("query_pre_attn_scalar") or self.D) ** -0.5
        if not self.gpt2:
            self.rotary()

    # --- what a family calls its weights

    def layer(self, l):
        """Norms (weight, bias) and matrices [in, out] with their biases, by weir's names."""
        w = self.w
        if self.gpt2:
            p = f"transformer.h.{l}."
            q, k, v = np.split(w[p + "attn.c_attn.weight"], 3, 1)
            bq, bk, bv = np.split(w[p + "attn.c_attn.bias"], 3)
            both = lambda n: (w[p + n + ".weight"], w[p + n + ".bias"])
            return {"ln1": both("ln_1"), "ln2": both("ln_2"), "q": (q, bq), "k": (k, bk), "v": (v, bv), "o": both("attn.c_proj"),
                    "pre": both("mlp.c_fc"), "down": both("mlp.c_proj")}
        if self.neox:
            p = f"gpt_neox.layers.{l}."
            both = lambda n: (w[p + n + ".weight"].T, w[p + n + ".bias"])
            qkv, b = both("attention.query_key_value")
            qkv = qkv.reshape(self.C, self.H, 3, self.D)
            b = b.reshape(self.H, 3, self.D)
            part = lambda i: (qkv[:, :, i].reshape(self.C, -1), b[:, i].reshape(-1))
            return {"ln1": both("input_layernorm"), "ln2": both("post_attention_layernorm"), "q": part(0), "k": part(1), "v": part(2),
                    "o": both("attention.dense"), "pre": both("mlp.dense_h_to_4h"), "down": both("mlp.dense_4h_to_h")}
        p = f"model.layers.{l}."
        one = lambda n: (w[p + n + ".weight"].T, w.get(p + n + ".bias", 0))
        norm = lambda n: (w[p + n + ".weight"] + self.gemma, 0)
        y = {n[0]: one(f"self_attn.{n}_proj") for n in "qkvo"}
        y.update(pre=one("mlp.gate_proj"), up=one("mlp.up_proj"), down=one("mlp.down_proj"), ln1=norm("input_layernorm"))
        if self.gemma:
            y.update(ln1_post=norm("post_attention_layernorm"), ln2=norm("pre_feedforward_layernorm"),
                     ln2_post=norm("post_feedforward_layernorm"))
        else:
            y["ln2"] = norm("post_attention_layernorm")
        if self.family == "qwen3":
            y.update({n: norm(f"self_attn.{n}") for n in ("q_norm", "k_norm")})
        return y

    def ends(self):
        """Token table, final norm, unembedding [C, V]."""
        w = self.w
        if self.gpt2:
            return w["transformer.wte.weight"], (w["transformer.ln_f.weight"], w["transformer.ln_f.bias"]), w["transformer.wte.weight"].T
        if self.neox:
            return (w["gpt_neox.embed_in.weight"], (w["gpt_neox.final_layer_norm.weight"], w["gpt_neox.final_layer_norm.bias"]),
                    w["embed_out.weight"].T)
        table = w["model.embed_tokens.weight"]
        return table, (w["model.norm.weight"] + self.gemma, 0), (table if self.config["tie_word_embeddings"] else w["lm_head.weight"]).T

    # --- the parts

    def rotary(self):
        c = self.config
        rope = c.get("rope_parameters") or {}
        scaling = c.get("rope_scaling") or {}
        self.rot = int(self.D * rope.get("partial_rotary_factor", 1))
        theta = rope.get("rope_theta") or c["rope_theta"]
        f = theta ** -(np.arange(0, self.rot, 2) / self.rot)
        if scaling.get("rope_type") == "llama3":
            turns = scaling["original_max_position_embeddings"] * f / (2 * math.pi)
            low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
            smooth = np.clip((turns - low) / (high - low), 0, 1)
            f = f * (smooth + (1 - smooth) / factor)
        self.frequency = f

    def turn(self, x):
        """[T, heads, D]"""
        angle = np.arange(len(x))[:, None, None] * self.frequency
        h = self.rot // 2
        a, b = x[..., :h], x[..., h:self.rot]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle), x[..., self.rot:]], -1)

    def norm(self, see, name, x, weights, out=True):
        gain, bias = weights
        mean = 0 if self.rms else x.mean(-1, keepdims=True)
        # the scale is what it is before anybody writes to it; the mean is no point
        scale = see(f"{name}.hook_scale", np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + self.eps))
        y = see(f"{name}.hook_normalized", (x - mean) / scale) * gain + bias
        return see(f"{name}.hook_out", y) if out else y

    def attention(self, see, l, h, w):
        T, p = len(h), f"blocks.{l}."
        q, k, v = (see(f"{p}attn.hook_{n}", (h @ w[n][0] + w[n][1]).reshape(T, -1, self.D)) for n in "qkv")
        if "q_norm" in w:
            q, k = (self.norm(see, f"{p}attn.{n}", x, w[n]) for n, x in (("q_norm", q), ("k_norm", k)))
        if not self.gpt2:
            q, k = see(f"{p}attn.hook_rot_q", self.turn(q)), see(f"{p}attn.hook_rot_k", self.turn(k))
        group = self.H // self.K
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        s = np.einsum("qhd,khd->qhk", q, k) * self.scale
        if self.cap:
            s = self.cap * np.tanh(s / self.cap)
        window = self.config.get("sliding_window")
        if self.config.get("layer_types", ["sliding_attention"] * self.L)[l] != "sliding_attention":
            window = None
        i, j = np.arange(T)[:, None], np.arange(T)[None]
        seen = (j <= i) & (i - j < (window or T))
        s = np.where(seen[:, None], see(f"{p}attn.hook_attn_scores", np.where(seen[:, None], s, -np.inf)), -np.inf)
        pattern = np.where(seen[:, None], see(f"{p}attn.hook_pattern", softmax(s)), 0)
        z = see(f"{p}attn.hook_z", np.einsum("qhk,khd->qhd", pattern, v))
        each = see(f"{p}attn.hook_result", np.einsum("thd,hdc->thc", z, w["o"][0].reshape(self.H, self.D, -1)))
        y = each.sum(1) + w["o"][1]
        if self.gemma:
            y = self.norm(see, f"{p}ln1_post", y, w["ln1_post"], out=False)
        return see(f"{p}hook_attn_out", y)

    def mlp(self, see, l, h, w):
        p = f"blocks.{l}."
        pre = see(f"{p}mlp.hook_pre", h @ w["pre"][0] + w["pre"][1])
        post = self.act(pre)
        if "up" in w:
            post = post * see(f"{p}mlp.hook_pre_linear", h @ w["up"][0])
        y = see(f"{p}mlp.hook_post", post) @ w["down"][0] + w["down"][1]
        if self.gemma:
            y = self.norm(see, f"{p}ln2_post", y, w["ln2_post"], out=False)
        return see(f"{p}hook_mlp_out", y)

    def run(self, ids, edit=None, begin=0, stream=None):
        """Logits [T, V] of one sequence. begin, stream: from this layer on, with the stream that is given."""
        see = edit or (lambda name, x: x)
        table, final, head = self.ends()
        x = stream
        if x is None:
            x = see("hook_embed", table[ids] * (float(np.float32(math.sqrt(self.C))) if self.gemma else 1))
            if self.gpt2:
                x = x + see("hook_pos_embed", self.w["transformer.wpe.weight"][:len(ids)])
        for l in range(begin, self.L):
            w = self.layer(l)
            x = see(f"blocks.{l}.hook_resid_pre", x)
            a = self.attention(see, l, self.norm(see, f"blocks.{l}.ln1", x, w["ln1"]), w)
            if not self.neox:
                x = see(f"blocks.{l}.hook_resid_mid", x + a)
            m = self.mlp(see, l, self.norm(see, f"blocks.{l}.ln2", x, w["ln2"]), w)
            x = see(f"blocks.{l}.hook_resid_post", x + (a + m if self.neox else m))
        h = see("unembed.hook_in", self.norm(see, "ln_final", x, final))
        y = see("unembed.hook_out", h @ head)
        if self.final_cap:
            y = see("hook_logits", self.final_cap * np.tanh(y / self.final_cap))
        return y


def log_softmax(x):
    m = x.max(-1, keepdims=True)
    return x - m - np.log(np.exp(x - m).sum(-1, keepdims=True))


def scalar(logits, terms):
    """The sum of terms (kind, row, token, weight, log q)."""
    lp = log_softmax(logits)
    total = 0
    for kind, row, token, weight, log_q in terms:
        total += weight * {"nll": lambda: -lp[row, token], "logit": lambda: logits[row, token],
                           "kl": lambda: (np.exp(lp[row]) * (lp[row] - log_q)).sum()}[kind]()
    return total
