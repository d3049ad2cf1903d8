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
    weir("diff", dump).fails(2, "two files", "1 given")
    weir("diff", dump, dump, dump).fails(2, "3 given")
    weir("diff", "--tolerance", "-1", dump, dump).fails(2, "--tolerance -1")
    weir("diff", "--tolerance", "nan", dump, dump).fails(2, "--tolerance nan")


# --- results of neuron-top

TEXTS = ["The river bends.", "Two and two are four.", "The river bends.", "Is it open? It is."]


def search(path, *more):
    texts = [] if "--file" in more else TEXTS
    weir("neuron-top", "--layers", "1,2", "-k", "3", "--quantiles", "1", "--random", "3", "--quiet", "-o", path, *more, *texts).ok()
    return path


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return search(tmp_path_factory.mktemp("result") / "a.h5")


def groups(*paths):
    """The arrays of each hook point of results, as {hook: [{name: values}, ...]}."""
    found = {}
    for path in paths:
        with h5py.File(path) as f:
            for hook, group in f["neurons"].items():
                found.setdefault(hook, []).append({name: a[...] for name, a in group.items() if isinstance(a, h5py.Dataset)})
    return found


def rows_that_differ(a, b, names):
    bad = np.zeros(len(a["unit"]), bool)
    for name in names:
        x, y = a[name].reshape(len(bad), -1), b[name].reshape(len(bad), -1)
        bad |= ~np.all((x == y) | ((x != x) & (y != y)), axis=1)
    return np.flatnonzero(bad).tolist()


def test_equal_results(result, tmp_path):
    other = search(tmp_path / "b.h5", "--threads", "1", "--batch", "3")
    out = weir("diff", result, other).ok()
    assert out.err == "" and out.out.decode().splitlines()[-1] == "equal: 1,536 neurons, and all that is said of them"
    r = weir("diff", "--json", result, other).ok().json
    assert r["same"] and r["said"] == [] and r["neurons"] == 1536 and r["neurons_that_differ"] == 0
    assert list(r["hooks"]) == ["blocks.1.mlp.hook_post", "blocks.2.mlp.hook_post"]
    assert all(h["same"] and h["largest"] is None and not any(h["units_that_differ"].values()) for h in r["hooks"].values())


def test_what_an_intervention_changes(result, tmp_path):
    """Each neuron that differs, in what, and by how much: as h5py finds it."""
    other = search(tmp_path / "b.h5", "--ablate", "L1N3")
    r = weir("diff", "--json", result, other)
    assert r.code == 3 and not r.json["same"]
    (said,) = r.json["said"]
    assert said["what"] == "interventions" and said["a"] == "[]" and "L1N3" in said["b"]
    total = 0
    for hook, (a, b) in groups(result, other).items():
        h, units = r.json["hooks"][hook], r.json["hooks"][hook]["units_that_differ"]
        lists = [f"{list}_{what}" for list in ("top", "bottom") for what in ("value", "doc", "pos", "count")]
        assert units["lists"] == rows_that_differ(a, b, lists)
        assert units["counts"] == rows_that_differ(a, b, ["count", "nonfinite", "above"])
        assert units["moments"] == rows_that_differ(a, b, ["mean", "sd", "skew", "kurtosis", "min", "max"])
        assert units["samples"] == rows_that_differ(a, b, ["band_value", "band_doc", "band_pos", "random_value"])
        assert units["weights"] == units["named"] == [] and set(units["histogram"]) <= set(units["moments"])
        every = set().union(*units.values())
        assert h["neurons_that_differ"] == len(every) and h["neurons"] == 768 and not h["same"]
        total += len(every)
        sizes = ["mean", "sd", "min", "max", "top_value", "bottom_value", "band_value", "random_value"]
        assert h["largest"]["difference"] == max(np.nanmax(np.abs(a[n].astype(float) - b[n].astype(float))) for n in sizes)
    assert r.json["hooks"]["blocks.1.mlp.hook_post"]["units_that_differ"]["lists"] == [3]
    assert r.json["neurons_that_differ"] == total > 100
    lines = weir("diff", result, other).out.decode().splitlines()
    assert lines[0].startswith("interventions: [] | ") and "  differ: N3" in lines
    assert lines[-1] == f"different: {total:,} of 1,536 neurons"


