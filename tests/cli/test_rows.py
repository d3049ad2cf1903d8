"""Rows of a dump against an independent computation: windows, BOS, positions, batches, ids, fields, logprob."""
import json

import h5py
import numpy as np
import pytest

from weircli import BROOK, tokens, trace

BOS = 0
CTX = 256
COLUMNS = ("id", "doc", "pos", "ctx_pos", "byte_off", "byte_len", "flags")
TEXTS = ["The river bends around the old stone weir.", "x", "Boulder is a town.",
         "one two three four five six seven eight nine ten " * 3]
STREAM = ("--layer", "0", "--site", "resid_pre")


def dump(path, *args, **more):
    more.setdefault("stdin", b"")
    r = trace("--dump", path, "--quiet", *args, **more).ok()
    assert r.out == b"" and r.err == ""
    with h5py.File(path) as f:
        assert f.attrs["complete"] == 1
        rows = {c: f["tokens"][c][...] for c in f["tokens"]}
        rows["docs"] = {c: f["docs"][c][...] for c in ("start", "count", "byte_off", "byte_len", "source")}
        fields = f["docs/fields"].items()
        rows["fields"] = {n: v[...] if isinstance(v, h5py.Dataset) else v["bytes"][...] for n, v in fields}
        rows["values"] = {n: v[...] for n, v in f["activations"].items()}
        rows["attrs"] = dict(f.attrs)
    path.unlink()
    return rows


def expected(docs, bos, ctx, stride=None, keep=None):
    """Row tuples as COLUMNS says. A token belongs to the first window that holds it. keep(pos, rows) -> bool."""
    rows = []
    room = ctx - bos
    stride = stride or room
    for d, doc in enumerate(docs):
        n = len(doc["ids"]) + bos
        for pos in range(n):
            if keep and not keep(pos, n):
                continue
            text = pos - bos
            if text < 0:
                rows.append((BOS, d, 0, 0, 0, 0, 1))
                continue
            window = 0
            while text >= window * stride + room:
                window += 1
            begin, end = doc["offsets"][text]
            rows.append((doc["ids"][text], d, pos, text - window * stride + bos, begin, end - begin, 0))
    return rows


def actual(rows):
    return list(zip(*(rows[c].tolist() for c in COLUMNS)))


@pytest.fixture(scope="module")
def docs():
    return tokens(*TEXTS)


def test_the_comparison_can_fail(docs):
    good = expected(docs, 1, CTX)
    assert good != expected(docs, 0, CTX) and good != expected(docs, 1, 8)
    assert expected(docs, 1, 8) != expected(docs, 1, 8, 3)


@pytest.mark.parametrize("bos", [0, 1])
@pytest.mark.parametrize("ctx, stride", [(None, None), (8, None), (8, 3), (8, 1), (8, 7), (2, None), (2, 1), (9, 9)])
def test_windows(tmp_path, docs, bos, ctx, stride):
    args = ["--bos", "yes" if bos else "no", "--site", "resid_pre", "--layer", "0"]
    args += ["--ctx", ctx] if ctx else []
    args += ["--stride", stride] if stride else []
    rows = dump(tmp_path / "x.h5", *args, *TEXTS)
    room = (ctx or CTX) - bos
    want = expected(docs, bos, ctx or CTX, min(stride or room, room))
    assert actual(rows) == want
    counts = [len(d["ids"]) + bos for d in docs]
    assert rows["docs"]["count"].tolist() == counts
    assert rows["docs"]["start"].tolist() == np.cumsum([0] + counts[:-1]).tolist()
    assert rows["attrs"]["ctx"] == (ctx or CTX)
    assert rows["values"]["blocks.0.hook_resid_pre"].shape == (len(want), 192)


def test_bos_auto_is_what_the_model_says(tmp_path, docs):
    auto = dump(tmp_path / "x.h5", *STREAM, *TEXTS)
    assert actual(auto) == expected(docs, 1, CTX)
    assert auto["attrs"]["bos"] in ("yes", b"yes")


@pytest.mark.parametrize("spec, keep", [
    ("all", lambda p, n: True),
    ("last", lambda p, n: p == n - 1),
    ("-1", lambda p, n: p == n - 1),
    ("-4:", lambda p, n: p >= n - 4),
    ("0:8", lambda p, n: p < 8),
    (":-2", lambda p, n: p < n - 2),
    ("3", lambda p, n: p == 3),
    ("2:5,-1", lambda p, n: 2 <= p < 5 or p == n - 1),
    ("-6:-3", lambda p, n: n - 6 <= p < n - 3),
])
@pytest.mark.parametrize("window", [(), ("--ctx", "8", "--stride", "3")])
def test_positions(tmp_path, docs, spec, keep, window):
    rows = dump(tmp_path / "x.h5", "--layer", "2", "--positions", spec, *window, *TEXTS)
    want = expected(docs, 1, 8, 3, keep) if window else expected(docs, 1, CTX, None, keep)
    assert actual(rows) == want
    everything = dump(tmp_path / "all.h5", "--layer", "2", *window, *TEXTS)
    chosen = [i for i, row in enumerate(actual(everything)) if row in set(want)]
    assert len(chosen) == len(want)
    for name, values in rows["values"].items():
        assert np.array_equal(values.view(np.uint32), everything["values"][name][chosen].view(np.uint32)), name


