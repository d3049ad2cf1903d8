"""weir against values that float64 Hugging Face gave (tests/conformance/make_golden.py), with Debian's Python alone.

`make conformance` compares everything; this compares samples of it on tiny checkpoints of every family and on brook, and what needs
no reference: identities of the residual stream to the bit, and the same bits from every layout, type, kernel table and thread count.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))

import compare
import weirdump

GOLDEN = sorted(p.stem for p in HERE.glob("*.npz"))


def entries(name):
    """The records of one file with their arrays: hooks[i] gets `values` [rows, units] and `tol` [rows]."""
    f = np.load(HERE / f"{name}.npz")
    out = json.loads(bytes(f["meta"]))
    at = row = 0
    for e in out:
        n = len(e["rows"])
        for h in e["hooks"]:
            size = n * len(h["units"])
            h["values"] = f["values"][at:at + size].reshape(n, -1)
            h["tol"] = f["tol"][row:row + n]
            at, row = at + size, row + n
    assert at == f["values"].size and row == f["tol"].size
    return out


def differences(entry, got):
    """What is wrong with a capture, as text."""
    names = {h["name"] for h in entry["hooks"]}
    wrong = [f"missing: {k}" for k in sorted(names - set(got))] + [f"not expected: {k}" for k in sorted(set(got) - names)]
    for h in entry["hooks"]:
        v = got.get(h["name"])
        if v is None:
            continue
        if list(v.shape) != h["shape"]:
            wrong.append(f"{h['name']}: shape {list(v.shape)}, expected {h['shape']}")
            continue
        sampled = compare.rows(v)[np.ix_(entry["rows"], h["units"])]
        d, _ = compare.compare_hook(h["name"], sampled, h["values"], h["tol"].astype(np.float64))
        if d is not None:
            wrong.append(str(d))
    return wrong


LAYOUTS = [(name, layout) for name in GOLDEN if name != "brook" for layout in entries(name)[0]["layouts"]]


def capture(path, entry, tmp_path, **more):
    return weirdump.capture(path, entry["ids"], tmp_path / "x.h5", extra=("--ctx", len(entry["ids"]), *more.pop("extra", ())), **more)


def same_bits(a, b):
    assert set(a) == set(b)
    return [k for k in sorted(a) if a[k].shape != b[k].shape or a[k].tobytes() != b[k].tobytes()]


@pytest.mark.parametrize("name,layout", LAYOUTS)
def test_values(name, layout, tmp_path):
    entry = entries(name)[0]
    wrong = differences(entry, capture(HERE / "models" / layout, entry, tmp_path))
    assert not wrong, "\n".join(wrong[:12])


@pytest.mark.parametrize("which", range(len(entries("brook"))))
def test_brook(which, tmp_path):
    """From text, with the default model."""
    entry = entries("brook")[which]
    out = tmp_path / "x.h5"
    weirdump.run("trace", "--hooks", weirdump.all_hooks(), "--layers", "all", "--dump", out, "--quiet", entry["text"],
                 env={"WEIR_MODEL": None})
    got, ids = weirdump.read(out)
    assert ids.tolist() == entry["ids"]
    wrong = differences(entry, got)
    assert not wrong, "\n".join(wrong[:12])


@pytest.mark.parametrize("kind", ["nothing", "a value", "a mask", "a missing hook", "a surplus hook", "a shape"])
def test_comparison_can_fail(kind):
    """What the comparison is given is made from the golden values themselves, and spoilt in one place."""
    entry = entries("gemma2")[0]
    got = {}
    for h in entry["hooks"]:
        flat = np.zeros((h["shape"][0], int(np.prod(h["shape"][1:]))), np.float32)
        flat[np.ix_(entry["rows"], h["units"])] = h["values"]
        got[h["name"]] = flat.reshape(h["shape"])
    by_name = {h["name"]: h for h in entry["hooks"]}
    if kind == "a value":
        h = by_name["blocks.1.mlp.hook_post"]
        got["blocks.1.mlp.hook_post"][3, h["units"][2]] += 1.5 * h["tol"][3]
    elif kind == "a mask":
        h = by_name["blocks.1.attn.hook_attn_scores"]
        seen = int(np.argmax(np.isfinite(h["values"][8])))
        got["blocks.1.attn.hook_attn_scores"].reshape(9, -1)[8, h["units"][seen]] = -np.inf
    elif kind == "a missing hook":
        del got["hook_logits"]
    elif kind == "a surplus hook":
        got["hook_pos_embed"] = got["hook_embed"]
    elif kind == "a shape":
        got["hook_embed"] = got["hook_embed"][:, :-1]
    assert bool(differences(entry, got)) == (kind != "nothing")


@pytest.mark.parametrize("name", [n for n in GOLDEN if n != "brook"])
def test_identities(name, tmp_path):
    """To the bit in float32: pre + attn_out = mid, mid + mlp_out = post (parallel: pre + (attn_out + mlp_out)), post = next pre."""
    entry = entries(name)[0]
    v = capture(HERE / "models" / entry["layouts"][0], entry, tmp_path)
    layers = 1 + max(int(k.split(".")[1]) for k in v if k.startswith("blocks."))
    before = v["hook_embed"] + v["hook_pos_embed"] if "hook_pos_embed" in v else v["hook_embed"]
    for i in range(layers):
        pre, attn, mlp, post = (v[f"blocks.{i}.hook_{k}"] for k in ("resid_pre", "attn_out", "mlp_out", "resid_post"))
        assert pre.tobytes() == before.tobytes()
        if entry["family"] == "gpt_neox":
            assert f"blocks.{i}.hook_resid_mid" not in v
            assert post.tobytes() == (pre + (attn + mlp)).tobytes()
        else:
            mid = v[f"blocks.{i}.hook_resid_mid"]
            assert mid.tobytes() == (pre + attn).tobytes()
            assert post.tobytes() == (mid + mlp).tobytes()
        before = post
    assert v["unembed.hook_in"].tobytes() == v["ln_final.hook_out"].tobytes()


@pytest.mark.parametrize("name", [n for n in GOLDEN if n != "brook" and entries(n)[0]["same_bits"]])
def test_layouts_give_the_same_bits(name, tmp_path):
    entry = entries(name)[0]
    a, b = (capture(HERE / "models" / layout, entry, tmp_path) for layout in entry["layouts"])
    assert not same_bits(a, b)


# --- the same weights in a wider type
def read_safetensors(path):
    """{name: (dtype, shape, bytes)}."""
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + n])
    header.pop("__metadata__", None)
    return {k: (t["dtype"], t["shape"], raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]) for k, t in header.items()}


def widen(dtype, data):
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(data, {"F16": "<f2", "F32": "<f4"}[dtype]).astype("<f4")


def write_safetensors(path, tensors):
    header, blobs, at = {}, [], 0
    for name, (shape, data) in tensors.items():
        blobs.append(data.tobytes())
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(blobs[-1])]}
        at += len(blobs[-1])
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


@pytest.mark.parametrize("name,dtype", [("llama-gqa-bf16", "BF16"), ("mistral-window-f16", "F16")])
def test_widened_weights_give_the_same_bits(name, dtype, tmp_path):
    """16-bit weights are widened exactly: a file that holds the widened numbers as F32 gives the same bits."""
    entry = entries(name)[0]
    source = HERE / "models" / entry["layouts"][0]
    tensors = {}
    for part in sorted(source.glob("*.safetensors")):
        for k, (kind, shape, data) in read_safetensors(part).items():
            assert kind == dtype
            tensors[k] = shape, widen(kind, data)
    wide = tmp_path / "wide"
    wide.mkdir()
    (wide / "config.json").write_bytes((source / "config.json").read_bytes())
    write_safetensors(wide / "model.safetensors", tensors)
    assert not same_bits(capture(source, entry, tmp_path), capture(wide, entry, tmp_path))


@pytest.mark.parametrize("name", ["gemma2", "llama-q4_0"])
def test_every_table_and_thread_count(name, tmp_path):
    entry = entries(name)[0]
    path = HERE / "models" / entry["layouts"][-1]
    want = capture(path, entry, tmp_path, env={"WEIR_KERNEL": "ref"}, extra=("--threads", "1"))
    for threads in ("1", "2", "3"):
        assert not same_bits(want, capture(path, entry, tmp_path, extra=("--threads", threads)))


def test_same_bits_can_fail():
    a = {"x": np.zeros(3, np.float32)}
    assert same_bits(a, {"x": np.array([0, -0.0, 0], np.float32)}) == ["x"]
    assert not same_bits(a, {"x": np.zeros(3, np.float32)})

