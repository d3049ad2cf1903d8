"""The notebook and the page of a report of rome verify: their numbers are the file's, and each other's."""
import json

import h5py
import numpy as np
import pytest

import nblib
from romelib import RECORDS, edit, made
from weircli import weir

NUMBERS = {"check_values", "check_bounds", "checks_kept", "p_new", "p_true", "unknown", "top_p", "lens_new", "lens_true", "lead", "flip", "moved", "changes",
           "drift", "change_counts", "change_edges", "harmed", "loss", "target_p", "came_to"}
CELLS = ("answers", "lens", "stream", "text", "search")  # those with figures


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("reports")
    edit(path / "hood").ok()
    weir("rome", "verify", "hood", "--records", RECORDS, "--show", 8, "-o", "r.h5", "-q", cwd=path).ok()
    return path


def test_the_numbers_are_those_of_the_file(place):
    numbers, page, nb = nblib.both(place, "r.h5", "-p", "bins=7", "-p", "worst=3", "-p", "max_questions=5")
    assert set(numbers) == NUMBERS
    nblib.compare(numbers, nb.variables)
    v = nb.variables
    with h5py.File(place / "r.h5") as f:
        assert np.array_equal(v["check_values"], f["checks/value"]) and np.array_equal(v["checks_kept"], f["checks/kept"])
        assert np.allclose(v["p_new"], np.exp(f["questions/new_logprob"][:5]), rtol=1e-12) and np.allclose(v["p_true"], np.exp(f["questions/true_logprob"][:5]), rtol=1e-12)
        assert np.array_equal(v["lens_new"], f["lens/new_logprob"][:, 0]) and np.array_equal(v["lens_true"], f["lens/true_logprob"][:, 0])
        assert np.allclose(v["lead"], f["lens/new_logprob"][:, 0].astype(float) - f["lens/true_logprob"][:, 0], rtol=1e-12)
        ahead = f["lens/new_logprob"][:, 0] > f["lens/true_logprob"][:, 0]
        assert v["flip"] == next(i for i in range(10) if (ahead[i:, 0] != ahead[i:, 1]).all()) == 8 and "from line out on the edit makes the new token" in nb.text("lens")
        assert np.array_equal(v["moved"], f["stream/difference"]) and v["came_to"][0] == f["requests/share"][0]
        nll, tokens = f["text/nll"][:], f["text/tokens"][:]
        changes = 100 * (np.exp(nll[:, 1] - nll[:, 0]) - 1)
        assert np.allclose(v["changes"], changes, rtol=1e-12) and v["harmed"] == list(np.argsort(-changes)[:3])
        assert v["drift"] == pytest.approx(f["checks/value"][3], rel=1e-9) == pytest.approx(100 * (np.exp(np.average(nll[:, 1] - nll[:, 0], weights=tokens)) - 1), rel=1e-9)
        assert v["change_counts"] == [int(((changes >= a) & ((changes < b) | (b == changes.max()))).sum()) for a, b in zip(v["change_edges"], v["change_edges"][1:])]
        assert sum(v["change_counts"]) == len(changes) == 100 and len(v["change_counts"]) == 7
    assert v["loss"] == [s["loss"] for s in made(place / "hood")["reports"][0]["trace"]]
    assert all(nb.images(cell) for cell in CELLS) and page.count("<svg") >= len(CELLS)
    assert "Caucasus" in nb.html("greedy") and "Caucasus" in page and "paraphrases taken" in nb.html("checks")
    numbers["moved"][5][4] *= 1 + 1e-6  # a comparison that cannot fail shows nothing
    with pytest.raises(AssertionError, match=r"moved\[5\]\[4\]"):
        nblib.compare(numbers, nb.variables)


def hostile(j):
    """Several requests with texts that mean something elsewhere, and no word of how they were found."""
    del j["reports"]
    j["requests"].append({"prompt": "{} said $\\frac{1$ \"x\" '''\x1b[31m\r &", "subject": "<script>alert(1)</script>", "target": "</svg><!--"})


def test_texts_of_any_kind_and_what_is_missing(place):
    (place / "odd").mkdir()
    for f in (place / "hood").iterdir():
        (place / "odd" / f.name).write_bytes(f.read_bytes())
    j = made(place / "hood")
    hostile(j)
    (place / "odd" / "edit.json").write_text(json.dumps(j))
    (place / "one.txt").write_text("</script><b>One text & no more.")
    r = weir("rome", "verify", "odd", "--text", "one.txt", "--show", 2, "-o", "odd.h5", "-q", cwd=place)
    assert r.code == 3
    numbers, page, nb = nblib.both(place, "odd.h5", "-p", "prompt=1", "-p", "relative=True")
    assert set(numbers) == NUMBERS - {"change_counts", "change_edges"}
    nblib.compare(numbers, nb.variables)
    with h5py.File(place / "odd.h5") as f:
        rows = slice(f["lens/start"][1], f["lens/start"][1] + f["lens/count"][1])
        assert np.allclose(nb.variables["moved"], f["stream/difference"][:, rows] / f["stream/norm"][:, rows, 0], rtol=1e-12)
    assert numbers["unknown"] == 2 and numbers["loss"] == [] and all(np.isnan(nb.variables["came_to"]))
    for shown in (page, *(nb.text(cell) for cell in ("answers", "text", "search"))):
        assert "<script>alert" not in shown and "<b>One" not in shown and "\x1b[31m" not in shown
    for words, cell in (("is not known: weir rome verify --truth", "answers"), ("one text has no distribution", "text"), ("keeps no passes", "search")):
        assert words in nb.text(cell) and words in page
    assert "<script>alert" not in nb.html("greedy") and "&lt;script&gt;alert" in nb.html("greedy") and "&lt;script&gt;alert" in page
    assert "thresholds" in page and "are not kept" in page
    assert nblib.read(place / "nb.ipynb").cells[0].source.count("\n") >= 3


def test_parameters_that_do_not_fit(place):
    for parameter, words in (("prompt=1", "0 to 0"), ("bins=0", "1 to 1000"), ("max_questions=x", "max_questions"), ("relative=2", "relative")):
        r = weir("notebook-export", "r.h5", "-o", "no.ipynb", "-p", parameter, cwd=place)
        assert r.code == 2 and words in r.err and not (place / "no.ipynb").exists(), r.err


@pytest.mark.parametrize("name, change, words", [
    ("lens/start", lambda x: x + 10**6, "lens"), ("lens/question", lambda x: x - 1, "lens"), ("questions/kind", lambda x: x + 7, "questions"),
    ("questions/request", lambda x: x + 2**40, "questions"), ("requests/passes", lambda x: x + 2**62, "requests/passes"),
    ("vocab/offsets", lambda x: x[::-1].copy(), "vocab/offsets"), ("text/nll", lambda x: x[:-1], "text/nll"), ("stream/norm", None, "stream/norm")])
def test_a_file_that_claims_what_is_not_there(name, change, words, place):
    """Such a file passes h5py, and weir's seal where there is none: it is named before anything is drawn."""
    (place / "bad.h5").write_bytes((place / "r.h5").read_bytes())
    with h5py.File(place / "bad.h5", "r+") as f:
        x = f[name][:]
        del f[name]
        if change:
            f[name] = change(x)
    r = weir("notebook-export", "bad.h5", "-o", "bad.html", cwd=place)
    assert r.code == 1 and words in r.err and len(r.err.splitlines()) == 1 and not (place / "bad.html").exists(), r.err
