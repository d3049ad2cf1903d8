"""The notebook and the page of a dump's activations: their numbers are the file's, and each other's."""
import shutil

import h5py
import numpy as np
import pytest

import nblib
from weircli import BROOK, trace, weir

NUMBERS = {"strip_values", "varied", "varied_sd", "varied_kurtosis", "edges", "counts", "n_values", "n_not_finite", "zero_share",
           "negative_share", "depths", "map_norms", "stream_mean", "stream_quantiles", "attention_depth", "attention_mean", "mlp_depth",
           "mlp_mean", "top_rows", "top_values", "surprise", "mean_surprise"}
OF_UNIT = {"unit_edges", "unit_counts"}
POST = "blocks.6.mlp.hook_post"
LONG = "On the globe, Azerbaijan is printed on the landmass called Asia, and Finland is found on the continent of Europe."


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("activations")
    (path / "text").write_text("\n".join((BROOK / "sentences.txt").read_text().splitlines()[:60]))
    trace("--layer", 6, "--logprob", "--file", "text", "--dump", "mlp.h5", cwd=path).ok()
    return path


def both(path, name, *options):
    """Numbers of the page, and the notebook, executed: they agree."""
    numbers, _, nb = nblib.both(path, name, "--template", "activations", *options)
    assert set(numbers) in (NUMBERS, NUMBERS | OF_UNIT)
    nblib.compare(numbers, nb.variables)
    return numbers, nb


def close(got, want):
    return np.allclose(np.array(got, float), np.array(want, float), rtol=1e-9, atol=0, equal_nan=True)


def test_the_numbers_are_those_of_the_file(place):
    numbers, nb = both(place, "mlp.h5", "-p", "max_rows=1100", "-p", "bins=17", "-p", "top=9", "-p", "max_tokens=11")
    v = nb.variables
    with h5py.File(place / "mlp.h5") as f:
        x, at, doc = f["activations"][POST][:].astype(float), f["tokens/ctx_pos"][:], f["tokens/doc"][:]
        n_rows = len(x)
        assert 1100 < n_rows < 2048 and v["step" if "step" in v else "block"] == 1024
        sampled = np.arange(n_rows) < 1024  # every second block of 1024, of two
        some = x[sampled & (at > 0)]
        unit = int(np.unravel_index(np.argmax(some), some.shape)[1])
        highest = int(np.flatnonzero(x[:, unit] == some.max())[0])
        assert v["unit"] == unit and v["document"] == doc[highest]
        rows = np.flatnonzero(doc == doc[highest])[:11]
        assert close(numbers["strip_values"], x[rows, unit])

        sd = some.std(axis=0)
        assert numbers["varied"] == np.argsort(-sd)[:9].tolist()
        assert close(numbers["varied_sd"], np.sort(sd)[::-1][:9])
        z = (some - some.mean(axis=0)) / sd
        assert close(numbers["varied_kurtosis"], (z**4).mean(axis=0)[numbers["varied"]])

        assert numbers["edges"] == np.linspace(some.min(), some.max(), 18).tolist()
        which = np.searchsorted(numbers["edges"], some.ravel(), side="right") - 1
        assert numbers["counts"] == np.bincount(np.minimum(which, 16), minlength=17).tolist()
        assert sum(numbers["counts"]) == numbers["n_values"] == some.size and sum(numbers["unit_counts"]) == len(some)
        assert close(numbers["negative_share"], (some < 0).mean()) and 0.5 < numbers["negative_share"] < 1

        assert numbers["depths"] == [6, 6.5, 7] and numbers["attention_depth"] == [6.5] and numbers["mlp_depth"] == [7]
        for i, site in enumerate(("pre", "mid", "post")):
            norms = np.linalg.norm(f[f"activations/blocks.6.hook_resid_{site}"][:].astype(float), axis=1)
            assert close(numbers["map_norms"][i], norms[rows])
            norms = norms[sampled & (at > 0)]
            assert close(numbers["stream_mean"][i], norms.mean())
            assert close(numbers["stream_quantiles"][i], np.quantile(norms, [0.05, 0.25, 0.5, 0.75, 0.95]))
        for what, hook in (("attention", "attn"), ("mlp", "mlp")):
            norms = np.linalg.norm(f[f"activations/blocks.6.hook_{hook}_out"][:].astype(float), axis=1)
            assert close(numbers[what + "_mean"], [norms[sampled & (at > 0)].mean()])

        everywhere = np.where(at > 0, x[:, unit], -np.inf)  # of the whole file, not of the sample
        assert numbers["top_rows"] == np.argsort(-everywhere, kind="stable")[:9].tolist()
        assert close(numbers["top_values"], np.sort(everywhere)[::-1][:9])
        surprise = -f["tokens/logprob"][:].astype(float)
        assert close(np.array(numbers["surprise"], float), surprise[rows]) and close(numbers["mean_surprise"], np.nanmean(surprise))
    assert [len(nb.images(c)) for c in ("units-figure", "histogram", "map", "norms-figure")] == [1, 1, 1, 1]
    assert nb.html("strip").count("<span") == len(rows) and nb.html("top").count("<mark>") == 9


