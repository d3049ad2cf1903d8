"""The same weights in two layouts, or twice in one type, give the same bits."""

import copy

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

import compare
import models
import reference
import weirdump
from test_values import deep_tolerances


def same_bits(a, b):
    assert set(a) == set(b)
    return [k for k in sorted(a) if a[k].shape != b[k].shape or a[k].tobytes() != b[k].tobytes()]


@pytest.mark.wants(only=lambda case: len(case.paths) == 2)
def test_two_layouts(loaded, tmp_path):
    case = loaded.case
    a, b = (loaded.weir(p, case.ctx, tmp_path / "x.h5") for p in case.paths)
    different = same_bits(a, b)
    if case.same_bits:
        assert not different
    else:  # llama3 RoPE: GGUF holds rounded divisors, so only what RoPE feeds may differ
        assert not [k for k in different if "blocks.0." in k and k.endswith(("hook_q", "hook_k", "hook_v", "hook_resid_pre"))]


def test_same_bits_can_fail():
    a = {"x": np.zeros(3, np.float32)}
    b = {"x": np.array([0, -0.0, 0], np.float32)}
    assert same_bits(a, b) == ["x"] and not same_bits(a, dict(a))


@pytest.fixture(scope="session")
def smollm2_dirs(smollm2_model):
    """Hugging Face directories of SmolLM2 in F32 and BF16."""
    config = copy.deepcopy(smollm2_model.config)
    if hasattr(config, "quantization_config"):  # left from the GGUF; the weights are plain numbers by now
        del config.quantization_config
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(smollm2_model.state_dict())
    out = {}
    for name, dtype in (("F32", torch.float32), ("BF16", torch.bfloat16)):
        out[name] = models.build_dir() / f"smollm2-{name}"
        plain.to(dtype).save_pretrained(out[name])
    return out


def test_smollm2_layouts(smollm2, smollm2_dirs, tmp_path):
    """The GGUF's blocks and the directory of their dequantised values."""
    ids = models.ids_of(smollm2, 17)
    a, b = (weirdump.capture(p, ids, tmp_path / "x.h5", extra=("--ctx", 17)) for p in (smollm2.paths[0], smollm2_dirs["F32"]))
    assert not same_bits(a, b)


def test_smollm2_bf16(smollm2, smollm2_dirs, tmp_path):
    """bf16 weights are widened exactly: the reference reads the same file into fp32 and float64."""
    case = models.Case("smollm2-bf16", "llama", smollm2_dirs["BF16"], [smollm2_dirs["BF16"]], None, "BF16", smollm2.vocab, smollm2.ctx)
    model = models.load(case)
    ids = models.ids_of(case, 11)
    ref64 = reference.capture(reference.in_float64(model), ids)
    got = weirdump.capture(case.hf, ids, tmp_path / "x.h5", extra=("--ctx", 11))
    wrong, _ = compare.compare(got, ref64, deep_tolerances(model, ids, ref64))
    assert not wrong, "\n".join(map(str, wrong[:12]))
