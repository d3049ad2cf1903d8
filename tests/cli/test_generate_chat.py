"""--chat in the tools: the model's template around a message, the same tokens everywhere; what cannot be is one line."""
import json
import os
import shutil

import h5py
import pytest

from chatlib import DATA
from weircli import BROOK, tokens, trace, weir

TEMPLATE = (DATA / "llama3.jinja").read_text()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """brook with a chat template."""
    return with_template(tmp_path_factory.mktemp("m"), chat_template=TEMPLATE)


def with_template(tmp_path, jinja=None, **config):
    path = tmp_path / "model"
    shutil.copytree(BROOK, path, copy_function=os.symlink, ignore=shutil.ignore_patterns("recipe", "tokenizer_config.json"))
    own = json.loads((BROOK / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**own, **config}))
    if jinja is not None:
        (path / "chat_template.jinja").write_text(jinja)
    return path


RENDERED = ("<|endoftext|><|start_header_id|>user<|end_header_id|>\n\nHi there<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n")


def test_the_template_goes_round_a_message(model):
    want = tokens("--model", model, RENDERED)[0]
    assert want["ids"][0] == 0
    got = tokens("--model", model, "--chat", " Hi there ")[0]
    assert got["ids"] == want["ids"] and got["offsets"] == want["offsets"] and got["bytes"] == len(RENDERED)
    system = tokens("--model", model, "--chat", "--system", "Be brief.", "Hi")[0]
    assert system["ids"] == tokens("--model", model, RENDERED.replace("Hi there", "Hi").replace(
        "<|start_header_id|>user", "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user", 1))[0]["ids"]


def test_every_tool_sees_the_same_tokens(model, tmp_path):
    want = tokens("--model", model, "--chat", "Hi")[0]["ids"]
    trace("--model", model, "--chat", "--layer", "0", "--site", "resid_pre", "--dump", tmp_path / "a.h5", "Hi").ok()
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["tokens/id"][:].tolist() == want
        assert f["tokens/flags"][0] & 1 and f["docs/count"][0] == len(want)
    r = weir("generate", "--model", model, "--chat", "--max-tokens", "4", "--format", "ndjson", "--quiet", "Hi").ok().json
    assert r["prompt_ids"] == want and r["prompt"] == RENDERED.replace("Hi there", "Hi")
    assert weir("generate", "--model", model, "--chat", "--max-tokens", "4", "--quiet", "Hi").ok().out.decode().rstrip("\n") == r["text"].rstrip("\n")
    plain = weir("generate", "--model", model, "--ids", "--bos", "no", "--max-tokens", "4", "--format", "ndjson", "--quiet",
                 " ".join(map(str, want))).ok().json
    assert plain["ids"] == r["ids"]
    assert weir("loss", "--model", model, "--chat", "--json", "Hi").ok().json["tokens"] == len(want) - 1


def test_conversations_of_several_turns(model, tmp_path):
    turns = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}, {"role": "user", "content": "C"}]
    (tmp_path / "c.jsonl").write_text(json.dumps({"messages": turns, "n": 1}) + "\n" + json.dumps({"messages": "A", "n": 2}) + "\n")
    got = tokens("--model", model, "--chat", "--file", tmp_path / "c.jsonl")
    head = "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>"
    text = "<|endoftext|>" + "".join(head.format(t["role"], t["content"]) for t in turns) + "<|start_header_id|>assistant<|end_header_id|>\n\n"
    assert got[0]["ids"] == tokens("--model", model, text)[0]["ids"]
    assert got[1]["ids"] == tokens("--model", model, "--chat", "A")[0]["ids"]
    other = tokens("--model", model, "--chat", "--system", "S", "--file", tmp_path / "c.jsonl")
    assert all(len(a["ids"]) > len(b["ids"]) for a, b in zip(other, got))


@pytest.mark.parametrize("record, words", [
    ({"messages": 7}, "a string or a list of messages"),
    ({"messages": [{"content": "x"}]}, 'message 0 is no object with a "role"'),
    ({"messages": [3]}, 'message 0 is no object with a "role"'),
    ({"text": "x"}, 'no field "messages"'),
])
def test_what_is_no_conversation(model, tmp_path, record, words):
    (tmp_path / "c.jsonl").write_text(json.dumps(record) + "\n")
    weir("tokenize", "--model", model, "--chat", "--file", tmp_path / "c.jsonl").fails(1, words, "c.jsonl")


def test_where_the_template_is_found(tmp_path):
    ids = lambda m: tokens("--model", m, "--chat", "x")[0]["ids"]
    named = with_template(tmp_path / "a", chat_template=[{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}])
    file = with_template(tmp_path / "b", jinja="yes", chat_template="no")
    assert ids(named) == ids(file) == tokens("--bos", "no", "yes")[0]["ids"]


def test_refusals(tmp_path, model):
    weir("generate", "--chat", "x").fails(1, "no chat template", "brook")
    weir("generate", "--model", with_template(tmp_path / "a", jinja="\n{% macro m() %}{% endmacro %}"), "--chat", "x").fails(
        1, "chat_template.jinja", "line 2", "{% macro %}")
    weir("generate", "--model", with_template(tmp_path / "b", chat_template="{{ raise_exception('never ' + 'that') }}"), "--chat", "x").fails(
        1, "tokenizer_config.json", "the template says: never that")
    for args, words in ((("--ids", "1 2"), "--chat and --ids"), (("--bos", "yes", "x"), "--chat and --bos yes")):
        weir("generate", "--model", model, "--chat", *args).fails(2, words)
    (tmp_path / "s.jsonl").write_text('{"messages": "x", "at": [0, 1]}\n')
    trace("--model", model, "--chat", "--positions", "@at", "--dump", tmp_path / "x.h5", "--file", tmp_path / "s.jsonl").fails(
        2, "--positions", "@at", "--chat")
    weir("generate", "--model", with_template(tmp_path / "c", chat_template="{{ nothing }}"), "--chat", "x").fails(
        1, "document 0, in its chat template, comes to no token")
