"""weir diff: what is the same, and everything that is not."""
import shutil

import h5py
import numpy as np
import pytest

from weircli import trace, weir

HOOK = "activations/blocks.2.mlp.hook_post"


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump") / "a.h5"
    trace("--layer", "2", "--dump", path, "the first text", "and the second").ok()
    return path


@pytest.fixture
def other(dump, tmp_path):
    path = tmp_path / "b.h5"
    shutil.copy(dump, path)
    return path


def change(path, edit, name=HOOK):
    with h5py.File(path, "r+") as f:
        values = f[name][...]
        edit(values)
        f[name][...] = values
    return path


def test_the_same_bits(dump, other, tmp_path):
    assert weir("diff", dump, other).ok().err == ""
    trace("--layer", "2", "--threads", "1", "--batch", "3", "--dump", other, "the first text", "and the second").ok()
    r = weir("diff", "--json", dump, other).ok().json
    assert r["same"] and len(r["hooks"]) == 8
    assert all(h["same"] and h["max_error"] == 0 and h["values_that_differ"] == 0 for h in r["hooks"].values())


def test_one_bit_is_a_difference(dump, other):
    change(other, lambda v: v.view(np.uint32).__setitem__((1, 7), v.view(np.uint32)[1, 7] ^ 1))
    r = weir("diff", "--json", dump, other)
    assert r.code == 3 and not r.json["same"]
    bad = {n: h for n, h in r.json["hooks"].items() if not h["same"]}
    assert list(bad) == ["blocks.2.mlp.hook_post"] and bad["blocks.2.mlp.hook_post"]["values_that_differ"] == 1
    assert b"differs" in weir("diff", dump, other).out
    weir("diff", "--tolerance", "1e-6", dump, other).ok()


def test_every_hook_that_differs_is_told(dump, other):
    """Not only the first one: each keeps a line of its own behind it."""
    with h5py.File(dump) as f:
        names = sorted(f["activations"])
    for name in names[2:4]:
        change(other, lambda v: v.__setitem__((0, 0), v[0, 0] + 1), f"activations/{name}")
    hooks = weir("diff", "--json", dump, other).json["hooks"]
    assert sorted(hooks) == names
    assert [n for n in names if not hooks[n]["same"]] == names[2:4]


def test_the_error_is_measured(dump, other):
    with h5py.File(dump) as f:
        values = f[HOOK][...]
    change(other, lambda v: v.__setitem__((2, 3), v[2, 3] + np.float32(0.25)))
    h = weir("diff", "--json", dump, other).json["hooks"]["blocks.2.mlp.hook_post"]
    want = abs(np.float64(np.float32(values[2, 3] + np.float32(0.25))) - np.float64(values[2, 3]))
    assert h["max_error"] == want
    assert h["relative"] == pytest.approx(want / np.abs(values).max(), rel=1e-12)
    assert weir("diff", "--tolerance", h["relative"] * 1.01, dump, other).code == 0
    assert weir("diff", "--tolerance", h["relative"] * 0.99, dump, other).code == 3


def test_signed_zeros_differ_in_bits_and_by_nothing(dump, other, tmp_path):
    a = tmp_path / "a.h5"
    shutil.copy(dump, a)
    change(a, lambda v: v.__setitem__((0, 0), 0.0))
    change(other, lambda v: v.__setitem__((0, 0), -0.0))
    h = weir("diff", "--json", a, other).json["hooks"]["blocks.2.mlp.hook_post"]
    assert h["values_that_differ"] == 1 and h["max_error"] == 0 and not h["same"]
    weir("diff", "--tolerance", "1e-30", a, other).ok()


def test_nan_equals_nan_and_nothing_else(dump, other, tmp_path):
    a = tmp_path / "a.h5"
    shutil.copy(dump, a)
    for path in (a, other):
        change(path, lambda v: v.__setitem__((0, 1), np.nan))
    weir("diff", a, other).ok()
    change(other, lambda v: v.__setitem__((0, 2), np.nan))
    r = weir("diff", "--tolerance", "1000", "--json", a, other)
    assert r.code == 3 and r.json["hooks"]["blocks.2.mlp.hook_post"]["max_error"] is None  # infinite
    change(a, lambda v: v.__setitem__((0, 2), np.inf))
    change(other, lambda v: v.__setitem__((0, 2), np.inf))
    weir("diff", a, other).ok()


def test_other_tokens_other_rows_other_hooks(dump, other, tmp_path):
    change(other, lambda v: v.__setitem__(3, v[3] + 1), name="tokens/id")
    weir("diff", dump, other).fails(3, "differ in token ids, first in row 3")
    trace("--layer", "2", "--dump", other, "the first text").ok()
    weir("diff", dump, other).fails(3, "rows", "not the same text")
    trace("--layer", "2", "--site", "post,attn_out", "--dump", other, "the first text", "and the second").ok()
    r = weir("diff", "--json", dump, other)
    assert r.code == 3 and r.json["only_in_a"] == 6 and r.json["only_in_b"] == 0 and set(r.json["hooks"]) == {
        "blocks.2.mlp.hook_post", "blocks.2.hook_attn_out"}
    assert len(r.err.splitlines()) == 6 and "is in" in r.err and "alone" in r.err
    trace("--hooks", "blocks.2.mlp.hook_post[:, 0:5]", "--dump", other, "the first text", "and the second").ok()
    weir("diff", dump, other, "--quiet").fails(3, "blocks.2.mlp.hook_post", "x 768", "x 5")


def test_an_incomplete_dump_is_told(dump, other):
    with h5py.File(other, "r+") as f:
        f.attrs["complete"] = f.attrs["complete"].dtype.type(0)
    assert "b.h5 is incomplete" in weir("diff", dump, other).ok().err


def test_bad_files(dump, tmp_path):
    (tmp_path / "x.h5").write_text("not HDF5")
    with h5py.File(tmp_path / "foreign.h5", "w") as f:
        f["x"] = 1
    (tmp_path / "cut.h5").write_bytes(dump.read_bytes()[:5000])
    for name in ("x.h5", "foreign.h5", "cut.h5", "missing.h5"):
        weir("diff", dump, tmp_path / name).fails(1, name)
    weir("diff", dump).fails(2, "two dumps", "1 given")
    weir("diff", dump, dump, dump).fails(2, "3 given")
    weir("diff", "--tolerance", "-1", dump, dump).fails(2, "--tolerance -1")
    weir("diff", "--tolerance", "nan", dump, dump).fails(2, "--tolerance nan")
