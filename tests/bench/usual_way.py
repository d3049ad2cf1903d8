"""The usual way to record one layer's activations, at its best: transformers with forward hooks, batches by length, inference
mode, only the modules asked for, the model cut behind the layer, h5py with gzip 1 and shuffle.

    python usual_way.py MODEL_DIR SENTENCES LAYER OUT.h5
"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import h5py
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2LMHeadModel


def main(path, sentences, layer, out):
    torch.set_num_threads(os.cpu_count())
    model = GPT2LMHeadModel.from_pretrained(path, dtype=torch.float32, attn_implementation="sdpa").transformer.eval()
    del model.h[layer + 1:]
    tok = Tokenizer(models.BPE.from_file(os.path.join(path, "vocab.json"), os.path.join(path, "merges.txt")))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with open(sentences, encoding="utf-8") as f:
        ids = [e.ids for e in tok.encode_batch([line.rstrip("\n") for line in f if line.strip()])]
    start = np.concatenate([[0], np.cumsum([len(x) for x in ids])])
    block, n = model.h[layer], int(start[-1])
    got = {}
    take = {
        "hook_resid_pre": (block.ln_1, 0), "ln1.hook_out": (block.ln_1, 1), "hook_attn_out": (block.attn.c_proj, 1),
        "hook_resid_mid": (block.ln_2, 0), "ln2.hook_out": (block.ln_2, 1), "mlp.hook_post": (block.mlp.act, 1),
        "hook_mlp_out": (block.mlp, 1), "hook_resid_post": (block, 1),
    }

    def listen(name, side):
        def hook(module, args, output):
            value = args[0] if side == 0 else output
            got[name] = value[0] if isinstance(value, tuple) else value
        return hook

    for name, (module, side) in take.items():
        module.register_forward_hook(listen(name, side))
    store = {}
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    with torch.inference_mode():
        at = 0
        while at < len(order):
            longest = len(ids[order[at]])
            batch = order[at:at + max(1, 2048 // longest)]
            at += len(batch)
            x = torch.zeros(len(batch), longest, dtype=torch.long)
            for row, i in enumerate(batch):
                x[row, :len(ids[i])] = torch.tensor(ids[i])
            model(input_ids=x, use_cache=False)  # right padding under a causal mask: real rows are untouched by it
            for name, value in got.items():
                if name not in store:
                    store[name] = np.empty((n, value.shape[-1]), np.float32)
                for row, i in enumerate(batch):
                    store[name][start[i]:start[i + 1]] = value[row, :len(ids[i])].numpy()
    with h5py.File(out, "w") as f:
        for name, value in store.items():
            f.create_dataset(f"blocks.{layer}.{name}", data=value, chunks=(min(1024, n), 64), compression="gzip",
                             compression_opts=1, shuffle=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
