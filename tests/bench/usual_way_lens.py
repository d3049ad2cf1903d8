"""The lens over every layer as one writes it in torch, at its best: all rows in one product, inference mode, fp32, every step over
whole matrices in place where it can be, blocks of positions so that what is in hand stays small; the same table as bench_lens.

    python usual_way_lens.py MODEL_DIR TABLE [BLOCK]

TABLE is what `bench_lens MODEL table TABLE` wrote: rows of the stream and weir's results, which are checked. Prints the seconds of the best of
several calls, without start-up and loading. BLOCK: positions at a time; without it several are tried and the best counts.
"""
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file

BEST_OF = 3


def read(path):
    raw = np.fromfile(path, np.uint8)
    r, n, c, t, k = raw[:40].view(np.int64)
    at = 40
    out = {}
    for name, shape, kind in (("rows", (r, n, c), np.float32), ("target", (n, t), np.int32), ("logprob", (r, n, t), np.float32),
                              ("rank", (r, n, t), np.int32), ("entropy", (r, n), np.float32), ("kl_final", (r, n), np.float32),
                              ("kl_prev", (r, n), np.float32), ("jsd", (r, n), np.float32), ("top_id", (r, n, k), np.int32),
                              ("top_logprob", (r, n, k), np.float32)):
        size = int(np.prod(shape)) * 4
        out[name] = torch.from_numpy(raw[at:at + size].view(kind).reshape(shape).copy())
        at += size
    assert at == len(raw)
    return out


def block(w, x, target, k):
    """All statistics of rows x [R, B, C]; target [B, T]."""
    r, b, c = x.shape
    h = torch.nn.functional.layer_norm(x, (c,), w["ln_f.weight"], w["ln_f.bias"], 1e-5)
    z = (h.reshape(r * b, c) @ w["wte.weight"].T).reshape(r, b, -1)
    target = torch.where(target == -2, z[-1].argmax(-1, keepdim=True), target).clamp(min=0)
    ask = target.expand(r, *target.shape)
    y = z.gather(-1, ask)
    rank = torch.stack([(z > y[..., j:j + 1]).sum(-1) for j in range(ask.shape[-1])], -1) + 1
    log_z = torch.logsumexp(z, -1, keepdim=True)
    top, top_id = z.topk(k, -1)
    p = z.sub_(log_z)  # ln p from here on
    e = p.exp()
    final, final_e = p[-1], e[-1]
    entropy = -(e * p).sum(-1)
    kl_final = (final_e * (final - p)).sum(-1)
    kl_prev = (e[1:] * (p[1:] - p[:-1])).sum(-1)
    m = (e + final_e).mul_(0.5).log_()
    jsd = ((e * (p - m)).sum(-1) + (final_e * (final - m)).sum(-1)) / 2
    return {"logprob": y - log_z, "rank": rank, "entropy": entropy, "kl_final": kl_final, "jsd": jsd, "top_id": top_id,
            "top_logprob": top - log_z, "kl_prev": torch.cat([torch.full((1, b), float("nan")), kl_prev])}


def table(w, given, step):
    n, k = given["target"].shape[0], given["top_id"].shape[-1]
    target = given["target"].long()
    parts = [block(w, given["rows"][:, i:i + step], target[i:i + step], k) for i in range(0, n, step)]
    return {name: torch.cat([p[name] for p in parts], 1) for name in parts[0]}


def check(got, given):
    """The same table: what a fp32 sum over 50,000 tokens allows."""
    asked = given["target"] != -1
    for name in ("logprob", "rank"):
        got[name], given[name] = got[name][:, asked], given[name][:, asked]
    for name, bound in (("logprob", 2e-4), ("entropy", 1e-3), ("kl_final", 1e-3), ("kl_prev", 1e-3), ("jsd", 1e-3), ("top_logprob", 2e-4)):
        assert torch.allclose(got[name], given[name], rtol=1e-4, atol=bound, equal_nan=True), name
    assert ((got["rank"] - given["rank"]).abs() <= 1 + given["rank"] // 1000).all(), "rank"  # nearly equal logits change places
    assert (got["top_id"] == given["top_id"]).float().mean() > 0.99, "top_id"


def main(path, file, steps):
    torch.set_num_threads(2)
    w = load_file(f"{path}/model.safetensors")
    given = read(file)
    best = float("inf")
    with torch.inference_mode():
        for step in steps:
            for i in range(BEST_OF + 1):  # the first one warms up
                begin = time.monotonic()
                got = table(w, given, step)
                best = min(best, time.monotonic() - begin) if i else best
    check(got, given)
    print(best)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(s) for s in sys.argv[3:]] or [8, 32, 128])
