"""Bytes are never lost: what neuron-top prints around a place are the bytes of the input, whatever they are: characters split over
tokens, bytes that are no UTF-8, tabs and newlines, controls and backslashes. The tokens' places come from `weir tokenize`."""
import copy
import functools
import json
import re

import pytest

from weircli import BROOK, tokens, weir

DOCUMENTS = [
    "A boat \U0001f6a3 and a \U0001f468\u200d\U0001f469\u200d\U0001f467 family, \U0001f600\U0001f600 twice.".encode(),
    "漢字と日本語。Überraschung, naïve café, Ελλάδα, Москва, 한국어".encode(),
    b"broken \xff\xfe bytes, half \xe6\xbc of one, \xf0\x9f\x98 and \xc0\xaf overlong, \xed\xa0\x80 surrogate",
    b"tabs\tand\r\nlines\n\n  and \\n that is none, \\\\ two, \\x41 no A\x00\x1b[31mred\x7f",
    "line\u2028separator \u202eright to left\u202c \ufeffmark \u00ad\u200bunseen".encode(),
    b"plain words that stand on one line",
    "\U0001f389".encode(),
    b"\x80",
]
NAMED = "3,421"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Options that name the documents, and for each the ids and places of its tokens."""
    directory, options = tmp_path_factory.mktemp("bytes"), ["--docs", "file"]
    for i, text in enumerate(DOCUMENTS):
        (directory / f"{i}.txt").write_bytes(text)
        options += ["--file", directory / f"{i}.txt"]
    docs = tokens(*options)
    assert [d["bytes"] for d in docs] == [len(d) for d in DOCUMENTS] and not any(d["lost_bytes"] for d in docs)
    return options, docs


@functools.cache
def bos_bytes():
    """BOS is a token without a place in the text; what it is called stands for it."""
    with open(BROOK / "tokenizer.json", encoding="utf-8") as f:
        return next(t["content"] for t in json.load(f)["added_tokens"] if t["id"] == 0).encode()


def expected(docs, doc, first, end, bos):
    """The bytes and ids of positions [first, end) of a document."""
    ids, places = list(docs[doc]["ids"]), [DOCUMENTS[doc][b:e] for b, e in docs[doc]["offsets"]]
    if bos:
        ids, places = [0] + ids, [bos_bytes()] + places
    assert 0 <= first < end <= len(ids)
    return b"".join(places[first:end]), ids[first:end]


def fault(place, docs, bos):
    """What is wrong with a place of NDJSON, or None."""
    c = place["context"]
    first, end = c["pos"], c["pos"] + len(c["ids"])
    want, ids = expected(docs, place["doc"], first, end, bos)
    got = c["text"].encode() if c["hex"] is None else bytes.fromhex(c["hex"])
    if c["ids"] != ids:
        return "ids"
    if got != want:
        return "bytes"
    if c["hex"] is not None and c["text"] != want.decode(errors="replace") and "\ufffd" not in c["text"]:
        return "text"
    if first + c["hit"] != place["pos"]:
        return "hit"
    if want[c["at"][0]:c["at"][1]] != expected(docs, place["doc"], place["pos"], place["pos"] + 1, bos)[0]:
        return "at"
    whole = expected(docs, place["doc"], 0, len(docs[place["doc"]]["ids"]) + bos, bos)[1]
    if (c["begins"], c["ends"]) != (first == 0, end == len(whole)):
        return "edges"
    if any(n < 2 or first + n > len(ids) for first, n in c["split"]):
        return "split"
    return None


def places(objects):
    return [(name, p) for o in objects for name, part in o["lists"].items() for p in part]


def search(options, form, *more):
    return weir("neuron-top", *options, "--layer", 6, "--neurons", NAMED, "-k", 200, "--dedup", "none", "--weights", "no",
                "--format", form, *more).ok().out


@pytest.mark.parametrize("context, bos", [("0,0", False), ("2,3", True), ("10,10", False), ("full", False), ("full", True)])
def test_ndjson_holds_the_bytes_of_the_text(texts, context, bos):
    options, docs = texts
    out = search(options, "ndjson", "--context", context, "--bos", "yes" if bos else "no")
    found = places([json.loads(line) for line in out.splitlines()][1:])
    every = sum(len(d["ids"]) for d in docs)
    assert len(found) == 2 * len(NAMED.split(",")) * min(200, every), "each token of each document, from both ends"
    faults = [(fault(p, docs, bos), name, p) for name, p in found if fault(p, docs, bos)]
    assert not faults, faults[0]
    assert any(p["context"]["hex"] for _, p in found) and any(p["context"]["split"] for _, p in found)
    if context == "full":
        for _, p in found:
            assert len(p["context"]["ids"]) == len(docs[p["doc"]]["ids"]) + bos


def test_the_comparison_can_fail(texts):
    options, docs = texts
    out = search(options, "ndjson", "--context", "2,3", "--bos", "no")
    sound = next(p for _, p in places([json.loads(line) for line in out.splitlines()][1:]) if not p["context"]["hex"] and p["pos"] > 2)
    assert fault(sound, docs, False) is None
    for what, change in (("bytes", lambda c: c.update(text=c["text"] + " ")), ("bytes", lambda c: c.update(hex="00")),
                         ("ids", lambda c: c["ids"].__setitem__(0, c["ids"][0] + 1)), ("hit", lambda c: c.update(hit=c["hit"] + 1)),
                         ("at", lambda c: c.update(at=[0, 0])), ("edges", lambda c: c.update(begins=True))):
        broken = copy.deepcopy(sound)
        change(broken["context"])
        assert fault(broken, docs, False) == what


def test_a_split_character_is_one_piece(texts):
    """Where the window's edge falls into a character, its other tokens come along; `split` says which tokens are one."""
    options, docs = texts
    out = search(options, "ndjson", "--context", "0,0", "--bos", "no")
    seen = 0
    for _, p in places([json.loads(line) for line in out.splitlines()][1:]):
        c, (begin, end) = p["context"], docs[p["doc"]]["offsets"][p["pos"]]
        text = DOCUMENTS[p["doc"]]
        part = text[begin:end]
        try:
            text.decode()
        except UnicodeDecodeError:
            continue  # what belongs together is clear in valid texts only
        if part.decode(errors="ignore").encode() != part:
            seen += 1
            assert len(c["ids"]) > 1 and c["split"] and c["hex"] is None, p
            first, n = c["split"][0]
            assert first <= c["hit"] < first + n
    assert seen > 10


