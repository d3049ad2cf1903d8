"""What every hook point must hold: the values of Hugging Face's own eager code, in float64 or in its native fp32.

Nothing is computed here a second time that Hugging Face computes: block inputs and outputs come from module hooks; q, k before
and after RoPE from the arguments and results of the model's own apply_rotary_pos_emb; scores and pattern are what its
softmax is given and returns; norm scales are what its rsqrt (RMS) is given. What it never forms is derived from what it does:
hook_result from z and the output projection's weight, the scale of a fused LayerNorm from that LayerNorm's input.

In float64 the casts to float32 of the models (RMSNorm, softmax, Gemma's norms) are switched off; RoPE angles stay as they are:
inverse frequencies and angles are fp32 numbers, their sines and cosines are taken in float64.
"""

import contextlib
import copy
import importlib
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

LLAMA = dict(
    base="model", embed="embed_tokens", pos=None, blocks="layers", ln_final="norm",
    ln1="input_layernorm", attn="self_attn", o="o_proj", ln2="post_attention_layernorm",
    q_norm=None, k_norm=None, ln1_post=None, ln2_post=None, mlp="mlp", up="up_proj", act="act_fn", down="down_proj", parallel=lambda c: False,
)
# Where each part of a block is in Hugging Face's modules.
ROLES = {
    "gpt2": dict(
        LLAMA, base="transformer", embed="wte", pos="wpe", blocks="h", ln_final="ln_f",
        ln1="ln_1", attn="attn", o="c_proj", ln2="ln_2", up=None, act="act", down="c_proj",
    ),
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": dict(LLAMA, q_norm="q_norm", k_norm="k_norm"),
    "gpt_neox": dict(
        LLAMA, base="gpt_neox", embed="embed_in", ln_final="final_layer_norm", attn="attention", o="dense",
        up=None, act="act", down="dense_4h_to_h", parallel=lambda c: c.use_parallel_residual,
    ),
    "gemma2": dict(
        LLAMA, ln1_post="post_attention_layernorm", ln2="pre_feedforward_layernorm", ln2_post="post_feedforward_layernorm",
    ),
}


def modeling(model_type):
    return importlib.import_module(f"transformers.models.{model_type}.modeling_{model_type}")


def in_float64(model):
    """A float64 copy whose RoPE frequencies are still the fp32 numbers."""
    m = copy.deepcopy(model).double().eval()
    for name, module in m.named_modules():
        if hasattr(module, "inv_freq"):
            module.inv_freq = model.get_submodule(name).inv_freq.float()
    return m


def chain_linear(x, weight, bias=None, step=1):
    """F.linear whose every dot product is one fp32 chain over k, as in a textbook and as in weir; step -1: from the last k to the first."""
    rows = x.reshape(-1, x.shape[-1])
    out = torch.zeros(rows.shape[0], weight.shape[0])
    terms = list(zip(rows.T, weight.T.contiguous()))
    for column, w in terms[::step]:
        out.addr_(column, w)
    out = out.reshape(*x.shape[:-1], -1)
    return out if bias is None else out + bias


class _Watch(TorchFunctionMode):
    """Sees every torch call of the model: keeps float64 from being cast down, and shows softmax and norms to the capture."""
    SEEN = {F.linear, F.softmax, torch.rsqrt, torch.Tensor.float, torch.Tensor.to, torch.Tensor.cos, torch.Tensor.sin}

    def __init__(self, capture, chain):
        super().__init__()
        self.capture = capture
        self.chain = chain

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func not in self.SEEN and not kwargs:  # most calls ask a tensor for its shape
            return func(*args)
        kwargs = dict(kwargs or {})
        if self.chain and func is F.linear:
            return chain_linear(*args, **kwargs, step=self.chain)
        x = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if x is not None and x.dtype == torch.float64:
            if func is torch.Tensor.float:
                return x
            if func is torch.Tensor.to:
                args = tuple(torch.float64 if a is torch.float32 else a for a in args)
            if kwargs.get("dtype") is torch.float32:
                kwargs["dtype"] = torch.float64
        if self.capture.double and func in (torch.Tensor.cos, torch.Tensor.sin):
            x = x.double()
            args = (x,) + tuple(args[1:])
        out = func(*args, **kwargs)
        if func is F.softmax:
            out = self.capture.saw_softmax(x, out)
        elif func is torch.rsqrt:
            self.capture.saw_rsqrt(x)
        return out


