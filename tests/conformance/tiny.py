#!/usr/bin/env python3
"""Tiny random checkpoints of every family, in both layouts.

    build/venv/bin/python tests/conformance/tiny.py OUTDIR [NAME...]

Writes OUTDIR/NAME/ (a Hugging Face directory), OUTDIR/NAME.gguf (the same weights, converted as llama.cpp's converter
does: lib/model/README.md lists what that changes) and OUTDIR/index.json, one record a checkpoint:

    name, family, model_type, dtype, ctx, vocab,
    hf, gguf       file names relative to OUTDIR; gguf is null where the format cannot say what the checkpoint needs
    same_bits      the two layouts must give the same bits (false: llama3 RoPE divisors are stored rounded)
    notes          what is awkward about it

Sizes are awkward on purpose: fewer key-value heads than heads, head size not C/H, odd widths, vocabularies that are no
multiple of anything. Random but fixed: the same bytes at each run of the same library versions. No tokenizer: ids are
the input. Block types are quantised first, and the Hugging Face directory holds their dequantised values as F32.
"""
import json
import os
import shutil
import sys

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Q
from safetensors.torch import load_file, save_file

TORCH = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}

GPT2 = dict(vocab_size=67, n_positions=24, n_layer=2, bos_token_id=0, eos_token_id=0)
LLAMA = dict(vocab_size=71, max_position_embeddings=24, rms_norm_eps=1e-5)
NEOX = dict(vocab_size=80, max_position_embeddings=24)
QWEN = dict(vocab_size=59, max_position_embeddings=24)
GEMMA = dict(vocab_size=61, max_position_embeddings=24, sliding_window=5)


def sizes(base, C, F, L, H, K=None, D=None, **more):
    """A configuration by the letters of weir's headers."""
    config = dict(base, hidden_size=C, intermediate_size=F, num_hidden_layers=L, num_attention_heads=H, **more)
    if K:
        config["num_key_value_heads"] = K
    if D:
        config["head_dim"] = D
    return config


def rope_of(kind="default", theta=10000.0, **more):
    return dict(rope_type=kind, rope_theta=theta, **more)


