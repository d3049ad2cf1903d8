"""The notebook and the page of a dump with attention patterns: their numbers are the file's, and each other's."""
import shutil

import h5py
import numpy as np
import pytest

import nblib
from weircli import BROOK, ROOT, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
PATTERNS = "blocks.*.attn.hook_pattern"
NUMBERS = {"pattern", "maps_first", "received", "first_token", "previous_token", "own_token", "entropy"}
SCORES = ("first_token", "previous_token", "own_token", "entropy")
LONG = "On the globe, Azerbaijan is printed on the landmass called Asia, and Finland is found on the continent of Europe."


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("heads")
    (path / "text").write_text("\n".join((BROOK / "sentences.txt").read_text().splitlines()[:12]))
    trace("--hooks", PATTERNS, "--file", "text", "--dump", "heads.h5", cwd=path).ok()
    return path


def both(path, name, *options):
    numbers, _, nb = nblib.both(path, name, "--template", "attention", *options)
    return numbers, nb


def by_hand(f, rows=None):
    """Scores of all heads, row after row; {name: [layers, heads]}."""
    layers = sorted(int(n.split(".")[1]) for n in f["activations"] if n.endswith("attn.hook_pattern"))
    at = f["tokens/ctx_pos"][:rows]
    out = {name: [] for name in SCORES}
    for layer in layers:
        p = f["activations"][f"blocks.{layer}.attn.hook_pattern"][:rows].astype(float)
        seen = [(p[i], a) for i, a in enumerate(at) if a > 0]
        out["first_token"].append(np.mean([q[:, 0] for q, a in seen], axis=0))
        out["previous_token"].append(np.mean([q[:, a - 1] for q, a in seen], axis=0))
        out["own_token"].append(np.mean([q[:, a] for q, a in seen], axis=0))
        out["entropy"].append(np.mean([-(q * np.log(np.where(q > 0, q, 1))).sum(axis=1) for q, a in seen], axis=0))
    return out


def test_the_numbers_are_those_of_the_file(place):
    numbers, nb = both(place, "heads.h5", "-p", "layer=1", "-p", "head=4", "-p", "doc=2", "-p", "max_tokens=7", "-p", "small_tokens=5",
                       "-p", "max_rows=200")
    assert set(numbers) == NUMBERS
    nblib.compare(numbers, nb.variables)
    v = nb.variables
    with h5py.File(place / "heads.h5") as f:
        d = f["activations/blocks.1.attn.hook_pattern"]
        begin, count = f["docs/start"][2], f["docs/count"][2]
        p = d[begin : begin + count].astype(float)
        assert np.array_equal(v["pattern"], p[:7, 4, :7])
        assert np.allclose(v["maps_first"], p[:5, :, 0].mean(axis=0), rtol=1e-12)
        want = [p[k + 1 :, 4, k].mean() if k + 1 < count else np.nan for k in range(count)]
        assert np.allclose(v["received"], want, rtol=1e-12, equal_nan=True) and count > 8
        for name, want in by_hand(f, 200).items():
            assert np.allclose(v[name], want, rtol=1e-9), name
        assert np.shape(v["entropy"]) == (8, 6)
    for cell in ("map", "heads", "scores"):
        assert len(nb.images(cell)) == 1 and len(nb.images(cell)[0]) > 1000
    assert nb.html("read").count("<span") == count
    nb.variables["previous_token"][5][2] *= 1 + 1e-8  # a comparison that cannot fail shows nothing
    with pytest.raises(AssertionError, match="previous_token"):
        nblib.compare(numbers, nb.variables)


def test_it_is_the_kind_of_dumps_of_attention_alone(place, tmp_path):
    assert weir("notebook-export", "--list", place / "heads.h5").ok().out.startswith(f"{place}/heads.h5: attention".encode())
    trace("--hooks", PATTERNS + ",blocks.0.hook_resid_pre", "--dump", "mixed.h5", "a b", cwd=tmp_path).ok()
    trace("--site", "q,z", "--dump", "q.h5", "a b", cwd=tmp_path).ok()
    for name in ("mixed.h5", "q.h5"):
        assert weir("notebook-export", "--list", name, cwd=tmp_path).ok().out.startswith(f"{name}: activations".encode())


@pytest.mark.parametrize("window", [1, 3])
def test_windows_of_a_long_document(window, tmp_path):
    trace("--hooks", PATTERNS, "--ctx", 10, "--stride", 6, "--dump", "w.h5", "Boulder.", LONG, cwd=tmp_path).ok()
    numbers, nb = both(tmp_path, "w.h5", "-p", "doc=1", "-p", f"window={window}", "-p", "layer=3", "-p", "max_tokens=6")
    nblib.compare(numbers, nb.variables)
    with h5py.File(tmp_path / "w.h5") as f:
        ids, doc, pos, ctx = (f[f"tokens/{n}"][:] for n in ("id", "doc", "pos", "ctx_pos"))
        rows = [i for i in range(len(ids)) if doc[i] == 1 and pos[i] - ctx[i] == 6 * window]
        assert len(rows) == (10, 6, 6, 2)[window]
        d = f["activations/blocks.3.attn.hook_pattern"]
        last = ctx[rows[:6][-1]] + 1
        keys = range(max(0, last - 6), last)
        assert np.array_equal(numbers["pattern"], [[d[i, nb.variables["head"], k] for k in keys] for i in rows[:6]])
        text = {int(p): int(i) for p, i, n in zip(pos, ids, doc) if n == 1}
        assert nb.variables["key_ids"] == [0] + [text[6 * window + k] for k in range(1, ctx[rows[-1]] + 1)]  # BOS, then text
    weir("notebook-export", "w.h5", "-p", "doc=1", "-p", "window=4", "-o", "x.ipynb", cwd=tmp_path).fails(2, "window", "4 windows")


