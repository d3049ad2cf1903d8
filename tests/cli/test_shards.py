"""`trace --shard` and `weir merge`: four shards, run by four processes at the same time, joined, are the dump of one run."""
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from dumps import differences
from weircli import BIN, BROOK, ROOT, environment, trace, weir

SENTENCES = (BROOK / "sentences.txt").read_text().splitlines()
FREE = ["merged"]
DOCS = 30  # of the text of most tests


def lines(n, first=0):
    return "".join(s + "\n" for s in SENTENCES[first:first + n])


def write_lines(d):
    (d / "text.txt").write_text(lines(DOCS))
    return ["--file", "text.txt"]


def write_records(d):
    """The first record of the text has other fields than the first ones of the shards: some lack them, some have more, some have
    another type."""
    with open(d / "text.jsonl", "w") as f:
        for i, s in enumerate(SENTENCES[:60]):
            record = {"text": s, "n": i, "score": i / 8, "name": f"döc {i}", "ok": i % 3 == 0, "a/b": "x" * (i % 5), "bytes": i * i}
            if i % 7 == 3:
                del record["name"], record["n"]
            if i >= 20:
                record["late"] = i
            if i % 11 == 5:
                record["n"] = "no number"
            if i % 4 == 1:
                record["score"] = 5
            f.write(json.dumps(record) + "\n")
    return ["--file", "text.jsonl"]


def write_files(d):
    """Several files, one compressed, one empty, one read twice in a row."""
    (d / "a.txt").write_text(lines(25) + "\n\n")
    (d / "b.txt.gz").write_bytes(gzip.compress(lines(25, 100).encode()))
    (d / "none.txt").write_text("\n")
    (d / "c.txt").write_text("\n" + lines(7, 300))
    return [x for name in ("a.txt", "b.txt.gz", "none.txt", "c.txt", "c.txt", "a.txt") for x in ("--file", name)]


def write_long(d):
    (d / "long.txt").write_text("\n\n".join(lines(9, 10 * i) for i in range(9)))
    return ["--file", "long.txt", "--docs", "blank"]


def write_ids(d):
    (d / "ids.txt").write_text("".join(" ".join(str(3 + (i * k) % 900) for k in range(1, 4 + i % 9)) + "\n" for i in range(40)))
    return ["--file", "ids.txt", "--ids"]


HOOKS = ["--layer", "2", "--site", "resid_pre,mlp_out,post"]
CASES = {
    "lines": (write_lines, ["--layer", "2"]),
    "fields": (write_records, ["--layer", "0-1", "--site", "post,z"]),
    "files": (write_files, HOOKS),
    "windows": (write_long, [*HOOKS, "--bos", "yes", "--ctx", "32", "--stride", "20"]),
    "no bos": (write_long, [*HOOKS, "--bos", "no", "--ctx", "48", "--logprob"]),
    "positions": (write_lines, [*HOOKS, "--positions", "-2:"]),
    "logprob": (write_files, [*HOOKS, "--logprob"]),
    "rank 3": (write_lines, ["--hooks", "blocks.1.attn.{hook_pattern,hook_attn_scores,hook_result,hook_z}", "--ctx", "64"]),
    "units": (write_lines, ["--hooks", "blocks.*.mlp.hook_post[:, 5+7+100:110]"]),
    "plain": (write_lines, [*HOOKS, "--compress", "0"]),
    "level": (write_lines, [*HOOKS, "--compress", "4"]),
    "half": (write_lines, ["--hooks", "blocks.1.{hook_mlp_out,attn.hook_pattern}", "--ctx", "64", "--dtype", "f16"]),
    "mantissa": (write_lines, [*HOOKS, "--mantissa", "7"]),
    "ids": (write_ids, HOOKS),
    "layer by layer": (write_long, [*HOOKS, "--order", "layer", "--ctx", "48", "--logprob"]),
}