# Sizes that block types can tile (32), and the super-blocks of the K types (256).
BLOCK_LLAMA = sizes(LLAMA, C=32, F=64, L=1, H=2, K=1, D=16, vocab_size=40)
SUPER_LLAMA = sizes(LLAMA, C=256, F=256, L=1, H=2, K=1, D=16, vocab_size=33)
LLAMA3 = dict(factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
K_TYPES = {"q_proj": Q.Q5_K, "k_proj": Q.Q6_K, "v_proj": Q.Q4_K, "o_proj": Q.Q8_0, "gate_proj": Q.Q2_K,
           "up_proj": Q.Q3_K, "down_proj": Q.Q4_K, "embed": Q.Q6_K}
GEMMA_DEFAULTS = ["attn_logit_softcapping", "final_logit_softcapping", "layer_types", "tie_word_embeddings",
                  "rms_norm_eps", "hidden_activation"]

# name: family, transformers class, config, and options:
#   dtype    of the stored weights (F32)
#   quant    block type of the matrices, or a dict from a part of a tensor's Hugging Face name to a type
#   v4       config.json in the style of transformers 4 (rope_theta, rope_scaling, torch_dtype)
#   shards   number of files
#   bare     names without the prefix of the language model (the base model was saved)
#   twice    the tied head is stored as well
#   drop     keys of config.json to leave out
#   gguf     False: no GGUF
CHECKPOINTS = {
    "gpt2": ("gpt2", "GPT2", dict(GPT2, n_embd=21, n_head=3), dict(notes="odd width; n_inner null is 4C")),
    "gpt2-bare-f16": (
        "gpt2", "GPT2",
        dict(GPT2, n_embd=20, n_head=4, n_inner=50, activation_function="gelu", layer_norm_epsilon=1e-3),
        dict(dtype="F16", bare=True, gguf=False, notes="no transformer. prefix; exact gelu; n_inner; large eps")),
    "gpt2-relu-untied": (
        "gpt2", "GPT2", dict(GPT2, n_embd=18, n_head=2, activation_function="relu", tie_word_embeddings=False),
        dict(gguf=False, notes="relu; a head of its own")),
    "gpt2-q8_0": (
        "gpt2", "GPT2", dict(GPT2, n_embd=32, n_head=2, n_inner=64, n_layer=1),
        dict(quant=Q.Q8_0, notes="fused rows in blocks")),
    "llama-gqa-bf16": (
        "llama", "Llama", sizes(LLAMA, C=36, F=49, L=3, H=6, K=2, D=10, tie_word_embeddings=False),
        dict(dtype="BF16", notes="6 heads over 2; head size 10 is not 36/6; untied")),
    "llama-linear-bias": (
        "llama", "Llama",
        sizes(LLAMA, C=30, F=41, L=2, H=5, K=1, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
              rope_parameters=rope_of("linear", 500.0, factor=2.5)),
        dict(notes="one kv head; biases everywhere; linear RoPE; tied")),
    "llama-llama3-v4": (
        "llama", "Llama",
        sizes(LLAMA, C=24, F=33, L=2, H=3, K=3, D=16, tie_word_embeddings=True,
              rope_parameters=rope_of("llama3", 5000.0, **LLAMA3)),
        dict(v4=True, twice=True, notes="llama3 RoPE, all three ranges; transformers 4 keys; tied head stored twice")),
    "llama-mlp-bias-f16": (
        "llama", "Llama",
        sizes(LLAMA, C=28, F=35, L=2, H=4, K=4, D=8, mlp_bias=True, hidden_act="gelu_pytorch_tanh",
              tie_word_embeddings=False),
        dict(dtype="F16", gguf=False, notes="gelu gate; mlp biases only; n_kv = n_head")),
    "mistral-window-f16": (
        "llama", "Mistral", sizes(LLAMA, C=32, F=45, L=2, H=4, K=2, D=6, sliding_window=5, tie_word_embeddings=False),
        dict(dtype="F16", shards=3, v4=True, notes="window 5; three shards")),
    "llama-q8_0": ("llama", "Llama", BLOCK_LLAMA, dict(quant=Q.Q8_0)),
    "llama-q4_0": ("llama", "Llama", BLOCK_LLAMA, dict(quant=Q.Q4_0)),
    "llama-q4_1": ("llama", "Llama", dict(BLOCK_LLAMA, tie_word_embeddings=True),
                   dict(quant=Q.Q4_1, notes="tied head in blocks")),
    "llama-q5_0": ("llama", "Llama", BLOCK_LLAMA, dict(quant=Q.Q5_0)),
    "llama-q5_1": ("llama", "Llama", BLOCK_LLAMA, dict(quant=Q.Q5_1)),
    "llama-kquants": (
        "llama", "Llama", dict(SUPER_LLAMA, tie_word_embeddings=True),
        dict(quant=K_TYPES, notes="every K type in one file; 0.9 MB as F32")),
    "qwen2": (
        "qwen2", "Qwen2", sizes(QWEN, C=24, F=39, L=2, H=4, K=2, tie_word_embeddings=True, rope_parameters=rope_of(theta=900.0)),
        dict(notes="biases on q, k, v alone; tied")),
    "qwen2-window-bf16": (
        "qwen2", "Qwen2",
        sizes(QWEN, C=20, F=33, L=3, H=2, K=1, use_sliding_window=True, sliding_window=5, max_window_layers=1),
        dict(dtype="BF16", v4=True, drop=["layer_types"], gguf=False, notes="window 5 from layer 1 on; untied")),
    "qwen2-q8_0": ("qwen2", "Qwen2", sizes(QWEN, C=32, F=64, L=1, H=2, K=1), dict(quant=Q.Q8_0)),
    "qwen3": (
        "qwen3", "Qwen3", sizes(QWEN, C=26, F=35, L=2, H=4, K=2, D=10, rms_norm_eps=1e-3),
        dict(notes="norms of heads; head size 10 is not 26/4; untied; large eps")),
    "qwen3-bias-window-f16": (
        "qwen3", "Qwen3",
        sizes(QWEN, C=22, F=31, L=3, H=6, K=2, D=8, attention_bias=True, tie_word_embeddings=True, use_sliding_window=True,
              sliding_window=6, layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
        dict(dtype="F16", gguf=False, notes="attention biases, of o too; layer_types of its own; width of heads above C; tied")),
    "qwen3-q4_0": (
        "qwen3", "Qwen3", sizes(QWEN, C=32, F=64, L=1, H=4, K=1, D=16), dict(quant=Q.Q4_0, notes="wide heads in blocks")),
    "neox-parallel": (
        "gpt_neox", "GPTNeoX", sizes(NEOX, C=30, F=41, L=2, H=3, rope_parameters=rope_of(partial_rotary_factor=0.4)),
        dict(notes="parallel sublayers; 4 of 10 dimensions turned; exact gelu; padded vocabulary (say 77 of 80)")),
    "neox-sequential-v4": (
        "gpt_neox", "GPTNeoX",
        sizes(NEOX, C=20, F=31, L=2, H=2, use_parallel_residual=False, layer_norm_eps=1e-3,
              rope_parameters=rope_of(theta=300.0, partial_rotary_factor=1.0)),
        dict(v4=True, notes="sequential; all dimensions turned; large eps; rotary_pct keys")),
    "neox-nobias-bf16": (
        "gpt_neox", "GPTNeoX",
        sizes(NEOX, C=24, F=29, L=2, H=3, attention_bias=False, hidden_act="gelu_fast", tie_word_embeddings=True),
        dict(dtype="BF16", gguf=False,
             notes="no attention biases; tanh gelu; tied; rotary_pct .25 by default: 2 of 8")),
    "neox-q5_1": (
        "gpt_neox", "GPTNeoX", sizes(NEOX, C=32, F=64, L=1, H=2),
        dict(quant=Q.Q5_1, notes="per-head [q,k,v] in blocks, regrouped in the GGUF")),
    "gemma2": (
        "gemma2", "Gemma2",
        sizes(GEMMA, C=24, F=37, L=3, H=4, K=2, D=10, query_pre_attn_scalar=10, attn_logit_softcapping=2.0,
              final_logit_softcapping=3.0),
        dict(notes="windows 5 on even layers; caps low enough to bend")),
    "gemma2-layers-bf16": (
        "gemma2", "Gemma2",
        sizes(GEMMA, C=28, F=33, L=3, H=4, K=1, D=6, query_pre_attn_scalar=13, attn_logit_softcapping=None,
              final_logit_softcapping=5.0, layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
        dict(dtype="BF16", gguf=False, notes="layer_types of its own; no score cap; query scale 13; MQA")),
    "gemma2-v4": (
        "gemma2", "Gemma2", sizes(GEMMA, C=20, F=27, L=2, H=2, K=2, D=8, query_pre_attn_scalar=8),
        dict(v4=True, drop=GEMMA_DEFAULTS, notes="class defaults: caps 50 and 30, eps 1e-6, tied, even layers")),
    "gemma2-q4_0": (
        "gemma2", "Gemma2", sizes(GEMMA, C=32, F=64, L=2, H=2, K=1, D=16, query_pre_attn_scalar=16),
        dict(quant=Q.Q4_0)),
}


# --- weights
def randomise(model, gemma):
    """Weights that make every part matter: no bias is zero, no norm is one, scores spread over several units."""
    gen = torch.Generator().manual_seed(7)
    seen = set()
    for name, p in model.named_parameters():
        if p.data_ptr() in seen:
            continue
        seen.add(p.data_ptr())
        r = torch.randn(p.shape, generator=gen)
        if p.ndim == 2:
            embedding = any(k in name for k in ("wte", "embed_tokens", "embed_in"))
            if embedding:
                r = r * (p.shape[1] ** -0.5 if gemma else 0.7)
            else:
                r = r * (0.3 if "wpe" in name else 1.3 * min(p.shape) ** -0.5)
        elif name.endswith("bias"):
            r = 0.2 * r
        else:
            r = 0.3 * r + (0.0 if gemma else 1.0)
        p.data.copy_(r)


# K types: where the fp16 scales of a block stand, what the first is divided by so that values are about as large as
# other weights, and the second (of the minima) as a multiple of the first so that their mean is near zero.
K_SCALES = {Q.Q2_K: ((80, 82), 130, 1.5), Q.Q3_K: ((108,), 400, 0), Q.Q4_K: ((0, 2), 2000, 7.5),
            Q.Q5_K: ((0, 2), 4200, 15.5), Q.Q6_K: ((208,), 12500, 0)}


def random_blocks(qtype, shape, gen):
    """Rows of a K type, which gguf-py reads but does not write: random quants with sane fp16 scales."""
    block, size = gguf.GGML_QUANT_SIZES[qtype]
    n = shape[0] * shape[1] // block
    raw = gen.integers(0, 256, (n, size), dtype=np.uint8)
    places, span, ratio = K_SCALES[qtype]
    d = gen.uniform(0.5, 1.0, n) / span
    for place, scale in zip(places, (d, d * ratio)):
        raw[:, place:place + 2] = scale.astype(np.float16).view(np.uint8).reshape(n, 2)
    return raw.reshape(shape[0], -1)


def quantise(state, family, quant):
    """Quantises the matrices of a state dict in place, to their dequantised values; returns {name: (type, bytes)}."""
    gen = np.random.default_rng(11)
    packed = {}
    for name in sorted(state):
        t = state[name]
        kinds = quant if isinstance(quant, dict) else {"": quant}
        qtype = next((q for part, q in kinds.items() if part in name), None)
        if t.ndim != 2 or "wpe" in name or qtype is None:
            continue
        conv1d = family == "gpt2" and ".h." in name
        rows = np.ascontiguousarray((t.T if conv1d else t).float().numpy())
        raw = random_blocks(qtype, rows.shape, gen) if qtype.name.endswith("_K") else gguf.quants.quantize(rows, qtype)
        values = torch.from_numpy(gguf.quants.dequantize(raw, qtype).copy())
        state[name] = (values.T if conv1d else values).contiguous()
        packed[name] = (qtype, raw)
    return packed


# --- Hugging Face directory
def old_style(cfg, family):
    """config.json as transformers 4 wrote it."""
    rope = cfg.pop("rope_parameters", None)
    if rope:
        theta, part = rope.pop("rope_theta", 10000.0), rope.pop("partial_rotary_factor", None)
        if family == "gpt_neox":
            cfg["rotary_emb_base"], cfg["rotary_pct"] = theta, part
        else:
            cfg["rope_theta"] = theta
        cfg["rope_scaling"] = None if rope.get("rope_type") == "default" else rope
    if "dtype" in cfg:
        cfg["torch_dtype"] = cfg.pop("dtype")
    cfg["transformers_version"] = "4.44.0"


def write_hf(path, model, family, opt):
    model.save_pretrained(path)
    file = os.path.join(path, "model.safetensors")
    state = load_file(file)
    packed = quantise(state, family, opt["quant"]) if "quant" in opt else {}
    stored = dict(state)
    if opt.get("twice"):
        stored["lm_head.weight"] = state["model.embed_tokens.weight"].clone()
    if opt.get("bare"):
        stored = {k.removeprefix("transformer."): v for k, v in stored.items()}
    meta = {"format": "pt"}
    shards = opt.get("shards", 1)
    if shards == 1:
        save_file(stored, file, meta)
    else:
        os.remove(file)
        names, where = sorted(stored), {}
        for i in range(shards):
            part = f"model-{i + 1:05}-of-{shards:05}.safetensors"
            mine = {n: stored[n] for n in names[i::shards]}
            where.update({n: part for n in mine})
            save_file(mine, os.path.join(path, part), meta)
        total = sum(t.numel() * t.element_size() for t in stored.values())
        with open(os.path.join(path, "model.safetensors.index.json"), "w") as f:
            json.dump({"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}, f, indent=1)
    if os.path.exists(os.path.join(path, "generation_config.json")):
        os.remove(os.path.join(path, "generation_config.json"))
    cfg_path = os.path.join(path, "config.json")
    with open(cfg_path) as f:
        cfg = json.load(f)
    if opt.get("v4"):
        old_style(cfg, family)
    for key in opt.get("drop", []):
        cfg.pop(key, None)
    with open(cfg_path, "w") as f:
        json.dump(cfg, f, indent=1)
    return state, packed


# --- GGUF: names, and the changes that conversion makes
BLOCK_NAMES = {
    "gpt2": {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
             "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"},
    "llama": {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"},
    "gpt_neox": {"input_layernorm": "attn_norm", "attention.query_key_value": "attn_qkv",
                 "attention.dense": "attn_output", "post_attention_layernorm": "ffn_norm",
                 "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"},
}
BLOCK_NAMES["qwen2"] = BLOCK_NAMES["llama"]
BLOCK_NAMES["qwen3"] = {**BLOCK_NAMES["llama"], "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
BLOCK_NAMES["gemma2"] = dict(BLOCK_NAMES["llama"], post_attention_layernorm="post_attention_norm",
                             pre_feedforward_layernorm="ffn_norm", post_feedforward_layernorm="post_ffw_norm")
OUTER_NAMES = {"transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
               "model.embed_tokens": "token_embd", "model.norm": "output_norm", "gpt_neox.embed_in": "token_embd",
               "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output", "lm_head": "output"}
ARCH = {"gpt2": "gpt2", "llama": "llama", "gpt_neox": "gptneox", "gemma2": "gemma2", "qwen2": "qwen2", "qwen3": "qwen3"}


def gguf_name(name, family):
    stem, kind = name.rsplit(".", 1)
    if stem in OUTER_NAMES:
        return f"{OUTER_NAMES[stem]}.{kind}"
    parts = stem.split(".")
    at = next(i for i, p in enumerate(parts) if p.isdigit())
    return f"blk.{parts[at]}.{BLOCK_NAMES[family]['.'.join(parts[at + 1:])]}.{kind}"


def permute(rows, heads):
    """Within each head, stored row 2i+h is row h*(d/2)+i: what llama's conversion does to q and k."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def regroup(rows, heads):
    """Per-head [q,k,v] to [q;k;v]: what GPT-NeoX's conversion does."""
    return rows.reshape(heads, 3, -1, *rows.shape[1:]).swapaxes(0, 1).reshape(rows.shape)


def convert(name, rows, cfg, family):
    """rows: output rows of a matrix (numbers or the bytes of blocks), or a vector."""
    if family == "llama" and (".q_proj." in name or ".k_proj." in name):
        return permute(rows, cfg.num_attention_heads if ".q_proj." in name else cfg.num_key_value_heads)
    if family == "gpt_neox" and ".query_key_value." in name:
        return regroup(rows, cfg.num_attention_heads)
    if family == "gemma2" and name.endswith("norm.weight"):
        return (rows.astype(np.float32) + np.float32(1)).astype(np.float32)
    return rows


def write_meta(w, cfg, family, ctx):
    w.add_name("tiny")
    w.add_context_length(ctx)
    w.add_embedding_length(cfg.hidden_size)
    w.add_block_count(cfg.num_hidden_layers)
    w.add_head_count(cfg.num_attention_heads)
    if family == "gpt2":
        w.add_feed_forward_length(cfg.n_inner or 4 * cfg.n_embd)
        w.add_layer_norm_eps(cfg.layer_norm_epsilon)
        return
    w.add_feed_forward_length(cfg.intermediate_size)
    rope = cfg.rope_parameters
    if family == "gpt_neox":
        w.add_layer_norm_eps(cfg.layer_norm_eps)
        w.add_parallel_residual(cfg.use_parallel_residual)
        head_size = cfg.hidden_size // cfg.num_attention_heads
        w.add_rope_dimension_count(int(head_size * rope.get("partial_rotary_factor", 1.0)))
        w.add_rope_freq_base(rope["rope_theta"])
        return
    w.add_vocab_size(cfg.vocab_size)
    w.add_head_count_kv(cfg.num_key_value_heads)
    head_size = getattr(cfg, "head_dim", None) or cfg.hidden_size // cfg.num_attention_heads
    if family != "qwen2":  # its head size is no choice
        w.add_key_length(head_size)
        w.add_value_length(head_size)
    w.add_layer_norm_rms_eps(cfg.rms_norm_eps)
    w.add_rope_freq_base(rope["rope_theta"])
    if getattr(cfg, "sliding_window", None):
        w.add_sliding_window(cfg.sliding_window)
    if family == "gemma2":
        w.add_attn_logit_softcapping(cfg.attn_logit_softcapping)
        w.add_final_logit_softcapping(cfg.final_logit_softcapping)
        return
    w.add_rope_dimension_count(head_size)
    if rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])


def llama3_divisors(cfg):
    """The tensor rope_freqs.weight, computed as the converter does it."""
    r = cfg.rope_parameters
    freqs = 1.0 / (r["rope_theta"] ** (torch.arange(0, cfg.head_dim, 2, dtype=torch.float32) / cfg.head_dim))
    old, low, high = r["original_max_position_embeddings"], r["low_freq_factor"], r["high_freq_factor"]
    out = []
    for f in freqs:
        wave = 2 * np.pi / f
        if wave < old / high:
            out.append(1.0)
        elif wave > old / low:
            out.append(r["factor"])
        else:
            smooth = (old / wave - low) / (high - low)
            out.append(float(1 / ((1 - smooth) / r["factor"] + smooth)))
    return np.array(out, dtype=np.float32)


def write_gguf(path, state, packed, model, family, ctx, dtype):
    cfg = model.config
    w = gguf.GGUFWriter(path, ARCH[family])
    write_meta(w, cfg, family, ctx)
    for name, t in state.items():
        out = gguf_name(name, family)
        if name in packed:
            qtype, raw = packed[name]
            w.add_tensor(out, np.ascontiguousarray(convert(name, raw, cfg, family)), raw_dtype=qtype)
            continue
        if family == "gpt2" and ".h." in name and t.ndim == 2:
            t = t.T
        rows = np.ascontiguousarray(convert(name, t.float().numpy(), cfg, family))
        if t.ndim == 1 or dtype == "F32" or "wpe" in name:
            w.add_tensor(out, rows)
        elif dtype == "F16":
            w.add_tensor(out, rows.astype(np.float16))
        else:
            w.add_tensor(out, gguf.quants.quantize(rows, Q.BF16), raw_dtype=Q.BF16)
    if family != "gpt2" and cfg.rope_parameters["rope_type"] == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_divisors(cfg))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# --- all together
def make(out, name):
    family, cls, config, opt = CHECKPOINTS[name]
    cfg = getattr(transformers, cls + "Config")(**config)
    model = getattr(transformers, cls + ("LMHeadModel" if cls == "GPT2" else "ForCausalLM"))(cfg).eval()
    randomise(model, family == "gemma2")
    dtype = opt.get("dtype", "F32")
    model = model.to(TORCH[dtype])
    path = os.path.join(out, name)
    shutil.rmtree(path, ignore_errors=True)
    state, packed = write_hf(path, model, family, opt)
    ctx = cfg.max_position_embeddings
    has_gguf = opt.get("gguf", True)
    if has_gguf:
        write_gguf(path + ".gguf", state, packed, model, family, ctx, dtype)
    llama3 = family != "gpt2" and cfg.rope_parameters["rope_type"] == "llama3"
    return dict(name=name, family=family, model_type=cfg.model_type, dtype=dtype, ctx=ctx, vocab=cfg.vocab_size,
                hf=name, gguf=name + ".gguf" if has_gguf else None, same_bits=has_gguf and not llama3,
                notes=opt.get("notes", "block type"))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out, names = sys.argv[1], sys.argv[2:] or list(CHECKPOINTS)
    unknown = [n for n in names if n not in CHECKPOINTS]
    if unknown:
        sys.exit(f"tiny.py: no checkpoint named {unknown[0]}; there are: {' '.join(CHECKPOINTS)}")
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    transformers.logging.disable_progress_bar()
    index = [make(out, n) for n in names]
    with open(os.path.join(out, "index.json"), "w") as f:
        json.dump(index, f, indent=1)


if __name__ == "__main__":
    main()
