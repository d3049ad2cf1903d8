"""Composition scores against TransformerLens's all_composition_scores: its bridge around the same model, raw weights and those that its
compatibility mode folds."""

import json

import numpy as np
import pytest
import torch
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

import models
import weirdump
from test_names import can_be_bridged


def weirs(path, weights):
    """{mode: [L, H, L, H]}, NaN where there is no pair."""
    out = weirdump.run("weir", "compose", "--model", str(path), "--weights", weights, "--format", "ndjson")
    lines = [json.loads(x) for x in out.splitlines()]
    n = 1 + max(x["to_layer"] for x in lines), 1 + max(x["to"] for x in lines)
    scores = {mode: np.full(2 * n, np.nan) for mode in "QKV"}
    for x in lines:
        scores[x["input"].upper()][x["from_layer"], x["from"], x["to_layer"], x["to"]] = x["score"]
    return scores


def theirs(bridge, mode):
    """Theirs are 0 where there is no pair."""
    found = bridge.all_composition_scores(mode)
    return np.asarray(getattr(found, "scores", found).detach().double())


def compare(bridge, path, weights):
    worst = 0
    for mode, mine in weirs(path, weights).items():
        other = theirs(bridge, mode)
        assert mine.shape == other.shape and ((other == 0) == np.isnan(mine)).all()
        worst = max(worst, np.nanmax(np.abs(mine - other) / np.where(np.isnan(mine), 1, other)))
    return worst


def has_pairs(case):
    config = json.loads((case.hf / "config.json").read_text())
    return can_be_bridged(case) and (config.get("num_hidden_layers") or config.get("n_layer")) > 1


@pytest.mark.wants(only=has_pairs)
def test_raw_weights(loaded):
    model = models.load(loaded.case)
    bridge = build_bridge_from_module(model, type(model).__name__, hf_config=model.config).to(torch.float64)
    assert compare(bridge, loaded.case.paths[0], "raw") < 2e-6
    assert compare(bridge, loaded.case.paths[0], "gain") > 1e-4  # the comparison can fail


@pytest.mark.wants(only=lambda case: case.name == "brook")
def test_folded_weights(loaded):
    model = models.load(loaded.case)
    bridge = build_bridge_from_module(model, type(model).__name__, hf_config=model.config)
    bridge.enable_compatibility_mode()
    assert compare(bridge, loaded.case.paths[0], "folded") < 2e-5  # theirs is fp32
