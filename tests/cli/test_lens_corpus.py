"""logit-lens --corpus: the same numbers as numpy makes of every position that logit-lens itself prints; results that do not depend on how the
text was cut, on threads, batch or kernel; shards joined in any order; and what each mistake says."""
import contextlib
import fcntl
import gzip
import itertools
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import termios
import time
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

from lenses import STREAM
from weircli import BIN, BROOK, ROOT, environment, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
QUANTILES = (.05, .25, .5, .75, .95)
SHARDS = 4


def lens(*args, **more):
    return weir("logit-lens", *args, **more)


def sentences(n):
    return (BROOK / "sentences.txt").read_text().splitlines()[:n]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with the text, as .gz, and the result of one run."""
    path = tmp_path_factory.mktemp("corpus")
    with gzip.open(path / "corpus.txt.gz", "wt") as f:
        f.write("\n".join(sentences(60)) + "\n")
    lens("--corpus", "--file", "corpus.txt.gz", "-o", "one.h5", cwd=path).ok()
    for i in range(SHARDS):
        lens("--corpus", "--file", "corpus.txt.gz", "--shard", f"{i}/{SHARDS}", "-o", f"s{i}.h5", cwd=path).ok()
    return path


def rows(out):
    return [json.loads(line) for line in out.decode().splitlines()]


# --- numpy over every position

class Brute:
    """All statistics of positions as `logit-lens --format ndjson` prints them."""

    def __init__(self, out, masked=False):
        """masked: without the first token of each document, BOS."""
        head, *cells = rows(out)
        bos = {c["input"]["id"] for c in cells if c["pos"] == 0} if masked else ()
        assert not masked or len(bos) == 1
        self.names = [line["line"] for line in head["lines"]]
        self.layer = [line["layer"] for line in head["lines"]]
        self.site = [line["site"] for line in head["lines"]]
        self.n = len(cells)
        kept = [c for c in cells if c["input"]["id"] not in bos]
        self.seen = len(kept)
        self.next = [c["next"]["id"] if c["next"] else -1 for c in kept]
        self.top = np.array([[line["top"][0]["id"] for line in c["lines"]] for c in kept])
        self.ce = [[float(np.float32(c["lines"][i]["ce"])) for c in kept if c["next"]] for i in range(len(self.names))]
        self.kl = [[float(np.float32(c["lines"][i]["kl"])) for c in kept] for i in range(len(self.names))]
        self.docs = len({c["doc"] for c in cells})

    def settles(self, site):
        """The line at which each position settles, among those of a site and the last."""
        own = [i for i, s in enumerate(self.site[:-1]) if s == site] + [len(self.names) - 1]
        same = self.top[:, own] == self.top[:, -1:]
        stays = np.logical_and.accumulate(same[:, ::-1], axis=1)[:, ::-1]
        return np.array(own)[stays.argmax(axis=1)]


def agrees(got, want):
    """Does a printed statistic tell of these values?"""
    a = np.array(want)
    quantiles = np.quantile(a, QUANTILES, method="inverted_cdf")
    return (got["count"] == len(want) and got["lost"] == 0 and abs(got["mean"] - math.fsum(want) / len(want)) < 1e-12
            and np.float32(got["min"]) == np.float32(a.min()) and np.float32(got["max"]) == np.float32(a.max())
            and all(abs(x - y) <= max(abs(y) * 2.0 ** -8, 2.0 ** -30) for x, y in zip(got["quantiles"], quantiles)))


def check(brute, out):
    head, *lines = rows(out)
    assert head["schema"] == "weir-lens-corpus/1" and head["quantiles"] == list(QUANTILES)
    assert [line["line"] for line in lines] == brute.names and [line["layer"] for line in lines] == brute.layer
    assert (head["docs"], head["rows"], head["seen"]) == (brute.docs, brute.n, brute.seen)
    assert head["without_next"] == sum(t < 0 for t in brute.next) and head["lost"] == 0
    for i, line in enumerate(lines):
        assert agrees(line["ce"], brute.ce[i]) and agrees(line["kl"], brute.kl[i]), line["line"]
        agree = int((brute.top[:, i] == brute.top[:, -1]).sum())
        right = int((brute.top[:, i] == np.array(brute.next)).sum())
        assert (line["agree"], line["right"]) == (agree, right)
        assert line["agree_share"] == agree / brute.seen and line["right_share"] == right / len(brute.ce[0])
    for at in head["settle"]:
        where = brute.settles(at["site"])
        layers = np.array(brute.layer)[where]
        assert abs(at["mean"] - layers.mean()) < 1e-12
        assert at["quantiles"] == list(np.quantile(layers, QUANTILES, method="inverted_cdf"))
        for i, line in enumerate(lines):
            assert line["settled"].get(at["site"], 0) == (where == i).sum()
    return head


def test_numbers_are_those_of_every_position(place):
    brute = Brute(lens("--format", "ndjson", "-k", "1", "--file", "corpus.txt.gz", cwd=place).ok().out, masked=True)
    out = lens("one.h5", "--format", "ndjson", cwd=place).ok().out
    head = check(brute, out)
    assert head["masked_bos"] == 60 and head["masked_special"] == head["masked_id"] == 0
    _, first, *_ = rows(out)
    assert not agrees(first["kl"], brute.ce[0]) and not agrees(first["ce"], brute.ce[1])
    first["ce"]["mean"] += 1e-11
    assert not agrees(first["ce"], brute.ce[0])
    first["ce"]["mean"] -= 1e-11
    first["ce"]["quantiles"][2] *= 1.01
    assert not agrees(first["ce"], brute.ce[0])


def test_the_summary_at_the_end():
    r = lens("--corpus", "--ablate", "L5N3", "Boulder is in", "A river").ok()
    assert "tokens in 2 documents, " in r.err and "peak memory" in r.err and r.err.count("ablate L5N3: ") == 1


def test_sites_and_layers(place):
    text = ["--file", "corpus.txt.gz", "--site", "attn-out,resid-mid", "--layers", "1,3-6", "--shard", "1/9"]
    brute = Brute(lens("--format", "ndjson", "-k", "1", *text, cwd=place).ok().out)
    head = check(brute, lens("--corpus", "--json", "--mask", "none", *text, cwd=place).ok().out)
    assert [s["site"] for s in head["settle"]] == ["attn_out", "resid_mid"] and (head["shard"], head["shards"]) == (1, 9)


@pytest.mark.parametrize("model", ["gemma2", "neox-parallel", "llama-gqa-bf16"])
def test_other_models(model, tmp_path):
    (tmp_path / "ids").write_text("1 7 3 9 9 2\n5\n4 4 4 8 7 6 5\n")
    args = ["--model", MODELS / model, "--ids", "--file", tmp_path / "ids"]
    brute = Brute(lens("--format", "ndjson", "-k", "1", *args).ok().out)
    check(brute, lens("--corpus", "--json", "--mask", "none", *args).ok().out)


def test_masks_are_ids(place):
    tokens = rows(weir("tokenize", "--json", "--file", "corpus.txt.gz", cwd=place).ok().out)
    ids = [i for doc in tokens for i in doc["ids"]]
    common = max(set(ids) - {tokens[0]["ids"][0]}, key=ids.count)
    head = rows(lens("--corpus", "--json", "--mask", f"bos,{common}", "--file", "corpus.txt.gz", cwd=place).ok().out)[0]
    assert head["masked_id"] == ids.count(common) > 50 and head["masked_bos"] == 60
    assert head["seen"] == head["rows"] - 60 - head["masked_id"]
    assert head["source"]["mask"] == f"bos,{common}"


# --- the same bytes

def test_batches_threads_and_kernels_do_not_change_a_byte(place, tmp_path):
    def result(shard, *cut, **env):
        lens("--corpus", "--file", "corpus.txt.gz", "--shard", f"{shard}/60", "-o", tmp_path / "x.h5", *cut, cwd=place, env=env).ok()
        return (tmp_path / "x.h5").read_bytes()

    want = result(3)
    for cut in (["--threads", "1"], ["--threads", "3", "--batch", "7"], ["--batch", "1"], ["--batch", "100000"]):
        assert result(3, *cut) == want, cut
    for kernel in ("ref", "avx2"):
        assert result(3, WEIR_KERNEL=kernel) == want, kernel
    assert result(4) != want


def test_shards_in_any_order_are_one_run(place, tmp_path):
    orders = list(itertools.permutations(range(SHARDS)))
    for order in random.Random(6).sample(orders, 5):
        lens("--merge", *(f"s{i}.h5" for i in order), "-o", tmp_path / "m.h5", cwd=place).ok()
        assert (tmp_path / "m.h5").read_bytes() == (place / "one.h5").read_bytes(), order


def test_a_result_shows_again_what_the_run_showed(place):
    for form in ("text", "tsv", "ndjson"):
        run = lens("--corpus", "--file", "corpus.txt.gz", "--shard", f"1/{SHARDS}", "--format", form, cwd=place).ok().out
        again = lens("s1.h5", "--format", form, cwd=place).ok()
        assert again.out == run and "s1.h5 is shard 1/4, not the whole text" in again.err
        merged = lens("--merge", "s3.h5", "s1.h5", "s0.h5", "s2.h5", "--format", form, cwd=place).ok()
        assert merged.out == lens("one.h5", "--format", form, cwd=place).ok().out != run and merged.err == ""
    again = lens("one.h5", "-o", "again.h5", cwd=place).ok()
    assert again.out == b"" and (place / "again.h5").read_bytes() == (place / "one.h5").read_bytes()


def test_a_dump_gives_the_same_numbers(place, tmp_path):
    text = ["--file", "corpus.txt.gz", "--shard", "2/9"]
    trace("--hooks", STREAM, "--dump", tmp_path / "d.h5", *text, cwd=place).ok()
    live, dump = (rows(lens("--corpus", "--json", *a, cwd=place).ok().out) for a in (text, [tmp_path / "d.h5"]))
    assert live[1:] == dump[1:] and dump[0]["shard"] == 2 and dump[0]["shards"] == 9
    assert live[0]["settle"] == dump[0]["settle"] and live[0]["seen"] == dump[0]["seen"]


# --- forms

def test_tsv_says_what_ndjson_says(place):
    head, names, *cells = lens("one.h5", "--format", "tsv", cwd=place).ok().out.decode().splitlines()
    want_head, *want = rows(lens("one.h5", "--json", cwd=place).ok().out)
    head = json.loads(head.removeprefix("# "))
    assert head.pop("schema") == "weir-lens-corpus-tsv/1" and want_head.pop("schema") and head == want_head
    names = names.split("\t")
    for cell, line in zip(cells, want, strict=True):
        got = dict(zip(names, cell.split("\t"), strict=True))
        assert got["line"] == line["line"] and int(got["layer"]) == line["layer"]
        for v in ("ce", "kl"):
            assert float(got[f"{v}_mean"]) == line[v]["mean"] and int(got[f"{v}_count"]) == line[v]["count"]
            assert [float(got[f"{v}_p{q}"]) for q in ("05", "25", "50", "75", "95")] == line[v]["quantiles"]
        assert int(got["agree"]) == line["agree"] and float(got["right_share"]) == line["right_share"]
        assert int(got["settled_resid_post"]) == line["settled"]["resid_post"]


def test_the_table_for_people(place):
    text = lens("one.h5", cwd=place).ok().out.decode()
    head, *lines = rows(lens("one.h5", "--json", cwd=place).ok().out)
    assert text.startswith("logit-lens --corpus  brook  corpus.txt.gz\n")
    assert f"60 documents, {head['rows']:,} positions; left out (--mask): 60 BOS, 0 special, 0 by id\n" in text
    assert f"{head['seen']:,} positions counted, 60 of them without a next token\n" in text
    table = [row.split() for row in text.split("settles\n")[1].split("\n\n")[0].splitlines()]
    assert [row[0] for row in table] == [line["line"] for line in lines] and all(len(row) == 16 for row in table)
    for row, line in zip(table, lines):
        numbers = [line["ce"]["mean"], *line["ce"]["quantiles"], line["kl"]["mean"], *line["kl"]["quantiles"]]
        assert all(abs(float(x) - y) <= max(6e-3 if y >= 10 else 6e-4, 0) or float(x) == float(f"{y:.0e}")
                   for x, y in zip(row[1:], numbers)), row
        assert row[13:] == [f"{x:.4f}" for x in (line["right_share"], line["agree_share"], line["settled"]["resid_post"] / head["seen"])]
    assert f"resid_post  mean {head['settle'][0]['mean']:6.3f}; 5% {head['settle'][0]['quantiles'][0]:.0f};" in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("width, pages", [(60, 3), (80, 2), (200, 1)])
def test_the_table_pages_on_a_narrow_terminal(place, width, pages):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 50, width, 0, 0))
    subprocess.run([BIN / "weir", "logit-lens", "one.h5"], cwd=place, env=environment(), stdin=subprocess.DEVNULL, stdout=theirs, check=True)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that nobody has the other end any more
        while piece := os.read(ours, 1 << 16):
            shown += piece
    os.close(ours)
    whole = lens("one.h5", cwd=place).ok().out.decode().split("settles\n")[1].split("\n\n")[0].splitlines()
    blocks = shown.decode().replace("\r", "").split("\n\n")[1:-1]
    rows = [[line.split() for line in block.splitlines()[2:]] for block in blocks]
    assert len(blocks) == pages and all(len(line) <= width for block in blocks for line in block.splitlines())
    assert [[row[0][0], *(x for part in row for x in part[1:])] for row in zip(*rows)] == [line.split() for line in whole]


def test_the_picture(place, tmp_path):
    head, *lines = rows(lens("one.h5", "--json", "--stats-plot", tmp_path / "x.svg", cwd=place).ok().out)
    svg = ElementTree.parse(tmp_path / "x.svg").getroot()
    paths = [e.get("d") for e in svg.iter("{http://www.w3.org/2000/svg}path") if e.get("fill") and "L" in e.get("d")]
    assert len(paths) == 2 * 4 + 3  # two bands, mean and median; three shares

    def heights(path):
        return np.array([float(point.split()[1]) for point in re.split("[ML]", path.rstrip("Z"))[1:]])

    n = len(lines)
    assert [len(heights(p)) for p in paths] == 2 * [2 * n, 2 * n, n, n] + 3 * [n]
    for v, at in (("ce", 0), ("kl", 4)):
        q = np.array([line[v]["quantiles"] for line in lines])
        mean = np.array([line[v]["mean"] for line in lines])
        y = heights(paths[at + 2])
        scale = (y[1] - y[0]) / (mean[1] - mean[0])  # straight: two points tell where all others are
        for path, want in zip(paths[at:], ([*q[:, 4], *q[::-1, 0]], [*q[:, 3], *q[::-1, 1]], mean, q[:, 2])):
            assert np.abs(y[0] + (np.array(want) - mean[0]) * scale - heights(path)).max() < 1
    stays = np.cumsum([line["settled"]["resid_post"] for line in lines]) / head["seen"]
    for path, want in zip(paths[8:], ([line["agree_share"] for line in lines], stays, [line["right_share"] for line in lines])):
        y = heights(path)
        assert np.abs(y[0] - 220 * (np.array(want) - want[0]) - y).max() < 0.2
    (tmp_path / "mine.svg").write_text("mine")
    lens("one.h5", "--stats-plot", tmp_path / "mine.svg", cwd=place).fails(1, "mine.svg")
    lens("s1.h5", "--stats-plot", tmp_path / "x.svg", cwd=place).ok()


def test_the_file_is_for_h5py_too(place):
    _, *lines = rows(lens("one.h5", "--json", cwd=place).ok().out)
    with h5py.File(place / "one.h5") as f:
        assert f.attrs["format"] == b"weir-lens" or f.attrs["format"] == "weir-lens"
        assert f.attrs["shards"] == 0 and f.attrs["masked_bos"] == 60
        offsets = f["lines/name/offsets"][:]
        names = [bytes(f["lines/name/bytes"][a:b]).decode() for a, b in zip(offsets, offsets[1:])]
        assert names == [line["line"] for line in lines]
        for v in ("ce", "kl"):
            assert list(f[f"{v}/mean"]) == [line[v]["mean"] for line in lines]
            assert f[f"{v}/quantile"][:].tolist() == [line[v]["quantiles"] for line in lines]
            hist, first = f[f"{v}/hist"], f[f"{v}/hist"].attrs["first_bin"]
            assert (hist[:].sum(axis=1) == f[f"{v}/count"][:]).all()
            low = [int(s[0]) | int(s[1]) << 64 for s in f[f"{v}/sum"][:]]
            assert [x / 2 ** 64 / int(n) for x, n in zip(low, f[f"{v}/count"])] == pytest.approx(list(f[f"{v}/mean"]), rel=1e-15)
            middle = (f["edges"][first:first + hist.shape[1]] + f["edges"][first + 1:first + 1 + hist.shape[1]]) / 2
            assert (hist[0] @ middle) / f[f"{v}/count"][0] == pytest.approx(f[f"{v}/mean"][0], rel=1 / 256)
        assert f["settle/count"].shape == (1, len(names)) and f["settle/count"][0].sum() == f.attrs["seen"]


# --- mistakes

def test_wrong_merges(place, tmp_path):
    (tmp_path / "other.txt").write_text("The river bends.\nA second line.\n")
    part = ["--shard", f"0/{SHARDS}", "-o"]
    lens("--corpus", "--file", "other.txt", *part, tmp_path / "text.h5", cwd=tmp_path).ok()
    lens("--corpus", "--file", "corpus.txt.gz", "--mask", "none", *part, tmp_path / "mask.h5", cwd=place).ok()
    lens("--corpus", "--file", "corpus.txt.gz", "--layers", "1", *part, tmp_path / "lines.h5", cwd=place).ok()
    lens("--corpus", "--file", "corpus.txt.gz", "--shard", "0/3", "-o", tmp_path / "thirds.h5", cwd=place).ok()
    lens("--corpus", "--file", "corpus.txt.gz", "--ablate", "blocks.3.hook_mlp_out", *part, tmp_path / "ablated.h5", cwd=place).ok()
    (tmp_path / "ids").write_text("1 2 3\n1 2\n")
    lens("--corpus", "--ids", "--model", MODELS / "neox-parallel", "--file", tmp_path / "ids", *part, tmp_path / "model.h5").ok()
    join = lambda *paths: lens("--merge", *paths, "-o", tmp_path / "m.h5", cwd=place)
    join("s1.h5", tmp_path / "model.h5").fails(1, "model.h5", "they differ in the model: brook and ")
    join("s1.h5", tmp_path / "text.h5").fails(1, "text.h5", "the text (source)")
    join("s1.h5", tmp_path / "ablated.h5").fails(1, "ablated.h5", "they differ in interventions")
    join("s1.h5", tmp_path / "mask.h5").fails(1, "mask.h5", "the text (source)")
    join("s1.h5", tmp_path / "lines.h5").fails(1, "lines.h5", "the number of lines")
    join("s1.h5", tmp_path / "thirds.h5").fails(1, "in 4 shards, the other in 3")
    join("s1.h5", "s0.h5", "s1.h5").fails(1, "s1.h5", "both have shard 1 of 4")
    join("s1.h5", "s0.h5", "s3.h5").fails(1, "shard 2/4 is missing")
    join("one.h5", "one.h5").fails(1, "both are of the whole text")
    join("one.h5", "s1.h5").fails(1, "shards")
    join("s1.h5", "corpus.txt.gz").fails(1, "corpus.txt.gz")
    join("s1.h5", "none.h5").fails(1, "none.h5")
    assert not (tmp_path / "m.h5").exists()


def test_wrong_options(place):
    run = lambda *a: lens(*a, cwd=place)
    run("--corpus", "--dla", "layer", "text").fails(2, "--dla", "--corpus")
    run("--merge").fails(2, "--merge: the results to join are needed")
    run("s0.h5", "s1.h5").fails(2, "--merge joins the shards")
    run("--from", "s0.h5", "text").fails(2, '"text" was given too')
    for option in (["--target", "next"], ["--stat", "kl"], ["-k", "3"], ["--width", "90"]):
        run("--corpus", *option, "text").fails(2, option[0].lstrip("-"), "whole text")
        run("one.h5", *option).fails(2, "whole text")
    for option in (["--site", "resid-mid"], ["--layers", "3"], ["--mask", "none"], ["--positions", "last"], ["--norm", "none"]):
        run("one.h5", *option).fails(2, option[0][2:7], "one.h5 holds what was counted")
    run("one.h5", "--bos", "no").fails(2, "--bos", "one.h5")
    run("--merge", "s0.h5", "--file", "corpus.txt.gz").fails(2, "--merge", "--file")
    run("--corpus", "--format", "h5", "text").fails(2, "-o FILE.h5")
    run("--corpus", "--format", "html", "text").fails(2, "text, tsv, ndjson and h5")
    run("--mask", "none", "text").fails(2, "--corpus")
    run("--corpus", "--mask", "bose", "text").fails(2, "--mask", "bose")
    run("--corpus", "--mask", "999999", "text").fails(2, "--mask", "999999")
    run("--corpus", "none.h5").fails(1, "none.h5", "no such file")
    assert not (place / "y.h5").exists() and not (place / "x.svg").exists()


def test_files_of_others_stay(place, tmp_path):
    for name in ("x.h5", "x.tsv", "x.ndjson", "x.txt"):
        (tmp_path / name).write_text("mine")
        lens("one.h5", "-o", tmp_path / name, cwd=place).fails(1, name)
        lens("--corpus", "The river bends.", "-o", tmp_path / name).fails(1, name)
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
        lens("one.h5", "-o", tmp_path / name, cwd=place).ok()
        lens("s1.h5", "-o", tmp_path / name, cwd=place).ok()  # one of ours is replaced
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "x.ndjson", "x.tsv", "x.txt"]


def test_a_damaged_result(place, tmp_path):
    data = bytearray((place / "one.h5").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.h5").write_bytes(data)
    lens("bad.h5", cwd=tmp_path).fails(1, "bad.h5", "damaged")
    lens("--merge", place / "s0.h5", "bad.h5", cwd=tmp_path).fails(1, "bad.h5", "damaged")


def test_an_interrupt_leaves_nothing(tmp_path):
    with open(tmp_path / "long.txt", "w") as f:
        f.write("\n".join(sentences(1000) * 40) + "\n")
    p = subprocess.Popen([BIN / "weir", "logit-lens", "--corpus", "--file", "long.txt", "--threads", "1", "-o", "x.h5"],
                         cwd=tmp_path, env=environment(), stderr=subprocess.PIPE)
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    err = p.communicate(timeout=60)[1].decode()
    assert p.returncode == 1 and "stopped by signal 2" in err
    assert os.listdir(tmp_path) == ["long.txt"]


def test_a_shard_without_documents(tmp_path):
    (tmp_path / "two.txt").write_text("The river bends.\nA second line.\n")
    for i in range(5):
        lens("--corpus", "--file", "two.txt", "--shard", f"{i}/5", "-o", f"s{i}.h5", cwd=tmp_path).ok()
    lens("--corpus", "--file", "two.txt", "-o", "one.h5", cwd=tmp_path).ok()
    lens("--merge", *(f"s{i}.h5" for i in (4, 0, 3, 1, 2)), "-o", "m.h5", cwd=tmp_path).ok()
    assert (tmp_path / "m.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
    empty = [i for i in range(5) if rows(lens(f"s{i}.h5", "--json", cwd=tmp_path).ok().out)[0]["rows"] == 0]
    assert empty and " -" in lens(f"s{empty[0]}.h5", cwd=tmp_path).ok().out.decode()