def test_windows_hold_what_a_run_of_their_ids_alone_gives(tmp_path, docs):
    """Row by row, to the bit: BOS at the head of each window, then tokens that only give context, then the rest."""
    ctx, stride, ids = 16, 5, docs[3]["ids"]
    rows = dump(tmp_path / "x.h5", "--layer", "3", "--ctx", ctx, "--stride", stride, TEXTS[3])
    checked = 0
    for window in range(0, len(ids), stride):
        alone = [BOS] + ids[window:window + ctx - 1]
        run = dump(tmp_path / "w.h5", "--layer", "3", "--bos", "no", "--ids", " ".join(map(str, alone)))
        for i, pos in enumerate(rows["pos"]):
            first = max(0, -(-(pos - (ctx - 1)) // stride)) * stride if pos else 0  # where its window begins
            if first != window:
                continue
            for name, values in rows["values"].items():
                assert values[i].tobytes() == run["values"][name][rows["ctx_pos"][i]].tobytes(), (name, pos)
            checked += 1
    assert checked == len(rows["pos"])


@pytest.mark.parametrize("window", [(), ("--ctx", "40", "--stride", "11")])
def test_batches_change_nothing(tmp_path, window):
    """Packed, alone, and cut into pieces that follow one another in the cache (a batch shorter than a window)."""
    args = ("--hooks", "blocks.{0,3}.*,ln_final.*", "--hooks", "blocks.3.attn.hook_{pattern,attn_scores}", "--logprob",
            "--compress", "0", *window)
    want = dump(tmp_path / "x.h5", *args, *TEXTS)
    for batch in (1, 7, 4096):
        got = dump(tmp_path / "y.h5", *args, "--batch", batch, *TEXTS)
        assert actual(got) == actual(want)
        assert got["logprob"].tobytes() == want["logprob"].tobytes()
        assert got["values"].keys() == want["values"].keys()
        for name in want["values"]:
            assert got["values"][name].tobytes() == want["values"][name].tobytes(), (batch, name)


def test_max_tokens(tmp_path, docs):
    everything = expected(docs, 1, CTX)
    for n in (1, 2, 11, len(everything), len(everything) + 1):
        rows = dump(tmp_path / "x.h5", *STREAM, "--max-tokens", n, *TEXTS)
        assert actual(rows) == everything[:n]
    rows = dump(tmp_path / "x.h5", *STREAM, "--max-tokens", "5", "--positions", "last", TEXTS[0])
    assert rows["pos"].tolist() == [4]  # the last of what was run


def test_ids_are_the_same_as_their_text(tmp_path, docs):
    text = dump(tmp_path / "x.h5", "--layer", "1", *TEXTS)
    (tmp_path / "ids.txt").write_text("".join(" ".join(map(str, d["ids"])) + "\n" for d in docs))
    (tmp_path / "ids.jsonl").write_text("".join(json.dumps({"ids": d["ids"]}) + "\n" for d in docs))
    with_bos = ["0 " + " ".join(map(str, d["ids"])) for d in docs]
    arguments = [",".join(map(str, d["ids"])) for d in docs]
    for source in (["--file", tmp_path / "ids.txt"], ["--file", tmp_path / "ids.jsonl"], arguments, with_bos):
        ids = dump(tmp_path / "y.h5", "--layer", "1", "--ids", *source)
        assert actual(ids) == actual(text)  # a BOS that the ids bring along is not doubled
        for name in text["values"]:
            assert ids["values"][name].tobytes() == text["values"][name].tobytes()
    bare = dump(tmp_path / "y.h5", "--layer", "1", "--ids", "--bos", "no", *with_bos)
    assert bare["id"].tolist() == text["id"].tolist() and bare["flags"][0] == 2  # a special token like any other


def test_logprob_is_the_log_softmax_of_the_logits(tmp_path):
    args = ("--hooks", "unembed.hook_out", "--logprob", "--ctx", "16", "--stride", "9")
    rows = dump(tmp_path / "x.h5", *args, *TEXTS)
    logits = rows["values"]["unembed.hook_out"].astype(np.float64)
    log_p = logits - logits.max(1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(1, keepdims=True))
    compared = 0
    for i, lp in enumerate(rows["logprob"]):
        if rows["ctx_pos"][i] == 0:
            assert np.isnan(lp)
        elif i and rows["doc"][i] == rows["doc"][i - 1] and rows["ctx_pos"][i] == rows["ctx_pos"][i - 1] + 1:
            assert abs(lp - log_p[i - 1, rows["id"][i]]) < 2e-5
            compared += 1
        else:
            assert np.isfinite(lp) and lp < 0  # what precedes it was recorded in an earlier window
    assert compared > 40
    without_bos = dump(tmp_path / "x.h5", *STREAM, "--logprob", "--bos", "no", "--ctx", "4", *TEXTS)
    assert np.array_equal(np.isnan(without_bos["logprob"]), without_bos["ctx_pos"] == 0)
    some = dump(tmp_path / "y.h5", *args, "--positions", "2:4", *TEXTS)
    picked = [i for i, p in enumerate(rows["pos"]) if p in (2, 3)]
    assert some["logprob"].tobytes() == rows["logprob"][picked].tobytes()


def test_the_model_predicts_its_own_sentences_better_than_their_reverse(tmp_path):
    sentences = (BROOK / "sentences.txt").read_text().splitlines()[:40]
    mean = {}
    for name, lines in (("forward", sentences), ("backward", [" ".join(reversed(s.split())) for s in sentences])):
        rows = dump(tmp_path / "x.h5", *STREAM, "--logprob", stdin="\n".join(lines).encode())
        mean[name] = np.nanmean(rows["logprob"])
    assert mean["forward"] > mean["backward"] + 1


def test_fields_and_places_of_documents(tmp_path):
    records = ['{"text": "alpha beta", "n": 7, "w": 0.5, "good": true, "tag": "a\\u00e9"}',
               '{"n": -3, "w": 2, "good": false, "tag": "", "text": "gamma"}']
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(records) + "\n")
    rows = dump(tmp_path / "x.h5", *STREAM, "--file", path)
    assert rows["fields"]["n"].tolist() == [7, -3]
    assert rows["fields"]["w"].tolist() == [0.5, 2.0]
    assert rows["fields"]["good"].tolist() == [1, 0]
    assert bytes(rows["fields"]["tag"]).decode() == "aé"
    assert "text" not in rows["fields"]
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_bytes(b"first\n\nsecond one\n")
    b.write_bytes(b"third\n")
    rows = dump(tmp_path / "x.h5", *STREAM, "--file", a, "--file", b)
    places = list(zip(*(rows["docs"][c].tolist() for c in ("source", "byte_off", "byte_len"))))
    assert places == [(0, 0, 5), (0, 7, 10), (1, 0, 5)]


def spans(begin_end_pairs, doc):
    return [i + 1 for i, (a, b) in enumerate(doc["offsets"]) if any(a < e and b > s for s, e in begin_end_pairs)]


def test_positions_from_a_field(tmp_path):
    text = "In Paris, the Eiffel tower stands; é."
    doc = tokens(text)[0]
    cases = [([3, 8], [(3, 8)]), ([[0, 2], [14, 20]], [(0, 2), (14, 20)]), ("Eiffel", [(14, 20)]), ("é", [(35, 37)]),
             ([[3, 3]], []), ([4, 5], [(4, 5)])]
    for value, pairs in cases:
        line = json.dumps({"text": text, "where": value}) + "\n" + json.dumps({"text": "all of it", "where": [0, 9]})
        rows = dump(tmp_path / "x.h5", *STREAM, "--positions", "@where", "--jsonl", stdin=line.encode())
        first = [p for p, d in zip(rows["pos"].tolist(), rows["doc"].tolist()) if d == 0]
        assert first == spans(pairs, doc), value
        assert rows["docs"]["count"].tolist()[0] == len(first)
        assert 0 not in rows["pos"]


@pytest.mark.parametrize("record, words", [
    ({"text": "a b a", "where": "a"}, ("r.jsonl:2:", '"where"', "several times")),
    ({"text": "a b a", "where": "z"}, ("r.jsonl:2:", '"where"', "which the text lacks")),
    ({"text": "a b a", "where": ""}, ("r.jsonl:2:", '"where"', "empty")),
    ({"text": "a b a", "where": [0, 6]}, ("r.jsonl:2:", '"where"', "[0, 6)", "5 bytes")),
    ({"text": "a b a", "where": [3, 2]}, ("r.jsonl:2:", "[3, 2)")),
    ({"text": "a b a", "where": [[0, 1], [4]]}, ("r.jsonl:2:", '"where"', "is no span")),
    ({"text": "a b a", "where": [1, 2, 3]}, ("r.jsonl:2:", '"where"', "is no span")),
    ({"text": "a b a", "where": {"a": 1}}, ("r.jsonl:2:", '"where"', "is no span")),
    ({"text": "a b a", "where": None}, ("r.jsonl:2:", '"where"', "is no span")),
    ({"text": "a b a", "where": 3}, ("r.jsonl:2:", '"where"', "neither a span")),
    ({"text": "a b a"}, ("r.jsonl:2:", '"where"', "is absent")),
])
def test_positions_from_a_bad_field(tmp_path, record, words):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"text": "fine", "where": [0, 4]}) + "\n" + json.dumps(record) + "\n")
    r = trace("--layer", "0", "--dump", tmp_path / "x.h5", "--positions", "@where", "--file", path)
    r.fails(1, str(path), *words)
    assert [p.name for p in tmp_path.iterdir()] == ["r.jsonl"]


def test_positions_that_no_document_has(tmp_path):
    r = trace("--layer", "0", "--dump", tmp_path / "x.h5", "--positions", "100:", "short")
    r.fails(1, "--positions 100:", "no document")
    assert list(tmp_path.iterdir()) == []