def run_shards(d, text, options, n=4):
    """The shards of a text, as processes that run at the same time. Their paths."""
    paths = [d / f"part-{i}.h5" for i in range(n)]
    running = [subprocess.Popen([BIN / "weir", "trace", *text, *options, "--threads", "1", "--quiet", "--shard", f"{i}/{n}",
                                 "--dump", paths[i].name], cwd=d, env=environment(), stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True) for i in range(n)]
    for p in running:
        _, err = p.communicate(timeout=300)
        assert p.returncode == 0 and err == "", err
    return paths


def run_whole(d, text, options, name="whole.h5"):
    trace(*text, *options, "--quiet", "--dump", name, cwd=d).ok()
    return d / name


def merge(d, out, paths, *options):
    weir("merge", "--quiet", *options, out, *[p.name for p in paths], cwd=d).ok()
    return d / out


@pytest.mark.parametrize("case", CASES)
def test_shards_are_the_whole(case, tmp_path):
    write, options = CASES[case]
    text = write(tmp_path)
    whole = run_whole(tmp_path, text, options)
    parts = run_shards(tmp_path, text, options)
    copied = merge(tmp_path, "copied.h5", [parts[2], parts[0], parts[3], parts[1]])
    pointing = merge(tmp_path, "virtual.h5", parts, "--virtual")
    assert differences(whole, copied, FREE) == []
    assert differences(whole, pointing, FREE) == []
    weir("diff", copied, pointing).ok()
    check_stored_alike(whole, copied)
    with h5py.File(parts[1]) as f:
        assert 0 < f["row"].shape[0] < h5py.File(whole)["row"].shape[0]


def check_stored_alike(a, b):
    """Chunks, filters, limits and dimension scales too."""
    with h5py.File(a) as fa, h5py.File(b) as fb:
        names = []
        fa.visititems(lambda name, o: names.append(name) if isinstance(o, h5py.Dataset) else None)
        for name in names:
            x, y = fa[name], fb[name]
            assert (x.chunks, x.compression, x.compression_opts, x.shuffle, x.maxshape) == (
                y.chunks, y.compression, y.compression_opts, y.shuffle, y.maxshape), name
            same = np.array_equal(x.fillvalue, y.fillvalue, equal_nan=x.dtype.kind == "f")
            assert same, (name, x.fillvalue, y.fillvalue)
            scales = [[s.name for s in f.dims[axis].values()] for f in (x, y) for axis in range(x.ndim)]
            assert scales[:x.ndim] == scales[x.ndim:], name
        assert list(fa["activations"]) == list(fb["activations"])


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """A directory with the whole and its four shards; tests copy what they change."""
    d = tmp_path_factory.mktemp("shards")
    text = write_lines(d)
    run_whole(d, text, HOOKS)
    run_shards(d, text, HOOKS)
    return d


@pytest.fixture
def parts(shards, tmp_path):
    for p in shards.iterdir():
        shutil.copy(p, tmp_path)
    return [tmp_path / f"part-{i}.h5" for i in range(4)]


def test_the_comparison_can_fail(parts, tmp_path):
    whole, other = tmp_path / "whole.h5", tmp_path / "other.h5"
    shutil.copy(whole, other)
    with h5py.File(other, "r+") as f:
        f["activations/blocks.2.hook_mlp_out"][17, 3] += 1
        f["docs/start"][3] += 1
        f.attrs["bos"] = "maybe"
        del f["tokens/flags"]
    found = differences(whole, other)
    assert len(found) == 4 and any("hook_mlp_out: other bytes" in line for line in found), found
    assert any("docs/start" in line for line in found) and any("bos" in line for line in found)
    assert differences(whole, parts[0]) != []


def test_what_a_shard_says(parts):
    first = 0
    for i, p in enumerate(parts):
        with h5py.File(p) as f:
            assert f.attrs["shard"] == f"{i}/4" and f.attrs["shard_first_doc"] == first and f.attrs["shard_docs"] == DOCS
            assert f.attrs["shard_text_size"] == len("".join(SENTENCES[:DOCS]).encode())
            assert f.attrs["shard_sources"].tolist() == [0, 0] and f.attrs["complete"] == 1
            assert f["tokens/doc"][0] == 0 and f["row"][0] == 0 and f["docs/start"][0] == 0
            first += f["docs/count"].shape[0]
            assert abs(f["docs/byte_len"][...].sum() - f.attrs["shard_text_size"] / 4) < max(map(len, SENTENCES))
    assert first == DOCS


