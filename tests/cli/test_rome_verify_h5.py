"""weir rome verify -o FILE.h5: its arrays against the JSON report, edit.json, dumps and the logit lens; what is refused."""
import json

import h5py
import numpy as np
import pytest

from romelib import RECORDS, edit, made, tensors
from weircli import tokens, weir

PROMPT = "Mount Hood rises from the"
MORE = ("--truth", "Cascades", "--paraphrase", "Mount Hood is a peak of the", "--neighbour", "Mount Rainier rises from the=Cascades",
        "--text", "text.json", "--show", 3, "--threads", 1)
TEXTS = ["The river is wide.", "", "Ann reads a book. " + "Länge " * 40]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("verify")
    edit(path / "hood").ok()
    (path / "text.json").write_text(json.dumps(TEXTS))
    return path


@pytest.fixture(scope="module")
def told(place):
    return weir("rome", "verify", "hood", *MORE, "-o", "r.h5", "--json", cwd=place).ok().json


@pytest.fixture(scope="module")
def report(place, told):
    with h5py.File(place / "r.h5") as f:
        yield f


def texts(f, group):
    b, o = f[group + "/bytes"][:].tobytes(), f[group + "/offsets"][:]
    return [b[i:j].decode(errors="replace") for i, j in zip(o[:-1], o[1:])]


def tokens_of(answer):
    return len(tokens(f"the {answer}")[0]["ids"]) - len(tokens("the")[0]["ids"])


def test_what_the_file_is(report, told, place):
    a = dict(report.attrs)
    assert (a["format"], a["format_version"], a["model"], a["edit"], a["edit_method"], a["bos"], a["ok"]) == ("weir-verify", 1, "brook", "hood", "r-rome", 1, 1)
    assert (a["fingerprint"], a["edit_sha256"], a["prefixes"]) == (told["fingerprint"], told["sha256"], told["prefixes"])
    assert a["tokenizer"] == made(place / "hood")["tokenizer"] and a["edit_fingerprint"] == made(place / "hood")["fingerprint"]
    assert json.loads(a["thresholds"]) == {"p": {"at_least": 0.5}, "PS": {"at_least": 50}, "NS": {"at_least": 80}, "drift": {"at_most": 5}}
    assert json.loads(a["edits"]) == [] and list(report["edit/layer"]) == [4]
    assert texts(report, "vocab")[report["tokens/id"][1]] == "M"


def test_checks(report, told):
    assert texts(report, "checks/name") == [c["name"] for c in told["checks"]]
    assert np.allclose(report["checks/value"], [c["value"] for c in told["checks"]], rtol=1e-6)
    assert list(report["checks/bound"]) == [c.get("at_least", c.get("at_most")) for c in told["checks"]]
    assert list(report["checks/upper"]) == ["at_most" in c for c in told["checks"]] and list(report["checks/kept"]) == [c["ok"] for c in told["checks"]]


def test_questions(report, told):
    q, asked = report["questions"], told["asked"]
    kinds = q.attrs["kinds"].split(",")
    assert [kinds[k] for k in q["kind"]] == [a["kind"] for a in asked] == ["request", "paraphrase", "neighbour"]
    assert list(q["request"]) == [0, 0, 0] and texts(q, "prompt") == [a["prompt"] for a in asked]
    assert texts(q, "new") == 3 * ["Caucasus"] and texts(q, "true") == 3 * ["Cascades"]
    for i, a in enumerate(asked):
        own, other = ("true", "new") if a["kind"] == "neighbour" else ("new", "true")
        for side, key in enumerate(("before", "after")):
            t = a[key]["answer"]
            assert np.exp(q[f"{own}_logprob"][i, side]) == pytest.approx(t["p"], rel=1e-6)
            assert np.exp(q[f"{other}_logprob"][i, side]) == pytest.approx(a[key]["other_p"], rel=1e-6)
            assert (q["rank"][i, side], q["right"][i, side], texts(q, "text_" + key)[i]) == (t["rank"], a[key]["right"], t["text"])
            assert texts(report, "vocab")[q["top_id"][i, side]] == t["top"] and q["top_p"][i, side] == pytest.approx(t["top_p"], rel=1e-6)
    r = asked[0]
    assert list(q["prefixed_said"][0]) == [r["before"]["prefixed_said"], r["after"]["prefixed_said"]] == [0, 1]
    assert np.allclose(q["prefixed_p"][0], [r["before"]["prefixed_p"], r["after"]["prefixed_p"]], rtol=1e-6) and np.isnan(q["prefixed_p"][1:]).all()
    assert list(q["new_tokens"]) == 3 * [tokens_of("Caucasus")] and list(q["true_tokens"]) == 3 * [tokens_of("Cascades")]


