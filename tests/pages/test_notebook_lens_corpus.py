"""The notebook and the page of what logit-lens --corpus counted: their numbers are the file's, and each other's."""
import re

import h5py
import numpy as np
import pytest

import nblib
from weircli import BROOK, weir

NUMBERS = {"seen", "right_of", "ce_mean", "ce_quantile", "kl_mean", "kl_quantile", "agree_share", "stay_share", "right_share", "settled",
           "bin_edges", "bin_counts", "bin_height"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus")
    (path / "text").write_text("\n".join((BROOK / "sentences.txt").read_text().splitlines()[:40]))
    lens = ("logit-lens", "--corpus", "--file", "text")
    weir(*lens, "--site", "resid-post,resid-mid", "-o", "two.h5", cwd=path).ok()
    weir(*lens, "--shard", "1/4", "-o", "shard.h5", cwd=path).ok()
    return path


def texts(group):
    at, data = group["offsets"][:], group["bytes"][:].tobytes()
    return [data[i:j].decode() for i, j in zip(at, at[1:])]


@pytest.mark.parametrize("site, line, value", [("resid_mid", 2, "ce"), ("resid_post", -1, "kl"), (None, None, "kl")])
def test_the_numbers_are_those_of_the_file(place, site, line, value):
    with h5py.File(place / "two.h5") as f:
        names, sites = texts(f["lines/name"]), texts(f["lines/site"])
        assert len(set(sites)) >= 2
        want_site = site or texts(f["settle/site"])[0]
        drawn = [i for i in range(len(names) - 1) if sites[i] == want_site] + [len(names) - 1]
        row = drawn[line if line is not None else (len(drawn) - 1) // 2]
        options = [f"-pvalue={value}"] + ([f"-psite={site}", f"-pline={names[row]}"] if site else [])
        numbers, page, nb = nblib.both(place, "two.h5", *options)
        nblib.compare(numbers, nb.variables)
        v = nb.variables
        assert set(numbers) == NUMBERS and (v["site"], v["line"]) == (want_site, names[row])
        for q in ("ce", "kl"):
            assert v[f"{q}_mean"] == f[q]["mean"][:][drawn].tolist() and v[f"{q}_quantile"] == f[q]["quantile"][:][drawn].tolist()
        seen = f.attrs["seen"]
        assert np.array_equal(v["agree_share"], f["agree"][:][drawn] / seen)
        assert np.array_equal(v["right_share"], f["right"][:][drawn] / (seen - f.attrs["without_next"]))
        settled = f["settle/count"][texts(f["settle/site"]).index(want_site)]
        assert v["settled"] == settled[drawn].tolist() and sum(v["settled"]) == settled.sum() == seen
        assert np.allclose(v["stay_share"], np.cumsum(settled[drawn]) / seen) and v["stay_share"][-1] == 1
        assert sum(v["bin_counts"]) == f[value]["count"][row]
        low, high = f[value]["min"][row], f[value]["max"][row]
        if low < high:
            assert v["bin_edges"][0] == low and v["bin_edges"][-1] == high and set(v["bin_edges"][1:-1]) <= set(f["edges"][:])
            assert np.isclose(np.dot(v["bin_height"], np.diff(v["bin_edges"])), 1)
            cut = np.searchsorted(f["edges"][:], v["bin_edges"][1]) - 1 - f[value]["hist"].attrs["first_bin"]
            assert f[value]["hist"][row][:cut + 1].sum() == v["bin_counts"][0]
    for cell in ("ce", "kl", "shares", "settle", "histogram"):
        assert len(nb.images(cell)) == 1 and len(nb.images(cell)[0]) > 1000
    assert page.count("<svg xmlns") >= 5


def test_the_template_chooses_as_the_tool_does(place):
    def forget(nb):
        cell = next(c for c in nb.cells if c.id == "parameters")
        cell.source = re.sub(r"(?m)^(site|line) = \S+", r"\1 = None", cell.source)
    numbers, page, nb = nblib.both(place, "shard.h5")
    assert "shards of it are missing" in page and "shards are missing" in nb.text("open")
    alone = nblib.run(place / "nb.ipynb", change=forget)
    assert (alone.variables["site"], alone.variables["line"]) == (nb.variables["site"], nb.variables["line"])
    nblib.compare(numbers, alone.variables)
    alone.variables["kl_quantile"][3][1] *= 1 + 1e-8  # a comparison that cannot fail shows nothing
    with pytest.raises(AssertionError, match="kl_quantile"):
        nblib.compare(numbers, alone.variables)


def test_the_final_row_alone(tmp_path):
    weir("logit-lens", "--corpus", "--layer", "7", "a b c", "-o", "final.h5", cwd=tmp_path).ok()
    numbers, _, nb = nblib.both(tmp_path, "final.h5")
    nblib.compare(numbers, nb.variables)
    assert numbers["agree_share"][-1] == 1


def test_names_may_hold_anything(place, tmp_path):
    with h5py.File(tmp_path / "evil.h5", "w") as to, h5py.File(place / "shard.h5") as f:
        for key in f.attrs:
            to.attrs[key] = f.attrs[key]
        for key in f:
            f.copy(key, to)
        to.attrs["model"] = "</script><b>\x1b[31m"
        names = [b'<b a="&$x$\x1b' + str(i).encode() for i in range(len(f["lines/layer"]))]
        del to["lines/name/bytes"], to["lines/name/offsets"]
        to["lines/name/bytes"] = np.frombuffer(b"".join(names), np.uint8)
        to["lines/name/offsets"] = np.cumsum([0] + [len(n) for n in names])
    numbers, page, nb = nblib.both(tmp_path, "evil.h5")
    nblib.compare(numbers, nb.variables)
    assert "\x1b" not in page and "<b a=" not in page and "</script><b>" not in page
    assert len(nb.images("ce")) == 1


def test_what_is_wrong_is_said(place, tmp_path):
    file = place / "two.h5"
    for value, *words in (("site=attn_out", "resid_"), ("line=L99", "first is"), ("value=js", "kl and ce"), ("bars=0", "1 to")):
        weir("notebook-export", file, "-p", value, "-o", tmp_path / "x.ipynb").fails(2, value.split("=")[0], *words)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.h5").write_bytes(data)
    weir("notebook-export", tmp_path / "bad.h5", "-o", tmp_path / "x.html").fails(1, "damaged")
    assert not (tmp_path / "x.html").exists() and not (tmp_path / "x.ipynb").exists()
