"""Writes a checkpoint of GPT-2 small's shape with random weights (seeded): python3 make_gpt2.py DIR TOKENIZER_DIR

Speed does not depend on values; real weights are not at hand without a network. numpy only; 498 MB.
"""
import json
import os
import shutil
import struct
import sys

import numpy as np

L, C, V, CTX = 12, 768, 50257, 1024


def tensors(rng):
    def normal(*shape, std=0.02):
        return (rng.standard_normal(shape, dtype=np.float32) * np.float32(std))

    yield "wte.weight", normal(V, C)
    yield "wpe.weight", normal(CTX, C, std=0.01)
    for i in range(L):
        for norm in ("ln_1", "ln_2"):
            yield f"h.{i}.{norm}.weight", np.ones(C, np.float32)
            yield f"h.{i}.{norm}.bias", normal(C)
        yield f"h.{i}.attn.c_attn.weight", normal(C, 3 * C)
        yield f"h.{i}.attn.c_attn.bias", normal(3 * C)
        yield f"h.{i}.attn.c_proj.weight", normal(C, C)
        yield f"h.{i}.attn.c_proj.bias", normal(C)
        yield f"h.{i}.mlp.c_fc.weight", normal(C, 4 * C)
        yield f"h.{i}.mlp.c_fc.bias", normal(4 * C)
        yield f"h.{i}.mlp.c_proj.weight", normal(4 * C, C)
        yield f"h.{i}.mlp.c_proj.bias", normal(C)
    yield "ln_f.weight", np.ones(C, np.float32)
    yield "ln_f.bias", normal(C)


def main(out, tokenizer):
    if os.path.exists(os.path.join(out, "model.safetensors")):
        return
    os.makedirs(out, exist_ok=True)
    header, offset = {}, 0
    for name, t in tensors(np.random.default_rng(1)):
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [offset, offset + t.nbytes]}
        offset += t.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = os.path.join(out, "model.safetensors.part")
    with open(part, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, t in tensors(np.random.default_rng(1)):
            f.write(t.tobytes())
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": V, "n_positions": CTX, "n_ctx": CTX,
              "n_embd": C, "n_layer": L, "n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
              "bos_token_id": 50256, "eos_token_id": 50256}
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump(config, f)
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(os.path.join(tokenizer, name), os.path.join(out, name))
    os.rename(part, os.path.join(out, "model.safetensors"))


if __name__ == "__main__":
    main(*sys.argv[1:])