def test_what_the_result_says(parts, tmp_path):
    merge(tmp_path, "m.h5", parts[::-1])
    with h5py.File(tmp_path / "m.h5") as f:
        assert f.attrs["complete"] == 1 and not [k for k in f.attrs if k.startswith("shard")]
        assert f.attrs["command_line"] == "weir merge --quiet m.h5 part-3.h5 part-2.h5 part-1.h5 part-0.h5"
        listed = json.loads(f.attrs["merged"])
        assert [p["file"] for p in listed] == [f"part-{i}.h5" for i in range(4)]
        assert sum(p["rows"] for p in listed) == f["row"].shape[0] and sum(p["docs"] for p in listed) == DOCS
        assert "--shard 3/4" in listed[3]["command_line"]


def test_report(parts, tmp_path):
    said = weir("merge", "m.h5", *parts, cwd=tmp_path).ok()
    assert said.out == b"" and re.fullmatch(rf"merge: m.h5: 4 files, {DOCS} documents, \d+ rows\n", said.err)
    told = weir("merge", "--json", "--quiet", "n.h5", *parts, cwd=tmp_path).ok()
    assert told.err == "" and told.json["files"] == 4 and told.json["documents"] == DOCS
    assert told.json["file_bytes"] == (tmp_path / "n.h5").stat().st_size


def test_little_memory_gives_the_same(parts, tmp_path):
    """One dataset at a time, instead of all."""
    assert differences(tmp_path / "whole.h5", merge(tmp_path, "m.h5", parts, "--memory", "1K"), FREE) == []


# --- few documents

@pytest.mark.parametrize("texts", [["One."], ["One.", "Two and more."], ["a", "b", "c", "d", "e", "f"]])
def test_more_shards_than_documents(texts, tmp_path):
    whole = run_whole(tmp_path, texts, HOOKS)
    parts = run_shards(tmp_path, texts, HOOKS, 5)
    empty = [p for p in parts if h5py.File(p)["row"].shape[0] == 0]
    assert len(empty) >= 5 - len(texts)
    for p in empty:
        with h5py.File(p) as f:
            assert f.attrs["complete"] == 1 and f["docs/start"].shape == (0,)
    assert differences(whole, merge(tmp_path, "m.h5", parts), FREE) == []
    assert differences(whole, merge(tmp_path, "v.h5", parts, "--virtual"), FREE) == []


def test_a_shard_without_the_wanted_rows(tmp_path):
    """Position 12 is in one document only."""
    text = ["Short one.", "Short two.", "A longer one, which has as many tokens as it takes to have a thirteenth of them.", "Short."]
    options = [*HOOKS, "--positions", "12"]
    whole = run_whole(tmp_path, text, options)
    assert differences(whole, merge(tmp_path, "m.h5", run_shards(tmp_path, text, options)), FREE) == []


def test_one_shard_is_the_whole(tmp_path):
    text = write_lines(tmp_path)
    whole = run_whole(tmp_path, text, HOOKS)
    assert differences(whole, merge(tmp_path, "m.h5", run_shards(tmp_path, text, HOOKS, 1)), FREE) == []


def test_an_empty_text_is_an_error_in_every_shard(tmp_path):
    (tmp_path / "empty.txt").write_text("\n")
    for i in range(2):
        trace("--file", "empty.txt", "--shard", f"{i}/2", *HOOKS, "--dump", "x.h5", cwd=tmp_path).fails(1, "holds no document")
    assert [p.name for p in tmp_path.iterdir()] == ["empty.txt"]


# --- the command line

