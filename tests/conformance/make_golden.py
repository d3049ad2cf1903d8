#!/usr/bin/env python3
"""Writes tests/golden/: tiny checkpoints, and what float64 Hugging Face says about them and about brook.

    build/venv/bin/python tests/conformance/make_golden.py

One NAME.npz a model: `values`, float32, sampled from the float64 reference; `tol`, the bound of compare.py for each row; `meta`, JSON
that says which hooks, rows and units they are. tests/golden/test_golden.py needs numpy and h5py alone to check them.
"""

import json
import shutil

import numpy as np
import transformers
from transformers import AutoTokenizer

import compare
import models
import reference
import tiny

GOLDEN = models.ROOT / "tests" / "golden"
TINY = ["gpt2", "llama-gqa-bf16", "llama-llama3-v4", "mistral-window-f16", "neox-parallel", "gemma2", "qwen2",
        "qwen3", "llama-q4_0"]
TINY_ROWS = 9
LINES = [0, 4, 9]  # of brook's sentences
UNITS = 8          # of a row that are kept


def sample(name, value, tol, rows, salt):
    """(record for meta, values, tolerances) of one hook."""
    flat = compare.rows(value)
    width = flat.shape[1]
    gen = np.random.default_rng([salt, *name.encode()])
    units = sorted(gen.choice(width, min(width, UNITS), replace=False).tolist())
    kept = np.where(flat < compare.MASKED, -np.inf, flat)[np.ix_(rows, units)]
    return dict(name=name, shape=list(value.shape), units=units), kept.astype(np.float32), tol[rows].astype(np.float32)


def entry(model, ids, rows, salt, **extra):
    ref64 = reference.capture(reference.in_float64(model), ids)
    reference.check_float64(ref64)
    tol = compare.tolerances(ref64, reference.capture(model, ids))
    parts = [sample(k, ref64[k], tol[k], rows, salt) for k in sorted(ref64)]
    meta = dict(ids=ids, rows=rows, hooks=[p[0] for p in parts], **extra)
    return meta, [p[1].ravel() for p in parts], [p[2] for p in parts]


def write(name, entries):
    metas = [e[0] for e in entries]
    np.savez_compressed(
        GOLDEN / f"{name}.npz",
        meta=np.frombuffer(json.dumps(metas, separators=(",", ":")).encode(), dtype=np.uint8),
        values=np.concatenate([v for e in entries for v in e[1]]),
        tol=np.concatenate([t for e in entries for t in e[2]]))
    print(name, (GOLDEN / f"{name}.npz").stat().st_size)


def golden_tiny(name):
    out = GOLDEN / "models"
    case = models.tiny_case(out, tiny.make(str(out), name))
    ids = models.ids_of(case, TINY_ROWS)
    layouts = [p.name for p in case.paths]
    write(name, [entry(models.load(case), ids, list(range(TINY_ROWS)), 0, family=case.family, layouts=layouts,
                       same_bits=case.same_bits)])


def golden_brook():
    case = models.brook_case()
    model = models.load(case)
    tok = AutoTokenizer.from_pretrained(case.hf, local_files_only=True)
    lines = (models.BROOK / "sentences.txt").read_text().splitlines()
    entries = []
    for i in LINES:
        ids = [tok.bos_token_id] + tok(lines[i], add_special_tokens=False)["input_ids"]
        rows = [0, len(ids) // 2, len(ids) - 1]
        entries.append(entry(model, ids, rows, i, family="gpt2", text=lines[i]))
    write("brook", entries)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    shutil.rmtree(GOLDEN / "models", ignore_errors=True)
    (GOLDEN / "models").mkdir(parents=True)
    for name in TINY:
        golden_tiny(name)
    golden_brook()


if __name__ == "__main__":
    main()
