"""The notebook and the page of what neuron-top found: their numbers are the file's, and each other's."""
import html
import re

import h5py
import numpy as np
import pytest

import nblib
from weircli import BROOK, ROOT, weir

MODELS = ROOT / "tests" / "golden" / "models"
ALWAYS = {"neuron", "row", "neurons", "moments", "density", "count", "nonfinite", "top_value", "top_doc", "top_pos", "bottom_value",
          "bottom_doc", "bottom_pos", "bin_edges", "bin_counts", "bin_height", "weight_score", "drawn_density", "drawn_values",
          "highest_units", "highest_values", "max_by_table", "skew_by_table", "kurtosis_by_table", "density_share"}
NAMED = {"band_value", "random_value", "random_doc", "random_pos", "mean_ids", "mean_values", "mean_counts", "related_units", "related_r"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("neurons")
    (path / "text").write_text("\n".join((BROOK / "sentences.txt").read_text().splitlines()[:60]))
    find = ("neuron-top", "--file", "text", "-k", "6")
    weir(*find, "--layers", "all", "--weights", "yes", "-o", "all.h5", cwd=path).ok()
    weir(*find, "-n", "L6N421,L3N9", "--quantiles", "3", "--random", "12", "--thresholds", "1", "--weights", "yes", "-o", "named.h5",
         cwd=path).ok()
    return path


def tables_of(f):
    return dict(sorted(f["neurons"].items(), key=lambda item: item[1].attrs["table"]))


def strips(text):
    """The tokens around places: [(position, value, text, colour)] of all that have a position; no colour is white."""
    found = re.findall(r'<span title="(\d+): ([^"]*)" style="([^"]*)">(.*?)</span>', text, re.S)
    return [(int(p), float("nan" if v == "none" else v), html.unescape(t), rgb(s)) for p, v, s, t in found]


def rgb(style):
    m = re.search(r"background:(?:#([0-9a-f]{6})|rgb\((\d+),(\d+),(\d+)\))", style)
    return [255] * 3 if not m else list(bytes.fromhex(m[1])) if m[1] else [int(c) for c in m.groups()[1:]]


def same_strips(page, nb, cells):
    on_page, own = strips(page), [s for cell in cells for s in strips(nb.html(cell))]
    assert [s[0] for s in on_page] == [s[0] for s in own] and len(own) > 50
    assert np.array_equal(np.float32([s[1] for s in on_page]), np.float32([s[1] for s in own]), equal_nan=True)
    assert [s[2].replace("\\\\", "\\") for s in on_page] == [s[2] for s in own]
    assert np.abs(np.subtract([s[3] for s in on_page], [s[3] for s in own])).max() <= 6  # a scale of 256 colours


def check_one(v, f, name, row):
    """What the notebook says of one neuron, by hand."""
    g = f["neurons"][name]
    assert v["moments"] == [float(g[q][row]) for q in ("mean", "sd", "skew", "kurtosis", "min", "max")]
    assert v["density"] == list(g["above"][row] / g["count"][row])
    n = min(v["places"], (g["top_doc"][row] >= 0).sum())
    for part in ("value", "doc", "pos"):
        assert v[f"top_{part}"] == g[f"top_{part}"][row][:n].astype(float).tolist()
    edges = f["hist/edges"][:]
    assert sum(v["bin_counts"]) == g["count"][row] == g["hist"][row].sum()
    assert set(v["bin_edges"][1:-1]) <= set(edges) and v["bin_edges"][0] == g["min"][row] and v["bin_edges"][-1] == g["max"][row]
    hist, first, most = g["hist"][row], g["hist"].attrs["first_bin"], g["max"][row]
    upper = np.minimum(edges[first + 1:first + 1 + len(hist)], most)
    for low, high, count in zip(v["bin_edges"], v["bin_edges"][1:], v["bin_counts"]):
        assert hist[(upper > low) & (upper <= high)].sum() == count
    assert np.isclose(np.dot(v["bin_height"], np.diff(v["bin_edges"])), 1)
    assert v["weight_score"] == [g[f"{side}_score"][row][:v["places"]].tolist() for side in ("in_pos", "in_neg", "out_pos", "out_neg")]


def test_the_numbers_of_all_neurons_are_those_of_the_file(place):
    numbers, page, nb = nblib.both(place, "all.h5", "-p", "points=900", "-p", "places=4")
    nblib.compare(numbers, nb.variables)
    assert set(numbers) == ALWAYS
    v = nb.variables
    with h5py.File(place / "all.h5") as f:
        tables = tables_of(f)
        full = [(g["kurtosis"][:], (g["top_doc"][:] >= 0).all(axis=1)) for g in tables.values()]
        best = max((kurtosis[i], -t, -i) for t, (kurtosis, has_all) in enumerate(full) for i in range(768) if has_all[i])
        assert (v["hook"], v["neuron"]) == (list(tables)[-best[1]], -best[2])
        check_one(v, f, v["hook"], v["row"])
        kurtosis = np.concatenate([g["kurtosis"][:] for g in tables.values()])
        density = np.concatenate([g["above"][:, 0] / g["count"][:] for g in tables.values()])
        assert np.array_equal(v["drawn_values"], kurtosis[::7]) and np.array_equal(v["drawn_density"], density[::7])
        order = sorted(range(len(kurtosis)), key=lambda i: (-kurtosis[i], i))[:4]
        assert v["highest_units"] == [i % 768 for i in order] and v["highest_values"] == kurtosis[order].tolist()
        for q in ("max", "skew", "kurtosis"):
            want = [np.quantile(g[q][:].astype(float), [.05, .25, .5, .75, .95]) for g in tables.values()]
            assert np.allclose(v[f"{q}_by_table"], want, rtol=1e-9)
        assert np.allclose(np.sum(v["density_share"], axis=1), 1) and np.shape(v["density_share"]) == (8, 20)
        first = (density[:768] < .05).mean()
        assert np.isclose(v["density_share"][0][0], first)
    for cell in ("histogram", "all", "layers", "density"):
        assert len(nb.images(cell)) == 1 and len(nb.images(cell)[0]) > 1000
    same_strips(page, nb, ("top", "bottom"))
    for cell, words in (("samples", "--quantiles"), ("token_means", "neuron-top --site post -n L"), ("correlated", "neuron-top --site post -n L")):
        assert words in nb.text(cell)
    assert page.count("not in this file") >= 4


def test_a_named_neuron_has_its_values_around_places(place):
    numbers, page, nb = nblib.both(place, "named.h5", "-p", "neuron=421", "-p", "min_count=2")
    nblib.compare(numbers, nb.variables)
    assert set(numbers) == ALWAYS | NAMED
    v = nb.variables
    same_strips(page, nb, ("top", "bottom", "samples"))
    with h5py.File(place / "named.h5") as f:
        g = f["neurons/blocks.6.mlp.hook_post"]
        check_one(v, f, "blocks.6.mlp.hook_post", 0)
        which = f["named/table"][:].tolist().index(g.attrs["table"])
        ids, mean = f["named/sums/token_id"][:], f["named/token_mean"][:, which]
        # The means, once more, of the values that the file has at its places.
        place_of = {(d, p): i for i, (d, p) in enumerate(zip(f["tokens/doc"][:], f["tokens/pos"][:]))}
        at = place_of[v["top_doc"][0], v["top_pos"][0]]
        assert f["named/value"][which, at] == v["top_value"][0]
        shown = strips(nb.html("top"))
        here = [s for s in shown if s[0] == v["top_pos"][0] - 1][0]
        assert np.float32(here[1]) == f["named/value"][which, at - 1]
        assert v["mean_values"] == sorted(v["mean_values"], reverse=True) and min(v["mean_counts"]) >= 2
        assert v["mean_values"] == [mean[ids.tolist().index(i)] for i in v["mean_ids"]]
        r = f[f"named/{which}/r"][:]
        assert v["related_units"] == np.argsort(-np.nan_to_num(np.abs(r)), kind="stable")[:10].tolist()
        assert v["random_doc"] == sorted(g["random_doc"][:])[:10]
        assert np.array_equal(v["band_value"], g["band_value"][0].astype(float), equal_nan=True)


def test_the_template_chooses_as_the_tool_does(place):
    def forget(nb):
        cell = next(c for c in nb.cells if c.id == "parameters")
        cell.source = re.sub(r"(?m)^(hook|neuron) = \S+", r"\1 = None", cell.source)
    for name in ("all.h5", "named.h5"):
        numbers, _, nb = nblib.both(place, name)
        alone = nblib.run(place / "nb.ipynb", change=forget)
        assert (alone.variables["hook"], alone.variables["neuron"]) == (nb.variables["hook"], nb.variables["neuron"])
        nblib.compare(numbers, alone.variables)


def test_a_wrong_number_would_be_seen(place):
    numbers, _, nb = nblib.both(place, "all.h5", "-p", "hook=blocks.2.mlp.hook_post", "-p", "quantity=max")
    nblib.compare(numbers, nb.variables)
    nb.variables["skew_by_table"][5][2] *= 1 + 1e-8
    with pytest.raises(AssertionError, match="skew_by_table"):
        nblib.compare(numbers, nb.variables)


def test_files_with_little_in_them(place, tmp_path):
    text = place / "text"
    little = (("-n", "L3N9", "--ablate", "L3N9=zero", "--sign", "+", "-k", "1", "--weights", "no", "--file", text),  # one value alone
              ("-n", "L3N9", "--sign", "-", "--weights", "no", "--mask", "none", "--correlated", "no", "a"),
              ("-m", MODELS / "llama-llama3-v4", "--ids", "--site", "gate,gate-act,post,resid_post", "--sign", "abs", "5 9 13 2 40 41 42 7"))
    for i, options in enumerate(little):
        weir("neuron-top", *options, "-o", f"{i}.h5", cwd=tmp_path).ok()
        numbers, page, nb = nblib.both(tmp_path, f"{i}.h5")
        nblib.compare(numbers, nb.variables)
    assert "largest magnitudes" in page and "largest magnitudes" in nb.html("top")
    assert "&lt;#13&gt;" in page and "&lt;#13&gt;" in nb.html("top")  # no tokenizer
    assert any("@gate-act" in name for name in h5py.File(tmp_path / "2.h5")["neurons"])
    weir("neuron-top", "-m", MODELS / "llama-llama3-v4", "--ids", "--site", "resid_post", "-n", "L0N3", "5 9 13 9", "-o", "n.h5", cwd=tmp_path).ok()
    numbers, _, nb = nblib.both(tmp_path, "n.h5", "-p", "min_count=1")
    nblib.compare(numbers, nb.variables)
    assert sorted(numbers["mean_ids"]) == [5, 9, 13]  # without a vocabulary too


def test_names_and_tokens_may_hold_anything(place, tmp_path):
    evil = b'<b a="&'
    with h5py.File(tmp_path / "evil.h5", "w") as to, h5py.File(place / "named.h5") as f:
        for key in f.attrs:
            to.attrs[key] = f.attrs[key]
        for key in f:
            f.copy(key, to)
        to.attrs["model"] = "</script><b>\x1b[31m"
        used = np.unique(f["tokens/id"][:])
        at, data = f["vocab/offsets"][:], f["vocab/bytes"][:]
        for i in used:
            size = at[i + 1] - at[i]
            data[at[i]:at[i + 1]] = np.frombuffer((evil * 10)[:size - 1] + b"\x1b", np.uint8)
        to["vocab/bytes"][:] = data
    numbers, page, nb = nblib.both(tmp_path, "evil.h5")
    nblib.compare(numbers, nb.variables)
    shown = page + nb.html("top") + nb.html("samples") + nb.html("weights") + nb.html("token_means") + nb.html("highest")
    assert "\x1b" not in shown and "<b a=" not in shown and "</script><b>" not in shown
    assert "&lt;b a=&quot;&amp;" in shown


def test_what_is_wrong_is_said(place, tmp_path):
    file = place / "all.h5"
    for value, *words in (("hook=blocks.9.mlp.hook_post", "blocks.0.mlp.hook_post"), ("neuron=768", "768"), ("neuron=-1", "from 0"),
                          ("quantity=mode", "kurtosis"), ("places=0", "1 to"), ("bins=0", "1 to")):
        weir("notebook-export", file, "-p", value, "-o", tmp_path / "x.ipynb").fails(2, value.split("=")[0], *words)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.h5").write_bytes(data)
    weir("notebook-export", tmp_path / "bad.h5", "-o", tmp_path / "x.html").fails(1, "damaged")
    assert not (tmp_path / "x.html").exists() and not (tmp_path / "x.ipynb").exists()
    weir("neuron-top", "--file", place / "text", "--shard", "1/3", "-n", "L1N1", "-o", "s.h5", cwd=tmp_path).ok()
    _, page, nb = nblib.both(tmp_path, "s.h5")
    assert "shards of it are missing" in page and "shards are missing" in nb.text("open")
