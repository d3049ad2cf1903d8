"""Dumps opened without our code: h5py, xarray over h5netcdf, h5dump, h5repack. And files that are not dumps, given to
our reader.

The dump is written by a C test program (no model needed), and by `trace` where it has been built."""

import os
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

from weircli import trace

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WEIR_BUILD", ROOT / "build" / "release"))
BIN = Path(os.environ.get("WEIR_BIN", ROOT / "build" / "bin"))
SAMPLE = BUILD / "tests" / "unit" / "test_record_sample"
DOCS, ROWS_PER_DOC, C, HEADS, HEAD_SIZE, CTX = 40, 30, 100, 3, 16, 40
ROWS = DOCS * ROWS_PER_DOC
POINTS = ["hook_embed", "blocks.0.hook_resid_pre", "blocks.0.ln1.hook_scale", "blocks.0.attn.hook_q",
          "blocks.0.attn.hook_attn_scores", "blocks.0.attn.hook_pattern", "blocks.0.attn.hook_result",
          "blocks.10.mlp.hook_post"]


def fx_value(p, r, e):
    """tests/unit/record_fixture.h: fx_value, over arrays."""
    with np.errstate(over="ignore"):
        x = (np.asarray(r, np.uint64) * np.uint64(2654435761) + np.asarray(e, np.uint64) * np.uint64(40503)
             + np.uint64(p) * np.uint64(977) + np.uint64(1))
        x ^= x >> np.uint64(17)
        x *= np.uint64(0xed5ad4bbac4c1b51)
        x ^= x >> np.uint64(31)
    return ((x & np.uint64(0xffffff)).astype(np.int64) - 0x800000).astype(np.float32) / np.float32(65536)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    where = tmp_path_factory.mktemp("dump")
    subprocess.run([SAMPLE, "write", where], check=True)
    assert [p.name for p in where.iterdir()] == ["sample.h5"]
    return where / "sample.h5"


def read(path):
    return subprocess.run([SAMPLE, "read", path], capture_output=True, text=True)


def strings(group):
    b, o = group["bytes"][...].tobytes(), group["offsets"][...]
    assert o[0] == 0 and o[-1] == len(b) and np.all(np.diff(o) >= 0)
    return [b[o[i]:o[i + 1]] for i in range(len(o) - 1)]


def check_schema(f):
    """What holds of every dump, whatever wrote it. Returns the number of rows."""
    a = f.attrs
    assert a["format"] == "weir-dump" and a["format_version"] == 1 and a["complete"] == 1
    for name in ("weir_version", "command_line", "time_utc", "model", "family", "fingerprint", "tokenizer_fingerprint",
                 "bos", "dtype", "kernel", "interventions", "edits"):
        assert isinstance(a[name], str), name
    for name in ("ctx", "stride", "threads"):
        assert int(a[name]) >= 0
    rows = f["row"].shape[0]
    assert np.array_equal(f["row"][...], np.arange(rows))
    types = {"id": "i4", "doc": "i8", "pos": "i8", "ctx_pos": "i8", "byte_off": "i8", "byte_len": "i8", "flags": "u1"}
    if "logprob" in f["tokens"]:
        types["logprob"] = "f4"
    assert {k: v.dtype.str[1:] for k, v in f["tokens"].items()} == types
    assert all(v.shape == (rows,) and v.maxshape == (None,) for v in f["tokens"].values())
    d = {k: f["docs"][k][...] for k in ("start", "count", "byte_off", "byte_len", "source")}
    assert [d[k].dtype.str[1:] for k in d] == ["i8", "i8", "i8", "i8", "i4"]
    assert d["count"].sum() == rows and np.array_equal(np.cumsum(d["count"]) - d["count"], d["start"])
    assert np.array_equal(np.repeat(np.arange(len(d["count"])), d["count"]), f["tokens/doc"][...])
    assert all(f["docs"][k].compression is None for k in d)
    n_sources = len(strings(f["sources"]))
    assert np.all((0 <= d["source"]) & (d["source"] < n_sources))
    strings(f["vocab"])
    groups = [g.decode() for g in f["progress/group"][...]]
    assert groups[:2] == ["tokens", "docs"] and f["progress/rows_complete"].dtype == np.int64
    assert f["progress/rows_complete"][...].tolist() == [len(d["count"]) if g == "docs" else rows for g in groups]
    for name, h in f["activations"].items():
        check_hook(f, name, h, rows)
        layer = int(h.attrs["layer"])
        outside = "embed" if name in ("hook_embed", "hook_pos_embed") else "final"
        assert (f"L{layer}" if layer >= 0 else outside) in groups
    return rows


