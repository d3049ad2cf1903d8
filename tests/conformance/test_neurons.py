"""neuron-top against the field's own exercise: the hidden units of a layer over brook's 1,000 sentences by transformers and torch.topk.

Every neuron of the layer: the same places in the same order, except swaps between values closer than the bound of contract
section 2 (compare.py)."""
import json
import os
import subprocess

import h5py
import numpy as np
import pytest
import torch

import compare
import models
import reference

LAYER, K = 6, 20
SENTENCES = os.path.join(os.path.dirname(__file__), "..", "..", "lib", "brook", "sentences.txt")


def activations(model, texts, layer):
    """[rows, F] of the layer's hidden units, for documents as they are, batched by length."""
    got = {}
    handle = model.transformer.h[layer].mlp.act.register_forward_hook(lambda m, a, out: got.update(x=out))
    rows = [None] * len(texts)
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    with torch.inference_mode():
        for at in range(0, len(order), 64):
            batch = order[at:at + 64]
            x = torch.zeros(len(batch), max(len(texts[i]) for i in batch), dtype=torch.long)
            for row, i in enumerate(batch):
                x[row, :len(texts[i])] = torch.tensor(texts[i])
            model.transformer(input_ids=x, use_cache=False)  # right padding under a causal mask leaves real rows alone
            for row, i in enumerate(batch):
                rows[i] = got["x"][row, :len(texts[i])].double().numpy()
    handle.remove()
    return np.concatenate(rows)


def misplaced(listed, values, tolerance, top, highest):
    """What is wrong with a list of rows, given what the reference holds: text, or None.

    top: torch.topk's rows. A listed row may stand before another, or in its place, when their values differ by no more than the
    two rows' tolerances."""
    sign = 1 if highest else -1
    for a, b in zip(listed, listed[1:]):
        if sign * (values[b] - values[a]) > tolerance[a] + tolerance[b]:
            return f"row {a} ({values[a]:.9g}) stands before row {b} ({values[b]:.9g})"
    last = listed[-1]
    for missing in set(top) - set(listed):
        if sign * (values[missing] - values[last]) > tolerance[missing] + tolerance[last]:
            return f"row {missing} ({values[missing]:.9g}) is missing; the last listed is {values[last]:.9g}"
    return None


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("neurons") / "neurons.h5"
    tool = os.path.join(os.environ["WEIR_BIN"], "weir")
    subprocess.run([tool, "neuron-top", "--layer", str(LAYER), "--neurons", "all", "-k", str(K), "--dedup", "none", "--mask", "bos",
                    "--quiet", "--file", SENTENCES, "-o", str(out)], check=True, stdin=subprocess.DEVNULL)
    dump = out.with_name("tokens.h5")
    subprocess.run([tool, "trace", "--hooks", "hook_embed[:,0]", "--quiet", "--file", SENTENCES, "--dump", str(dump)], check=True,
                   stdin=subprocess.DEVNULL)
    with h5py.File(dump) as f:
        ids, doc, flags = f["tokens/id"][:], f["tokens/doc"][:], f["tokens/flags"][:]
    texts = [ids[doc == d].tolist() for d in range(doc[-1] + 1)]
    with h5py.File(out) as f:
        g = f[f"neurons/blocks.{LAYER}.mlp.hook_post"]
        lists = {name: (g[f"{name}_doc"][:], g[f"{name}_pos"][:], g[f"{name}_value"][:]) for name in ("top", "bottom")}
    model = models.load(models.brook_case())
    f64, f32 = activations(reference.in_float64(model), texts, LAYER), activations(model, texts, LAYER)
    tolerance = np.maximum(compare.FACTOR * np.abs(f32 - f64).max(axis=1), compare.RELATIVE * np.abs(f64).max(axis=1))
    start = np.concatenate([[0], np.cumsum([len(t) for t in texts])])
    real = np.flatnonzero((flags & 1) == 0)
    assert len(real) < len(flags), "brook puts a BOS before each document"
    return lists, f64, tolerance, start, real


@pytest.mark.parametrize("which", ["top", "bottom"])
def test_every_neuron_of_a_layer_has_the_places_of_torch_topk(found, which):
    lists, f64, tolerance, start, real = found
    doc, pos, value = lists[which]
    highest = which == "top"
    top = real[torch.topk(torch.from_numpy(f64[real]), K, dim=0, largest=highest).indices.numpy()]
    rows = start[doc] + pos
    assert rows.shape == (f64.shape[1], K)
    same = 0
    for unit in range(f64.shape[1]):
        assert not (wrong := misplaced(rows[unit].tolist(), f64[:, unit], tolerance, top[:, unit].tolist(), highest)), (unit, wrong)
        assert np.all(np.abs(value[unit] - f64[rows[unit], unit]) <= tolerance[rows[unit]]), unit
        same += rows[unit].tolist() == top[:, unit].tolist()
    print(json.dumps({"list": which, "neurons": f64.shape[1], "identical": same}))
    # GELU's lowest values lie together at its minimum, closer than fp32 can tell apart: there every list has swaps.
    assert not highest or same > f64.shape[1] // 2


def test_a_wrong_list_is_seen(found):
    lists, f64, tolerance, start, real = found
    doc, pos, _ = lists["top"]
    rows = start[doc] + pos
    unit = int(np.argmax(f64[rows[:, 0], np.arange(768)] - f64[rows[:, 1], np.arange(768)]))  # a clear first place
    right = rows[unit].tolist()
    assert misplaced(right, f64[:, unit], tolerance, right, True) is None
    swapped = [right[1], right[0]] + right[2:]
    assert "stands before" in misplaced(swapped, f64[:, unit], tolerance, right, True)
    assert "is missing" in misplaced(right[1:], f64[:, unit], tolerance, right, True)