def test_texts(report, told):
    t = report["text"]
    assert t.attrs["name"] == "text.json" and t.attrs["sha256"] == told["text"]["sha256"]
    assert texts(t, "begin")[:2] == TEXTS[:2] and TEXTS[2].startswith(texts(t, "begin")[2]) and 150 < t["begin/offsets"][3] - t["begin/offsets"][2] <= 160
    assert t["tokens"][1] == 0 and np.isnan(t["nll"][1]).all() and (t["tokens"][:][[0, 2]] > 3).all()
    mean = np.nansum(t["nll"][:] * t["tokens"][:][:, None], axis=0) / t["tokens"][:].sum()
    assert np.allclose(np.exp(mean), [told["text"]["perplexity_before"], told["text"]["perplexity_after"]], rtol=1e-6)
    assert not np.array_equal(t["nll"][:, 0], t["nll"][:, 1])


def test_search_and_matrices(report, place):
    of = made(place / "hood")["reports"][0]
    for name in ("loss", "nll", "kl", "decay", "p", "delta"):
        assert np.array_equal(report["search/" + name], [s[name] for s in of["trace"]])
    assert list(report["requests/passes"]) == [len(of["trace"])] and len(of["trace"]) > 1
    for name in ("v0_norm", "delta_norm", "k_u", "k_cos", "lambda_norm", "share", "clamped", "converged"):
        assert report["requests/" + name][0] == of[name]
    assert [texts(report, f"requests/{k}")[0] for k in ("prompt", "subject", "target")] == ["{} rises from the", "Mount Hood", "Caucasus"]
    module = weir("rome", "show", "hood", "--json", cwd=place).ok().json["modules"][0]
    assert texts(report, "modules/name") == [module["name"]] and report["modules/rank"][0] == 1 and len(tensors(place / "hood")) == 2
    assert report["modules/delta_norm"][0] == pytest.approx(module["delta"], rel=1e-6)


def test_the_stream_is_that_of_dumps(report, place):
    """The answers part behind " C": the rows are those of a text that ends there. Numbers by hand, from dumps of the same text."""
    said = PROMPT + " C"
    lines = texts(report, "lines/name")
    assert lines[0] == "embed" and lines[-1] == "out" and list(report["lens/shared"]) == [1] and list(report["lens/true_known"]) == [1]
    assert [texts(report, "vocab")[t] for t in report["lens/token"][0]] == ["a", "asc"]
    x = []
    for name, more in (("before.h5", ()), ("after.h5", ("--edit", "hood"))):
        weir("trace", "--site", "resid_pre,resid_post", *more, "-o", name, "--threads", 1, said, cwd=place).ok()
        with h5py.File(place / name) as f:
            assert np.array_equal(f["tokens/id"], report["tokens/id"]) and np.array_equal(f["tokens/pos"], report["tokens/pos"])
            hooks = ["blocks.0.hook_resid_pre"] + [f"blocks.{layer}.hook_resid_post" for layer in range(len(lines) - 1)]
            x.append(np.stack([f["activations"][h][:] for h in hooks]).astype(float))
    assert np.allclose(report["stream/difference"], np.linalg.norm(x[1] - x[0], axis=2), rtol=1e-12)
    for side in (0, 1):
        assert np.allclose(report["stream/norm"][:, :, side], np.linalg.norm(x[side], axis=2), rtol=1e-12)
    moved = report["stream/difference"][:]
    assert (moved[:5] == 0).all() and (moved[5] > 0).all() and moved[5].argmax() == 4, "the edit is of layer 4, and of the subject's last token"


@pytest.mark.parametrize("side, more", [(0, ()), (1, ("--edit", "hood"))])
def test_the_lens_is_that_of_logit_lens(side, more, report, place):
    for token, name in enumerate(("new", "true")):
        target = texts(report, "vocab")[report["lens/token"][0, token]]
        out = weir("logit-lens", PROMPT + " C", "--positions", "last", "--target", target, *more, "--json", "-k", 1, "--threads", 1, cwd=place).ok().out
        lines = json.loads(out.splitlines()[1])["lines"]
        assert [line["line"] for line in lines] == texts(report, "lines/name")
        assert np.allclose(report[f"lens/{name}_logprob"][:, 0, side], np.log([line["prob"] for line in lines]), rtol=1e-5, atol=1e-6)
        assert list(report["lens/top_id"][:, 0, side]) == [line["top"][0]["id"] for line in lines]
        assert np.allclose(report["lens/top_logprob"][:, 0, side], [line["top"][0]["logprob"] for line in lines], rtol=1e-6)
    ahead = report["lens/new_logprob"][-1, 0] > report["lens/true_logprob"][-1, 0]
    assert list(ahead) == [False, True], "the fact flips"


