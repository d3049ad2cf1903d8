"""weir health: against the rows that trace records, in numpy; on models with planted giants and with numbers that are none."""
import json

import h5py
import numpy as np
import pytest

from checkpoints import copy_with, weights
from weircli import BROOK, ROOT, trace, weir

TEXT = ["Boulder is in the state of Colorado.", "The river bends. It bends again.", "x"]
IDS = b"1 2 3 4 5 6 7\n8 9\n3\n"


class Rows:
    """The stream of a text as trace records it: names of lines, [lines] of [rows, C], and for each row where it stands."""

    def __init__(self, tmp_path, *args, **more):
        dump = tmp_path / "rows.h5"
        trace("--site", "resid_pre,resid_post", "--dump", dump, "--force", *args, **more).ok()
        with h5py.File(dump) as f:
            n = max(int(k.split(".")[1]) for k in f["activations"]) + 1
            self.x = [f[f"activations/blocks.{i}.hook_resid_pre"][:].astype(float) for i in range(n)]
            self.x.append(f[f"activations/blocks.{n - 1}.hook_resid_post"][:].astype(float))
            t = f["tokens"]
            self.doc, self.pos, self.at, self.id = (t[k][:] for k in ("doc", "pos", "ctx_pos", "id"))
        self.name = [f"L{i}" for i in range(n)] + ["out"]
        self.rms = np.array([np.sqrt((x * x).mean(1)) for x in self.x])

    def windows(self, rows_of_window):
        """Slices: a window ends where the next one begins again at the left (rows_of_window: rows kept of each)."""
        edge = np.cumsum([0] + rows_of_window)
        return [slice(a, b) for a, b in zip(edge, edge[1:])]


def by_document(r):
    return [int((r.doc == d).sum()) for d in np.unique(r.doc)]


def expected(r, rows_of_window, dim_ratio, norm_ratio):
    """Layers, dimensions and tokens, as --json has them."""
    massive = np.zeros(r.rms.shape, bool)
    ratio = np.zeros(r.rms.shape)
    for w in r.windows(rows_of_window):
        ratio[:, w] = r.rms[:, w] / np.median(r.rms[:, w], axis=1, keepdims=True)
        massive[:, w] = ratio[:, w] > norm_ratio
    layers, dims, tokens = [], {}, {}
    for i, x in enumerate(r.x):
        median = np.median(np.abs(x), axis=1, keepdims=True)
        big = np.abs(x) > dim_ratio * median
        for c in np.flatnonzero(big.any(0)):
            rows = np.flatnonzero(big[:, c])
            best = rows[np.argmax(np.abs(x[rows, c]))]
            dims[r.name[i], int(c)] = (len(rows), int((r.at[rows] == 0).sum()), float(str(np.float32(x[best, c]))),
                                       abs(x[best, c]) / median[best, 0], int(r.doc[best]), int(r.pos[best]))
        top = int(np.argmax(r.rms[i]))
        layers.append({"layer": r.name[i], "rows": len(x), "mean": r.rms[i].mean(), "median": np.median(r.rms[i]),
                       "max": r.rms[i].max(), "doc": int(r.doc[top]), "pos": int(r.pos[top]), "massive_dims": int(big.any(0).sum()),
                       "massive_rows": int(massive[i].sum())})
    for key in {(int(i), bool(a == 0)) for i, a in zip(r.id, r.at)}:
        mine = (r.id == key[0]) & ((r.at == 0) == key[1])
        lines = massive[:, mine].any(1)
        if lines.any():
            tokens[key] = (int(mine.sum()), int(massive[:, mine].any(0).sum()), [n for n, m in zip(r.name, lines) if m],
                           np.where(massive[:, mine], ratio[:, mine], 0).max())
    return layers, dims, tokens


def check(got, want, exact_median):
    layers, dims, tokens = want
    assert len(got["layers"]) == len(layers)
    for g, w in zip(got["layers"], layers):
        for key in ("layer", "rows", "massive_dims", "massive_rows"):
            assert g[key] == w[key], key
        assert (g["max_at"]["doc"], g["max_at"]["pos"]) == (w["doc"], w["pos"])
        assert g["mean"] == pytest.approx(w["mean"], rel=1e-12) and g["max"] == pytest.approx(w["max"], rel=1e-12)
        assert g["median"] == pytest.approx(w["median"], rel=1e-12 if exact_median else 2e-3)
        assert g["nan"] == g["inf"] == 0 and "first_not_finite" not in g
    found = {(d["layer"], d["dim"]): (d["rows"], d["first_rows"], d["value"], d["ratio"], d["at"]["doc"], d["at"]["pos"])
             for d in got["massive_dims"]}
    assert found.keys() == dims.keys()
    for key, d in dims.items():
        assert found[key] == pytest.approx(d, rel=1e-12), key
    found = {(t["id"], t["first"]): (t["rows"], t["massive"], t["layers"], t["ratio"]) for t in got["massive_tokens"]}
    assert found.keys() == tokens.keys()
    for key, t in tokens.items():
        assert found[key][:3] == t[:3] and found[key][3] == pytest.approx(t[3], rel=1e-12), key


