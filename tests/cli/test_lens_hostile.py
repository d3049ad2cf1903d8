"""logit-lens and decompose where things are not as they should be: damaged dumps, models with NaN, options that could only be followed in
silence, readers that have seen enough."""
import json
import os
import shutil
import struct
import subprocess

import h5py
import pytest

from lenses import EVERYTHING
from weircli import BIN, BROOK, ROOT, environment, trace, weir

GPT2 = ROOT / "tests" / "golden" / "models" / "gpt2"
TEXT = ("-q", "--model", GPT2, "--ids", "1 2 3")  # -q: it has no tokenizer


def lens(*args, **more):
    return weir("logit-lens", *args, **more)


def decompose(*args, **more):
    return weir("decompose", *args, **more)


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    out = tmp_path_factory.mktemp("dump") / "d.h5"
    trace(*TEXT, "--hooks", f"hook_*embed,{EVERYTHING}", "--dump", out).ok()
    return out


# --- dumps

@pytest.mark.parametrize("where, value, words", [
    ("tokens/pos", 2**63 - 1, "document 0: its positions are not in order"),
    ("tokens/pos", 2**31, "document 0: its positions are not in order"),
    ("tokens/pos", -2**63, "document 0: its positions are not in order"),
    ("shard_first_doc", str(2**63 - 1), "shard_first_doc is 9223372036854775807"),
    ("shard_first_doc", "-5", "shard_first_doc is -5"),
    ("shard_first_doc", "x", "shard_first_doc is x"),
    ("shard", "5/3", "shard is 5/3"),
    ("shard", "1/2000000000000", "shard is 1/2000000000000"),
])
def test_a_damaged_dump(dump, tmp_path, where, value, words):
    bad = tmp_path / "bad.h5"
    shutil.copy(dump, bad)
    with h5py.File(bad, "r+") as f:
        if "/" in where:
            f[where][-1] = value
        else:
            f.attrs[where] = value
    for tool in ("logit-lens", "decompose"):
        weir(tool, "-q", "--model", GPT2, bad).fails(1, "bad.h5", words)
    lens("-q", "--model", GPT2, "--corpus", bad).fails(1, "bad.h5", words)


def test_a_dump_shows_the_last_layer_alone_as_a_run_does(dump):
    for more in (["--layers", "1"], ["--layers", "1", "--corpus"], ["--layers", "all"]):
        live, from_dump = (lens("--format", "tsv", *more, *a).ok().out.split(b"\n", 1)[1] for a in (TEXT, ["--model", GPT2, dump]))
        assert live == from_dump, more


def test_a_file_named_as_hdf5_is_never_a_text(dump, tmp_path):
    for name in ("a.h5", "a.h5.part", "a.hdf5"):
        for data in (b"", b"\x88" + dump.read_bytes()[1:]):
            (tmp_path / name).write_bytes(data)
            for tool in ("logit-lens", "decompose"):
                weir(tool, tmp_path / name).fails(2, name, "damaged")


# --- models

def test_a_stream_that_is_not_finite_is_said(tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(GPT2, broken)
    data = bytearray((broken / "model.safetensors").read_bytes())
    n = struct.unpack("<Q", data[:8])[0]
    place = next(t["data_offsets"] for name, t in json.loads(data[8:8 + n]).items() if name.endswith("wpe.weight"))
    data[8 + n + place[1] - 4:8 + n + place[1]] = struct.pack("<f", float("nan"))  # of the embedding of the last position
    (broken / "model.safetensors").write_bytes(data)
    ids = " ".join(["1"] * 24)
    for more in ([], ["--check"], ["--format", "tsv"], ["--contrast", "#3,#5"]):
        r = decompose("--model", broken, "--ids", ids, "--positions", "-2:", *more)
        assert r.code == 3 and r.out and "1 of 2 positions have a stream or logits that are not finite" in r.err, (more, r.err)
        assert "no next token" not in r.err
    decompose("--model", broken, "--ids", "1 2 3", "--check").ok()


# --- options that cannot be followed

def test_formats_of_dla():
    for form in (["--format", "h5"], ["--format", "svg"], ["-o", "x.h5"], ["-o", "x.hdf5"], ["-o", "x.htm"], ["-o", "x.html"]):
        lens(*TEXT, "--dla", "layer", *form).fails(2, "--dla: its formats are text, tsv and ndjson")


def test_options_of_what_is_not_shown(tmp_path):
    lens(*TEXT, "--format", "svg", "-k", "3").fails(2, "-k", "likeliest")
    lens(*TEXT, "--stats-plot", tmp_path / "a.svg", "-o", f"{tmp_path}/./a.svg").fails(2, "--stats-plot and --out name the same file")
    for tool, layers, units in (("decompose", ["--level", "layer"], ["--heads", "0", "--level", "head"]), ("logit-lens", ["--dla", "layer"], [])):
        weir(tool, *TEXT, *layers, "-k", "3").fails(2, "--k")
        weir(tool, *TEXT, *layers, "--json", "--width", "50").fails(2, "--width")
        weir(tool, *TEXT, *layers, "--format", "tsv", "--color", "16").fails(2, "--color")
        if units:
            weir(tool, *TEXT, *units, "-k", "3").fails(2, "--k")
    decompose(*TEXT, "--level", "layer", "--rank-by", "norm").fails(2, "--rank-by")
    decompose(*TEXT, "--target", "none", "--rank-by", "logit").fails(2, "--rank-by logit")
    decompose(*TEXT, "--target", "none", "--rank-by", "norm", "-k", "2").ok()
    assert os.listdir(tmp_path) == []


def test_options_of_a_run_and_a_result(tmp_path):
    out = tmp_path / "r.h5"
    out.write_text("mine")
    lens(*TEXT, "--corpus", "-o", out, "--force").fails(1, "r.h5", "--force is not for HDF5 files")
    assert out.read_text() == "mine"
    out.unlink()
    lens(*TEXT, "--corpus", "-o", out).ok()
    for option in (["--batch", "7"], ["--kernel", "ref"], ["--model", GPT2]):
        lens(out, *option).fails(2, option[0], "r.h5 holds what one gave")
    assert lens(out, "--threads", "2").ok().out == lens(out).ok().out


# --- a reader that has seen enough

@pytest.mark.parametrize("form", ["text", "tsv", "ndjson"])
def test_decompose_stops_when_nobody_reads_on(form):
    args = [BIN / "weir", "decompose", "--positions", "all", "--format", form, "--file", BROOK / "sentences.txt"]
    with subprocess.Popen(list(map(str, args)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as p:
        p.stdout.readline()
        p.stdout.close()
        assert p.wait(timeout=60) == 1 and p.stderr.read() == b""  # all of the text takes minutes
