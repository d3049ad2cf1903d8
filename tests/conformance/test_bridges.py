"""notebooks_export/bridges.md, as far as it needs torch: its recipes run as printed, and the objects that they make are compared with those that
the libraries make themselves. (What needs Debian's packages only: tests/cli/test_bridges.py.)

A cache that is read from a dump against TransformerLens's own: every hook, then the methods of ActivationCache, whose reference is the same
methods over the float64 values of Hugging Face's code; the bound is compare.py's. SAELens needs an older transformer-lens: it is installed
beside this environment's packages, in build/venv-sae."""
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch
from transformer_lens import ActivationCache
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

import compare
import models
import reference
import weirdump

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

import pages

VENV = Path(os.environ.get("WEIR_VENV_SAE", models.ROOT / "build" / "venv-sae"))
OFFLINE = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
N, SHORT = 13, 7  # tokens of the longer and of the shorter document
KEYED = ("hook_attn_scores", "hook_pattern")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return pages.Page(tmp_path_factory.mktemp("bridges"), weirdump.BIN, OFFLINE)


@pytest.fixture(scope="module")
def lens_page(page):
    with torch.no_grad():
        return page.run("TransformerLens")


def wrong(got, want64, want32):
    """How many rows (the last axis) of got are further from the reference than the bound."""
    got, want64, want32 = (np.asarray(x, dtype=float).reshape(-1, x.shape[-1]) for x in (got, want64, want32))
    assert got.shape == want64.shape == want32.shape
    return int((compare.row_error(got, want64) > compare.tolerance(want64, want32)).sum())


def methods(cache):
    """{method: [batch, pos, component, width], or without the last}, of those that tutorials call. A neuron's part is a number of its own times a
    vector: of the full decomposition a row is all that a token has, as the bound has it for hooks."""
    last = cache.model.cfg.n_layers - 1
    parts = cache.decompose_resid()
    mid = f"blocks.{last}.hook_resid_mid" in cache.cache_dict
    made = {
        "decompose_resid": parts,
        "decompose_resid, normed": cache.decompose_resid(layer=last, apply_ln=True),
        "accumulated_resid": cache.accumulated_resid(incl_mid=mid),
        "accumulated_resid, normed": cache.accumulated_resid(apply_ln=True),
        "stack_head_results": cache.stack_head_results(),
        "get_full_resid_decomposition": cache.get_full_resid_decomposition(layer=2),
        "logit_attrs": cache.logit_attrs(parts, torch.tensor(3), torch.tensor(11)),
        "apply_ln_to_stack": cache.apply_ln_to_stack(parts),
    }
    made = {name: value.movedim(0, 2) for name, value in made.items()}
    return {name: value.flatten(2) if name.startswith("get_full") else value for name, value in made.items()}


def as_cache(values, model):
    """Of one sequence, from {hook: [T, ...]}."""
    turned = {name: v.swapaxes(0, 1) if name.endswith(KEYED) else v for name, v in values.items()}
    return ActivationCache({name: torch.tensor(np.ascontiguousarray(v))[None] for name, v in turned.items()}, model)


class Read:
    """A case's dump of two documents, read by the page's function, and both references."""

    def __init__(self, loaded, read_cache, where):
        case, (self.ids, self.ref64, self.tol) = loaded.case, loaded.reference(N)
        texts = [" ".join(map(str, self.ids[:n])) for n in (SHORT, N)]
        weirdump.run("trace", "--model", case.paths[0], "--ids", "--bos", "no", "--ctx", max(N, 2), "--layers", "all", "--hooks", weirdump.all_hooks(),
                     "--dump", where / "x.h5", "--quiet", *texts)
        build = lambda model: build_bridge_from_module(model, type(model).__name__, hf_config=model.config)
        self.model, self.model64 = build(models.load(case)), build(reference.in_float64(models.load(case)))
        self.cache, self.tokens = read_cache(where / "x.h5", self.model)
        self.model.set_use_attn_result(True)
        own = self.model.run_with_cache(torch.tensor([self.ids]))[1]
        self.own = ActivationCache({name: own[name] for name in self.cache if name in own}, self.model)
        self.cache64 = as_cache(self.ref64, self.model64)


