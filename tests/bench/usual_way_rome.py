"""One edit as one makes it in torch, at its best: rows in one batch, constants for weights (no gradient of any), backward no further than the
edited layer, logits only where the loss looks, fused attention, fp32, two threads: tests/conformance/rome_torch.py around transformers.

    python usual_way_rome.py MODEL EDIT_DIR [CALLS]

EDIT_DIR is what `weir rome edit --identity` made: the same request with the same prefixes and passes is edited, and both results are
compared. Prints the seconds of the best of CALLS calls (2), without start-up and loading.
"""
import json
import os
import sys
import time

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from rome_torch import Net, Options, Rome, encoder  # noqa: E402


def opened(path):
    where = ({"pretrained_model_name_or_path": os.path.dirname(path), "gguf_file": os.path.basename(path)} if os.path.isfile(path)
             else {"pretrained_model_name_or_path": path})
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32, attn_implementation="sdpa", local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(**where, local_files_only=True)
    return model, tokenizer


def check(said, tensors, found):
    """The same search and the same update."""
    ours = said["reports"][0]["trace"]
    assert len(ours) == len(found.trace)
    for a, b in zip(ours, found.trace):
        assert abs(a["loss"] - b["loss"]) < 1e-3, (a, b)
    half = lambda kind: next(v for k, v in tensors.items() if f"lora_{kind}" in k).flatten().double()
    u, v = half("A"), half("B")
    cosine = lambda a, b: torch.dot(a, b.double()) / a.norm() / b.double().norm()
    assert cosine(u, found.u) * cosine(v, found.Lambda) > 0.9999
    assert abs(u.norm() * v.norm() / found.Lambda.norm() - 1) < 1e-3


def main(path, edit, calls):
    torch.set_num_threads(2)
    with open(f"{edit}/edit.json", encoding="utf-8") as f:
        said = json.load(f)
    o, layer = said["options"], said["statistics"][0]["layer"]
    model, tokenizer = opened(path)
    net = Net(model, encoder(tokenizer), tokenizer.bos_token_id if o["bos"] else None)
    options = Options(**{k: o[k] for k in ("steps", "rounds", "rate", "kl", "decay", "clamp", "enough")})
    rome = Rome(net, said["prefixes"], options, {layer: torch.eye(net.down(layer).in_features, dtype=torch.float64)})
    best = float("inf")
    for _ in range(calls):
        begin = time.monotonic()
        found = rome.edit(said["method"], said["requests"][0], layer)
        best = min(best, time.monotonic() - begin)
    check(said, load_file(f"{edit}/adapter_model.safetensors"), found)
    print(best)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2)