CASES = {"without BOS": ["--bos", "no", LONG], "rows": ["--positions", "-3:", "--ctx", 12, LONG], "half": ["--dtype", "f16", LONG, "a"],
         "hostile": ["</svg><script>alert(1)</script> & \"$\\x$\" '日本"], "one token": ["--bos", "no", "a"]}


@pytest.mark.parametrize("name", CASES)
def test_any_dump(name, tmp_path):
    trace("--hooks", "blocks.{2,5}.attn.hook_pattern,blocks.0.hook_resid_pre", "--dump", "any.h5", *CASES[name], cwd=tmp_path).ok()
    numbers, nb = both(tmp_path, "any.h5")
    nblib.compare(numbers, nb.variables)
    page = (tmp_path / "nb.html").read_text()
    assert "<script>alert" not in page + nb.html("read") and np.shape(numbers["pattern"])[0] >= 1
    before = np.nan_to_num(np.array(numbers["previous_token"], float))  # the head that is shown reads the token before most
    best = np.unravel_index(before.argmax(), before.shape)
    assert nb.variables["layer"] == (2, 5)[best[0]] and nb.variables["head"] == best[1] and len(numbers["entropy"]) == 2
    if name == "rows":
        assert nb.variables["key_ids"].count(-1) > 3 and ">?<" in nb.html("read")
    if name == "one token":
        assert numbers["entropy"] == [["nan"] * 6] * 2 and numbers["received"] == ["nan"]


def test_grouped_heads_without_a_tokenizer(tmp_path):
    trace("--ids", "--model", MODELS / "llama-gqa-bf16", "--hooks", PATTERNS, "--dump", "g.h5", "1 2 3 4 5 6", cwd=tmp_path).ok()
    numbers, nb = both(tmp_path, "g.h5")
    nblib.compare(numbers, nb.variables)
    with h5py.File(tmp_path / "g.h5") as f:
        assert np.shape(numbers["entropy"]) == (3, f["activations/blocks.0.attn.hook_pattern"].shape[1])
    assert "&lt;#3&gt;" in nb.html("read")


def test_an_unfinished_dump(place, tmp_path):
    shutil.copy(place / "heads.h5", tmp_path / "part.h5")
    with h5py.File(tmp_path / "part.h5", "r+") as f:
        f.attrs["complete"] = np.int64(0)
        f["progress/rows_complete"][f["progress/group"][:].tolist().index(b"L3")] = 64
        f["activations/blocks.3.attn.hook_pattern"].resize(64, axis=0)
    numbers, nb = both(tmp_path, "part.h5")
    nblib.compare(numbers, nb.variables)
    assert nb.variables["n_rows"] == 64


def test_what_is_missing_is_said(place, tmp_path):
    command = "weir trace --hooks 'blocks.*.attn.hook_pattern'"
    trace("--layer", 0, "--dump", "none.h5", "a b c", cwd=tmp_path).ok()
    trace("--hooks", "blocks.0.attn.hook_pattern[:, 2]", "--dump", "some.h5", "a b c", cwd=tmp_path).ok()
    for name, words in (("none.h5", "no attention pattern"), ("some.h5", "chosen units only")):
        weir("notebook-export", name, "--template", "attention", "-o", "x.html", "--force", cwd=tmp_path).ok()
        page = (tmp_path / "x.html").read_text()
        assert words in page and page.count("blocks.*.attn.hook_pattern") >= 4
        weir("notebook-export", name, "--template", "attention", "-o", "x.ipynb", "--force", cwd=tmp_path).ok()
        nb = nblib.run(tmp_path / "x.ipynb")
        assert words in nb.text("open") and command in nb.text("open")
    for options, words in ((["layer=8"], "layer"), (["head=6"], "0 to 5"), (["doc=12"], "doc"), (["max_tokens=0"], "max_tokens")):
        weir("notebook-export", place / "heads.h5", "-p", *options, "-o", "y.ipynb", cwd=tmp_path).fails(2, words)


def test_places_that_are_no_keys(place, tmp_path):
    shutil.copy(place / "heads.h5", tmp_path / "bad.h5")
    with h5py.File(tmp_path / "bad.h5", "r+") as f:
        f["tokens/ctx_pos"][3] = 5000
    for form in ("x.html", "x.ipynb"):
        weir("notebook-export", "bad.h5", "-o", form, cwd=tmp_path).fails(1, "ctx_pos of row 3 is 5000")
    with h5py.File(tmp_path / "bad.h5", "r+") as f:
        f["tokens/ctx_pos"][3] = f["tokens/ctx_pos"][2] + 1
        f["tokens/pos"][3] = -2**63
    weir("notebook-export", "bad.h5", "-o", "x.html", cwd=tmp_path).fails(1, "tokens/pos of row 3 is -9223372036854775808")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.h5"]
