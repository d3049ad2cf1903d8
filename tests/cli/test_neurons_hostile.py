"""neuron-top under attack: what an earlier version got wrong, or did not say. Each of these failed once."""
import os
import shutil

import h5py
import numpy as np
import pytest

from weircli import BROOK, ROOT, trace, weir

GPT2 = ROOT / "tests" / "golden" / "models" / "gpt2"
HOOK = "blocks.0.mlp.hook_post"


def top(*args, **more):
    return weir("neuron-top", *args, "--quiet", **more)


def lines(*args, **more):
    return [line.split("\t") for line in top(*args, "--format", "tsv", **more).ok().out.decode().splitlines()[1:]]


# --- lists, however the rows come

@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Two thousand rows, which the search looks at 1,024 at a time: first few documents that are low, then many of all heights."""
    where = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(7)
    sizes = [64] * 16 + [8] * 64 + [64] * 8
    (where / "t.txt").write_text("\n".join(" ".join(map(str, rng.integers(0, 60, n))) for n in sizes) + "\n")
    trace("--model", GPT2, "--ids", "--hooks", HOOK, "--file", where / "t.txt", "--dump", where / "d.h5").ok()
    with h5py.File(where / "d.h5", "r+") as f:
        d = f[f"activations/{HOOK}"]
        x, doc = d[:], f["tokens/doc"][:]
        x[:1024] = -5 + 0.001 * rng.random((1024, x.shape[1]))
        x[1024:] = (doc[1024:] % 7)[:, None] + 0.01 * rng.integers(0, 9, (1024, x.shape[1]))
        x[:, 4:8] = -x[:, 4:8]
        d[...] = x
    return where / "d.h5"


@pytest.mark.parametrize("dedup", ["none", "doc", "text:1"])
@pytest.mark.parametrize("k", [3, 20])
def test_a_list_with_room_keeps_nothing_worse_than_what_it_was_offered(parts, k, dedup):
    """Of a part of the rows the best are offered first; a place of an earlier part must not keep a better one of the rest out."""
    with h5py.File(parts) as f:
        x = f[f"activations/{HOOK}"][:]
        doc, pos, token = (f[f"tokens/{name}"][:] for name in ("doc", "pos", "id"))
    key = {"none": lambda r: r, "doc": lambda r: doc[r], "text:1": lambda r: token[r]}[dedup]
    found = lines(parts, "--neurons", "0:8", "-k", k, "--dedup", dedup, "--mask", "none", "--weights", "no")
    for unit in range(8):
        for name, sign in (("top", -1), ("bottom", 1)):
            best = {}
            rows = [r for r in range(len(x)) if np.isfinite(x[r, unit])]
            for r in sorted(rows, key=lambda r: (sign * x[r, unit], r)):
                best.setdefault(key(r), r)
            want = [(doc[r], pos[r]) for r in list(best.values())[:k]]
            assert [(int(c[7]), int(c[8])) for c in found if c[1] == str(unit) and c[4] == name] == want, (unit, name)


# --- special tokens of a dump

MARKED = "<|endoftext|> a river bends <|endoftext|> x\nTwo and two are four.\nIs it open?\nIt is.\n"


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """The dumps of two shards: a token that stands in the first one only is special."""
    where = tmp_path_factory.mktemp("halves")
    (where / "t.txt").write_text(MARKED)
    for i in range(2):
        trace("--layer", 0, "--site", "post", "--bos", "no", "--file", where / "t.txt", "--shard", f"{i}/2", "--dump", where / f"{i}.h5").ok()
    return where


def counts(path):
    with h5py.File(path) as f:
        return {name: int(f.attrs[name]) for name in ("rows", "counted", "masked_bos", "masked_special")}


@pytest.mark.parametrize("mask", ["bos", "special", "bos,special"])
def test_a_bos_in_the_text_of_a_dump_is_masked_as_in_a_run(halves, tmp_path, mask):
    top(halves / "0.h5", "--mask", mask, "-k", 2, "-o", tmp_path / "dump.h5").ok()
    top("--layer", 0, "--bos", "no", "--file", halves / "t.txt", "--shard", "0/2", "--mask", mask, "-k", 2, "-o", tmp_path / "live.h5").ok()
    found = counts(tmp_path / "live.h5")
    assert counts(tmp_path / "dump.h5") == found and found["rows"] - found["counted"] == 2


def test_shards_of_a_dump_are_joined_whatever_is_special_in_them(halves, tmp_path):
    other = tmp_path / "model"  # a model that is not at hand when the dump is searched
    shutil.copytree(BROOK, other)
    config = (other / "config.json").read_text()
    (other / "config.json").write_text(config.rstrip().rstrip("}") + ', "note": "another"}\n')
    run = ["--model", other, "--layer", 0, "--site", "post", "--bos", "no", "--file", halves / "t.txt"]
    trace(*run, "--dump", tmp_path / "whole.h5").ok()
    for i in range(2):
        trace(*run, "--shard", f"{i}/2", "--dump", tmp_path / f"{i}.h5").ok()
        top(tmp_path / f"{i}.h5", "-k", 3, "-o", tmp_path / f"r{i}.h5").ok()
    for order in ([0, 1], [1, 0]):
        top("--merge", *(tmp_path / f"r{i}.h5" for i in order), "-o", tmp_path / f"m{order[0]}.h5").ok()
    assert (tmp_path / "m0.h5").read_bytes() == (tmp_path / "m1.h5").read_bytes()
    assert lines(tmp_path / "m0.h5") == lines(tmp_path / "whole.h5", "-k", 3, "--weights", "no")
    with h5py.File(tmp_path / "m0.h5") as f:
        assert sum(f["vocab/special"][:]) == 1


@pytest.mark.parametrize("shard", ["3/2", "-1/2", "1/99999999999", "x/2", "/2", "2"])
def test_a_dump_of_an_impossible_shard(halves, tmp_path, shard):
    shutil.copy(halves / "0.h5", tmp_path / "bad.h5")
    with h5py.File(tmp_path / "bad.h5", "r+") as f:
        f.attrs["shard"] = shard
    top(tmp_path / "bad.h5", "-o", tmp_path / "r.h5").fails(1, "bad.h5", f"shard is {shard}")
    assert not (tmp_path / "r.h5").exists()


# --- what is refused before any work is done

def test_positions_that_no_document_has(tmp_path):
    run = ["--model", GPT2, "--ids", "--neurons", 0]
    top(*run, "--positions", "5:9", "1 2 3").fails(1, "--positions 5:9", "no document")
    top(*run, "--positions", "5:9", "--shard", "0/2", "-o", tmp_path / "r.h5", "1 2 3").ok()  # the other shard may have them


@pytest.mark.parametrize("form", ["h5", "tsv", "html"])
def test_an_output_that_is_no_place_for_a_file(tmp_path, form):
    """A pipe would be waited for and a device replaced; a directory that is not there would be missed behind the last row."""
    os.mkfifo(tmp_path / f"pipe.{form}")
    (tmp_path / f"dir.{form}").mkdir()
    run = ["--model", GPT2, "--ids", "--force", "--format", form, "-o"]
    top(*run, tmp_path / f"pipe.{form}", "1 2 3").fails(1, "pipe", "standard output")
    top(*run, tmp_path / f"dir.{form}", "1 2 3").fails(1, "dir", "directory")
    top(*run, tmp_path / "none" / f"x.{form}", "not ids").fails(1, "none", "No such file")
    assert sorted(os.listdir(tmp_path)) == [f"dir.{form}", f"pipe.{form}"]


@pytest.mark.parametrize("option, words", [
    (["--dedup", "text:4097"], ("--dedup text:4097", "1 to 4096")),
    (["--threshold", "1e39"], ("--threshold 1e39", "float32")),
    (["--threshold", "1e400"], ("--threshold 1e400",)),
    (["--neurons", "@"], ("--neurons", "name of a file")),
    (["--neurons", "0:1048577"], ("more than 1048576",)),
])
def test_a_value_out_of_range_is_named_by_its_option(option, words):
    top("--model", GPT2, "--ids", *option, "1 2 3").fails(2, *words)


# --- results of shards

def shards(tmp_path, n):
    run = ["--model", GPT2, "--ids", "--layer", 0, "--neurons", "0,3", "-k", 3]
    texts = [f"{i} 2 3 4 {i + 1}" for i in range(n)]
    for i in range(n):
        top(*run, "--shard", f"{i}/{n}", "-o", tmp_path / f"{i}.h5", *texts).ok()
    top(*run, "-o", tmp_path / "whole.h5", *texts).ok()
    return [tmp_path / f"{i}.h5" for i in range(n)]


def test_the_one_shard_of_one_is_the_whole(tmp_path):
    part, = shards(tmp_path, 1)
    assert part.read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert top(part, "--format", "tsv").ok().err == ""
    r = weir("neuron-top", "--model", GPT2, "--ids", "--layer", 0, "--neurons", "0,3", "-k", 3, "--shard", "0/1", "-o", part, "--resume",
             "0 2 3 4 1").ok()
    assert "nothing is left to do" in r.err


def test_sums_of_damaged_counts_do_not_overflow(tmp_path):
    parts = shards(tmp_path, 5)
    for name in ("rows_done", "rows"):
        bad = [shutil.copy(part, tmp_path / f"{name}{part.name}") for part in parts]
        for part in bad:
            with h5py.File(part, "r+") as f:
                f.attrs[name] = np.int64(2 ** 61 - 1)
        top("--merge", *bad, "--format", "tsv").fails(1, ".h5")
