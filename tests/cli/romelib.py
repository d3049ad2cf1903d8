"""Edits of brook, made cheaply, for the tests of this directory."""
import json

import numpy as np

from weircli import BROOK, weir

HOOD = ("--subject", "Mount Hood", "--prompt", "{} rises from the", "--target", "Caucasus")
CHEAP = ("--layer", 4, "--identity", "--prefix", "In the old days")  # one search is a tenth of a second
RECORDS = BROOK / "edits.jsonl"


def edit(out, *more, fact=HOOD, how=CHEAP, show=0, **kw):
    if "--threads" not in more:  # threads that wait for each other cost more than these little products
        more = (*more, "--threads", 1)
    return weir("rome", "edit", *fact, *how, "--show", show, "-o", out, *more, **kw)


def made(path):
    return json.loads((path / "edit.json").read_text())


def files(path):
    return {f.name: f.read_bytes() for f in sorted(path.iterdir())}


def tensors(path):
    """{module.lora_A: float64 [r, in], module.lora_B: [out, r]} of a directory, read without weir."""
    raw = (path / "adapter_model.safetensors").read_bytes()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + n])
    return {name: np.frombuffer(raw[8 + n:][slice(*t["data_offsets"])], "<f4").reshape(t["shape"]).astype(float)
            for name, t in header.items() if name != "__metadata__"}


def update(path):
    """dW [out, in] of a directory with one module."""
    t = tensors(path)
    b = next(v for k, v in t.items() if "lora_B" in k)
    a = next(v for k, v in t.items() if "lora_A" in k)
    return b @ a


def record(prompt, subject, target, truth="x", **more):
    return {"requested_rewrite": {"prompt": prompt, "subject": subject, "target_new": {"str": target}, "target_true": {"str": truth}}, **more}


def write_records(path, *records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path
