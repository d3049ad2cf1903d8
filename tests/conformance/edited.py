"""Hugging Face's own forward pass with values changed at hook points: by torch's module hooks where a point is a module's input or output,
inside the model's own functions (RoPE, attention, softmax) where it is not. What the points hold behind the change is captured, as
reference.py does it.

An edit is a function f(x, first) of the rows [T, width] of a point, first being the position of row 0; it returns the new rows.
"""

import numpy as np
import torch
import transformers

import reference


class Edited(reference.Capture):
    def __init__(self, model, edits, step=0):
        super().__init__(model)
        self.edits = edits
        self.step = step      # tokens of a pass through a KV cache; 0: all in one, without
        self.first = 0        # position of the pass's first token
        self.entered = None   # what the running block was given

    # --- applying
    def edit(self, name, x):
        """x [T, ...] as it is behind the edit; captured."""
        if name in self.edits:
            x = self.edits[name](x.reshape(x.shape[0], -1).clone(), self.first).reshape(x.shape)
        self.put(name, x)
        return x

    def put(self, name, x):
        x = x.detach().numpy().copy()
        self.values.setdefault(name, []).append(x)

    def keep(self, name):
        if name.endswith("hook_resid_mid"):  # the stream, not what ln2 is given: see watch_block
            return lambda x: self.put(name, x[0])
        return lambda x: self.edit(name, x[0])[None]

    def heads(self, name, x):
        """The same for [1, heads, T, size]."""
        return self.edit(name, x[0].transpose(0, 1)).transpose(0, 1)[None]

    # --- module hooks that hand on what they are given
    def on(self, module, pre=None, post=None):
        def before(m, args, kw):
            x = pre(args[0] if args else kw["hidden_states"])
            if x is None:
                return None
            return ((x,) + args[1:], kw) if args else (args, {**kw, "hidden_states": x})

        def after(m, args, kw, out):
            x = post(out[0] if isinstance(out, tuple) else out)
            return None if x is None else (x,) + out[1:] if isinstance(out, tuple) else x
        if pre:
            self.handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        if post:
            self.handles.append(module.register_forward_hook(after, with_kwargs=True))

    def watch_norm(self, module, prefix, out_name="hook_out"):
        def before(x):
            self.norm, self.rsqrt_in = x, None

        def after(out):
            x, r = self.norm, self.rsqrt_in
            if r is None:
                x = x - x.mean(-1, keepdim=True)
                r = x.pow(2).mean(-1, keepdim=True) + module.eps
            scale = self.edit(prefix + "hook_scale", torch.sqrt(r)[0])
            normal = self.edit(prefix + "hook_normalized", x[0] / scale)
            if prefix + "hook_scale" in self.edits or prefix + "hook_normalized" in self.edits:
                out = (normal * (1 + module.weight if self.type == "gemma2" else module.weight))[None]
                if getattr(module, "bias", None) is not None:
                    out = out + module.bias
            return self.edit(prefix + out_name, out[0])[None] if out_name else out
        self.on(module, before, after)

    def watch_block(self, i, block):
        p = f"blocks.{i}."

        def enter(x):
            if p + "hook_resid_pre" in self.edits:
                x = self.edits[p + "hook_resid_pre"](x[0].clone(), self.first)[None]
            self.entered = x
            return x
        self.on(block, pre=enter)
        super().watch_block(i, block)
        if p + "hook_resid_mid" in self.edits:  # behind attn_out's own hook: what is added becomes what makes the edited stream
            end = getattr(block, self.roles["ln1_post"] or self.roles["attn"])
            mid = lambda out: self.edits[p + "hook_resid_mid"]((self.entered + out)[0], self.first)[None] - self.entered
            self.on(end, post=mid)

    # --- inside the model's functions
    def saw_softmax(self, scores, pattern):
        a = f"blocks.{self.layer}.attn."
        masked = scores < -1e30
        s = self.heads(a + "hook_attn_scores", torch.where(masked, torch.full_like(scores, -torch.inf), scores))
        if a + "hook_attn_scores" in self.edits:
            pattern = torch.softmax(s, -1).to(pattern.dtype)
        return self.heads(a + "hook_pattern", pattern)

    def rotary(self, original):
        def apply_rotary_pos_emb(q, k, *args, **kwargs):
            a = f"blocks.{self.layer}.attn."
            if not self.roles["q_norm"]:
                q, k = self.heads(a + "hook_q", q), self.heads(a + "hook_k", k)
            q, k = original(q, k, *args, **kwargs)
            return self.heads(a + "hook_rot_q", q), self.heads(a + "hook_rot_k", k)
        return apply_rotary_pos_emb

    def attention(self, original):
        def eager_attention_forward(module, query, key, value, *args, **kwargs):
            a = f"blocks.{self.layer}.attn."
            if self.roles["pos"]:
                query, key = self.heads(a + "hook_q", query), self.heads(a + "hook_k", key)
            value = self.heads(a + "hook_v", value)
            z, w = original(module, query, key, value, *args, **kwargs)
            z = self.edit(a + "hook_z", z[0])[None]
            self.put(a + "hook_result", self.head_results(module, z[0]))
            return z, w
        return eager_attention_forward

    # --- passes
    def forward(self, ids):
        if not self.step:
            return super().forward(ids)
        cache, logits = transformers.DynamicCache(config=self.model.config), []
        for self.first in range(0, len(ids), self.step):
            piece = torch.tensor([list(ids[self.first:self.first + self.step])])
            logits.append(self.model(piece, past_key_values=cache, use_cache=True).logits)
        return torch.cat(logits, 1)


def capture(model, ids, edits, step=0):
    """{hook name: [T, ...]} of a pass with the edits. step: tokens at a time through a KV cache (then only points whose rows are those of
    the pass are right: not k, v, scores and pattern, which have all keys)."""
    values = Edited(model.eval(), edits, step).run(ids, 0)
    if step:
        keys = ("hook_k", "hook_v", "hook_rot_k", "hook_attn_scores", "hook_pattern")
        values = {k: v for k, v in values.items() if not k.endswith(keys)}
    return {name: np.concatenate(parts) for name, parts in values.items()}