LOW = ("--dim-ratio", "12", "--norm-ratio", "1.4")  # at which brook has something to show
LOW_OF = {"layer": LOW, "position": LOW[2:], "dim": LOW[:2], "token": LOW[2:]}  # those that each shows anything of


def test_it_is_what_the_recorded_rows_say(tmp_path):
    r = Rows(tmp_path, *TEXT)
    want = expected(r, by_document(r), 12, 1.4)
    assert want[1] and want[2]
    got = weir("health", "--json", *LOW, *TEXT).ok().json
    check(got, want, exact_median=False)
    assert got["windows"] == 3 and not got["median_exact"] and got["finite"]
    for wrong in ((12.5, 1.4), (12, 1.45)):  # the check can fail
        with pytest.raises(AssertionError):
            check(got, expected(r, by_document(r), *wrong), False)
    one = weir("health", "--json", *LOW, TEXT[0]).ok().json
    r = Rows(tmp_path, TEXT[0])
    check(one, expected(r, by_document(r), 12, 1.4), exact_median=True)


def test_windows_have_medians_of_their_own(tmp_path):
    args = ("--ctx", "6", "--bos", "no", " ".join(TEXT))
    r = Rows(tmp_path, *args)
    rows = [6] * (len(r.id) // 6) + ([len(r.id) % 6] if len(r.id) % 6 else [])
    got = weir("health", "--json", *LOW, *args).ok().json
    check(got, expected(r, rows, 12, 1.4), exact_median=False)
    assert got["windows"] == len(rows) > 3
    with pytest.raises(AssertionError):
        check(got, expected(r, [len(r.id)], 12, 1.4), False)


def test_positions_that_are_left_out_count_nowhere(tmp_path):
    args = ("--positions", "2:", *TEXT[:2])
    r = Rows(tmp_path, *args)
    check(weir("health", "--json", *LOW, *args).ok().json, expected(r, by_document(r), 12, 1.4), False)


@pytest.mark.parametrize("model", sorted(p.name for p in (ROOT / "tests/golden/models").iterdir()))
def test_every_family(tmp_path, model):
    args = ("--model", ROOT / "tests/golden/models" / model, "--ids", "--file", "-")
    r = Rows(tmp_path, *args, stdin=IDS)
    low = ("--dim-ratio", "3", "--norm-ratio", "1.01")
    check(weir("health", "--json", *low, *args, stdin=IDS).ok().json, expected(r, by_document(r), 3, 1.01), False)


def test_positions_line_by_line(tmp_path):
    r = Rows(tmp_path, *TEXT)
    lines = [json.loads(x) for x in weir("health", "--per", "position", "--format", "ndjson", *TEXT).ok().out.splitlines()]
    assert [x["id"] for x in lines] == r.id.tolist() and [x["pos"] for x in lines] == r.pos.tolist()
    assert [x["doc"] for x in lines] == r.doc.tolist()
    assert list(lines[0]["rms"]) == r.name
    assert np.array([list(x["rms"].values()) for x in lines]).T == pytest.approx(r.rms, rel=1e-12)
    tsv = weir("health", "--per", "position", "--format", "tsv", *TEXT).ok().out.decode().splitlines()
    assert tsv[0].split("\t") == ["doc", "pos", "id", "massive", *r.name, "text"]
    assert float(tsv[3].split("\t")[6]) == pytest.approx(r.rms[2, 2], rel=1e-8)


@pytest.mark.parametrize("width, lines", [(20, 1), (80, 3), (200, 9)])
def test_positions_page_by_width(width, lines):
    out = weir("health", "--quiet", "--per", "position", "--width", width, *TEXT).ok().out.decode().splitlines()
    head = [x.split()[4:-1] for x in out if "massive" in x]
    names = [f"L{i}" for i in range(8)] + ["out"]
    pages = [names[i:i + lines] for i in range(0, 9, lines)]
    assert head == pages * (len(TEXT) if len(pages) > 1 else 1)  # a page of its own for each window, or one for all of them
    assert max(map(len, out)) <= max(width, 58) and len({len(x.split('"')[0]) for x in out if '"' in x}) <= 2
    whole = [x.split() for x in weir("health", "--quiet", "--per", "position", "--width", 200, TEXT[0]).ok().out.decode().splitlines()[1:]]
    mine = [x.split() for x in out[1:len(whole) + 1]]
    assert [x[:4 + lines] for x in mine] == [x[:4 + lines] for x in whole]


def test_the_cut_of_the_work_changes_nothing():
    text = (" ".join(TEXT) * 3, "and more")
    other = {"layer": [("--batch", "7", "--kernel", "ref")], "position": [("--batch", "7", "--threads", "1"), ("--batch", "33")],
             "dim": [("--batch", "7")], "token": [("--batch", "7")]}
    for per, cuts in other.items():
        ask = ("--per", per, "--format", "tsv", *LOW_OF[per], *text)
        want = weir("health", *ask).ok().out
        assert want.count(b"\n") > 5
        for more in cuts:
            assert weir("health", *ask, *more).ok().out == want, (per, more)


def test_layers_that_are_asked_for():
    whole = weir("health", "--json", *LOW, *TEXT).ok().json
    assert [x["layer"] for x in whole["layers"]] == [f"L{i}" for i in range(8)] + ["out"]
    for layers, names in (("0-2", ["L0", "L1", "L2"]), ("7", ["L7", "out"])):
        some = weir("health", "--json", "--layer", layers, *LOW, *TEXT).ok().json
        assert some["layers"] == [x for x in whole["layers"] if x["layer"] in names]
        assert some["massive_dims"] == [x for x in whole["massive_dims"] if x["layer"] in names]


# --- models with something wrong in them

def brook_with(path, row, column, value):
    """brook with one other number in its position embedding."""
    return copy_with(BROOK, path, "wpe.weight", (row, column), value)


def test_planted_giants_are_named(tmp_path):
    model = brook_with(tmp_path / "giant", 0, 7, -3000)
    got = weir("health", "--model", model, "--json", *TEXT[:2]).ok().json
    dims = {d["layer"]: d for d in got["massive_dims"] if d["dim"] == 7}
    assert list(dims) == ["L0", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "out"]
    assert all(d["rows"] == d["first_rows"] == 2 and d["at"]["pos"] == 0 for d in dims.values())
    assert dims["L0"]["value"] == pytest.approx(-3000, abs=1) and dims["L0"]["ratio"] > 1000
    bos = [t for t in got["massive_tokens"] if t["first"]]
    assert len(bos) == 1 and bos[0]["text"] == "<|endoftext|>" and bos[0]["massive"] == bos[0]["rows"] == 2
    assert bos[0]["layers"] == list(dims) and bos[0]["ratio"] > 10
    text = weir("health", "--model", model, *TEXT[:2]).ok().out.decode()
    assert "\n  7 in L0-out: " in text and "there in 2 rows, 2 of them first in a window" in text
    assert '\n  "<|endoftext|>" first in a window, 2 of 2, in L0-out: ' in text
    plain = weir("health", "--json", *TEXT[:2]).ok().json
    assert plain["massive_dims"] == [] and plain["massive_tokens"] == []
    assert "\n  none\n" in weir("health", *TEXT[:2]).ok().out.decode()


@pytest.mark.parametrize("value,kind", [(np.nan, "nan"), (-np.inf, "inf")])
def test_what_is_not_finite_is_counted_and_the_exit_is_3(tmp_path, value, kind):
    model = brook_with(tmp_path / "broken", 5, 9, value)
    r = weir("health", "--model", model, "--quiet", "--json", "x", *TEXT)
    assert r.code == 3
    got = r.json
    first = got["layers"][0]
    assert not got["finite"] and first[kind] == 2 and first["nan"] + first["inf"] == 2
    assert first["rows"] == got["rows"] - 2
    assert (first["first_not_finite"]["doc"], first["first_not_finite"]["pos"], first["first_not_finite"]["dim"]) == (1, 5, 9)
    later = got["layers"][3]
    assert later["nan"] > 192 and (later["first_not_finite"]["doc"], later["first_not_finite"]["pos"]) == (1, 5)
    lines = r.err.splitlines()
    assert len(lines) == 9 and "L0 (blocks.0.hook_resid_pre)" in lines[0]
    assert "the first at document 1, position 5, dimension 9" in lines[0]
    out = tmp_path / "health.tsv"
    r = weir("health", "--model", model, "--quiet", "--per", "position", "--format", "tsv", "-o", out, *TEXT)
    assert r.code == 3 and out.read_text().splitlines()[6].split("\t")[4] == "nan"
    all_bad = weir("health", "--model", model, "--quiet", "--positions", "5", TEXT[0])
    assert all_bad.code == 3 and all_bad.out.count(b"no row is finite") == 9
    assert weir("health", "--model", model, "--quiet", "--positions", "0:5", *TEXT).code == 0


def test_an_intervention_is_seen():
    got = weir("health", "--json", "--scale", "blocks.3.hook_resid_pre=1000", *TEXT).ok().json
    rms = [x["mean"] for x in got["layers"]]
    assert rms[3] > 500 * rms[2] and got["interventions"][0]["rows_changed"] > 0


# --- from a dump

@pytest.mark.parametrize("more, forms", [((), [("--json",), ("--per", "position"), ()]), (("--ctx", "5", "--stride", "2"), [("--per", "token", "--format", "tsv")]),
                                         (("--positions", "1,-2:"), [("--per", "dim", "--format", "ndjson"), ("--per", "position", "--format", "tsv")])])
def test_a_dump_gives_what_the_run_gives(tmp_path, more, forms):
    dump = tmp_path / "d.h5"
    (tmp_path / "t.txt").write_text("\n".join(TEXT))
    text = ("--file", tmp_path / "t.txt")
    trace("--site", "resid_pre,resid_post", *(more if "--ctx" in more else ()), *text, "--dump", dump).ok()
    rows = () if "--ctx" in more else more
    for form in forms:
        ratio = () if "dim" in form else ("--norm-ratio", "1.2")
        live = weir("health", *more, *text, *form, *ratio).ok().out
        assert weir("health", dump, *rows, *form, *ratio, "--threads", "1").ok().out == live
        assert weir("health", "--from", dump, *rows, *form, *ratio).ok().out == live


def test_dumps_that_lack_something(tmp_path):
    dump = tmp_path / "d.h5"
    trace("--layer", "2-3", "--site", "resid_pre", "--dump", dump, *TEXT).ok()
    assert [x["layer"] for x in weir("health", dump, "--json").ok().json["layers"]] == ["L2", "L3"]
    weir("health", dump, "--layer", "5", "--quiet").fails(1, "lacks blocks.5.hook_resid_pre", "weir trace")
    weir("health", dump, "--ctx", "3").fails(2, "--ctx", "run over text")
    weir("health", dump, "--model", ROOT / "tests/golden/models/gpt2").fails(1, "another model")
    with h5py.File(dump, "a") as f:
        f["activations/blocks.3.hook_resid_pre"][4, 7] = np.nan
    r = weir("health", dump, "--layer", "3", "--quiet")
    assert r.code == 3 and "L3" in r.err and "position 4, dimension 7" in r.err
    with h5py.File(dump, "a") as f:
        f["tokens/pos"][1] = 2**63 - 1
    weir("health", dump, "--quiet").fails(1, "d.h5", "positions")
    trace("--layer", "2", "--site", "attn_out", "--dump", dump, "--force", *TEXT).ok()
    weir("health", dump, "--quiet").fails(1, "nothing of the stream")


def test_files_and_complaints(tmp_path):
    for per in ("layer", "position", "dim", "token"):
        for kind in ("tsv", "ndjson"):
            out = tmp_path / f"{per}.{kind}"
            for _ in range(2):  # an earlier output may be replaced
                weir("health", "--per", per, "--format", kind, "-o", out, *LOW_OF[per], *TEXT).ok()
            assert out.read_text().count("\n") > 3
    mine = tmp_path / "mine.txt"
    mine.write_text("dear diary")
    weir("health", "-o", mine, *TEXT).fails(1, "mine.txt exists")
    weir("health", "--layer", "99", "x").fails(2, "--layer")
    weir("health", "--dim-ratio", "0.5", "x").fails(2, "--dim-ratio")
    weir("health", "--json", "--per", "dim", "x").fails(2, "--json")
    weir("health", "--quiet", "--positions", "7", "x").fails(1, "--positions leaves no row")
    weir("health", "--quiet", "--file", "-", stdin=b"\n").fails(1, "holds no document")
