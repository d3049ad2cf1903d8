"""Mistakes that an implementation of these families can make, each switched on alone in the reference.

A conformance test that cannot fail proves nothing. So for every mistake here the reference is run with it, and the comparison with
weir (which is right) must then report differences. Each is a function of a float64 model: a context manager, or None where
the model has no such part (its absence is checked per family in test_mutations.py, so that no mistake goes untried).
"""

import contextlib
from unittest import mock

import torch
from transformers.activations import ACT2FN

from reference import ROLES, modeling


def blocks(model):
    r = ROLES[model.config.model_type]
    return list(getattr(getattr(model, r["base"]), r["blocks"]))


def part(model, block, role):
    return getattr(block, ROLES[model.config.model_type][role])


def norms(model):
    r = ROLES[model.config.model_type]
    roles = [k for k in ("ln1", "ln2", "ln1_post", "ln2_post") if r[k]]
    return [part(model, b, k) for b in blocks(model) for k in roles] + [getattr(getattr(model, r["base"]), r["ln_final"])]


def attentions(model):
    return [part(model, b, "attn") for b in blocks(model)]


@contextlib.contextmanager
def attributes(objects, name, value):
    """Sets an attribute of each object (value may be a function of the old one) and puts it back."""
    old = [getattr(o, name) for o in objects]
    try:
        for o, v in zip(objects, old):
            setattr(o, name, value(v) if callable(value) and not isinstance(value, torch.nn.Module) else value)
        yield
    finally:
        for o, v in zip(objects, old):
            setattr(o, name, v)


@contextlib.contextmanager
def weights(tensors, change):
    """Changes tensors in place by a function of their values and puts them back."""
    old = [t.detach().clone() for t in tensors]
    try:
        with torch.no_grad():
            for t, v in zip(tensors, old):
                t.copy_(change(v))
        yield
    finally:
        with torch.no_grad():
            for t, v in zip(tensors, old):
                t.copy_(v)


@contextlib.contextmanager
def function(model, name, make):
    """Replaces a function of the modeling file by make(original)."""
    m = modeling(model.config.model_type)
    with mock.patch.object(m, name, make(getattr(m, name))):
        yield


@contextlib.contextmanager
def together(contexts):
    """Several changes as one mistake; none of them before it is entered."""
    with contextlib.ExitStack() as stack:
        for c in contexts:
            stack.enter_context(c)
        yield


# --- RoPE
def rotary(model):
    return getattr(getattr(model, ROLES[model.config.model_type]["base"]), "rotary_emb", None)


def rope_pairing(model):
    """Turns neighbours (0,1), (2,3), ... in place of halves."""
    rot = rotary(model)
    if rot is None:
        return None
    n = 2 * rot.inv_freq.numel()
    if n < 4:  # one pair: both rules are the same
        return None
    order = torch.cat([torch.arange(0, n, 2), torch.arange(1, n, 2)])

    def make(original):
        def apply(q, k, *args, **kwargs):
            index = torch.cat([order, torch.arange(n, q.shape[-1])])
            back = torch.argsort(index)
            q2, k2 = original(q[..., index], k[..., index], *args, **kwargs)
            return q2[..., back], k2[..., back]
        return apply
    return function(model, "apply_rotary_pos_emb", make)


def rope_scaling_off(model):
    """Ignores linear or llama3 scaling of the frequencies."""
    rot = rotary(model)
    if rot is None or rot.rope_type == "default":
        return None
    plain, _ = rot.compute_default_rope_parameters(model.config)
    return attributes([rot], "inv_freq", lambda _: plain.float())


def rope_theta(model):
    rot = rotary(model)
    if rot is None or rot.inv_freq.numel() < 2:
        return None
    n = rot.inv_freq.numel()
    return attributes([rot], "inv_freq", lambda f: f * (1.01 ** (-torch.arange(n) / n)).float())


def rope_direction(model):
    rot = rotary(model)
    return None if rot is None else attributes([rot], "inv_freq", lambda f: -f)


def rope_position_from_one(model):
    """Rotates every position by one step more: invisible in scores, visible in rot_q and rot_k."""
    rot = rotary(model)
    if rot is None:
        return None
    return attributes([rot], "forward", lambda old: lambda x, position_ids: old(x, position_ids + 1))


def rope_all_dimensions(model):
    """Ignores partial_rotary_factor."""
    rot = rotary(model)
    if rot is None:
        return None
    size = model.config.hidden_size // model.config.num_attention_heads
    if model.config.model_type != "gpt_neox" or 2 * rot.inv_freq.numel() == size:
        return None
    theta = model.config.rope_parameters["rope_theta"]
    full = 1.0 / (theta ** (torch.arange(0, size, 2, dtype=torch.float) / size))
    return attributes([rot], "inv_freq", lambda _: full)


# --- norms
def norm_gain_without_one(model):
    """Gemma: w in place of 1 + w."""
    return weights([n.weight for n in norms(model)], lambda w: w - 1) if model.config.model_type == "gemma2" else None