@pytest.mark.parametrize("shard, words", [
    ("4/4", ["4/4", "numbered from 0", "3/4"]), ("-1/4", ["numbered from 0"]), ("1", ["I/N"]), ("/4", ["I/N"]), ("a/4", ["I/N"]),
    ("1/", ["I/N"]), ("1/2/3", ["I/N"]), ("0/0", ["1 to"]), ("0/99999999999999999999", ["I/N"]), ("0/1000001", ["1 to 1000000"]),
])
def test_wrong_shards(shard, words, tmp_path):
    trace("--shard", shard, *HOOKS, "--dump", "x.h5", "text", cwd=tmp_path).fails(2, "--shard", *words)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_sharded(tmp_path):
    trace("--shard", "0/2", *HOOKS, "--dump", "x.h5", "-", stdin=b"text\n", cwd=tmp_path).fails(2, "--shard", "standard input")
    trace("--shard", "0/2", *HOOKS, "--dump", "x.h5", stdin=b"text\n", cwd=tmp_path).fails(2, "--shard", "standard input")
    trace("--shard", "0/2", "--max-tokens", "9", *HOOKS, "--dump", "x.h5", "a", cwd=tmp_path).fails(2, "--max-tokens", "--shard")
    os.mkfifo(tmp_path / "pipe")
    trace("--shard", "0/2", *HOOKS, "--dump", "x.h5", "--file", "pipe", cwd=tmp_path).fails(1, "pipe", "only once")
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_tokenize_takes_shards_too(tmp_path):
    text = write_lines(tmp_path)
    whole = weir("tokenize", "--ids", *text, cwd=tmp_path).ok().out
    assert b"".join(weir("tokenize", "--ids", *text, "--shard", f"{i}/3", cwd=tmp_path).ok().out for i in range(3)) == whole


# --- files that do not belong together

def refuses(d, names, *words, options=()):
    before = sorted(p.name for p in d.iterdir())
    weir("merge", *options, "m.h5", *names, cwd=d).fails(1, *words)
    assert sorted(p.name for p in d.iterdir()) == before


PARTS = [f"part-{i}.h5" for i in range(4)]


def test_missing_and_double(parts, tmp_path):
    refuses(tmp_path, PARTS[:2] + PARTS[3:], "shard 2/4 is missing", "3 of 4")
    refuses(tmp_path, PARTS[1:], "shard 0/4 is missing")
    refuses(tmp_path, PARTS[:3], "shard 3/4 is missing")
    shutil.copy(parts[1], tmp_path / "again.h5")
    refuses(tmp_path, PARTS + ["again.h5"], "shard 1/4, and so is")
    refuses(tmp_path, PARTS[:2] + ["again.h5", "part-3.h5"], "shard 1/4, and so is")


def test_foreign(parts, tmp_path):
    refuses(tmp_path, PARTS + ["whole.h5"], "whole.h5", "is no shard, but part-0.h5 is one")
    refuses(tmp_path, ["whole.h5"] + PARTS, "part-0.h5", "is a shard, which whole.h5 is not")
    (tmp_path / "text.txt").write_text(lines(DOCS, 1))
    run_shards(tmp_path, ["--file", "text.txt"], HOOKS, 5)
    os.rename(tmp_path / "part-4.h5", tmp_path / "other.h5")
    for i in range(4):
        shutil.copy(tmp_path / f"part-{i}.h5", tmp_path / f"new-{i}.h5")
    refuses(tmp_path, PARTS[:3] + ["other.h5"], "shard 3/5 is missing")


def test_another_text(parts, tmp_path):
    (tmp_path / "text.txt").write_text(lines(DOCS - 5))
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(tmp_path / "text.txt", other)
    run_shards(other, ["--file", "text.txt"], HOOKS)
    shutil.copy(other / "part-3.h5", tmp_path)
    refuses(tmp_path, PARTS, "part-3.h5", "another text", "part-0.h5")


