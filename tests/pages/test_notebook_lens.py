"""The notebook and the page of a map that logit-lens wrote: their numbers are the file's, and each other's."""
import json

import h5py
import numpy as np
import pytest

import nblib
from weircli import BROOK, ROOT, weir

NUMBERS = {"values", "likeliest", "asked", "probability", "rank", "entropy_quantiles", "kl_quantiles", "top_ids", "top_probabilities", "settled",
           "settled_mean"}
HOSTILE = ["Ann said <script>alert(1)</script> & \"x\" $\\frac{1$ '''日本\x1b[31m\r\n", "</svg>{\"a\": 1}<!--", "The capital city of Colombia is"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("maps")
    (path / "text").write_text("\n".join((BROOK / "sentences.txt").read_text().splitlines()[:30]))
    weir("logit-lens", "--file", "text", "-o", "map.h5", cwd=path).ok()
    return path


def settled(f, rows, own):
    """The layer from which on the likeliest token stays, by hand."""
    out = []
    for i in rows:
        best = [int(f["top/id"][line, i, 0]) for line in own]
        layer = int(f["lines/layer"][own[-1]])
        for line, token in reversed(list(zip(own, best))):
            if token != best[-1]:
                break
            layer = int(f["lines/layer"][line])
        out.append(layer)
    return out


def test_the_numbers_are_those_of_the_file(place):
    numbers, _, nb = nblib.both(place, "map.h5", "-p", "doc=3", "-p", "stat=kl", "-p", "first=2", "-p", "tokens=5", "-p", "position=-4", "-p", "top=4")
    assert set(numbers) == NUMBERS
    nblib.compare(numbers, nb.variables)
    with h5py.File(place / "map.h5") as f:
        begin, count = f["docs/start"][3], f["docs/count"][3]
        here, at = slice(begin + 2, begin + 7), begin + count - 4
        v = nb.variables
        assert np.array_equal(v["values"], f["stats/kl"][:, here]) and np.array_equal(v["likeliest"], f["top/id"][:, here, 0])
        assert v["asked"] == f["top/id"][-1, at, 0] and np.array_equal(v["rank"], f["stats/rank"][:, at])
        for line, p in enumerate(v["probability"]):
            found = np.flatnonzero(f["top/id"][line, at] == v["asked"])
            assert np.isclose(p, np.exp(np.float64(f["top/logprob"][line, at, found[0]])), rtol=1e-12) if len(found) else np.isnan(p)
        assert np.array_equal(v["top_ids"], f["top/id"][:, at, :4])
        assert np.allclose(v["top_probabilities"], np.exp(f["top/logprob"][:, at, :4].astype(float)), rtol=1e-12)
        inside = f["tokens/pos"][:] > 0
        want = np.percentile(f["stats/entropy"][:].astype(float)[:, inside], [5, 50, 95], axis=1).T
        assert np.allclose(v["entropy_quantiles"], want, rtol=1e-12) and len(want) == 9
        assert v["settled"] == settled(f, range(begin, begin + count), list(range(9)))
        assert v["settled_mean"] == np.mean(v["settled"])
    for cell in ("map", "target", "layers"):
        assert len(nb.images(cell)) == 1 and len(nb.images(cell)[0]) > 1000
    assert "<table>" in nb.html("top") and nb.html("settles").count("<span") == count
    nb.variables["kl_quantiles"][4][1] *= 1 + 1e-8  # a comparison that cannot fail shows nothing
    with pytest.raises(AssertionError, match="kl_quantiles"):
        nblib.compare(numbers, nb.variables)


@pytest.mark.parametrize("options", [["--target", "next", "-k", 2], ["--target", " Asia", "--contrast", " Asia, Europe", "--stat", "contrast"],
                                     ["--site", "resid-mid,mlp-out", "--layers", "2-4", "--positions", "1,4:", "--bos", "no"], ["--positions", "0"]],
                         ids=["next", "contrast", "sites", "first"])
def test_any_map_with_hostile_text(options, tmp_path):
    weir("logit-lens", *options, *HOSTILE, "-o", "map.h5", cwd=tmp_path).ok()
    numbers, _, nb = nblib.both(tmp_path, "map.h5", "-p", "position=0")
    nblib.compare(numbers, nb.variables)
    page = (tmp_path / "nb.html").read_text()
    assert "<script>alert" not in page and "\x1b" not in page and "</svg>{" not in page
    assert "alert(1)</script>" not in nb.html("settles") + nb.html("top")
    if "--contrast" in options:
        with h5py.File(tmp_path / "map.h5") as f:
            assert np.array_equal(numbers["values"], f["stats/contrast"][:, : f["docs/count"][0]][:, :16])


def test_a_model_without_a_tokenizer_and_values_that_are_none(tmp_path):
    weir("logit-lens", "--ids", "--model", ROOT / "tests/golden/models/neox-parallel", "5 6 7 8", "-o", "ids.h5", cwd=tmp_path).ok()
    numbers, _, nb = nblib.both(tmp_path, "ids.h5")
    nblib.compare(numbers, nb.variables)
    assert "&lt;#6&gt;" in (tmp_path / "nb.html").read_text() and "&lt;#6&gt;" in nb.html("settles")
    r = weir("logit-lens", "a b c", "--scale", "blocks.3.hook_resid_post=1e38", "-o", "nan.h5", cwd=tmp_path)
    assert r.code == 3
    numbers, _, nb = nblib.both(tmp_path, "nan.h5", "-p", "stat=rank")
    nblib.compare(numbers, nb.variables)
    assert numbers["settled"] == ["nan"] * len(numbers["settled"]) and numbers["entropy_quantiles"][-1] == ["nan"] * 3


def test_what_cannot_be_shown_is_said(place, tmp_path):
    def refused(code, *options, words=()):
        weir("notebook-export", place / "map.h5", "-o", "x.ipynb", *options, cwd=tmp_path).fails(code, *words)

    refused(2, "-p", "stat=contrast", words=["stat", "--contrast A,B"])
    refused(2, "-p", "stat=spin", words=["stat", "spin"])
    refused(2, "-p", "doc=30", words=["doc", "0 to 29"])
    refused(2, "-p", "position=-1000", words=["position"])
    data = bytearray((place / "map.h5").read_bytes())
    with h5py.File(place / "map.h5") as f:
        at = f["docs/start"].id.get_chunk_info(0).byte_offset
    data[at] ^= 0xff
    (tmp_path / "bad.h5").write_bytes(data)
    weir("notebook-export", "bad.h5", "-o", "x.html", cwd=tmp_path).fails(1, "bad.h5")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.h5"]


def test_the_template_is_clean():
    nb = json.loads((ROOT / "notebooks_export/templates/lens.ipynb").read_text())
    assert nb["nbformat"] == 4 and nb["nbformat_minor"] == 5
    code = [c for c in nb["cells"] if c["cell_type"] == "code"]
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in code)
    assert {"map", "target", "layers", "top", "settles"} <= {c["id"] for c in code}


def test_more_than_a_map_holds(tmp_path):
    (tmp_path / "ids").write_text("\n".join(" ".join(str((7 * i + j) % 80) for j in range(40)) for i in range(1200)))
    model, sites = ROOT / "tests/golden/models/neox-parallel", "resid-pre,resid-post,attn-out,mlp-out"
    r = weir("logit-lens", "--ids", "--model", model, "--file", "ids", "--site", sites, "-k", 80, "-q", "-o", "map.h5", cwd=tmp_path)
    assert r.code == 1 and "at most 256 MiB of cells" in r.err and "--positions, --layers or a smaller -k, or --corpus" in r.err
    assert [p.name for p in tmp_path.iterdir()] == ["ids"]
