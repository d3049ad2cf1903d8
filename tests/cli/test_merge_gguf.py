"""`rome merge` of GGUF files: what is written is the Hugging Face directory that the file was made from, in F32; what cannot be written is
refused by name before anything is."""
import json
import struct

import numpy as np
import pytest

from weircli import ROOT, weir

MODELS = ROOT / "tests/golden/models"
F32 = ["gpt2", "llama-q4_0", "neox-parallel"]  # stored so on both sides


def tensors(path):
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    assert n % 8 == 0
    return {name: np.frombuffer(raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]], np.float32).reshape(t["shape"])
            for name, t in json.loads(raw[8:8 + n]).items() if name != "__metadata__" and t["dtype"] == "F32"}


def different(a, b):
    assert set(a) == set(b) and a
    return [name for name in a if not np.array_equal(a[name], b[name])]


@pytest.mark.parametrize("name", F32)
def test_tensors_are_those_of_the_class(name, tmp_path):
    run = weir("rome", "merge", "-m", MODELS / f"{name}.gguf", "-o", tmp_path / "out").ok()
    assert "has no tokenizer: none is written" in run.err and "0 edits in 0 of its matrices" in run.err
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["config.json", "model.safetensors"]
    ours, theirs = (tensors(d / "model.safetensors") for d in (tmp_path / "out", MODELS / name))
    assert different(ours, theirs) == []
    first = sorted(ours)[0]
    assert different({**ours, first: -ours[first]}, theirs) == [first]


@pytest.mark.parametrize("name", ["gemma2", "llama-gqa-bf16", "llama-llama3-v4", "mistral-window-f16", "qwen2", "qwen3"])
def test_numbers_are_those_of_the_file(name, tmp_path):
    """The configuration, as far as both say it. A class's own defaults may be left out."""
    weir("rome", "merge", "-m", MODELS / f"{name}.gguf", "-o", tmp_path / "out", "-q").ok()
    ours, theirs = (json.loads((d / "config.json").read_text()) for d in (tmp_path / "out", MODELS / name))
    both = set(ours) & set(theirs) - {"dtype", "bos_token_id", "eos_token_id", "rope_scaling"}
    assert {k: ours[k] for k in both} == {k: theirs[k] for k in both} and len(both) >= 9
    assert (ours.get("rope_scaling") or {}).get("original_max_position_embeddings") == (16 if "llama3" in name else None)


def test_refusals(tmp_path):
    base = MODELS / "llama-llama3-v4.gguf"
    raw = bytearray(base.read_bytes())
    at = raw.rfind(struct.pack("<f", 4.0))  # a divisor of the RoPE frequencies: the factor
    raw[at:at + 4] = struct.pack("<f", 3.5)
    (tmp_path / "odd.gguf").write_bytes(raw)
    weir("rome", "merge", "-m", tmp_path / "odd.gguf", "-o", tmp_path / "out", "-q").fails(1, "rope_freqs.weight", "no RoPE scaling of Hugging Face")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("x")
    weir("rome", "merge", "-m", base, "-o", tmp_path / "there", "-q").fails(1, "it exists and nothing in it says that it is a merged checkpoint")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["odd.gguf", "there"]
