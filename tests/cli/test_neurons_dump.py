"""neuron-top from a dump: the same bytes as a run over the same text, whatever of the dump is read and however it was stored; and one
line for what is wrong."""
import json
import shutil

import h5py
import numpy as np
import pytest

from weircli import BROOK, ROOT, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
HOOK = "blocks.6.mlp.hook_post"
SENTENCES = [line for line in (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump") / "text.txt"
    lines = SENTENCES[:60] + SENTENCES[:5] + [" ".join(SENTENCES[100:125])] + ["Tea 🫖🫖 is 茶, a kite is 🪁."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def dump(text):
    path = text.with_name("d.h5")
    trace("--layers", "5,6", "--site", "post,resid_pre", "--file", text, "--dump", path).ok()
    return path


def top(*args, form="tsv"):
    return weir("neuron-top", *args, "--format", form).ok().out


def objects(*args):
    """Head without the name of what was read, and the neurons."""
    head, *rest = map(json.loads, top(*args, form="ndjson").splitlines())
    return {k: v for k, v in head.items() if k not in ("input", "source")}, rest


@pytest.mark.parametrize("options", [
    ["--layer", 6, "-k", 3],
    ["--neurons", "421", "-k", 20, "--correlated", "no"],
    ["--neurons", "0:20,L6N99", "-k", 5, "--correlated", "yes"],
    ["--neurons", "3,L6N421,700", "-k", 10, "--quantiles", 3, "--random", 5, "--seed", 9, "--dedup", "none", "--correlated", "no"],
    ["--neurons", "0:20", "--sign", "abs", "-k", 6, "--dedup", "doc", "--threshold", "0.25", "--correlated", "no"],
    ["--layer", 5, "-k", 3, "--rank-by", "mean"],
    ["--neurons", "5", "-k", 40, "--mask", "none", "--context", "full", "--correlated", "no"],
])
def test_a_dump_gives_what_the_run_gives(text, dump, options):
    options = ["--weights", "no", *options]
    live = ["--file", text, *options] if "--layer" in options else ["--layers", "5,6", "--file", text, *options]
    assert top(dump, *options) == top(*live)
    assert objects(dump, *options) == objects(*live)


def test_the_comparison_can_fail(text, dump, tmp_path):
    other = tmp_path / "d.h5"
    shutil.copy(dump, other)
    with h5py.File(other, "r+") as f:
        d = f[f"activations/{HOOK}"]
        column = d[:, 421]
        row = int(np.argmax(column))
        d[row, 421] = np.nextafter(column[row], np.float32(np.inf))
    options = ["--neurons", "421", "-k", 5]
    assert top(other, *options) != top(dump, *options)
    assert objects(other, *options) != objects(dump, *options)


def test_other_sites_and_layers(text, dump):
    for site in ("resid_pre", "blocks.*.hook_resid_pre", "blocks.{5,6}.{mlp.hook_post,hook_resid_pre}"):
        options = ["--site", site, "--layer", 6, "--neurons", "7,100", "-k", 5]
        assert top(dump, *options) == top("--file", text, *options)
    layers = {line.split(b"\t")[0] for line in top(dump, "--neurons", "1", "--layers", "5-6").splitlines()[1:]}
    assert layers == {b"5", b"6"}


def test_columns_alone_and_the_whole_stream_agree(dump):
    """A few neurons are read as columns, many as a stream."""
    every = top(dump, "-k", 4).splitlines()
    some = top(dump, "-k", 4, "--neurons", "0,64,65,767").splitlines()
    assert some[1:] == [line for line in every[1:] if line.split(b"\t")[1] in (b"0", b"64", b"65", b"767")] and len(some) == 1 + 2 * 4 * 8


def test_rows_too_long_for_one_block(text, tmp_path):
    """Blocks of the reader then hold some columns only."""
    path, width = tmp_path / "wide.h5", 17000
    trace("--hooks", "unembed.hook_in", "--file", text, "--max-tokens", 1100, "--dump", path).ok()
    with h5py.File(path, "r+") as f:
        old = f["activations/unembed.hook_in"]
        attributes = {k: v for k, v in old.attrs.items() if k != "DIMENSION_LIST"}
        x = (np.arange(len(old))[:, None] * 31 % 1009 + np.arange(width)).astype(np.float32)
        del f["activations/unembed.hook_in"]
        f.create_dataset("activations/unembed.hook_in", data=x, chunks=(1024, 64), maxshape=(None, width)).attrs.update(attributes)
        counted = (f["tokens/flags"][:] & 3) == 0
    lines = [line.split(b"\t") for line in top(path, "--site", "unembed.hook_in", "-k", 1, "--sign", "+").splitlines()[1:]]
    assert [float(c[6]) for c in lines] == x[counted].max(axis=0).tolist() and len(lines) == width
    some = [line.split(b"\t") for line in top(path, "--site", "unembed.hook_in", "-k", 1, "--sign", "+", "--neurons", "5,16999").splitlines()[1:]]
    assert some == [lines[5], lines[16999]]


@pytest.mark.parametrize("stored", [["--dtype", "f16"], ["--mantissa", "7"], ["--mantissa", "10"], ["--compress", "0"]])
def test_rounded_values_are_searched_as_they_are_stored(text, tmp_path, stored):
    path = tmp_path / "d.h5"
    trace("--layer", 6, "--site", "post", "--file", text, "--dump", path, *stored).ok()
    with h5py.File(path) as f:
        x = f[f"activations/{HOOK}"][:].astype(np.float32)
        counted = (f["tokens/flags"][:] & 3) == 0
        doc, pos = f["tokens/doc"][:], f["tokens/pos"][:]
    for unit in (3, 421):
        lines = [line.split(b"\t") for line in top(path, "--neurons", unit, "-k", 6, "--dedup", "none").splitlines()[1:7]]
        rows = np.flatnonzero(counted)
        rows = rows[np.lexsort((rows, -x[rows, unit]))][:6]
        assert [(np.float32(float(c[6])), int(c[7]), int(c[8])) for c in lines] == [(x[r, unit], doc[r], pos[r]) for r in rows]


def test_selected_units(text, dump, tmp_path):
    path = tmp_path / "some.h5"
    trace("--hooks", "blocks.6.mlp.hook_post[:,3+17+421+600:604]", "--file", text, "--dump", path).ok()
    units = "3,17,421,600,601,602,603"
    want = top(dump, "--layer", 6, "--neurons", units, "-k", 5)
    assert top(path, "-k", 5) == want and top(path, "-k", 5, "--neurons", units) == want
    assert top(path, "-k", 5, "--neurons", "17,602") == top(dump, "--layer", 6, "-k", 5, "--neurons", "17,602")
    weir("neuron-top", path, "--neurons", "18").fails(2, "18", "some.h5")
    head, found = objects(path, "--neurons", "17", "--correlated", "yes", "-k", 5)
    assert {r["unit"] for r in found[0]["related"]["by_r"] if r["r"] is not None} <= {3, 421, 600, 601, 602, 603}


def test_shards_count_documents_of_the_whole_text(text, tmp_path):
    for i in range(3):
        path = tmp_path / f"{i}.h5"
        trace("--layer", 6, "--site", "post", "--file", text, "--shard", f"{i}/3", "--dump", path).ok()
        options = ["--neurons", "5,6", "-k", 7]
        found = top(path, *options)
        assert found == top("--layer", 6, "--file", text, "--shard", f"{i}/3", *options)
    assert min(int(line.split(b"\t")[7]) for line in found.splitlines()[1:]) > 20


def test_the_activation_of_a_gate_needs_the_model(tmp_path):
    model, path = MODELS / "llama-gqa-bf16", tmp_path / "d.h5"
    ids = "5 9 13 2 40 41 42 7 7 8 30 21"
    trace("--model", model, "--ids", "--layer", 1, "--site", "gate,up,post", "--dump", path, ids).ok()
    options = ["--site", "gate-act", "--neurons", "all", "-k", 3]
    weir("neuron-top", path, *options).fails(2, "gate-act", "--model")
    live = top("--model", model, "--ids", "--layer", 1, *options, ids)
    assert top(path, "--model", model, *options) == live and live.count(b"\n") > 20
    for site in ("pre", "gate", "up", "post"):
        options = ["--site", site, "--neurons", "1,2", "-k", 3]
        assert top(path, *options) == top("--model", model, "--ids", "--layer", 1, *options, ids), site


def test_an_unfinished_dump_is_searched_as_far_as_it_goes(dump, tmp_path):
    path = tmp_path / "d.h5.part"
    shutil.copy(dump, path)
    with h5py.File(path, "r+") as f:
        f.attrs["complete"] = 0
        n = 700
        f[f"activations/blocks.5.mlp.hook_post"].resize(n, axis=0)
        rows, doc = f["tokens/doc"][:n], None
        names = [g.decode() if isinstance(g, bytes) else g for g in f["progress/group"][:]]
        f["progress/rows_complete"][names.index("L5")] = n
    r = weir("neuron-top", path, "--neurons", "421", "-k", 3, "--format", "ndjson").ok()
    assert "not complete" in r.err and "700" in r.err
    head = json.loads(r.out.splitlines()[0])
    assert head["tokens"] == 700 and head["complete"] is False and head["docs"] == rows[-1] + 1


def test_high_norms_need_the_stream(text, tmp_path):
    path = tmp_path / "d.h5"
    trace("--layer", 6, "--site", "post", "--file", text, "--dump", path).ok()
    weir("neuron-top", path, "--max-norm-ratio", "3").fails(2, "blocks.6.hook_resid_pre")


# --- what is wrong

def test_what_was_not_recorded_is_named(dump):
    weir("neuron-top", dump, "--site", "up").fails(2, "up", "d.h5", "mlp.hook_post")
    weir("neuron-top", dump, "--layer", "4").fails(2, "4", "d.h5")
    weir("neuron-top", dump, "--neurons", "768").fails(2, "768")
    weir("neuron-top", dump, "--neurons", "L4N3").fails(2, "L4N3")
    weir("neuron-top", dump, "--layers", "5-").fails(2, "5-")


def damage(f, what):
    """Makes one thing of the dump wrong."""
    if what == "documents go backwards":
        f["tokens/doc"][400:410] = f["tokens/doc"][400:410][::-1] + np.arange(10)[::-1]
    elif what == "a negative position":
        f["tokens/pos"][300] = -5
    elif what == "an enormous document":
        f["tokens/doc"][-1] = 2 ** 40
    elif what == "no vocabulary":
        del f["vocab"]
    elif what == "no tokens":
        del f["tokens/id"]


@pytest.mark.parametrize("what", ["documents go backwards", "a negative position", "an enormous document", "no vocabulary",
                                  "no tokens"])
@pytest.mark.parametrize("neurons", ["421", "all"])
def test_a_damaged_dump_is_one_line(dump, tmp_path, what, neurons):
    path = tmp_path / "bad.h5"
    shutil.copy(dump, path)
    with h5py.File(path, "r+") as f:
        damage(f, what)
    weir("neuron-top", path, "--neurons", neurons, "--format", "tsv").fails(1, "bad.h5")


def test_cut_and_foreign_files_are_one_line(dump, tmp_path):
    whole = dump.read_bytes()
    for size in (9, 600, len(whole) // 3, len(whole) - 50):
        (tmp_path / "cut.h5").write_bytes(whole[:size])
        r = weir("neuron-top", tmp_path / "cut.h5", "--neurons", "3")
        assert r.code in (1, 2) and len(r.err.splitlines()) == 1 and "cut.h5" in r.err and r.out == b"", (size, r.err)
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["x"] = [1, 2]
    weir("neuron-top", tmp_path / "other.h5", "--neurons", "3").fails(1, "other.h5")


def test_units_of_a_dump_that_do_not_ascend(text, tmp_path):
    path = tmp_path / "some.h5"
    trace("--hooks", "blocks.6.mlp.hook_post[:,3+17+421]", "--file", text, "--dump", path).ok()
    for units in ([3, 3, 421], [421, 17, 3], [-1, 17, 421], [3, 17, 2 ** 40]):
        with h5py.File(path, "r+") as f:
            f[f"activations/{HOOK}"].attrs["units"] = np.array(units, dtype=np.int64)
        r = weir("neuron-top", path)
        assert r.code in (1, 2) and len(r.err.splitlines()) == 1 and "some.h5" in r.err, (units, r.err)