def test_the_page_draws_what_it_says(place):
    numbers, nb = both(place, "mlp.h5", "-p", "unit=548", "-p", "document=4")
    page = (place / "nb.html").read_text()
    n = len(numbers["strip_values"])
    rows = f"{nb.variables['start']}: "
    assert page.count(f"<title>{rows}") == 2  # the strip, and the surprise
    assert f"  {numbers['strip_values'][5]!r}</title>" in page and f": {numbers['map_norms'][2][1]!r}</title>" in page
    assert page.count("<mark>") == 15 and page.count("<svg") == 6 and n > 8
    assert page.count("<title>L6 mid, ") == n
    nb.variables["map_norms"][1][3] *= 1 + 1e-8  # a comparison that cannot fail shows nothing
    with pytest.raises(AssertionError, match="map_norms"):
        nblib.compare(numbers, nb.variables)


def norm(x):
    return np.linalg.norm(x.astype(float), axis=1)


def test_rows_of_the_stream_and_of_heads(tmp_path):
    trace("--hooks", "blocks.3.attn.hook_z,blocks.3.attn.hook_pattern,blocks.5.hook_resid_pre", "--dump", "z.h5", LONG, "a b", cwd=tmp_path).ok()
    numbers, nb = both(tmp_path, "z.h5")
    assert nb.variables["hook"] == "blocks.3.attn.hook_z" and "unit" not in nb.variables and "logprob" in nb.text("surprise")
    assert numbers["depths"] == [5] and numbers["attention_depth"] == [] and "mean_surprise" in numbers
    with h5py.File(tmp_path / "z.h5") as f:
        z = f["activations/blocks.3.attn.hook_z"][:]
        assert close(numbers["strip_values"], norm(z[: f["docs/count"][0]])) and z.ndim == 2
        assert close(numbers["top_values"][0], norm(z)[f["tokens/ctx_pos"][:] > 0].max())
    numbers, nb = both(tmp_path, "z.h5", "-p", "unit=77", "-p", "skip_first=False")
    assert close(numbers["strip_values"], z[: len(numbers["strip_values"]), 77]) and sum(numbers["unit_counts"]) == len(z)
    trace("--hooks", "blocks.0.attn.hook_pattern", "--dump", "p.h5", "a b", cwd=tmp_path).ok()
    weir("notebook-export", "p.h5", "--template", "activations", "-o", "p.ipynb", cwd=tmp_path).fails(1, "units", "attention")


CASES = {
    "chosen units": ["--hooks", "blocks.2.mlp.hook_post[:, 5+700+31]", LONG],
    "half, no BOS": ["--site", "resid_post,post", "--bos", "no", "--dtype", "f16", LONG, "Boulder."],
    "one token": ["--site", "resid_post", "--bos", "no", "a"],
    "gradients": ["--loss", "nll", "--hooks", "blocks.{1,2}.hook_resid_post,blocks.{1,2}.hook_resid_post_grad", LONG],
    "windows": ["--layer", 1, "--ctx", 10, "--stride", 6, "--logprob", LONG],
    "hostile": ["--site", "mlp_out", "</svg><script>alert(1)</script> & \"$\\x$\" '日本\x1b[31m $x_1$ ]]>"],
    "one row a text": ["--layer", 0, "--positions", "-1", "a b", LONG, "a"],
}


