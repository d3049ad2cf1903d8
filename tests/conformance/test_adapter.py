"""Edits against Hugging Face PEFT 0.21: adapters that PEFT made and saved, applied by weir; edits that weir saved, loaded by PEFT; merged
checkpoints, opened by transformers. The reference is PEFT's own `merge_and_unload` in float64, and all hook points are compared; the
unmerged forward of PEFT is compared at the logits."""
import json
import os
import subprocess

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import adapters as peft
import compare
import models
import reference
import weirdump
from adapters import N

WEIR = os.path.join(os.environ["WEIR_BIN"], "weir")


def check(got, ref64, tol):
    wrong, _ = compare.compare(got, ref64, tol)
    assert not wrong, "\n".join(map(str, wrong[:8]))


def rows(case, edit, out, path=None):
    extra = ("--edit", edit) if edit else ()
    return weirdump.capture(path or case.paths[0], models.ids_of(case, N), out, extra=("--ctx", N, *extra))


tiny = pytest.mark.wants(only=lambda c: c.name in (
    "gpt2", "gpt2-bare-f16", "llama-gqa-bf16", "llama-linear-bias", "mistral-window-f16", "neox-parallel", "neox-nobias-bf16", "gemma2", "qwen2",
    "qwen3"))


@tiny
@pytest.mark.parametrize("variant", peft.VARIANTS)
def test_adapters_of_peft(loaded, adapters, variant, tmp_path):
    """Every hook point of the model with the adapter, from each file layout: GGUF files too, whose heads lie otherwise."""
    for path in loaded.case.paths:
        check(rows(loaded.case, adapters.path(variant), tmp_path / "x.h5", path), *adapters.reference(variant))


@tiny
def test_comparison_can_fail(loaded, adapters, tmp_path):
    """Without the edit, and with another one, values differ at every layer."""
    for edit in (None, adapters.path("rslora")):
        wrong, _ = compare.compare(rows(loaded.case, edit, tmp_path / "x.h5"), *adapters.reference("plain"))
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
def test_edits_of_weir_in_peft(loaded, adapters, tmp_path):
    """`rome merge`, then `rome diff --out` takes the edit out again: a directory of weir's own, with q, k and v of fused matrices apart. PEFT
    loads it and gives weir's logits, unmerged; and weir reads it as well."""
    case, base = loaded.case, loaded.case.paths[0]
    for args in (("merge", "-m", base, "--edit", adapters.path("plain"), "-o", tmp_path / "merged"),
                 ("diff", base, tmp_path / "merged", "-o", tmp_path / "taken", "--rank", "6")):
        subprocess.run([WEIR, "rome", *map(str, args), "-q"], stdout=subprocess.DEVNULL, check=True)
    said = json.loads((tmp_path / "taken" / "adapter_config.json").read_text())
    assert said["peft_type"] == "LORA" and set(peft.VARIANTS["plain"]) <= set(said)
    want = logits64(peft.beside(loaded.model64, tmp_path / "taken").double(), adapters.ids)
    assert close(weir_logits(case, base, tmp_path / "taken", tmp_path / "x.h5"), want)
    assert not close(weir_logits(case, base, None, tmp_path / "x.h5"), want)


@tiny
def test_merged_checkpoints(loaded, adapters, tmp_path):
    """`rome merge` of two edits: transformers and weir open it, and give the logits of the sum within the rounding of its type."""
    case, ids = loaded.case, adapters.ids
    edits = [adapters.path(v) for v in ("plain", "rslora")]
    out = tmp_path / "merged"
    said = json.loads(subprocess.run([WEIR, "rome", "merge", "-m", case.paths[0], "--edit", edits[0], "--edit", edits[1], "-o", out, "--json",
                                      "-q"], stdout=subprocess.PIPE, check=True).stdout)
    assert said["written"] and len(said["edits"]) == 2
    ours = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32, attn_implementation="eager").eval()
    ours64 = reference.in_float64(ours)
    ref64 = reference.capture(ours64, ids)
    check(rows(case, None, tmp_path / "x.h5", out), ref64, compare.tolerances(ref64, reference.capture(ours, ids)))
    both = peft.merged(adapters.merged64("plain"), edits[1]).double()
    theirs, mine = both.state_dict(), ours64.state_dict()
    unit = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}[case.dtype]
    changed = 0
    for name, w in theirs.items():
        assert torch.all((mine[name] - w).abs() <= 1.001 * unit * w.abs() + 2.0**-25), name
        changed += not torch.equal(loaded.model64.state_dict()[name], mine[name])
    assert changed >= len(said["matrices"]) / 3
    assert close(weir_logits(case, out, None, tmp_path / "x.h5"), logits64(both, ids), 3e-5 + 100 * unit)