@pytest.mark.parametrize("options, words", [
    (["--layer", "3"], ["part-2.h5: has no activations/blocks.2.hook_resid_pre, which part-0.h5 has"]),
    (["--layer", "2", "--site", "post,mlp_out"], ["has no activations/"]),
    ([*HOOKS, "--ctx", "64"], ["part-2.h5", "ctx", '"64"']),
    ([*HOOKS, "--bos", "no"], ["part-2.h5", "bos", '"no"', '"yes"']),
    ([*HOOKS, "--logprob"], ["part-2.h5: has tokens/logprob, which part-0.h5 lacks"]),
    ([*HOOKS, "--compress", "3"], ["part-2.h5: compress is \"3\"", "\"1\" in part-0.h5"]),
    ([*HOOKS, "--hook", "ablate:L0N3"], ["part-2.h5", "interventions", "L0N3"]),
])
def test_other_options(parts, options, words, tmp_path):
    os.remove(parts[2])
    trace("--file", "text.txt", *options, "--quiet", "--shard", "2/4", "--dump", "part-2.h5", cwd=tmp_path).ok()
    refuses(tmp_path, PARTS, *words)


def test_another_model(parts, tmp_path):
    with h5py.File(parts[3], "r+") as f:
        f.attrs["fingerprint"] = "0" * 64
    refuses(tmp_path, PARTS, "part-3.h5", "fingerprint", "part-0.h5")


def test_incomplete(parts, tmp_path):
    with h5py.File(parts[1], "r+") as f:
        f.attrs["complete"] = 0
    refuses(tmp_path, PARTS, "part-1.h5", "not complete")
    os.rename(parts[1], str(parts[1]) + ".part")
    refuses(tmp_path, PARTS, "part-1.h5", "part-1.h5.part is", "--resume")
    refuses(tmp_path, [PARTS[0], PARTS[1] + ".part", *PARTS[2:]], "part-1.h5.part", "not complete")


def test_damaged_and_no_dumps(parts, tmp_path):
    refuses(tmp_path, PARTS[:3] + ["none.h5"], "none.h5", "No such file")
    refuses(tmp_path, PARTS[:3] + ["text.txt"], "text.txt", "not an HDF5 file")
    with h5py.File(tmp_path / "foreign.h5", "w") as f:
        f["x"] = np.zeros(3)
    refuses(tmp_path, PARTS[:3] + ["foreign.h5"], "foreign.h5", "format")
    with h5py.File(parts[2], "r+") as f:
        f["tokens/pos"].resize(f["row"].shape[0] - 1, axis=0)
    refuses(tmp_path, PARTS, "part-2.h5", "tokens/pos", "rows")