# --- TSV

ESCAPE = re.compile(rb"\\(n|t|r|\\|x[0-9a-f]{2})")
NAMES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\"}


def unescape(text):
    """A cell's bytes. A backslash that begins no escape is an error."""
    assert b"\\" not in ESCAPE.sub(b"", text), text
    return ESCAPE.sub(lambda m: NAMES.get(m[1]) or bytes.fromhex(m[1][1:].decode()), text)


def test_unescape():
    assert unescape(rb"a\n\t\\x41\x41\xff") == b"a\n\t\\x41A\xff"
    with pytest.raises(AssertionError):
        unescape(rb"a\q")


@pytest.mark.parametrize("context", ["2,3", "full"])
def test_tsv_holds_the_bytes_of_the_text(texts, context):
    options, docs = texts
    out = search(options, "tsv", "--context", context, "--bos", "no")
    out.decode()  # the table itself is valid UTF-8,
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", out)  # and no byte of it acts on a terminal
    head, *lines = (line.split(b"\t") for line in out.rstrip(b"\n").split(b"\n"))
    assert len(lines) == 2 * len(NAMED.split(",")) * min(200, sum(len(d["ids"]) for d in docs))
    for cells in lines:
        row = dict(zip((h.decode() for h in head), cells, strict=True))
        doc, pos = int(row["doc"]), int(row["pos"])
        ids, offsets, text = docs[doc]["ids"], docs[doc]["offsets"], DOCUMENTS[doc]
        begin, end = offsets[pos]
        assert int(row["token_id"]) == ids[pos] and unescape(row["token"]) == text[begin:end]
        follows = pos + 1 < len(ids)
        assert row["next_id"].decode() == (str(ids[pos + 1]) if follows else "")
        assert unescape(row["next"]) == (text[slice(*offsets[pos + 1])] if follows else b"")
        around, at = unescape(row["context"]), begin - int(row["hit_byte"])
        assert at >= 0 and around == text[at:at + len(around)] and len(around) >= end - begin + int(row["hit_byte"])
        if context == "full":
            assert around == text
