"""weir tokenize and weir detokenize: bytes survive, offsets tile the text, ids and bytes agree."""
import json
import os
import re

import pytest

from weircli import BROOK, tokens, weir

TEXTS = ["Among the places of Colorado is Boulder.", "  two  spaces ", "tab\there", "naïve café 北京 🙂", "x",
         "<|endoftext|>"]


def detokenize(*args, **more):
    return weir("detokenize", *args, **more).ok().out


@pytest.mark.parametrize("text", TEXTS)
def test_round_trip_and_offsets(text):
    doc, = tokens(text)
    raw = text.encode()
    ids = " ".join(map(str, doc["ids"]))
    assert doc["bytes"] == len(raw) and doc["lost_bytes"] == 0
    assert len(doc["ids"]) == len(doc["pieces"]) == len(doc["offsets"])
    assert detokenize("--special", *ids.split()) == raw
    assert detokenize("--special", stdin=ids.encode()) == raw
    assert detokenize("--special", stdin=json.dumps(doc["ids"]).encode()) == raw
    at = 0
    for (begin, end), token in zip(doc["offsets"], doc["ids"]):
        assert begin == at and end > begin
        assert detokenize("--special", token).strip(b" ") == raw[begin:end].strip(b" ")
        at = end
    assert at == len(raw)


def test_invalid_utf8_is_kept():
    raw = b"bad \xff\xfe bytes \x80 here"
    doc, = tokens(stdin=raw)
    assert doc["lost_bytes"] == 0
    assert detokenize(stdin=" ".join(map(str, doc["ids"])).encode()) == raw


def test_ids_alone_are_what_detokenize_reads():
    sentences = (BROOK / "sentences.txt").read_bytes()
    ids = weir("tokenize", "--ids", stdin=sentences).ok().out
    assert re.fullmatch(rb"(\d+( \d+)*\n)+", ids)
    assert detokenize("--lines", stdin=ids) == sentences
    assert detokenize(stdin=ids) == sentences.replace(b"\n", b"")
    rows = [[int(x) for x in line.split()] for line in ids.splitlines()]
    assert [doc["ids"] for doc in tokens(stdin=sentences)] == rows


def test_table():
    out = weir("tokenize", 'say "hi"\n\ttab\x01').ok().out.decode()
    head, columns, *rows = out.splitlines()
    assert head.startswith("# document 0:") and columns.split() == ["id", "offset", "bytes", "token"]
    shown = "".join(json.loads(row.split(None, 3)[3].replace("\\x", "\\u00")) for row in rows)
    assert shown == 'say "hi"\n\ttab\x01'
    assert sum(int(row.split()[2]) for row in rows) == len('say "hi"\n\ttab\x01')


def test_bos():
    plain, = tokens("text")
    assert tokens("--bos", "no", "text")[0]["ids"] == plain["ids"]
    for policy in ("yes", "auto"):
        doc, = tokens("--bos", policy, "text")
        assert doc["ids"] == [0] + plain["ids"] and doc["offsets"][0] == [0, 0]
    ids = [str(i) for i in tokens("--bos", "yes", "text")[0]["ids"]]
    assert detokenize(*ids) == b"text" and detokenize("--special", *ids) == b"<|endoftext|>text"


def test_json_of_detokenize():
    ids = [str(i) for i in tokens("some words")[0]["ids"]]
    assert weir("detokenize", "--json", *ids).ok().json == {"tokens": len(ids), "bytes": 10, "text": "some words"}


def test_nothing_in_nothing_out():
    assert detokenize(stdin=b"") == b"" and detokenize("--lines", stdin=b"\n") == b"\n"


def test_errors():
    weir("detokenize", "4096").fails(2, '"4096"', "vocabulary of 4096")
    weir("detokenize", "12a").fails(2, '"12a"')
    weir("detokenize", "--", "-1").fails(2, '"-1"')
    weir("detokenize", stdin=b"1 2\n3 x\n").fails(1, "line 2", '"x"')
    weir("detokenize", stdin=b"99999999999999999999999999").fails(1, "line 1")
    weir("tokenize", "--model", "/nonexistent", "x").fails(1, "/nonexistent")
    weir("tokenize", "--ids", "--json", "x").fails(2, "--ids and --json exclude each other")
    weir("tokenize", "--model", BROOK / "sentences.txt", "x").fails(1, "sentences.txt")


def test_a_tokenizer_file_will_do():
    assert tokens("--model", BROOK / "tokenizer.json", "words")[0]["ids"] == tokens("words")[0]["ids"]
    assert tokens("words", env={"WEIR_MODEL": os.fspath(BROOK)}) == tokens("words")