def check_hook(f, name, h, rows):
    assert h.dtype == np.float32 and h.shape[0] == rows and h.maxshape[0] is None and h.maxshape[1:] == h.shape[1:]
    assert h.chunks == ((1024, min(64, h.shape[1])) if h.ndim == 2 else (64, 1, min(64, h.shape[2])))
    assert h.shuffle and h.compression == "gzip"
    assert h.attrs["site"] == name.split(".", 2)[-1] if name.startswith("blocks.") else name
    assert isinstance(h.attrs["letters"], str)
    if "heads" in h.attrs:
        assert h.attrs["heads"] * h.attrs["head_size"] == h.shape[1]
    if "units" in h.attrs:
        assert h.shape == (rows, len(h.attrs["units"]))
    for axis in range(h.ndim):
        (scale,) = h.dims[axis].values()
        assert scale.parent.name == "/" and scale.shape == (h.shape[axis],)
        label = scale.name[1:]
        assert label in (["row"] if axis == 0 else [f"{k}_{h.shape[axis]}" for k in ("unit", "head", "key")])
        assert any(f[ref].name == h.name and i == axis for ref, i in scale.attrs["REFERENCE_LIST"])


def test_h5py_sees_the_schema(sample):
    with h5py.File(sample, "r") as f:
        assert check_schema(f) == ROWS
        assert list(f["activations"]) == POINTS
        assert f.attrs["command_line"] == "trace --layer 0 café" and f.attrs["model"] == "toy"
        assert strings(f["vocab"]) == [b"", b" the", "café".encode(), b"\xff", b"\n"]
        assert strings(f["sources"]) == [b"first.jsonl", b"second.jsonl"]
        assert np.array_equal(f["tokens/id"][...], np.arange(ROWS) % 5)
        pos = np.tile(np.arange(ROWS_PER_DOC), DOCS)
        assert np.array_equal(f["tokens/pos"][...], pos) and np.array_equal(f["tokens/byte_off"][...], 4 * pos)
        assert np.array_equal(f["tokens/logprob"][...], np.float32(-0.5) * pos.astype(np.float32))
        assert np.array_equal(f["tokens/flags"][...], pos == 0)
        assert np.array_equal(f["docs/source"][...], np.arange(DOCS) >= DOCS // 2)
        assert np.array_equal(f["docs/byte_off"][...], 100 * np.arange(DOCS))
        assert [g.decode() for g in f["progress/group"][...]] == ["tokens", "docs", "embed", "L0", "L10", "final"]


def test_the_schema_check_can_fail(sample, tmp_path):
    other = tmp_path / "other.h5"
    other.write_bytes(sample.read_bytes())
    with h5py.File(other, "r+") as f:
        f["docs/count"][3] += 1
        with pytest.raises(AssertionError):
            check_schema(f)


def test_fields_keep_their_types(sample):
    with h5py.File(sample, "r") as f:
        fields = f["docs/fields"]
        assert sorted(fields) == ["a%2Fb", "good", "n", "score"]
        assert [fields[k].dtype for k in ("n", "score", "good")] == [np.int64, np.float64, np.uint8]
        assert fields["n"][:-1].tolist() == list(range(DOCS - 1)) and fields["n"][-1] == np.iinfo(np.int64).min
        assert np.array_equal(fields["score"][:-1], np.arange(DOCS - 1) / 4) and np.isnan(fields["score"][-1])
        assert fields["good"][...].tolist() == [i % 2 for i in range(DOCS - 1)] + [255]
        assert strings(fields["a%2Fb"]) == [f"d{i}".encode() for i in range(DOCS - 1)] + [b""]


def test_every_value_is_there(sample):
    r = np.arange(ROWS)[:, None, None]
    head, key = np.arange(HEADS)[None, :, None], np.arange(CTX)[None, None, :]
    with h5py.File(sample, "r") as f:
        a = f["activations"]
        for p in (0, 1):
            assert np.array_equal(a[POINTS[p]][...], fx_value(p, r[:, 0], np.arange(C)[None, :]))
        assert np.array_equal(a[POINTS[2]][...], fx_value(2, r[:, 0], np.zeros((1, 1))))
        q = fx_value(3, r, head * 64 + np.arange(HEAD_SIZE)[None, None, :]).reshape(ROWS, -1)
        assert np.array_equal(a[POINTS[3]][...], q)
        masked = key > (np.arange(ROWS) % ROWS_PER_DOC)[:, None, None]
        scores = a[POINTS[4]][...]
        assert np.array_equal(scores, np.where(masked, np.float32(-np.inf), fx_value(4, r, head * 64 + key)))
        assert np.array_equal(a[POINTS[5]][...], np.where(masked, np.float32(0), fx_value(5, r, head * 64 + key)))
        assert np.array_equal(a[POINTS[6]][...], fx_value(6, r, head * 64 + np.arange(C)[None, None, :]))
        assert a[POINTS[7]].attrs["units"].tolist() == [3, 150] and a[POINTS[7]].attrs["letters"] == "T U"
        assert np.array_equal(a[POINTS[7]][...], fx_value(7, r[:, 0], np.array([[3, 150]])))
        # the comparison can fail
        scores[17, 1, 2] = np.nextafter(scores[17, 1, 2], np.float32(9))
        assert not np.array_equal(scores, a[POINTS[4]][...])


def test_xarray_sees_named_axes(sample):
    with xarray.open_dataset(sample, group="activations", engine="h5netcdf") as d:
        assert d["hook_embed"].dims == ("row", "unit_100")
        assert d["blocks.0.attn.hook_q"].dims == ("row", "unit_48")
        assert d["blocks.0.attn.hook_pattern"].dims == ("row", "head_3", "key_40")
        assert d["blocks.0.attn.hook_result"].dims == ("row", "head_3", "unit_100")
        assert d.sizes["row"] == ROWS
        got = d["blocks.0.hook_resid_pre"].isel(row=slice(1000, 1100), unit_100=7).values
        assert np.array_equal(got, fx_value(1, np.arange(1000, 1100), np.full(100, 7)))
    with xarray.open_dataset(sample, group="tokens", engine="h5netcdf") as t:
        assert t["id"].dims == ("row",)


def test_hdf5_tools_read_it(sample, tmp_path):
    listed = subprocess.run(["h5dump", "-d", "/activations/blocks.0.ln1.hook_scale", "-y", "-w", "1", sample],
                            capture_output=True, text=True, check=True)
    data = listed.stdout.split("DATA {")[1].split("}")[0].replace(",", " ").split()
    assert np.allclose(np.array(data, np.float32), fx_value(2, np.arange(ROWS), np.zeros(ROWS)), rtol=1e-5)
    subprocess.run(["h5dump", "-H", sample], capture_output=True, check=True)
    again = tmp_path / "again.h5"
    subprocess.run(["h5repack", "-f", "GZIP=4", sample, again], check=True)
    subprocess.run(["h5diff", sample, again], check=True)


def test_tiles_that_hold_only_fill_are_not_stored(sample):
    with h5py.File(sample, "r") as f:
        d = f["activations/blocks.0.attn.hook_pattern"]
        assert d.chunks == (64, 1, 40)
        full = -(-ROWS // 64) * HEADS
        assert d.id.get_num_chunks() == full  # each tile holds some keys here
        tiles = [d.id.get_chunk_info(i) for i in range(full)]
        assert all(t.filter_mask == 0 for t in tiles)


def test_our_reader_reads_it_back(sample):
    p = read(sample)
    assert p.returncode == 0 and p.stderr == ""
    lines = p.stdout.splitlines()
    assert lines[0] == f"rows {ROWS}" and [line.split()[0] for line in lines[1:]] == POINTS
    sums = [float(line.split()[-1]) for line in lines[1:]]
    assert np.isclose(sums[1], fx_value(1, np.arange(ROWS), np.zeros(ROWS)).sum(dtype=np.float64), rtol=1e-5)


# --- files that are not whole or not ours: one line on stderr, exit 1

def no_format(f):
    del f.attrs["format"]


def number_as_format(f):
    f.attrs["format"] = 3


def other_format(f):
    f.attrs["format"] = "weir-lens"


def later_version(f):
    f.attrs["format_version"] = 2


def no_version(f):
    f.attrs["format_version"] = "one"


def no_tokens(f):
    del f["tokens"]


def no_ids(f):
    del f["tokens/id"]


def ids_of_floats(f):
    del f["tokens/id"]
    f["tokens/id"] = np.zeros(ROWS)


def ids_of_rank_2(f):
    del f["tokens/id"]
    f["tokens/id"] = np.zeros((ROWS, 2), np.int32)


def ids_scalar(f):
    del f["tokens/id"]
    f["tokens/id"] = np.int32(1)


def no_activations(f):
    del f["activations"]


def activations_dataset(f):
    del f["activations"]
    f["activations"] = np.zeros(3)


def hook_of_integers(f):
    f["activations/extra"] = np.zeros((ROWS, 2), np.int32)


def hook_of_strings(f):
    f["activations/extra"] = np.array([b"x"] * ROWS)


def hook_of_rank_1(f):
    f["activations/extra"] = np.zeros(ROWS, np.float32)


def hook_of_rank_4(f):
    f["activations/extra"] = np.zeros((ROWS, 1, 1, 1), np.float32)


def hook_without_width(f):
    f["activations/extra"] = np.zeros((ROWS, 0), np.float32)


def hook_of_huge_shape(f):
    f["activations"].create_dataset("extra", (1 << 40, 1 << 40), "f4", chunks=(1024, 64), maxshape=(None, 1 << 40))


def hook_is_a_group(f):
    f.create_group("activations/extra")


def hook_is_a_soft_link(f):
    f["activations/extra"] = h5py.SoftLink("/row")


def hook_in_another_file(f):
    f["activations/extra"] = h5py.ExternalLink("/etc/passwd", "/x")


def hook_with_outside_data(f):
    f["activations"].create_dataset("extra", (4, 4), "f4", external=[("/etc/passwd", 0, 64)])


def heads_that_do_not_fit(f):
    f["activations/blocks.0.attn.hook_q"].attrs["heads"] = 7


def heads_without_size(f):
    del f["activations/blocks.0.attn.hook_q"].attrs["head_size"]


def heads_negative(f):
    a = f["activations/blocks.0.attn.hook_q"].attrs
    a["heads"], a["head_size"] = -3, -16


def incomplete_without_progress(f):
    f.attrs["complete"] = 0
    del f["progress"]


def incomplete_with_odd_progress(f):
    f.attrs["complete"] = 0
    del f["progress/group"]
    f["progress/group"] = np.zeros(5)


def incomplete_with_short_progress(f):
    f.attrs["complete"] = 0
    del f["progress/rows_complete"]
    f["progress/rows_complete"] = np.zeros(2, np.int64)


BROKEN = [no_format, number_as_format, other_format, later_version, no_version, no_tokens, no_ids, ids_of_floats,
          ids_of_rank_2, ids_scalar, no_activations, activations_dataset, hook_of_integers, hook_of_strings,
          hook_of_rank_1, hook_of_rank_4, hook_without_width, hook_of_huge_shape, hook_is_a_group,
          hook_is_a_soft_link, hook_in_another_file, hook_with_outside_data, heads_that_do_not_fit,
          heads_without_size, heads_negative, incomplete_without_progress, incomplete_with_odd_progress,
          incomplete_with_short_progress]


@pytest.mark.parametrize("harm", BROKEN, ids=lambda h: h.__name__)
def test_a_file_that_is_no_dump_is_one_line(sample, tmp_path, harm):
    bad = tmp_path / "bad.h5"
    bad.write_bytes(sample.read_bytes())
    with h5py.File(bad, "r+") as f:
        harm(f)
    one_line(read(bad), bad)


def one_line(p, path):
    assert p.returncode == 1, p.stdout
    assert p.stderr.count("\n") == 1 and p.stderr.startswith(f"{path}: "), p.stderr


@pytest.mark.parametrize("size", [0, 7, 100, 5000, 20000])
def test_a_truncated_file_is_one_line(sample, tmp_path, size):
    bad = tmp_path / "cut.h5"
    bad.write_bytes(sample.read_bytes()[:size])
    one_line(read(bad), bad)


def test_places_that_are_no_files(tmp_path):
    one_line(read(tmp_path), tmp_path)
    one_line(read(tmp_path / "absent.h5"), tmp_path / "absent.h5")


def test_a_damaged_tile_is_noticed(sample, tmp_path):
    bad = tmp_path / "tile.h5"
    bad.write_bytes(sample.read_bytes())
    with h5py.File(sample, "r") as f:
        tile = f["activations/hook_embed"].id.get_chunk_info(0)
    with open(bad, "r+b") as f:
        f.seek(tile.byte_offset + tile.size // 2)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 1]))
    p = read(bad)
    assert p.returncode == 1 and p.stderr.count("\n") == 1 and "hook_embed" in p.stderr


def test_an_unfinished_file_reads_as_far_as_it_says(sample, tmp_path):
    part = tmp_path / "part.h5"
    part.write_bytes(sample.read_bytes())
    with h5py.File(part, "r+") as f:
        f.attrs["complete"] = 0
        f["progress/rows_complete"][...] = [900, 20, 1200, 700, 64, 900]
    p = read(part)
    assert p.returncode == 0 and p.stdout.startswith("rows 64\n")
    assert [int(line.split()[2]) for line in p.stdout.splitlines()[1:]] == [900] + [700] * 6 + [64]


@pytest.mark.skipif(not (BIN / "trace").exists(), reason="trace has not been built")
def test_trace_writes_the_same_schema(tmp_path):
    out = tmp_path / "t.h5"
    texts = ["A first line.", "And a second one."]
    subprocess.run([BIN / "trace", "--layers", "0,1", "--dump", out, "--quiet", *texts], check=True,
                   stdin=subprocess.DEVNULL)
    with h5py.File(out, "r") as f:
        rows = check_schema(f)
        assert rows > 0 and len(f["docs/start"]) == 2
        vocab = strings(f["vocab"])
        ids, flags = f["tokens/id"][...], f["tokens/flags"][...]
        text = b"".join(vocab[i] for i, flag in zip(ids, flags) if not flag & 1)
        assert text.replace(b" ", b"") == b"Afirstline.Andasecondone."
        a = f["activations"]
        assert np.array_equal(a["blocks.0.hook_resid_post"][...], a["blocks.1.hook_resid_pre"][...])
    with xarray.open_dataset(out, group="activations", engine="h5netcdf") as d:
        assert d["blocks.0.hook_resid_pre"].dims[0] == "row"


def test_the_same_run_writes_the_same_bytes(tmp_path):
    """Byte for byte, but for the time of day."""
    text, times = [], []
    for _ in range(2):
        trace("--layer", "1", "--dump", "same.h5", "--force", "Among the places", "of Colorado", cwd=tmp_path).ok()
        with h5py.File(tmp_path / "same.h5") as f:
            times.append(f.attrs["time_utc"].encode())
        text.append((tmp_path / "same.h5").read_bytes())
        time.sleep(1.1)
    assert times[0] != times[1] and text[0].count(times[0]) == 1
    assert text[0].replace(times[0], times[1]) == text[1]
