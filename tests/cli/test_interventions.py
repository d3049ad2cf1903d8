"""--ablate, --scale, --add, --set, --patch and --project-out: what they do to the recorded values, how often, in which order, on which
rows of the document, and what they refuse."""
import hashlib
import json
import re

import h5py
import numpy as np
import pytest

from weircli import trace

TEXT = "The river bends towards the old mill, and the weir holds it back."
MID = "blocks.2.hook_resid_mid"
POST = "blocks.2.mlp.hook_post"
WIDTH, NEURONS, HEADS, SIZE = 192, 768, 6, 32
RECORD = ("--hooks", f"{MID},{POST},blocks.3.*,blocks.2.attn.hook_z")


def run(path, *args, text=(TEXT,), **more):
    return trace(*RECORD, "--dump", path, *args, *text, **more).ok()


def values(path, name=MID):
    with h5py.File(path) as f:
        return f["activations"][name][...]


def interventions(path):
    with h5py.File(path) as f:
        return json.loads(f.attrs["interventions"])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A recording of the text as it is; its values are what the tests start from."""
    path = tmp_path_factory.mktemp("plain") / "plain.h5"
    run(path)
    return path


@pytest.fixture
def vector(tmp_path):
    def save(name="v.npy", *shape, seed=0):
        v = np.random.default_rng(seed).normal(size=shape or (WIDTH,)).astype(np.float32)
        np.save(tmp_path / name, v)
        return tmp_path / name, v
    return save


def same(a, b):
    assert np.array_equal(a.view(np.uint32), b.view(np.uint32))


def test_the_comparison_can_fail(plain):
    x = values(plain)
    with pytest.raises(AssertionError):
        same(x, np.nextafter(x, np.float32(np.inf)))


# --- what each does

def test_ablate(plain, tmp_path):
    r = run(tmp_path / "x.h5", "--ablate", "L2N5", "--ablate", "L2H1[3:5]=zero")
    x, z, n = values(tmp_path / "x.h5", POST), values(tmp_path / "x.h5", "blocks.2.attn.hook_z"), len(values(plain))
    assert (x[:, 5] == 0).all() and (x[:, 4] != 0).all()
    assert ((z == 0).all(1, where=np.arange(HEADS * SIZE) // SIZE == 1) == np.isin(np.arange(n), [3, 4])).all()
    assert f"ablate L2N5: {n} rows changed" in r.err and "ablate L2H1[3:5]: 2 rows changed" in r.err


def test_scale(plain, tmp_path):
    run(tmp_path / "x.h5", "--scale", f"{MID}[2]=-2.5")
    want = values(plain)
    want[2] *= np.float32(-2.5)
    same(values(tmp_path / "x.h5"), want)


@pytest.mark.parametrize("suffix, factor", [("", 1), ("*4", 4), ("*-0.3", -0.3), ("*1e-3", 1e-3)])
def test_add(plain, tmp_path, vector, suffix, factor):
    file, v = vector()
    run(tmp_path / "x.h5", "--add", f"{MID}={file}{suffix}")
    same(values(tmp_path / "x.h5"), values(plain) + v * np.float32(factor))


def test_set(plain, tmp_path, vector):
    file, v = vector("v.npy", 3, WIDTH)
    r = run(tmp_path / "x.h5", "--set", f"{MID}[-1]={file}@1", "--json")
    want = values(plain)
    want[-1] = v[1]
    same(values(tmp_path / "x.h5"), want)
    assert r.json["interventions"] == [{"kind": "set", "selector": f"{MID}[-1]", "rows_changed": 1, "rows_missing": 0}]


def test_project_out(plain, tmp_path, vector):
    file, v = vector()
    run(tmp_path / "x.h5", "--project-out", f"{MID}={file}")
    x, d = values(plain).astype(np.float64), v.astype(np.float64)
    want = x - np.outer(x @ d / (d @ d), d)
    assert np.abs(values(tmp_path / "x.h5") - want).max() <= 1e-6 * np.abs(want).max()


def test_patch(plain, tmp_path):
    """Activation patching between two texts of the same length, one position."""
    clean, mixed = tmp_path / "clean.h5", tmp_path / "x.h5"
    other = TEXT.replace("river", "house")
    run(clean, text=(other,))
    assert len(values(clean)) == len(values(plain))
    r = run(mixed, "--patch", f"{MID}[2+99]={clean}")
    want = values(plain)
    want[2] = values(clean)[2]
    same(values(mixed), want)
    assert f"patch {MID}[2+99]: 1 row changed\n" in r.err
    assert (values(mixed, "blocks.3.hook_resid_post")[2:] != values(plain, "blocks.3.hook_resid_post")[2:]).any(1).all()


def test_mean_of_a_dump_and_of_statistics(plain, tmp_path):
    stats, from_dump, from_stats = tmp_path / "s.h5", tmp_path / "a.h5", tmp_path / "b.h5"
    trace("--hook", f"stats:{stats}={MID}", TEXT).ok()
    for path, source in ((from_dump, plain), (from_stats, stats)):
        run(path, "--ablate", f"{MID}[4]=mean:{source}")
        want = values(plain)
        want[4] = want.astype(np.float64).mean(0).astype(np.float32)
        assert np.abs(values(path) - want).max() <= 1e-6 * np.abs(want).max()
        assert (np.delete(values(path), 4, 0) == np.delete(want, 4, 0)).all()


def test_vectors_from_other_files(plain, tmp_path, vector):
    """A row of a dump, of a safetensors file, of float64 and Fortran order: all the same vector."""
    import struct
    x = values(plain)
    header = json.dumps({"a": {"dtype": "F32", "shape": [WIDTH], "data_offsets": [0, 4 * WIDTH]},
                         "dir": {"dtype": "F32", "shape": [2, WIDTH], "data_offsets": [4 * WIDTH, 12 * WIDTH]}}).encode()
    (tmp_path / "t.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + x[:3].tobytes())
    np.save(tmp_path / "f8.npy", np.asfortranarray(x.astype(np.float64)))
    np.save(tmp_path / "be.npy", x[2].astype(">f4"))
    seen = []
    for value in (f"{plain}@2", f"{plain}::{MID}@2", f"{plain}::/activations/{MID}@2", f"{tmp_path}/t.safetensors::dir@1",
                  f"{tmp_path}/f8.npy@2", f"{tmp_path}/be.npy", f"{tmp_path}/f8.npy@{2 - len(x)}"):
        path = tmp_path / f"{len(seen)}.h5"
        run(path, "--set", f"{MID}[5]={value}")
        seen.append(values(path))
    for got in seen:
        same(got[5], x[2])
        same(got, seen[0])


# --- order, provenance, what is asked of several

def test_the_order_of_the_command_line(plain, tmp_path, vector):
    file, v = vector()
    x = values(plain)
    add, scale, hook = ("--add", f"{MID}={file}"), ("--scale", f"{MID}=2"), ("--hook", f"scale:{MID}=0.5")
    for order, want in (((add, scale), (x + v) * 2), ((scale, add), x * 2 + v), ((scale, add, scale), (x * 2 + v) * 2),
                        ((hook, add, scale), (x * np.float32(0.5) + v) * 2), ((add, hook, add), (x + v) * np.float32(0.5) + v)):
        path = tmp_path / "x.h5"
        run(path, *[word for option in order for word in option])
        same(values(path), want)
        assert [i["kind"] for i in interventions(path)] == ["scale" if o is hook else o[0][2:] for o in order]


def test_provenance(plain, tmp_path, vector):
    file, _ = vector("v.npy", 2, WIDTH)
    path = tmp_path / "x.h5"
    digest = lambda p: dict(file=str(p), bytes=p.stat().st_size, sha256=hashlib.sha256(p.read_bytes()).hexdigest())
    run(path, "--add", f"{MID}={file}@1*2", "--ablate", f"{POST}[0]=mean:{plain}", "--hook", "stats:post", "--patch",
        f"L2N7={plain}", "--hook", f"steer:{MID}={file}@0")
    assert interventions(path) == [
        {"kind": "add", "selector": MID, "value": f"{file}@1*2", **digest(file)},
        {"kind": "ablate", "selector": f"{POST}[0]", "value": f"mean:{plain}", **digest(plain)},
        {"kind": "patch", "selector": "L2N7", "value": str(plain), **digest(plain)},
        {"kind": "add", "selector": MID, "value": f"{file}@0", **digest(file)}]


def test_writing_what_is_there_changes_nothing(plain, tmp_path):
    zero = tmp_path / "zero.npy"
    np.save(zero, np.zeros(WIDTH, np.float32))
    path = tmp_path / "x.h5"
    r = run(path, "--scale", "*=1", "--add", f"{MID}={zero}", "--patch", f"{MID},{POST},blocks.3.*={plain}", "--set", f"{MID}[3]={plain}@3",
            "--logprob")
    again = tmp_path / "y.h5"
    run(again, "--logprob")
    with h5py.File(path) as a, h5py.File(again) as b:
        for name in b["activations"]:
            same(a["activations"][name][...], b["activations"][name][...])
        same(a["tokens/logprob"][...], b["tokens/logprob"][...])
    assert "left alone" not in r.err


# --- positions

@pytest.mark.parametrize("cut", [("--ctx", "8"), ("--ctx", "8", "--stride", "3"), ("--batch", "5"), ("--ctx", "9", "--bos", "no")])
@pytest.mark.parametrize("positions", ["10", "-1", "-3:", "2:12", "0+11"])
def test_positions_are_the_documents(tmp_path, cut, positions):
    """However the document is cut into windows and batches, the rows that change are those of the document."""
    texts = (TEXT, "A shorter one, but of more than eight tokens, it is hoped.")
    whole, windows = tmp_path / "a.h5", tmp_path / "b.h5"
    bos = ("--bos", "no") if "--bos" in cut else ()
    run(whole, "--ablate", f"{MID}[{positions}]", *bos, text=texts)
    run(windows, "--ablate", f"{MID}[{positions}]", *cut, text=texts)
    zero = lambda p: (values(p) == 0).all(1)
    assert zero(whole).any() and not zero(whole).all()
    assert (zero(whole) == zero(windows)).all()


def test_rows_are_counted(tmp_path):
    """Windows that do not overlap change each row once; those that do change the rows again that they only run as context."""
    count = lambda *cut: int(re.search(r"ablate \S+: (\d+) rows? changed", run(tmp_path / "x.h5", "--ablate", f"{MID}[1:]", *cut).err)[1])
    whole = count()
    assert count("--ctx", "8") == whole == len(values(tmp_path / "x.h5")) - 1
    assert count("--ctx", "8", "--stride", "3") > whole


@pytest.mark.parametrize("cut", [(), ("--ctx", "8"), ("--ctx", "8", "--stride", "3")])
def test_patch_goes_by_document_and_position(plain, tmp_path, cut):
    """Other windows than in the dump: rows are found by document and position, and those that the dump lacks are left alone."""
    texts, source, path = (TEXT, TEXT, "Short."), tmp_path / "source.h5", tmp_path / "x.h5"
    run(source, "--positions", "4:12", text=(TEXT, "Another document with enough words to have such positions.", "Short."))
    r = run(path, "--patch", f"{MID}={source}", *cut, text=texts)
    without = tmp_path / "y.h5"
    run(without, *cut, text=texts)
    want = values(without)
    with h5py.File(source) as s, h5py.File(path) as f:
        at = {key: i for i, key in enumerate(zip(s["tokens/doc"][...], s["tokens/pos"][...]))}
        rows = list(zip(f["tokens/doc"][...], f["tokens/pos"][...]))
    found = [i for i, key in enumerate(rows) if key in at]
    assert 12 <= len(found) < len(rows)
    for i in found:
        want[i] = values(source)[at[rows[i]]]
    same(values(path), want)
    changed, left = map(int, re.search(r"patch \S+: (\d+) rows changed, (\d+) left alone", r.err).groups())
    assert changed + left >= len(rows) and (changed == len(found) or cut)


def test_patch_in_shards(tmp_path):
    """Documents keep their numbers in the whole text: a shard is patched from the whole text's dump as from its own."""
    text, source, whole = tmp_path / "t.txt", tmp_path / "s.h5", tmp_path / "w.h5"
    text.write_text("".join(f"Document number {i} is about the river.\n" for i in range(7)))
    run(source, text=("--file", text))
    run(tmp_path / "part.h5", "--shard", "1/3", text=("--file", text))
    zero = ("--ablate", f"blocks.1.hook_resid_post")
    run(whole, *zero, "--patch", f"{MID}={source}", text=("--file", text))
    for dump in (source, tmp_path / "part.h5"):
        path = tmp_path / "p.h5"
        run(path, *zero, "--patch", f"{MID}={dump}", "--shard", "1/3", "--force", text=("--file", text))
        with h5py.File(path) as f:
            first = int(f.attrs["shard_first_doc"])
        assert first > 0
        with h5py.File(whole) as f:
            row = f["docs/start"][first]
        same(values(path), values(whole)[row:row + len(values(path))])