def norm_gain_with_one(model):
    """1 + w where the family has w."""
    return None if model.config.model_type == "gemma2" else weights([n.weight for n in norms(model)], lambda w: w + 1)


def eps_times_ten(model):
    name = "variance_epsilon" if hasattr(norms(model)[0], "variance_epsilon") else "eps"
    return attributes(norms(model), name, lambda e: e * 10)


def post_norm_left_out(model):
    r = ROLES[model.config.model_type]
    if not r["ln1_post"]:
        return None
    posts = [part(model, b, k) for b in blocks(model) for k in ("ln1_post", "ln2_post")]
    return attributes(posts, "forward", lambda old: lambda x: old(x) * 0 + x)


def mean_not_subtracted(model):
    """LayerNorm taken for an RMS norm."""
    ln = [n for n in norms(model) if isinstance(n, torch.nn.LayerNorm)]
    if not ln:
        return None

    def rms(n):
        return lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + n.eps) * n.weight + n.bias
    return together([attributes([n], "forward", lambda old, n=n: rms(n)) for n in ln])


# --- norms of heads
def head_norms(model):
    r = ROLES[model.config.model_type]
    return [(getattr(a, r["q_norm"]), getattr(a, r["k_norm"])) for a in attentions(model)] if r["q_norm"] else []


def head_norm_left_out(model):
    flat = [n for pair in head_norms(model) for n in pair]
    return attributes(flat, "forward", lambda old: lambda x: old(x) * 0 + x) if flat else None


def head_norm_of_keys_left_out(model):
    keys = [k for _, k in head_norms(model)]
    return attributes(keys, "forward", lambda old: lambda x: old(x) * 0 + x) if keys else None


def head_gain_left_out(model):
    flat = [n.weight for pair in head_norms(model) for n in pair]
    return weights(flat, torch.ones_like) if flat else None


def head_gains_swapped(model):
    pairs = head_norms(model)
    if not pairs:
        return None

    @contextlib.contextmanager
    def swap():
        def both():
            with torch.no_grad():
                for q, k in pairs:
                    old = q.weight.clone()
                    q.weight.copy_(k.weight)
                    k.weight.copy_(old)
        both()
        try:
            yield
        finally:
            both()
    return swap()


def head_norm_over_all_heads(model):
    """One length for all heads of a token, as OLMo 2 has it."""
    flat = [n for pair in head_norms(model) for n in pair]

    def wide(n):
        def forward(x):
            every = x.pow(2).mean((-2, -1), keepdim=True) + n.variance_epsilon
            return torch.rsqrt(every.expand(*x.shape[:-1], 1)) * x * n.weight
        return forward
    if not flat or all(a.q_proj.out_features == model.config.head_dim for a in attentions(model)):
        return None
    return together([attributes([n], "forward", lambda old, n=n: wide(n)) for n in flat])


def head_norm_behind_rope(model):
    pairs, seen = head_norms(model), {}
    if not pairs:
        return None

    def later(name):
        def of(old):
            def forward(x):
                seen[name] = old
                return old(x) * 0 + x
            return forward
        return of

    def make(original):
        def apply(q, k, *args, **kwargs):
            q, k = original(q, k, *args, **kwargs)
            return seen["q"](q), seen["k"](k)
        return apply
    return together([attributes([q for q, _ in pairs], "forward", later("q")),
                     attributes([k for _, k in pairs], "forward", later("k")), function(model, "apply_rotary_pos_emb", make)])


# --- activations
def other_activation(model):
    """erf for tanh GELU and the other way round; SiLU becomes the GELU of tanh."""
    config = model.config
    name = getattr(config, "hidden_activation", None) or getattr(config, "hidden_act", None) or config.activation_function
    other = {"gelu": "gelu_new", "silu": "gelu_new", "relu": "gelu"}.get(name, "gelu")
    acts = [(part(model, b, "mlp"), ROLES[config.model_type]["act"]) for b in blocks(model)]
    return attributes([m for m, _ in acts], acts[0][1], ACT2FN[other])


def gate_and_up_swapped(model):
    up = ROLES[model.config.model_type]["up"]
    if not up:
        return None

    @contextlib.contextmanager
    def swap():
        mlps = [part(model, b, "mlp") for b in blocks(model)]
        for m in mlps:
            m.gate_proj, m.up_proj = m.up_proj, m.gate_proj
        try:
            yield
        finally:
            for m in mlps:
                m.gate_proj, m.up_proj = m.up_proj, m.gate_proj
    return swap()


# --- attention
def scale_off_by_a_thousandth(model):
    return attributes(attentions(model), "scaling", lambda s: s * 1.001)


def scale_of_width(model):
    """The square root of C/H in place of the head size, or of query_pre_attn_scalar."""
    c = model.config
    right = attentions(model)[0].scaling
    wrong = (c.hidden_size / c.num_attention_heads) ** -0.5
    return None if abs(right - wrong) < 1e-9 else attributes(attentions(model), "scaling", wrong)


