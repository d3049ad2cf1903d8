"""The models of the conformance tests, and the ids that they are run on."""

import functools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM

import tiny

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
SMOLLM2 = SHARED / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
BROOK = ROOT / "lib" / "brook"


@dataclass
class Case:
    name: str
    family: str
    hf: Path              # directory, or the folder of a GGUF that transformers reads
    paths: list = field(default_factory=list)  # what weir opens: every one must pass
    gguf_file: str = None
    dtype: str = "F32"    # of the stored weights
    vocab: int = 0
    ctx: int = 0
    same_bits: bool = True  # all of paths give the same bits


def build_dir():
    return Path(os.environ.get("WEIR_CONFORMANCE_DIR", ROOT / "build" / "conformance"))


def make_tiny():
    """Writes the tiny checkpoints."""
    out = build_dir() / "tiny"
    out.mkdir(parents=True, exist_ok=True)
    index = [tiny.make(str(out), name) for name in tiny.CHECKPOINTS]
    (out / "index.json").write_text(json.dumps(index, indent=1))


def tiny_cases():
    """Those that make_tiny wrote."""
    out = build_dir() / "tiny"
    return [tiny_case(out, entry) for entry in json.loads((out / "index.json").read_text())]


def tiny_case(out, entry):
    paths = [out / entry["hf"]] + ([out / entry["gguf"]] if entry["gguf"] else [])
    return Case(entry["name"], entry["family"], out / entry["hf"], paths, None, entry["dtype"], entry["vocab"], entry["ctx"],
                entry["same_bits"])


@functools.cache
def all_cases():
    """{name: case} of all but SmolLM2."""
    return {c.name: c for c in tiny_cases() + [brook_case()]}


def brook_case():
    return Case("brook", "gpt2", BROOK, [BROOK], None, "F16", 4096, 256)


def smollm2_case():
    return Case("smollm2", "llama", SMOLLM2.parent, [SMOLLM2], SMOLLM2.name, "F32", 49152, 8192)


def load(case):
    """The model in fp32, weights exactly as stored (16-bit ones widened)."""
    return AutoModelForCausalLM.from_pretrained(
        case.hf, dtype=torch.float32, attn_implementation="eager", local_files_only=True,
        **({"gguf_file": case.gguf_file} if case.gguf_file else {})).eval()


def ids_of(case, n, seed=0):
    """n token ids that differ from case to case but not from run to run."""
    gen = np.random.default_rng([seed, n, *case.name.encode()])
    return gen.integers(0, case.vocab, n).tolist()


def lengths(case):
    """Rows of the sequences to compare: one token, an odd number, the whole context."""
    return [1, 13, case.ctx] if case.ctx <= 32 else [1, 13]
