"""Edits against Hugging Face PEFT 0.21: adapters that PEFT made and saved, applied by weir; edits that weir saved, loaded by PEFT; merged
checkpoints, opened by transformers. The reference is PEFT's own `merge_and_unload` in float64, and all hook points are compared; the
unmerged forward of PEFT is compared at the logits."""
import copy
import json
import os
import subprocess
import warnings

import numpy as np
import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

import compare
import models
import reference
import weirdump

WEIR = os.path.join(os.environ["WEIR_BIN"], "weir")
warnings.filterwarnings("ignore", module="peft")

N = 11
VARIANTS = {
    "plain": dict(r=4, lora_alpha=6),
    "rslora": dict(r=5, lora_alpha=3, use_rslora=True),
    "patterns": dict(r=2, lora_alpha=4, rank_pattern={"{last}": 3}, alpha_pattern={"{last}": 9}, layers_to_transform=[0]),
    "turned": dict(r=3, lora_alpha=3, fan_in_fan_out=True),  # PEFT sets it right for the kind of module
}


def targets(model):
    """Last parts of the names of a block's matrices."""
    kinds = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    return sorted({n.rsplit(".", 1)[-1] for n, m in model.named_modules() if isinstance(m, kinds) and n.count(".") > 2})


def make_adapter(model, out, variant):
    """A random adapter of every matrix that PEFT has saved."""
    torch.manual_seed(len(variant))
    names = targets(model)
    config = {k: {p.format(last=names[-1]): x for p, x in v.items()} if isinstance(v, dict) else v
              for k, v in VARIANTS[variant].items()}
    peft = get_peft_model(copy.deepcopy(model), LoraConfig(target_modules=names, init_lora_weights=False, task_type="CAUSAL_LM", **config))
    with torch.no_grad():
        for name, p in peft.named_parameters():
            if "lora_" in name:
                p.copy_(0.1 * torch.randn_like(p))
    peft.save_pretrained(out)
    return out


def with_adapter(model, adapter, merge):
    """Hugging Face's model with an adapter: part of its weights, or beside them."""
    peft = PeftModel.from_pretrained(copy.deepcopy(model), adapter)
    return (peft.merge_and_unload() if merge else peft).eval()


def merged64(loaded, adapter):
    return with_adapter(loaded.model64, adapter, merge=True).double()


def captured(model, ids):
    return reference.capture(model, ids)


def check(got, ref64, ref32):
    wrong, _ = compare.compare(got, ref64, compare.tolerances(ref64, ref32))
    assert not wrong, "\n".join(map(str, wrong[:8]))


def rows(case, edit, out, path=None):
    extra = ("--edit", edit) if edit else ()
    return weirdump.capture(path or case.paths[0], models.ids_of(case, N), out, extra=("--ctx", N, *extra))


tiny = pytest.mark.wants(only=lambda c: c.name in (
    "gpt2", "gpt2-bare-f16", "llama-gqa-bf16", "llama-linear-bias", "mistral-window-f16", "neox-parallel", "neox-nobias-bf16", "gemma2"))


@tiny
@pytest.mark.parametrize("variant", VARIANTS)
def test_adapters_of_peft(loaded, variant, tmp_path):
    """Every hook point of the model with the adapter, from each file layout: GGUF files too, whose heads lie otherwise."""
    case, ids = loaded.case, models.ids_of(loaded.case, N)
    adapter = make_adapter(loaded.model, tmp_path / "adapter", variant)
    ref64 = captured(merged64(loaded, adapter), ids)
    ref32 = captured(with_adapter(loaded.model, adapter, merge=True), ids)
    for path in case.paths:
        check(rows(case, adapter, tmp_path / "x.h5", path), ref64, ref32)