class Capture:
    """One forward pass of a Hugging Face model; `values` has every hook point as [T, ...] numpy arrays."""

    def __init__(self, model):
        self.model = model
        self.type = model.config.model_type
        self.roles = ROLES[self.type]
        self.double = next(model.parameters()).dtype == torch.float64
        self.values = {}
        self.layer = None      # block that is running
        self.norm = None       # hook prefix of the norm that is running
        self.rsqrt_in = None
        self.handles = []

    def put(self, name, x):
        self.values[name] = x.detach().numpy().copy()

    # --- what the model's own functions are given
    def saw_softmax(self, scores, pattern):
        """Returns the pattern that the model goes on with."""
        a = f"blocks.{self.layer}.attn."
        s = scores[0].transpose(0, 1)  # [T, H, S]
        self.put(a + "hook_attn_scores", torch.where(s < -1e30, torch.full_like(s, -torch.inf), s))
        self.put(a + "hook_pattern", pattern[0].transpose(0, 1))
        return pattern

    def saw_rsqrt(self, x):
        self.rsqrt_in = x

    def rotary(self, original):
        def apply_rotary_pos_emb(q, k, *args, **kwargs):
            a = f"blocks.{self.layer}.attn."
            if not self.roles["q_norm"]:  # norms of heads stand before: see watch_block
                self.put(a + "hook_q", q[0].transpose(0, 1))
                self.put(a + "hook_k", k[0].transpose(0, 1))
            q2, k2 = original(q, k, *args, **kwargs)
            self.put(a + "hook_rot_q", q2[0].transpose(0, 1))
            self.put(a + "hook_rot_k", k2[0].transpose(0, 1))
            return q2, k2
        return apply_rotary_pos_emb

    def attention(self, original):
        def eager_attention_forward(module, query, key, value, *args, **kwargs):
            a = f"blocks.{self.layer}.attn."
            if self.roles["pos"]:  # no RoPE: these are q and k themselves
                self.put(a + "hook_q", query[0].transpose(0, 1))
                self.put(a + "hook_k", key[0].transpose(0, 1))
            self.put(a + "hook_v", value[0].transpose(0, 1))
            z, w = original(module, query, key, value, *args, **kwargs)
            self.put(a + "hook_z", z[0])
            self.put(a + "hook_result", self.head_results(module, z[0]))
            return z, w
        return eager_attention_forward

    def head_results(self, attn, z):
        o = getattr(attn, self.roles["o"])
        w = o.weight if type(o).__name__ == "Conv1D" else o.weight.T  # [H D, C]
        heads, size = z.shape[1:]
        return torch.einsum("thd,hdc->thc", z, w.reshape(heads, size, -1))

    # --- module hooks
    def on(self, module, pre=None, post=None):
        if pre:
            self.handles.append(module.register_forward_pre_hook(
                lambda m, args, kw: pre(args[0] if args else kw["hidden_states"]), with_kwargs=True))
        if post:
            self.handles.append(module.register_forward_hook(
                lambda m, args, kw, out: post(out[0] if isinstance(out, tuple) else out), with_kwargs=True))

    def watch_norm(self, module, prefix, out_name="hook_out"):
        def before(x):
            self.norm, self.rsqrt_in = x, None

        def after(out):
            x, r = self.norm, self.rsqrt_in
            if r is not None:  # RMS
                scale, normal = torch.sqrt(r), x * torch.rsqrt(r)
            else:
                scale = torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + module.eps)
                normal = F.layer_norm(x, x.shape[-1:], None, None, module.eps)
            self.put(prefix + "hook_scale", scale[0])
            self.put(prefix + "hook_normalized", normal[0])
            if out_name:  # the output of a norm behind a sublayer is hook_attn_out or hook_mlp_out
                self.put(prefix + out_name, out[0])
        self.on(module, before, after)

    def keep(self, name):
        return lambda x: self.put(name, x[0])

    def watch_block(self, i, block):
        r, p = self.roles, f"blocks.{i}."
        part = lambda role: getattr(block, r[role])

        def enter(x):
            self.layer = i
            self.put(p + "hook_resid_pre", x[0])
        self.on(block, enter, self.keep(p + "hook_resid_post"))
        self.watch_norm(part("ln1"), p + "ln1.")
        self.watch_norm(part("ln2"), p + "ln2.")
        for x in "qk" if r["q_norm"] else "":
            norm = getattr(part("attn"), r[x + "_norm"])
            self.on(norm, pre=self.keep(f"{p}attn.hook_{x}"))
            self.watch_norm(norm, f"{p}attn.{x}_norm.")
        attn_end, mlp_end = part("attn"), part("mlp")
        if r["ln1_post"]:
            attn_end, mlp_end = part("ln1_post"), part("ln2_post")
            self.watch_norm(attn_end, p + "ln1_post.", None)
            self.watch_norm(mlp_end, p + "ln2_post.", None)
        self.on(attn_end, post=self.keep(p + "hook_attn_out"))
        self.on(mlp_end, post=self.keep(p + "hook_mlp_out"))
        if not r["parallel"](self.model.config):
            self.on(part("ln2"), pre=self.keep(p + "hook_resid_mid"))
        mlp = part("mlp")
        self.on(getattr(mlp, r["act"]), pre=self.keep(p + "mlp.hook_pre"))
        self.on(getattr(mlp, r["down"]), pre=self.keep(p + "mlp.hook_post"))
        if r["up"]:
            self.on(getattr(mlp, r["up"]), post=self.keep(p + "mlp.hook_pre_linear"))

    def watch(self):
        r = self.roles
        base = getattr(self.model, r["base"])
        self.on(getattr(base, r["embed"]), post=self.keep("hook_embed"))
        if r["pos"]:
            self.on(getattr(base, r["pos"]), post=self.keep("hook_pos_embed"))
        for i, block in enumerate(getattr(base, r["blocks"])):
            self.watch_block(i, block)
        self.watch_norm(getattr(base, r["ln_final"]), "ln_final.")
        head = self.model.lm_head
        self.on(head, self.keep("unembed.hook_in"), self.keep("unembed.hook_out"))

    def forward(self, ids):
        return self.model(torch.tensor([list(ids)]), use_cache=False).logits

    def run(self, ids, chain):
        m = modeling(self.type)
        patches = [mock.patch.object(m, "eager_attention_forward", self.attention(m.eager_attention_forward))]
        if not self.roles["pos"]:
            patches.append(mock.patch.object(m, "apply_rotary_pos_emb", self.rotary(m.apply_rotary_pos_emb)))
        with contextlib.ExitStack() as stack:
            for p in patches:
                stack.enter_context(p)
            stack.enter_context(torch.no_grad())
            stack.callback(lambda: [h.remove() for h in self.handles])
            self.watch()
            stack.enter_context(_Watch(self, chain))
            logits = self.forward(ids)
        if getattr(self.model.config, "final_logit_softcapping", None):
            self.put("hook_logits", logits[0])
        return self.values


def capture(model, ids, chain=0):
    """{hook name: [T, ...]} in the model's precision (float32 or float64). chain: the step of chain_linear, or 0 for torch's own
    matrix products."""
    assert model.config._attn_implementation == "eager", "load the model with attn_implementation='eager'"
    return Capture(model.eval()).run(ids, chain)


def in_float64_only():
    """A context in which a float64 model stays one, without a capture: for gradients."""
    class Nobody:
        double = True

        def saw_softmax(self, scores, pattern):
            return pattern

        def saw_rsqrt(self, x):
            pass
    return _Watch(Nobody(), 0)


def check_float64(values):
    """Fails if anything of a float64 capture went through float32."""
    for name, v in values.items():
        assert v.dtype == np.float64, f"{name} is {v.dtype}"
        if name in ("hook_embed", "hook_pos_embed", "blocks.0.hook_resid_pre"):
            continue  # weights, which are float32 numbers
        v = v[np.isfinite(v) & (v != 0) & (v != 1)]
        if v.size >= 32:
            part = np.mean(v == v.astype(np.float32))
            assert part < 0.5, f"{name}: {part:.0%} of its values are float32 numbers"