@pytest.mark.parametrize("name", CASES)
def test_any_dump(name, tmp_path):
    trace("--dump", "any.h5", *CASES[name], cwd=tmp_path).ok()
    numbers, nb = both(tmp_path, "any.h5")
    page = (tmp_path / "nb.html").read_text()
    assert "<script>alert" not in page + nb.html("strip") + nb.html("top") and "\x1b" not in page + nb.html("top")
    v = nb.variables
    if name == "chosen units":
        assert v["unit"] in (5, 700, 31) and sorted(numbers["varied"]) == [0, 1, 2] and numbers["depths"] == []
        assert "resid_pre" in nb.text("map") and "resid_pre" in page
    if name == "half, no BOS":
        assert numbers["depths"] == [*range(1, 9)] and v["hook"] == "blocks.4.mlp.hook_post"
    if name == "one token":
        assert numbers["n_values"] == 0 and numbers["top_rows"] == [] and numbers["stream_mean"] == ["nan"] * 8
        assert len(numbers["strip_values"]) == 1
    if name == "gradients":
        assert numbers["depths"] == [2, 3] and v["hook"] == "blocks.2.hook_resid_post"
    if name == "windows":
        with h5py.File(tmp_path / "any.h5") as f:
            assert numbers["n_values"] == 768 * (len(f["tokens/id"]) - 1)  # BOS alone: later windows' first rows are no rows


def test_values_that_are_no_numbers(place, tmp_path):
    shutil.copy(place / "mlp.h5", tmp_path / "nan.h5")
    with h5py.File(tmp_path / "nan.h5", "r+") as f:
        d = f["activations"][POST]
        first = f["tokens/ctx_pos"][:].tolist().index(1)
        d[first, 3], d[first + 1, 3], d[first + 2, 9] = np.nan, np.inf, -np.inf
        d[:, 11] = 0.1  # does not vary
        f["activations/blocks.6.hook_resid_mid"][first + 1, 0] = np.nan
        f["tokens/id"][first + 1] = 2**30  # no token of the vocabulary
        doc = int(f["tokens/doc"][first])
    numbers, nb = both(tmp_path, "nan.h5", "-p", "unit=3", "-p", f"document={doc}")
    assert numbers["n_not_finite"] == 3 and [numbers["strip_values"][i] for i in (1, 2)] == ["nan", "inf"]
    assert not {first, first + 1} & set(numbers["top_rows"]) and numbers["map_norms"][1][2] == "nan"
    assert f"&lt;#{2**30}&gt;" in (tmp_path / "nb.html").read_text() and f"&lt;#{2**30}&gt;" in nb.html("strip")
    numbers, nb = both(tmp_path, "nan.h5", "-p", "top=768")
    assert numbers["varied"][-1] == 11 and numbers["varied_sd"][-1] == 0 and numbers["varied_kurtosis"][-1] == "nan"


def test_a_run_that_has_not_ended(place, tmp_path):
    shutil.copy(place / "mlp.h5", tmp_path / "half.h5.part")
    with h5py.File(tmp_path / "half.h5.part", "r+") as f:
        f.attrs.modify("complete", np.int64(0))
        f["activations/blocks.6.hook_resid_post"].resize(40, axis=0)
        f["progress/rows_complete"][:] = np.minimum(f["progress/rows_complete"][:], 40)
    numbers, nb = both(tmp_path, "half.h5.part", "-p", "document=1")
    assert nb.variables["n_rows"] == 40 and numbers["n_values"] <= 40 * 768
    weir("notebook-export", "half.h5.part", "-p", "document=30", "--force", "-o", "nb.html", cwd=tmp_path).ok()
    assert "document 30 has no rows in this file" in (tmp_path / "nb.html").read_text()


def test_rows_that_belong_to_another_text_are_damage(place, tmp_path):
    shutil.copy(place / "mlp.h5", tmp_path / "bad.h5")
    with h5py.File(tmp_path / "bad.h5", "r+") as f:
        f["tokens/doc"][:] = f["tokens/doc"][:][::-1]
    weir("notebook-export", "bad.h5", "-p", "unit=3", "-o", "x.html", cwd=tmp_path).fails(1, "tokens/doc", "is not in document")


WRONG = [("hook='blocks.9.nothing'", "hook", "blocks.6.mlp.hook_post"), ("unit=768", "unit", "768"), ("unit=-1", "unit"),
         ("document=60", "document", "60"), ("document=-1", "document"), ("max_rows=0", "max_rows"), ("bins=0", "bins"),
         ("top=-3", "top"), ("max_tokens=0", "max_tokens"), ("skip_first=2", "skip_first"), ("unit='x'", "unit")]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w[0])
def test_wrong_parameters(wrong, place, tmp_path):
    for name in ("x.ipynb", "x.html"):
        weir("notebook-export", place / "mlp.h5", "-p", wrong[0].replace("'", '"'), "-o", name, cwd=tmp_path).fails(2, *wrong[1:])
        assert not (tmp_path / name).exists()