@tiny
def test_comparison_can_fail(loaded, tmp_path):
    """Without the edit, and with another one, values differ at every layer."""
    case, ids = loaded.case, models.ids_of(loaded.case, N)
    adapter = make_adapter(loaded.model, tmp_path / "adapter", "plain")
    other = make_adapter(loaded.model, tmp_path / "other", "rslora")
    ref64 = captured(merged64(loaded, adapter), ids)
    tol = compare.tolerances(ref64, captured(with_adapter(loaded.model, adapter, merge=True), ids))
    for edit in (None, other):
        wrong, _ = compare.compare(rows(case, edit, tmp_path / "x.h5"), ref64, tol)
        assert {w.hook for w in wrong} >= {f"blocks.{l}.hook_mlp_out" for l in range(loaded.model.config.num_hidden_layers)}


def logits64(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double().numpy()


def weir_logits(case, model, edit, out):
    """After a soft cap, where there is one."""
    hook = "hook_logits" if "hook_logits" in weirdump.points(model) else "unembed.hook_out"
    extra = ("--edit", edit) if edit else ()
    return weirdump.capture(model, models.ids_of(case, N), out, hooks=hook, extra=("--ctx", N, *extra))[hook]


def close(a, b, bound=3e-5):
    return np.abs(a - b).max() <= bound * max(1, np.abs(b).max())


@tiny
def test_edits_of_weir_in_peft(loaded, tmp_path):
    """`rome merge`, then `rome diff --out` takes the edit out again: a directory of weir's own, with q, k and v of fused matrices apart. PEFT
    loads it and gives weir's logits, unmerged; and weir reads it as well."""
    case, ids = loaded.case, models.ids_of(loaded.case, N)
    base = case.paths[0]
    adapter = make_adapter(loaded.model, tmp_path / "adapter", "plain")
    for args in (("merge", "-m", base, "--edit", adapter, "-o", tmp_path / "merged"),
                 ("diff", base, tmp_path / "merged", "-o", tmp_path / "taken", "--rank", "6")):
        subprocess.run([WEIR, "rome", *map(str, args), "-q"], stdout=subprocess.DEVNULL, check=True)
    said = json.loads((tmp_path / "taken" / "adapter_config.json").read_text())
    assert said["peft_type"] == "LORA" and set(VARIANTS["plain"]) <= set(said)
    want = logits64(with_adapter(loaded.model64, tmp_path / "taken", merge=False).double(), ids)
    assert close(weir_logits(case, base, tmp_path / "taken", tmp_path / "x.h5"), want)
    assert not close(weir_logits(case, base, None, tmp_path / "x.h5"), want)


@tiny
def test_merged_checkpoints(loaded, tmp_path):
    """`rome merge` of two edits: transformers and weir open it, and give the logits of the sum within the rounding of its type."""
    case, ids = loaded.case, models.ids_of(loaded.case, N)
    edits = [make_adapter(loaded.model, tmp_path / v, v) for v in ("plain", "rslora")]
    out = tmp_path / "merged"
    said = json.loads(subprocess.run([WEIR, "rome", "merge", "-m", case.paths[0], "--edit", edits[0], "--edit", edits[1], "-o", out, "--json",
                                      "-q"], stdout=subprocess.PIPE, check=True).stdout)
    assert said["written"] and len(said["edits"]) == 2
    ours = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32, attn_implementation="eager").eval()
    check(rows(case, None, tmp_path / "x.h5", out), captured(reference.in_float64(ours), ids), captured(ours, ids))
    both = with_adapter(merged64(loaded, edits[0]), edits[1], merge=True).double()
    theirs, mine = both.state_dict(), reference.in_float64(ours).state_dict()
    unit = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}[case.dtype]
    changed = 0
    for name, w in theirs.items():
        assert torch.all((mine[name] - w).abs() <= 1.001 * unit * w.abs() + 2.0**-25), name
        changed += not torch.equal(loaded.model64.state_dict()[name], mine[name])
    assert changed >= len(said["matrices"]) / 3
    assert close(weir_logits(case, out, None, tmp_path / "x.h5"), logits64(both, ids), 3e-5 + 100 * unit)