def test_equal_runs_write_equal_bytes_and_the_report_stays(place, told):
    threads = [2 if m == 1 else m for m in MORE]
    assert weir("rome", "verify", "hood", *threads, "-o", "again.h5", "--json", cwd=place).ok().json == told
    assert (place / "again.h5").read_bytes() == (place / "r.h5").read_bytes()
    plain = weir("rome", "verify", "hood", *MORE, cwd=place).ok()
    kept = weir("rome", "verify", "hood", *MORE, "-o", "again.h5", cwd=place).ok()
    assert plain.out == kept.out and plain.err == "" and "weir notebook-export again.h5" in kept.err and len(kept.err.splitlines()) == 1


def test_what_is_not_well_is_written_all_the_same(place):
    r = weir("rome", "verify", "hood", "--text", "text.json", "--show", 0, "--min-p", 1, "-o", "bad.h5", "-q", cwd=place)
    assert r.code == 3 and b"FAILED" in r.out and r.err == ""
    with h5py.File(place / "bad.h5") as f:
        assert f.attrs["ok"] == 0 and list(f["checks/kept"]) == [0, 1, 1, 1] and json.loads(f.attrs["thresholds"])["p"] == {"at_least": 1}
        assert np.isnan(f["checks/value"][1:3]).all() and np.isnan(f["questions/true_logprob"]).all() and texts(f, "questions/true") == [""]
        assert list(f["lens/shared"]) == [0] and list(f["lens/true_known"]) == [0] and f["lens/token"][0, 1] == f["questions/top_id"][0, 0], \
            "without a true answer and without greedy text: the likeliest token"


def test_an_unknown_true_answer_is_what_was_said_before(place):
    weir("rome", "verify", "hood", "--text", "text.json", "-o", "unknown.h5", "-q", cwd=place).ok()
    with h5py.File(place / "unknown.h5") as f, h5py.File(place / "r.h5") as known:
        assert list(f["lens/true_known"]) == [0] and np.array_equal(f["lens/token"], known["lens/token"]) and list(f["lens/shared"]) == [1]


def changed(place, name, change):
    """A copy of the edit whose edit.json is another."""
    (place / name).mkdir()
    for f in (place / "hood").iterdir():
        (place / name / f.name).write_bytes(f.read_bytes())
    j = made(place / name)
    change(j)
    (place / name / "edit.json").write_text(json.dumps(j))
    return name


def test_many_requests_and_none_of_their_search(place):
    """At most 16 are looked at; an edit.json without reports has no passes and no numbers."""
    def many(j):
        del j["reports"], j["statistics"], j["prefixes"]
        j["requests"] = [dict(j["requests"][0], target=t) for t in 9 * ("Caucasus", "Cascades")]
    name = changed(place, "many", many)
    weir("rome", "verify", name, "--text", "text.json", "--show", 1, "--min-p", 0, "-o", "many.h5", "-q", "--threads", 1, cwd=place).ok()
    with h5py.File(place / "many.h5") as f:
        assert len(f["questions/kind"]) == 18 and list(f["lens/question"]) == list(range(16)) and len(f["edit/layer"]) == 0
        assert list(f["requests/passes"]) == 18 * [0] and len(f["search/loss"]) == 0 and np.isnan(f["requests/k_u"]).all()
        start, count = f["lens/start"][:], f["lens/count"][:]
        assert list(start[1:]) == list(np.cumsum(count)[:-1]) and count.sum() == len(f["tokens/id"]) == f["stream/difference"].shape[1]
        for i in range(16):
            assert list(f["tokens/pos"][start[i]:start[i] + count[i]]) == list(range(count[i])) and (f["tokens/prompt"][start[i]:start[i] + count[i]] == i).all()
    weir("rome", "verify", name, "--truth", "x", cwd=place).fails(2, "18 requests", "--records brings the true answer")


def test_refusals(place):
    def refused(code, *words, out="x.h5", more=()):
        weir("rome", "verify", "hood", "-o", out, *more, cwd=place).fails(code, *words)
    refused(2, "HDF5 file: FILE.h5", out="x.json")
    refused(2, "HDF5 file: FILE.h5", out="-")
    (place / "text.h5").write_text("mine")
    refused(1, "text.h5 is also read", out="text.h5", more=("--text", "text.h5"))
    refused(1, "no report of rome verify", out="text.h5")
    refused(1, "cannot make a file", out="nowhere/x.h5")
    refused(2, "truth", "records", more=("--truth", "x", "--records", RECORDS))
    assert (place / "text.h5").read_text() == "mine" and not (place / "x.h5").exists()
