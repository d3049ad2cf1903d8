"""weir loss: against the log-probabilities that trace records, and against itself under every cut of the work."""
import json
import math

import h5py
import numpy as np
import pytest

from weircli import ROOT, trace, weir

TEXT = ["Boulder is in the state of Colorado.", "The river bends.", "x"]
MODELS = sorted(p.name for p in (ROOT / "tests/golden/models").iterdir() if p.is_dir())


def recorded(tmp_path, *args):
    """Per row: document, position in the window, bytes, flags and log-probability, as trace has them."""
    dump = tmp_path / "d.h5"
    trace("--logprob", "--layer", "0", "--site", "resid_pre", "--dump", dump, "--force", *args).ok()
    with h5py.File(dump) as f:
        t = f["tokens"]
        return {n: t[n][:] for n in ("doc", "ctx_pos", "byte_len", "flags", "logprob", "id", "pos")}


def scored(t):
    return t["ctx_pos"] > 0


def totals(t):
    s = scored(t)
    nats = -math.fsum(t["logprob"][s].astype(float))
    return {"tokens": int(s.sum()), "unscored": int((~s & (t["flags"] & 1 == 0)).sum()), "bytes": int(t["byte_len"][s].sum()),
            "loss": nats / s.sum(), "perplexity": math.exp(nats / s.sum()),
            "bits_per_byte": nats / math.log(2) / t["byte_len"][s].sum()}


def check(got, want):
    for key in ("tokens", "unscored", "bytes"):
        assert got[key] == want[key], key
    for key in ("loss", "perplexity", "bits_per_byte"):
        assert got[key] == pytest.approx(want[key], rel=1e-12), key


def test_the_check_can_fail():
    want = {"tokens": 3, "unscored": 0, "bytes": 9, "loss": 1.0, "perplexity": math.e, "bits_per_byte": 0.5}
    check(dict(want), want)
    for key in want:
        with pytest.raises(AssertionError):
            check(dict(want, **{key: want[key] + 1e-6 if isinstance(want[key], float) else want[key] + 1}), want)


@pytest.mark.parametrize("more", [(), ("--bos", "no"), ("--ctx", "4"), ("--ctx", "5", "--stride", "2"), ("--positions", "-2:")])
def test_totals_are_those_of_the_recorded_rows(tmp_path, more):
    check(weir("loss", "--json", *more, *TEXT).ok().json, totals(recorded(tmp_path, *more, *TEXT)))


@pytest.mark.parametrize("model", MODELS)
def test_every_family(tmp_path, model):
    args = ("--model", ROOT / "tests/golden/models" / model, "--ids", "--file", "-")
    ids = b"1 2 3 4 5 6 7\n8 9\n3\n"
    dump = tmp_path / "d.h5"
    trace("--logprob", "--layer", "0", "--site", "resid_pre", "--dump", dump, *args, stdin=ids).ok()
    with h5py.File(dump) as f:
        logprob, at = f["tokens/logprob"][:], f["tokens/ctx_pos"][:]
    got = weir("loss", "--json", *args, stdin=ids).ok().json
    assert got["tokens"] == (at > 0).sum()
    assert got["loss"] == pytest.approx(-math.fsum(logprob[at > 0].astype(float)) / (at > 0).sum(), rel=1e-12)


def test_lines_for_documents_and_tokens(tmp_path):
    t = recorded(tmp_path, *TEXT)
    docs = [json.loads(line) for line in weir("loss", "--per", "doc", "--format", "ndjson", *TEXT).ok().out.splitlines()]
    assert [d["doc"] for d in docs] == [0, 1, 2]
    for d in docs:
        check(d, totals({n: v[t["doc"] == d["doc"]] for n, v in t.items()}))
    tokens = [json.loads(line) for line in weir("loss", "--per", "token", "--format", "ndjson", *TEXT).ok().out.splitlines()]
    assert [x["id"] for x in tokens] == t["id"].tolist() and [x["pos"] for x in tokens] == t["pos"].tolist()
    assert [x["doc"] for x in tokens] == t["doc"].tolist()
    got = np.array([np.nan if x["logprob"] is None else x["logprob"] for x in tokens], "f4")
    assert got.tobytes() == np.where(np.isnan(t["logprob"]), np.float32(np.nan), t["logprob"]).tobytes()
    assert "".join(x["text"] for x in tokens if x["id"] != 0) == "".join(TEXT)
    lines = weir("loss", "--per", "token", "--format", "tsv", *TEXT).ok().out.decode().splitlines()
    assert lines[0] == "doc\tpos\tid\tlogprob\ttext" and len(lines) == 1 + len(tokens)
    assert [np.float32(x.split("\t")[3]) for x in lines[2:4]] == [np.float32(x["logprob"]) for x in tokens[1:3]]


def test_interventions_stand_beside_the_plain_model(tmp_path):
    change = ("--ablate", "blocks.2.hook_mlp_out=zero")
    got = weir("loss", "--json", *change, *TEXT).ok().json
    plain, changed = totals(recorded(tmp_path, *TEXT)), totals(recorded(tmp_path, *change, *TEXT))
    check(got, changed)
    check({k: got.get("plain_" + k, got[k]) for k in plain}, plain)
    assert got["loss"] != got["plain_loss"] and got["interventions"][0]["rows_changed"] > 0
    text = weir("loss", *change, *TEXT).ok().out.decode()
    assert "difference" in text and "plain" in text
    listening = weir("loss", "--json", "--hook", "log", *TEXT).ok().json
    assert "plain_loss" not in listening  # a hook that only listens changes nothing


def test_the_cut_of_the_work_changes_nothing():
    text = " ".join(TEXT) * 20
    want = weir("loss", "--per", "token", "--format", "tsv", text, "and more").ok().out
    for more in (("--batch", "7"), ("--threads", "1"), ("--kernel", "ref"), ("--batch", "33", "--threads", "2")):
        assert weir("loss", "--per", "token", "--format", "tsv", *more, text, "and more").ok().out == want


def test_files_and_complaints(tmp_path):
    out = tmp_path / "loss.ndjson"
    for _ in range(2):  # an earlier output may be replaced
        weir("loss", "--format", "ndjson", "-o", out, *TEXT).ok()
    assert json.loads(out.read_text())["tokens"] > 0
    other = tmp_path / "mine.txt"
    other.write_text("dear diary")
    weir("loss", "-o", other, *TEXT).fails(1, "mine.txt exists")
    assert other.read_text() == "dear diary"
    weir("loss", "-o", other, "--force", "--file", other).fails(1, "mine.txt is also read")
    weir("loss", f"--out={other}", "--force", f"--file={other}").fails(1, "mine.txt is also read")
    assert other.read_text() == "dear diary"
    weir("loss", "-o", "/dev/null", "--force", "x").fails(1, "/dev/null is a pipe or a device")
    weir("loss", "-o", tmp_path / "no" / "x", "x").fails(1, "cannot make a file")
    weir("loss", "--quiet", "--bos", "no", "x").fails(1, "no token was scored", "--bos yes")
    weir("loss", "--json", "--per", "doc", "x").fails(2, "--json")
    weir("loss", "--quiet", "--ablate", "blocks.99.hook_mlp_out", "x").fails(2, "blocks.99")