@pytest.mark.parametrize("name, aspect, edit", [
    ("top_pos", "lists", lambda v: v.__setitem__((7, 2), v[7, 2] + 1)),
    ("bottom_count", "lists", lambda v: v.__setitem__((7, 0), v[7, 0] + 1)),
    ("above", "counts", lambda v: v.__setitem__((7, 0), v[7, 0] - 1)),
    ("hist", "histogram", lambda v: v.__setitem__(7, v[7][::-1])),
    ("in_pos_score", "weights", lambda v: v.__setitem__((7, 0), v[7, 0] * 2)),
    ("out_neg_id", "weights", lambda v: v.__setitem__((7, 9), v[7, 9] ^ 1)),
])
def test_one_number_of_one_neuron(result, tmp_path, name, aspect, edit):
    other = tmp_path / "b.h5"
    shutil.copy(result, other)
    change(other, edit, f"neurons/blocks.1.mlp.hook_post/{name}")
    r = weir("diff", "--json", result, other)
    assert r.code == 3, r.err
    units = r.json["hooks"]["blocks.1.mlp.hook_post"]["units_that_differ"]
    also = {"histogram": {"samples": [7]}}.get(aspect, {})  # bands are cut by the histogram
    assert {a: u for a, u in units.items() if u} == {aspect: [7], **also} and r.json["hooks"]["blocks.2.mlp.hook_post"]["same"]


def test_named_neurons(result, tmp_path):
    a, b = (search(tmp_path / f"{x}.h5", "--neurons", "3,5", *more) for x, more in (("a", []), ("b", ["--ablate", "L1N5"])))
    weir("diff", a, a).ok()
    units = {h: v["units_that_differ"]["named"] for h, v in weir("diff", "--json", a, b).json["hooks"].items()}
    assert units["blocks.1.mlp.hook_post"] == [3, 5], "N3: its correlation with N5"
    r = weir("diff", "--json", a, result).json
    assert r["hooks"]["blocks.1.mlp.hook_post"]["only_in_b"] == 766 and r["hooks"]["blocks.1.mlp.hook_post"]["neurons"] == 2
    assert {s["what"] for s in r["said"]} == {"named neurons", "ids with means", "correlated"}


def test_another_question_is_said(result, tmp_path):
    said = lambda *more: {s["what"]: (s["a"], s["b"]) for s in weir(
        "diff", "--json", result, search(tmp_path / "b.h5", *more)).json["said"]}
    assert said("--seed", "4") == {"seed": ("0", "4")}
    assert said("--threshold", "0.5") == {"thresholds": ("0", "0 0.5")}
    assert said("--dedup", "doc", "--sign", "+") == {"lists": ("top, bottom", "top"), "dedup": ("text", "doc")}
    assert said("--weights", "no") == {"tokens from the weights": ("yes", "no")}
    (tmp_path / "t.txt").write_text("\n".join(TEXTS[:2]))
    other = said("--file", tmp_path / "t.txt", "--bos", "no")
    assert other["text"] == ("text of the command line", "t.txt") and other["bos"] == ("yes", "no") and other["documents"] == ("4", "2")
    assert "options" not in other and "docs" not in other
    r = weir("diff", result, search(tmp_path / "b.h5", "--weights", "no"))
    assert r.code == 3 and r.out.decode().splitlines()[-1] == "different, but not in the 1,536 neurons that both have"


def test_lists_of_other_lengths(result, tmp_path):
    """What both keep is compared: the shorter list begins the longer one."""
    weir("neuron-top", "--layers", "1,2,3", "-k", "5", "--quantiles", "1", "--random", "3", "--quiet", "-o", tmp_path / "b.h5", *TEXTS).ok()
    r = weir("diff", "--json", result, tmp_path / "b.h5")
    assert r.code == 3 and r.json["said"] == [{"what": "k", "a": "3", "b": "5"}]
    assert r.json["neurons_that_differ"] == 0 and r.json["only_in_a"] == 0 and r.json["only_in_b"] == 1
    assert "blocks.3.mlp.hook_post (post) is in " in weir("diff", result, tmp_path / "b.h5").out.decode()


def test_two_of_a_kind(result, dump, tmp_path):
    for pair in ((result, dump), (dump, result)):
        weir("diff", *pair).fails(1, "a.h5 is a result", "is a dump", "two of a kind")
    weir("diff", result, tmp_path / "none.h5").fails(1, "none.h5", "No such file")
    weir("diff", result, result, "--tolerance", "0.1").fails(2, "--tolerance")
    (tmp_path / "cut.h5").write_bytes(result.read_bytes()[:-3000])
    assert weir("diff", result, tmp_path / "cut.h5").code == 1