def score_cap_off(model):
    if not getattr(model.config, "attn_logit_softcapping", None):
        return None
    return attributes(attentions(model), "attn_logit_softcapping", None)


def logit_cap_off(model):
    if not getattr(model.config, "final_logit_softcapping", None):
        return None
    return attributes([model.config], "final_logit_softcapping", lambda c: c * 1e6)  # the cap stays, and does nothing


def window(model, change):
    w = getattr(model.config, "sliding_window", None)
    if not w or model.config.model_type not in ("mistral", "gemma2", "qwen2", "qwen3"):
        return None
    return attributes([model.config], "sliding_window", lambda w: w + change)


def window_plus_one(model):
    return window(model, 1)


def window_minus_one(model):
    return window(model, -1)


def windows_on_the_other_layers(model):
    types = getattr(model.config, "layer_types", None)
    if not types or len(set(types)) < 2:
        return None
    other = {"full_attention": "sliding_attention", "sliding_attention": "full_attention"}
    return attributes([model.config], "layer_types", [other[t] for t in types])


def no_causal_mask(model):
    def make(original):
        def attend(module, query, key, value, attention_mask, *args, **kwargs):
            return original(module, query, key, value, None, *args, **kwargs)
        return attend
    return function(model, "eager_attention_forward", make)


def kv_heads_tiled(model):
    """Query head h reads kv head h mod K in place of h / (H/K)."""
    c = model.config
    k = getattr(c, "num_key_value_heads", c.num_attention_heads)
    if k in (1, c.num_attention_heads):
        return None
    return function(model, "repeat_kv", lambda original: lambda x, n: x.repeat(1, n, 1, 1))


def qkv_order(model):
    """Fused q, k, v taken for the other layout: [q;k;v] for per-head [q,k,v] and the other way round."""
    t, heads = model.config.model_type, model.config.num_attention_heads

    def to_blocks(w):  # rows [H, 3, D] read as [3, H, D]
        return w.reshape(3, heads, -1, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)
    if t == "gpt_neox":
        fused = [a.query_key_value for a in attentions(model)]
        return weights([p for f in fused for p in (f.weight, f.bias) if p is not None], to_blocks)
    if t == "gpt2":
        fused = [a.c_attn for a in attentions(model)]
        return weights([f.weight for f in fused], lambda w: to_blocks(w.T.contiguous()).T)
    return None


# --- the rest
def biases(model):
    """One mistake for each kind of bias: all layers' biases of one name are left out."""
    kinds = {}
    for name, p in model.named_parameters():
        if name.endswith(".bias") and bool(torch.any(p != 0)):
            kind = ".".join(x for x in name.split(".")[1:-1] if not x.isdigit())
            kinds.setdefault(kind, []).append(p)
    return {f"bias_left_out:{k}": (lambda m, ps=ps: weights(ps, torch.zeros_like)) for k, ps in kinds.items()}


def embedding_not_scaled(model):
    if model.config.model_type != "gemma2":
        return None
    return attributes([model.model.embed_tokens], "embed_scale", lambda s: torch.ones_like(s))


def embedding_scale_in_bf16(model):
    """What Hugging Face does when it runs in bf16; weir and the reference run in fp32 and wider."""
    if model.config.model_type != "gemma2":
        return None
    embed = model.model.embed_tokens
    rounded = embed.embed_scale.to(torch.bfloat16).double()
    return None if rounded == embed.embed_scale else attributes([embed], "embed_scale", rounded)


def positions_from_one(model):
    pos = ROLES[model.config.model_type]["pos"]
    return weights([model.transformer.wpe.weight], lambda w: w.roll(-1, 0)) if pos else None


def parallel_and_sequential(model):
    """A parallel block run as a sequential one, and the other way round."""
    if model.config.model_type != "gpt_neox":
        return None
    return attributes(blocks(model), "use_parallel_residual", lambda p: not p)


def last_norm_left_out(model):
    return attributes([norms(model)[-1]], "forward", lambda old: lambda x: old(x) * 0 + x)


ALL = [
    rope_pairing, rope_scaling_off, rope_theta, rope_direction, rope_position_from_one, rope_all_dimensions,
    norm_gain_without_one, norm_gain_with_one, eps_times_ten, post_norm_left_out, mean_not_subtracted,
    head_norm_left_out, head_norm_of_keys_left_out, head_gain_left_out, head_gains_swapped, head_norm_over_all_heads, head_norm_behind_rope,
    other_activation, gate_and_up_swapped,
    scale_off_by_a_thousandth, scale_of_width, score_cap_off, logit_cap_off, window_plus_one, window_minus_one,
    windows_on_the_other_layers, no_causal_mask, kv_heads_tiled, qkv_order,
    embedding_not_scaled, embedding_scale_in_bf16, positions_from_one, parallel_and_sequential, last_norm_left_out,
]


def mutations_of(model):
    """{name: context manager} of every mistake that this model can show."""
    found = {f.__name__: f(model) for f in ALL}
    found.update({name: make(model) for name, make in biases(model).items()})
    return {name: c for name, c in found.items() if c is not None}