lens_cases = pytest.mark.wants(only=lambda c: c.name in ("brook", "llama-gqa-bf16", "gemma2", "neox-parallel"))


@pytest.fixture
def read(loaded, lens_page, tmp_path):
    with torch.no_grad():
        yield Read(loaded, lens_page["read_cache"], tmp_path)


@lens_cases
def test_cache_of_a_dump(read):
    """Shapes, values and padding of every hook, and what the methods make of them."""
    assert read.tokens.tolist() == [read.ids[:SHORT] + [0] * (N - SHORT), read.ids] and set(read.cache) == set(read.ref64)
    for name, value in read.cache.items():
        for row, n in enumerate((SHORT, N)):
            v = value[row]
            if name in read.own.cache_dict:
                assert v.shape == read.own[name][0].shape, name
            if name.endswith(KEYED):
                assert not v[:, n:].any()
                v = v.swapaxes(0, 1)[..., :n]
            assert not v[n:].any(), name
            want = read.ref64[name][:n, ..., :n] if name.endswith(KEYED) else read.ref64[name][:n]
            difference, _ = compare.compare_hook(name, v[:n].numpy(), want, read.tol[name][:n])
            assert difference is None, str(difference)
    theirs, reference64 = methods(read.own), methods(read.cache64)
    for name, got in methods(read.cache).items():
        assert wrong(got[1:], reference64[name], theirs[name]) == 0, name
        assert wrong(got[:1, :SHORT], reference64[name][:, :SHORT], theirs[name][:, :SHORT]) == 0, name
        assert wrong(got[:1], reference64[name], theirs[name]) > 0, f"{name}: the comparison cannot fail"


def test_own_names_and_shorthands(lens_page):
    cache = lens_page["cache"]
    assert cache["pattern", 3] is cache["blocks.3.attn.hook_pattern"] and cache["resid_post", -1] is cache["blocks.7.hook_resid_post"]


def test_attribution_adds_up(lens_page):
    """With the gain of the last norm, as the page says; without it the sum is another number."""
    cache, model, token = lens_page["cache"], lens_page["model"], lens_page["token"]
    with torch.no_grad():
        bias = model.ln_final.bias @ model.W_U[:, token]
        logit = cache["unembed.hook_out"][1, 6, token]
        plain = cache.logit_attrs(lens_page["parts"], token)[:, 1, 6].sum() + bias
    assert abs(lens_page["share"].sum() + bias - logit) < 1e-4 < abs(plain - logit)


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def test_peft_both_ways(page, tmp_path):
    names = page.run("PEFT")
    ids = models.ids_of(models.brook_case(), N)
    for model, edit in ((names["edited"], "hood-caucasus"), (names["lora"], "hood-alps")):
        ours = weirdump.capture(models.BROOK, ids, tmp_path / "x.h5", hooks="unembed.hook_out", extra=("--edit", page.where / edit))
        plain = weirdump.capture(models.BROOK, ids, tmp_path / "x.h5", hooks="unembed.hook_out")
        want = logits(model.eval(), ids)
        off = [np.abs(x["unembed.hook_out"] - want).max() / np.abs(want).max() for x in (ours, plain)]
        assert off[0] < 3e-5 < 1e-3 < off[1], (edit, off)


@pytest.fixture(scope="session")
def sae_python():
    """A Python with sae-lens and what it needs before what is here; made at the first run."""
    python = VENV / "bin" / "python"
    if not (VENV / ".complete").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        own = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], stdout=subprocess.PIPE, text=True, check=True)
        Path(own.stdout.strip(), "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run([python, "-m", "pip", "install", "-q", "sae-lens==6.54.*"], check=True)
        (VENV / ".complete").touch()
    return python


def test_saelens(sae_python, tmp_path):
    p = subprocess.run([sae_python, Path(__file__).with_name("bridge_saelens.py"), tmp_path, weirdump.BIN], env={**os.environ, **OFFLINE},
                       capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    said = json.loads(p.stdout.splitlines()[-1])
    assert said["same"] and said["records"] == said["of"] // 64 and said["of"] - said["rows"] < 5 * 64 + 64
    assert said["steps"] == 40 and said["trained"] < 0.8 * said["new"] and said["left"] == []
    assert "context" in said["refused"] or "shape" in said["refused"]