def test_layer_by_layer(plain, tmp_path, vector):
    """--order layer: all documents through one layer, then the next. The same rows change, by the same amount."""
    file, _ = vector()
    options = ("--add", f"{MID}[-1]={file}", "--ablate", "L1N5[2:]", "--patch", f"L2H1={plain}", "--project-out", f"resid_pre[3]={file}",
               "--ablate", f"blocks.3.hook_mlp_out[1]=mean:{plain}", "--scale", "pattern[4]=0.5")
    runs = []
    for order in ("batch", "layer"):
        path = tmp_path / f"{order}.h5"
        r = run(path, *options, "--order", order, "--json", text=(TEXT, "Another document.", TEXT))
        with h5py.File(path) as f:
            runs.append((r.json["interventions"], {k: d[...] for k, d in f["activations"].items()}))
    assert runs[0][0] == runs[1][0] and all(i["rows_changed"] > 0 for i in runs[0][0])
    for name, x in runs[0][1].items():
        same(x, runs[1][1][name])


# --- errors

@pytest.fixture
def out(tmp_path):
    """A target in an empty directory that must stay empty."""
    d = tmp_path / "out"
    d.mkdir()
    yield d / "x.h5"
    assert list(d.iterdir()) == []


@pytest.mark.parametrize("option, value, code, words", [
    ("--ablate", "L99N1", 2, ("--ablate L99N1", "layer 99 does not exist")),
    ("--ablate", "L2N768", 2, ("--ablate L2N768", "768")),
    ("--ablate", "L2N1=mean", 2, ('"mean": zero or mean:FILE was expected',)),
    ("--ablate", "L2N1=mean:", 2, ("zero or mean:FILE was expected",)),
    ("--ablate", "L2N1=mean:nowhere.h5", 1, ("nowhere.h5", "No such file")),
    ("--ablate", "=zero", 2, ("--ablate =zero", "needs a selector")),
    ("--scale", "L2N1", 2, ("--scale L2N1", "a number was expected")),
    ("--scale", "L2N1=x", 2, ('"x": a number was expected',)),
    ("--scale", "L2N1=inf", 2, ("a number was expected",)),
    ("--scale", "resid_past=2", 2, ("--scale resid_past=2", "resid_past")),
    ("--add", "resid_post", 2, ("--add resid_post", "is missing", "FILE[::NAME][@ROW][*C]")),
    ("--add", "resid_post=nowhere.npy", 1, ("nowhere.npy", "No such file")),
    ("--set", "L2H1=0", 1, ("0: a number, and no file of this name", "--ablate sets to zero")),
    ("--ablate", "L5", 2, ('"L5" is a layer', "L5N421", "blocks.5.hook_mlp_out")),
    ("--ablate", "L9", 2, ("layer 9 does not exist",)),
    ("--add", "resid_post=v.npy@7", 2, ("--add resid_post=v.npy@7", "v.npy", "row 7 is asked of 2")),
    ("--add", "resid_post=v.npy", 2, ("2 rows", "choose one with @ROW")),
    ("--add", "post=v.npy@0", 2, ("--add post=v.npy@0", "rows of 192 numbers, but 768 are selected")),
    ("--add", "L2H3=v.npy@0", 2, ("rows of 192 numbers, but 32 are selected", "32 of each head")),
    ("--add", "pattern=v.npy@0", 2, ("blocks.0.attn.hook_pattern", "steer cannot act there")),
    ("--add", "resid_post=v.npy::x@0", 2, ("without a name",)),
    ("--add", "resid_post=text.txt", 1, ("text.txt", "neither an .npy nor a safetensors nor an HDF5 file")),
    ("--add", "resid_post=foreign.h5", 1, ("foreign.h5", "not weir's")),
    ("--add", "resid_post=nan.npy", 1, ("nan.npy", "element 5 of row 0 is no finite float32")),
    ("--set", "blocks.2.attn.hook_result=v.npy@0", 2, ("--set blocks.2.attn.hook_result=v.npy@0",)),
    ("--patch", "resid_post=plain.h5", 2, ("blocks.0.hook_resid_post was not recorded", "--hooks")),
    ("--patch", "resid_post=v.npy", 1, ("v.npy", "not an HDF5 file")),
    ("--patch", "resid_post=foreign.h5", 1, ("foreign.h5",)),
    ("--patch", "pattern=plain.h5", 2, ("patch cannot act there",)),
    ("--project-out", "resid_post=zero.npy", 2, ("--project-out resid_post=zero.npy", "has no direction")),
    ("--project-out", "resid_post=twice.npy", 2, ("row 1", "depends on the rows before it")),
    ("--hook", "./nowhere.so", 2, ("nowhere.so",)),
    ("--hook", "abblate:L1N1", 2, ("did you mean ablate?",)),
])
def test_arguments(plain, out, tmp_path, option, value, code, words):
    np.save(tmp_path / "v.npy", np.ones((2, WIDTH), np.float32))
    np.save(tmp_path / "zero.npy", np.zeros(WIDTH, np.float32))
    np.save(tmp_path / "twice.npy", np.ones((2, WIDTH), np.float32))
    np.save(tmp_path / "nan.npy", np.where(np.arange(WIDTH) == 5, np.nan, 1).astype(np.float32))
    (tmp_path / "text.txt").write_text("1.0 2.0 3.0 and more\n")
    (tmp_path / "plain.h5").write_bytes(plain.read_bytes())
    with h5py.File(tmp_path / "foreign.h5", "w") as f:
        f["v"] = np.ones(WIDTH, np.float32)
    trace(*RECORD, "--dump", out, option, value, TEXT, cwd=tmp_path).fails(code, *words)


@pytest.mark.parametrize("args, words", [
    (("--ablate", "L2N1[500]"), ("ablate L2N1[500] changed nothing: no sequence has such a position",)),
    (("--scale", "L2N1[1]=2", "--scale", "L2N2[99]=2"), ("scale L2N2[99] changed nothing",)),
    (("--patch", f"{MID}[500]=plain.h5"), ("changed nothing: no sequence has such a position",)),
])
def test_none_firing_is_an_error(plain, out, tmp_path, args, words):
    (tmp_path / "plain.h5").write_bytes(plain.read_bytes())
    trace(*RECORD, "--dump", out, *args, TEXT, cwd=tmp_path).fails(1, *words)


def test_a_patch_that_finds_no_row_is_an_error(out, tmp_path):
    run(tmp_path / "s.h5", "--positions", "0:3")
    trace(*RECORD, "--dump", out, "--patch", f"{MID}[5:]={tmp_path / 's.h5'}", TEXT).fails(1, "the dump has none of the")


def test_values_that_nobody_hears(tmp_path):
    r = trace("--ablate", "L1N2", "a text").ok()
    assert "values are changed, but nothing records or listens" in r.err
    trace("--list-hooks", "--ablate", "L1N2").fails(2, "--list-hooks", "--ablate")