def test_a_cut_file(parts, tmp_path):
    size = parts[3].stat().st_size
    os.truncate(parts[3], size // 2)
    refuses(tmp_path, PARTS, "part-3.h5")


def test_unknown_datasets_are_not_dropped(parts, tmp_path):
    for p in parts:
        with h5py.File(p, "r+") as f:
            f["notes"] = np.arange(3)
    refuses(tmp_path, PARTS, "part-0.h5: notes", "knows how to join")


# --- the result's name

def test_names_of_the_result(parts, tmp_path):
    before = parts[0].read_bytes()
    weir("merge", *PARTS, cwd=tmp_path).fails(1, "shard 0/4 is missing")  # the result was forgotten
    weir("merge", "part-0.h5", *PARTS, cwd=tmp_path).fails(1, "part-0.h5", "one of the files")
    weir("merge", "--force", "part-0.h5", *PARTS, cwd=tmp_path).fails(1, "one of the files")
    weir("merge", "whole.h5", *PARTS, cwd=tmp_path).fails(1, "whole.h5: exists", "--force")
    weir("merge", "--force", "text.txt", *PARTS, cwd=tmp_path).fails(1, "text.txt", "not a file of weir's")
    weir("merge", "none/m.h5", *PARTS, cwd=tmp_path).fails(1, "none/m.h5.part", "No such file")
    weir("merge", "m.h5", cwd=tmp_path).fails(2, "1 given")
    assert parts[0].read_bytes() == before
    weir("merge", "--force", "--quiet", "whole.h5", *PARTS, cwd=tmp_path).ok()
    (tmp_path / "m.h5.part").write_text("left over")
    weir("merge", "m.h5", *PARTS, cwd=tmp_path).fails(1, "m.h5.part exists")
    weir("merge", "--force", "--quiet", "m.h5", *PARTS, cwd=tmp_path).ok()
    assert not (tmp_path / "m.h5.part").exists()


def test_dumps_that_are_no_shards(tmp_path):
    (tmp_path / "a.txt").write_text(lines(10))
    (tmp_path / "b.txt").write_text(lines(12, 50))
    for name in "ab":
        trace("--file", f"{name}.txt", *HOOKS, "--quiet", "--dump", f"{name}.h5", cwd=tmp_path).ok()
    weir("merge", "--quiet", "m.h5", "b.h5", "a.h5", "b.h5", cwd=tmp_path).ok()
    with h5py.File(tmp_path / "m.h5") as f, h5py.File(tmp_path / "a.h5") as a, h5py.File(tmp_path / "b.h5") as b:
        name = "activations/blocks.2.hook_mlp_out"
        assert np.array_equal(f[name], np.concatenate([b[name], a[name], b[name]]))
        assert f["sources/bytes"][...].tobytes() == b"b.txta.txt"
        assert np.array_equal(f["docs/source"], [0] * 12 + [1] * 10 + [0] * 12)
        assert np.array_equal(f["tokens/doc"], np.repeat(np.arange(34), f["docs/count"]))


# --- virtual

def test_virtual_moves_with_its_directory(parts, tmp_path):
    deep = tmp_path / "x" / "y"
    deep.mkdir(parents=True)
    (tmp_path / "x" / "shards").mkdir()
    for p in parts:
        os.rename(p, tmp_path / "x" / "shards" / p.name)
    weir("merge", "--quiet", "--virtual", "x/y/v.h5", *[f"x/shards/{p}" for p in PARTS], cwd=tmp_path).ok()
    os.rename(tmp_path / "x", tmp_path / "moved")
    moved = tmp_path / "moved" / "y" / "v.h5"
    assert differences(tmp_path / "whole.h5", moved, FREE) == []
    weir("diff", "whole.h5", moved, cwd=tmp_path).ok()
    with h5py.File(moved) as f:
        d = f["activations/blocks.2.hook_mlp_out"]
        assert d.is_virtual and [s.file_name for s in d.virtual_sources()] == [f"../shards/{p}" for p in PARTS]
        assert {s.dset_name for s in d.virtual_sources()} == {"activations/blocks.2.hook_mlp_out"}
        assert not f["tokens/id"].is_virtual
    assert moved.stat().st_size < parts_size(tmp_path / "moved" / "shards") / 4


def parts_size(d):
    return sum(p.stat().st_size for p in d.iterdir())


def test_virtual_with_a_missing_shard(parts, tmp_path):
    merge(tmp_path, "v.h5", parts, "--virtual")
    rows = [h5py.File(p)["row"].shape[0] for p in parts]
    os.remove(parts[1])
    with h5py.File(tmp_path / "v.h5") as f:
        d = f["activations/blocks.2.hook_mlp_out"]
        assert np.isnan(d[rows[0]:rows[0] + rows[1]]).all() and not np.isnan(d[:rows[0]]).any()
    said = weir("diff", "whole.h5", "v.h5", cwd=tmp_path)
    assert said.code == 1 and "part-1.h5" in said.err


def test_virtual_is_not_joined_again(parts, tmp_path):
    merge(tmp_path, "v.h5", parts, "--virtual")
    refuses(tmp_path, ["v.h5", "whole.h5"], "v.h5", "virtual")


def test_virtual_refuses_names_that_hdf5_would_expand(parts, tmp_path):
    os.rename(parts[2], tmp_path / "50%.h5")
    refuses(tmp_path, [PARTS[0], PARTS[1], "50%.h5", PARTS[3]], "50%.h5", "%", options=["--virtual"])


# --- ends

def slow_merge(d, *options):
    """A merge that takes long enough to be stopped: many copies of one dump."""
    return subprocess.Popen([BIN / "weir", "merge", "m.h5", *["whole.h5"] * 300, *options], cwd=d, env=environment(),
                            stderr=subprocess.PIPE, text=True)


def wait_for_part(d, bytes=1 << 20):
    for _ in range(2000):
        if (d / "m.h5.part").exists() and (d / "m.h5.part").stat().st_size > bytes:
            return
        time.sleep(0.005)
    raise AssertionError("m.h5.part did not grow")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_merge_leaves_nothing(parts, number, tmp_path):
    p = slow_merge(tmp_path)
    wait_for_part(tmp_path)
    p.send_signal(number)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 1 and err == f"merge: stopped by signal {int(number)}; nothing was left behind\n"
    assert not (tmp_path / "m.h5").exists() and not (tmp_path / "m.h5.part").exists()


def test_a_killed_merge(parts, tmp_path):
    p = slow_merge(tmp_path)
    wait_for_part(tmp_path)
    p.kill()
    p.communicate(timeout=60)
    assert not (tmp_path / "m.h5").exists()
    weir("merge", "m.h5", *PARTS, cwd=tmp_path).fails(1, "m.h5.part exists")
    assert differences(tmp_path / "whole.h5", merge(tmp_path, "m.h5", parts, "--force"), FREE) == []


def test_a_full_disk(parts, tmp_path):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    weir("merge", "m.h5", *PARTS, cwd=tmp_path, preexec_fn=small_files).fails(1, "m.h5", "File too large")
    assert not (tmp_path / "m.h5").exists() and not (tmp_path / "m.h5.part").exists()


# --- hooks that change values, and hooks that write datasets of their own

def test_patch_takes_the_whole(tmp_path):
    """Documents have their number in the whole text: what a run over it recorded is put back where it was."""
    text = write_lines(tmp_path)
    options = ["--layer", "2", "--site", "mlp_out,resid_post"]
    trace(*text, "--layer", "2", "--site", "mlp_out", "--hook", "ablate:blocks.1.hook_mlp_out", "--quiet", "--dump", "other.h5",
          cwd=tmp_path).ok()
    patch = [*options, "--patch", "blocks.2.hook_mlp_out=other.h5"]
    whole = run_whole(tmp_path, text, patch)
    plain = run_whole(tmp_path, text, options, "plain.h5")
    assert differences(whole, plain, ["interventions"]) != []
    assert differences(whole, merge(tmp_path, "m.h5", run_shards(tmp_path, text, patch)), FREE) == []


def test_own_datasets(tmp_path):
    text = write_lines(tmp_path)
    options = [*HOOKS, "--hook", "topk:blocks.2.mlp.hook_post,k=4"]
    whole = run_whole(tmp_path, text, options)
    with h5py.File(whole) as f:
        assert len(f["hooks/topk"]) > 0
    parts = run_shards(tmp_path, text, options)
    assert differences(whole, merge(tmp_path, "m.h5", parts), FREE) == []
    assert differences(whole, merge(tmp_path, "v.h5", parts, "--virtual"), FREE) == []


def test_a_hook_without_its_rows_is_a_remark(tmp_path):
    text = ["One and two and three and four.", "A."]
    options = [*HOOKS, "--ablate", "blocks.1.mlp.hook_post[7, 3]"]
    whole = run_whole(tmp_path, text, options)
    parts = []
    for i in range(2):
        said = trace(*text, *options, "--shard", f"{i}/2", "--dump", f"part-{i}.h5", cwd=tmp_path).ok()
        assert ("in this shard: " in said.err) == (i == 1), said.err
        parts.append(tmp_path / f"part-{i}.h5")
    assert differences(whole, merge(tmp_path, "m.h5", parts), FREE) == []


# --- resume

def test_a_shard_is_resumed_as_itself(tmp_path):
    text = write_lines(tmp_path)
    whole = run_whole(tmp_path, text, HOOKS)
    parts = run_shards(tmp_path, text, HOOKS)
    with h5py.File(parts[2], "r+") as f:
        f.attrs["complete"] = 0
    os.rename(parts[2], tmp_path / "part-2.h5.part")
    again = [*text, *HOOKS, "--quiet", "--resume", "--dump", "part-2.h5"]
    trace(*again, cwd=tmp_path).fails(1, "part-2.h5.part", "shard 2/4")
    trace(*again, "--shard", "1/4", cwd=tmp_path).fails(1, "part-2.h5.part", "shard 2/4", "shard 1/4")
    trace(*again, "--shard", "2/4", cwd=tmp_path).ok()
    assert differences(whole, merge(tmp_path, "m.h5", parts), FREE) == []


# --- the page

PAGE = (ROOT / "lib" / "record" / "shards.md").read_text()
TOOLS = {
    # sbatch: runs every task of the array, or the one job, at once. Options are on the command line or in the script.
    "sbatch": r"""#!/bin/bash
for last; do :; done
tasks=$(sed -n 's/^#SBATCH --array=0-//p' "$last")
cpus=$(sed -n 's/^#SBATCH --cpus-per-task=//p' "$last")
case "$1" in --dependency=afterok:77) ;; --parsable) echo "77;cluster" ;; *) exit 9 ;; esac
export SLURM_CPUS_PER_TASK=1
[ "$cpus" = 8 ] || exit 9
for i in $(seq 0 "${tasks:-0}"); do SLURM_ARRAY_TASK_ID=$i bash "$last" || echo "task $i failed" >> failed; done
""",
    "srun": '#!/bin/sh\nexec "$@"\n',
    "parallel": r"""#!/bin/bash
shift 2
command=()
while [ "$1" != ::: ]; do command+=("$1"); shift; done
shift
for i; do "${command[@]//\{\}/$i}" || exit 1; done
""",
    "mpirun": r"""#!/bin/bash
n=$2
shift 2
for i in $(seq 0 $((n - 1))); do OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=$n "$@" || exit 1; done
""",
}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def run_page(d, commands):
    tools = d / "tools"
    tools.mkdir()
    for name, script in TOOLS.items():
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    (d / "corpus.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps({"text": s}) + "\n" for s in SENTENCES[:DOCS]).encode()))
    env = environment(TEXT="corpus.jsonl.gz")
    env["PATH"] = f"{tools}:{env['PATH']}"
    run = subprocess.run(["bash", "-e", "-c", commands], cwd=d, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert run.returncode == 0 and not (d / "failed").exists(), run.stderr
    whole = run_whole(d, ["--file", "corpus.jsonl.gz"], ["--layer", "6"], "single.h5")
    assert differences(whole, d / "whole.h5", FREE) == []


def test_the_page_first_commands(tmp_path):
    first = blocks("sh")[0]
    line = first.splitlines()[0]
    assert "0/4" in line and "part-0.h5" in line
    rest = [line.replace("0/4", f"{i}/4").replace("part-0", f"part-{i}") for i in range(1, 4)]
    run_page(tmp_path, "\n".join([first.splitlines()[0], *rest, *first.splitlines()[1:]]))


def test_the_page_slurm(tmp_path):
    scripts = blocks("bash")
    assert len(scripts) == 2
    (tmp_path / "trace.sbatch").write_text(scripts[0])
    (tmp_path / "merge.sbatch").write_text(scripts[1])
    submit = next(b for b in blocks("sh") if "sbatch" in b)
    assert "MODEL=/path/of/the/model" in submit
    run_page(tmp_path, submit.replace("/path/of/the/model", str(BROOK)))
    assert len(list((tmp_path / "shards").iterdir())) == 16


@pytest.mark.parametrize("starter", ["parallel", "mpirun"])
def test_the_page_starters(starter, tmp_path):
    run_page(tmp_path, next(b for b in blocks("sh") if f"\n{starter} " in b))
