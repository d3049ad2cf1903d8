"""The usual way to find which tokens fire each neuron of all layers, at its best: transformers with a forward hook on each
activation, batches by length, inference mode, no unembedding, torch.topk of each batch merged with what was found, both ends.

    python usual_way_neurons.py MODEL_DIR SENTENCES K OUT.npz [--keep]

Writes value, row (of all tokens in the order of the text) [L, 2, K, F] and prints the seconds of the search itself, without
start-up and loading. --keep: all activations are kept and searched once at the end, which needs memory for the corpus.
"""
import os
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2LMHeadModel


def batches_by_length(ids, rows):
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    at = 0
    while at < len(order):
        batch = order[at:at + max(1, rows // len(ids[order[at]]))]
        at += len(batch)
        yield batch


def merge(best, x, row, k):
    """The k largest of each column of x [n, F] and of what was found before."""
    value, at = torch.topk(x, min(k, x.shape[0]), dim=0)
    index = row[at]
    if best is None:
        return value, index
    value, index = torch.cat([best[0], value]), torch.cat([best[1], index])
    value, at = torch.topk(value, min(k, value.shape[0]), dim=0)
    return value, torch.gather(index, 0, at)


def main(path, sentences, k, out, keep):
    torch.set_num_threads(os.cpu_count())
    model = GPT2LMHeadModel.from_pretrained(path, dtype=torch.float32, attn_implementation="sdpa").transformer.eval()
    tok = Tokenizer(models.BPE.from_file(os.path.join(path, "vocab.json"), os.path.join(path, "merges.txt")))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with open(sentences, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f if line.strip()]
    begin = time.monotonic()
    ids = [e.ids for e in tok.encode_batch(lines)]
    start = np.concatenate([[0], np.cumsum([len(x) for x in ids])])
    layers = len(model.h)
    found = [[None, None] for _ in range(layers)]
    kept = [torch.empty(int(start[-1]), 3072) for _ in range(layers)] if keep else None
    now = {}

    def listen(layer):
        def hook(module, args, output):
            x = output.reshape(-1, output.shape[-1])[now["real"]]
            if keep:
                kept[layer][now["row"]] = x
                return
            found[layer][0] = merge(found[layer][0], x, now["row"], k)
            found[layer][1] = merge(found[layer][1], -x, now["row"], k)
        return hook

    for layer, block in enumerate(model.h):
        block.mlp.act.register_forward_hook(listen(layer))
    with torch.inference_mode():
        for batch in batches_by_length(ids, 2048):
            longest = len(ids[batch[0]])
            x = torch.zeros(len(batch), longest, dtype=torch.long)
            rows = np.full((len(batch), longest), -1)
            for i, d in enumerate(batch):
                x[i, :len(ids[d])] = torch.tensor(ids[d])
                rows[i, :len(ids[d])] = np.arange(start[d], start[d + 1])
            rows = torch.from_numpy(rows.reshape(-1))
            now["real"] = rows >= 0
            now["row"] = rows[now["real"]]
            model(input_ids=x, use_cache=False)
        for layer in range(layers if keep else 0):
            every = torch.arange(int(start[-1]))
            found[layer] = [merge(None, kept[layer], every, k), merge(None, -kept[layer], every, k)]
    print(time.monotonic() - begin)
    value = np.stack([np.stack([f[0][0].numpy(), -f[1][0].numpy()]) for f in found])
    index = np.stack([np.stack([f[0][1].numpy(), f[1][1].numpy()]) for f in found])
    np.savez(out, value=value, row=index)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], "--keep" in sys.argv[5:])
