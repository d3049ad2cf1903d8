"""weir decompose as a tool: what is refused, with which line; files; interventions and lossy dumps, whose rest is shown; --check. The
numbers are test_decompose.py's matter."""
import json
import os
import shutil

import h5py
import pytest

from parts_oracle import hooks, listed
from weircli import BROOK, ROOT, trace, weir

TINY = ROOT / "tests" / "golden" / "models"
GPT2 = ("--model", TINY / "gpt2", "--ids", "3 14 15 9 26")
TEXT = "The river bends."


def decompose(*args, **more):
    return weir("decompose", *args, **more)


def positions(*args):
    return decompose("--json", "--quiet", *args).ok().json["positions"]


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    out = tmp_path_factory.mktemp("dump") / "brook.h5"
    trace("--hooks", hooks(BROOK), "--dump", out, TEXT, "The king lived in France.").ok()
    return out


# --- positions and documents
def test_the_last_position_of_each_document_is_the_default(tmp_path, dump):
    for how in (("--from", dump), (TEXT, "The king lived in France.")):
        got = positions("--level", "layer", *how)
        ids = [json.loads(x) for x in weir("tokenize", "--json", "--bos", "yes", TEXT, "The king lived in France.").ok().out.splitlines()]
        assert [(p["doc"], p["pos"]) for p in got] == [(i, len(t["ids"]) - 1) for i, t in enumerate(ids)]
        assert all(p["at"]["token"] == "." and p["next"] is None for p in got)


def test_positions_from_a_dump_of_some_rows(tmp_path):
    out = tmp_path / "some.h5"
    trace("--hooks", hooks(BROOK), "--positions", "2:4,-1", "--dump", out, TEXT).ok()
    live = {p["pos"]: p for p in positions("--level", "layer", "--positions", "all", TEXT)}
    got = positions("--level", "layer", "--positions", "all", "--from", out)
    assert [p["pos"] for p in got] == [2, 3, max(live)]
    assert [p["next"] for p in got] == [live[2]["next"], None, None], "what was not recorded is not known"
    assert all(p["edits"] == live[p["pos"]]["edits"] for p in got)
    assert [p["pos"] for p in positions("--level", "layer", "--positions", "3", "--from", out)] == [3]


def test_windows_and_long_texts():
    """Longer than a batch, and than the context of a window."""
    text, more = "The river bends. " * 20, ("--positions", "70:74", "--level", "layer")
    whole = decompose(*more, text).ok().out
    assert whole == decompose(*more, "--batch", 7, text).ok().out
    assert whole != decompose(*more, "--ctx", 32, text).ok().out


def test_one_token_and_a_text_without_positions():
    p, = positions("--model", TINY / "llama-llama3-v4", "--ids", "5")
    assert p["pos"] == 0 and p["sum"]["exact"] and p["sum"]["holds"]
    r = decompose(*GPT2, "--positions", "100:", "--json").ok()
    assert r.json["positions"] == [] and "no position was asked for: --positions 100:" in r.err


def test_next_where_nothing_follows_is_said():
    r = decompose("--target", "next", TEXT).ok()
    assert "1 of 1 positions have no next token" in r.err and b"logit" not in r.out
    r = decompose("--target", "next", "--positions", "0:3", TEXT).ok()
    assert "no next token" not in r.err and r.out.count(b": logit of ") == 3


# --- tokens by name
@pytest.mark.parametrize("name", [" river", "\u0120river", "#1415"])
def test_a_token_by_its_text_spelling_or_number(name):
    p, = positions("--level", "layer", "--target", name, TEXT)
    assert p["target"] == {"id": 1415, "token": " river"}


def test_contrast_with_commas():
    p, = positions("--level", "layer", "--contrast", ",,.", TEXT)
    assert (p["target"]["token"], p["against"]["token"]) == (",", ".")


# --- interventions, and values that are not the model's own
def test_an_ablated_head_adds_nothing():
    p, = positions("--heads", "L5H2,L5H3", "--ablate", "blocks.5.attn.hook_z[:,2]", TEXT)
    a, b = p["heads"]
    assert a["norm"] == 0 and a["logit"] == 0 and a["cosine"] is None and b["norm"] > 0
    assert p["sum"]["exact"] and p["sum"]["holds"]


def test_what_is_written_into_the_stream_is_the_rest():
    ablate = ("--ablate", "blocks.3.hook_resid_post[:,0:4]")
    p, = positions("--level", "layer", *ablate, TEXT)
    rest = p["edits"][-1]
    assert rest["part"] == "rest" and rest["norm"] > 0 and not p["sum"]["exact"]
    assert p["sum"]["holds"] and p["sum"]["share"] == pytest.approx(1)
    assert "the edits are not the final stream: see rest" in decompose(*ablate, TEXT).ok().out.decode()
    r = decompose("--check", *ablate, TEXT)
    assert r.code == 3 and "of 1 positions, 1 have edits that are not the final stream" in r.err and "doc 0, position" in r.err
    head = decompose("--json", *ablate, TEXT).ok().json
    assert head["interventions"][0]["kind"] == "ablate"


def test_check_passes_where_it_holds():
    assert decompose("--check", "--positions", "all", TEXT, "The king lived in France.").ok().out


def test_a_dump_of_rounded_values(tmp_path):
    out = tmp_path / "f16.h5"
    trace("--hooks", hooks(BROOK), "--dtype", "f16", "--dump", out, TEXT).ok()
    p, = positions("--from", out)
    assert p["edits"][-1]["part"] == "rest" and 0 < p["edits"][-1]["norm"] < 1 and p["sum"]["holds"]
    r = decompose("--check", "--from", out)
    assert r.code == 3 and b"rest" in r.out


# --- from a dump: what must be there
def test_a_dump_without_heads_or_neurons(tmp_path):
    out = tmp_path / "edits.h5"
    trace("--hooks", "hook_*embed,*hook_attn_out,*hook_mlp_out,blocks.7.hook_resid_post,*hook_z", "--dump", out, TEXT).ok()
    r = decompose("--from", out).ok()
    assert f"no neurons: {out} lacks blocks.0.mlp.hook_post" in r.err and b"neurons" not in r.out and b"top 10 of 56 heads" in r.out
    decompose("--from", out, "--level", "neuron").fails(1, f"{out} lacks blocks.0.mlp.hook_post", "weir trace --hooks '")
    decompose("--from", out, "--neurons", "3").fails(1, "lacks blocks.0.mlp.hook_post")
    decompose("--from", out, "--level", "head").ok()


def test_the_line_about_missing_hooks_tells_what_to_record(tmp_path):
    for name in ("gemma2", "gpt2"):
        text = ("--model", TINY / name, "--ids", "3 14 15 9 26")
        out, more = tmp_path / f"{name}.h5", tmp_path / f"{name}-more.h5"
        trace(*text, "--layer", 1, "--dump", out).ok()
        for level in ((), ("--level", "neuron")):  # also of what heads and neurons need, where nobody insists on them
            r = decompose("--model", TINY / name, "--from", out, *level).fails(1, "lacks hook_embed of all units")
        trace(*text, "--hooks", r.err.split("'")[1], "--dump", more).ok()
        assert decompose("--model", TINY / name, "--from", more).ok().out == decompose(*text).ok().out


def test_a_narrow_terminal_has_room_for_the_check():
    text = [decompose("--target", "#7", "--level", "layer", "--width", width, TEXT).ok().out.decode() for width in (80, 120)]
    assert max(map(len, text[0].splitlines())) <= 80 and "\n  the edits are the final stream to the bit\n" in text[0]
    assert "  the edits are the final stream to the bit\n" in text[1] and "\n  the edits" not in text[1]


def test_post_norm_scales_are_needed(tmp_path):
    out = tmp_path / "a.h5"
    model = ("--model", TINY / "gemma2")
    trace(*model, "--ids", "3 14 15", "--hooks", "hook_embed,*hook_attn_out,*hook_mlp_out,*hook_z,*mlp.hook_post,*hook_resid_post", "--dump", out).ok()
    decompose(*model, "--from", out, "--heads", "all", "--level", "head").fails(1, "lacks blocks.0.ln1_post.hook_scale")
    r = decompose(*model, "--from", out).ok()
    assert "no heads" in r.err and "no neurons" in r.err


def test_a_dump_of_some_units(tmp_path):
    out = tmp_path / "a.h5"
    trace("--hooks", "hook_*embed,*hook_attn_out,*hook_mlp_out,blocks.7.hook_resid_post,*mlp.hook_post[:,0:8]", "--dump", out, TEXT).ok()
    decompose("--from", out, "--level", "neuron").fails(1, "lacks blocks.0.attn.hook_z")
    r = decompose("--from", out)
    assert r.code == 1 and "lacks blocks.0.mlp.hook_post of all units" in r.err


def test_a_dump_of_another_model(dump):
    r = decompose("--model", TINY / "gpt2", "--from", dump).fails(1, "was made with another model than gpt2", "brook", "--model", "--force")
    assert str(dump) in r.err
    decompose("--model", TINY / "gpt2", "--from", dump, "--force").fails(1, "lacks")


def test_a_dump_that_was_killed(dump, tmp_path):
    part = tmp_path / "a.h5.part"
    shutil.copy(dump, part)
    with h5py.File(part, "r+") as f:
        f.attrs["complete"] = 0
    r = decompose("--from", part)
    assert r.code == 0 and "is not complete" in r.err and r.out == decompose("--from", dump).ok().out


@pytest.mark.parametrize("column, value, words", [
    ("id", 4096, "document 0: token 4096 is none of the model's 4096"),
    ("id", -1, "document 0: token -1 is none"),
    ("pos", 0, "document 0: its positions are not in order"),
    ("pos", -5, "document 0: its positions are not in order"),
    ("pos", 2**62, "document 0: its positions are not in order"),
])
def test_a_damaged_dump(dump, tmp_path, column, value, words):
    out = tmp_path / "a.h5"
    shutil.copy(dump, out)
    with h5py.File(out, "r+") as f:
        f[f"tokens/{column}"][2] = value
    decompose(out).fails(1, f"{out}: {words}")


def test_files_that_are_no_dumps(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"nothing")
    decompose("--from", tmp_path / "a.h5").fails(1, "a.h5")
    decompose("--from", tmp_path / "none.h5").fails(1, "none.h5")
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["x"] = [1]
    decompose("--from", tmp_path / "b.h5").fails(1, "b.h5")


# --- wrong command lines
@pytest.mark.parametrize("args, words", [
    (("--target", " blue whale"), ('--target " blue whale" is', "tokens", '" blue"', "name one", "#ID")),
    (("--target", "#4096"), ("--target #4096", "4096 tokens, #0 to #4095")),
    (("--target", "#99999999999999999999999"), ("#0 to #4095",)),
    (("--target", ""), ("--target", "empty")),
    (("--contrast", " water"), ("--contrast", "two tokens with a comma between")),
    (("--contrast", " water,"), ("two tokens with a comma between",)),
    (("--contrast", ", water"), ("two tokens with a comma between",)),
    (("--contrast", " water, blue whale"), ('--contrast " blue whale" is',)),
    (("--target", "final", "--contrast", "a,b"), ("--target and --contrast exclude each other",)),
    (("--layers", "8"), ("--layers", "8")),
    (("--layers", "x"), ("--layers", "x")),
    (("--heads", "6"), ("--heads 6: a layer has 6 heads, from 0",)),
    (("--heads", "L3N1"), ('"L3N1" is no head', "L3H9")),
    (("--heads", "L8H0"), ("L8H0: layer 8 is not looked at", "0 to 7")),
    (("--layers", "2", "--heads", "L3H0"), ("L3H0: layer 3 is not looked at", "--layers chooses")),
    (("--neurons", "768"), ("--neurons 768: a layer has 768 neurons",)),
    (("--neurons", "L3H1"), ('"L3H1" is no neuron', "L3N9")),
    (("--neurons", "L9N0"), ("L9N0: layer 9 is not looked at",)),
    (("--neurons", "@nowhere"), ("cannot open nowhere",)),
    (("--level", "layer", "--heads", "3"), ("--heads asks for more than the level layer shows",)),
    (("--level", "head", "--neurons", "3"), ("--neurons asks for more than the level head shows",)),
    (("--level", "edit"), ("--level edit", "layer|head|neuron")),
    (("--rank-by", "size"), ("--rank-by size", "auto|logit|share|norm")),
    (("-k", "0"), ("-k", "at least 1")),
    (("--format", "html"), ("--format html", "auto|text|tsv|ndjson")),
    (("--format", "text", "--json"), ("--json and --format exclude each other",)),
    (("--positions", "@field"), ("field",)),
    (("--width", "3"), ("--width 3", "at least 20")),
])
def test_wrong_options(args, words):
    r = decompose(*args, TEXT)
    r.fails(1 if "cannot open" in r.err or "field" in words else 2, *words)


@pytest.mark.parametrize("args, words", [
    (("--from", "DUMP", TEXT), ("--from", f'but "{TEXT}" was given too')),
    (("DUMP", "--ablate", "blocks.5.hook_mlp_out"), ("--ablate is about a run over text",)),
    (("--from", "DUMP", "--file", "x"), ("--file is about a run over text",)),
    (("--from", "DUMP", "--ctx", "4"), ("--ctx is about a run over text",)),
    (("--from", "DUMP", "--positions", "@who"), ("--positions @who is about the bytes of a text",)),
    (("--from", "DUMP", "--positions", "x"), ("--positions", '"x" is none of')),
])
def test_wrong_options_beside_a_dump(args, words, dump):
    decompose(*(dump if a == "DUMP" else a for a in args)).fails(2, *words)


def test_a_dump_is_an_operand_too(dump):
    assert decompose(dump).ok().out == decompose("--from", dump).ok().out


def test_without_a_text_the_first_of_brooks_sentences():
    r = decompose("--level", "layer").ok()
    assert r.out.startswith(b"doc 0, position ") and r.out.count(b"doc ") == 1


def test_tokens_need_a_tokenizer_or_numbers():
    decompose(*GPT2, "--target", " river", "--quiet").fails(2, '--target " river": there is no tokenizer', "#1234")
    p, = positions(*GPT2, "--target", "#5")
    assert p["target"] == {"id": 5, "token": None}
    assert b"logit of #5" in decompose(*GPT2, "--target", "#5", "--quiet").ok().out


def test_no_text(tmp_path):
    (tmp_path / "empty").write_bytes(b"\n\n")
    decompose("--file", tmp_path / "empty").fails(1, "the input holds no document")


# --- files
@pytest.mark.parametrize("name, begins", [("a.tsv", b"doc\tpos"), ("a.ndjson", b'{"schema":"weir-parts/1"'), ("a.txt", b"doc 0")])
def test_files_appear_whole_and_replace_their_own(tmp_path, name, begins):
    out = tmp_path / name
    decompose("-o", out, TEXT).ok()
    first = out.read_bytes()
    assert first.startswith(begins) and os.listdir(tmp_path) == [name]
    if name == "a.txt":  # text is nobody's: it may be anything
        decompose("-o", out, TEXT).fails(1, "exists and is no earlier output of this kind", "--force")
    else:
        decompose("-o", out, "--positions", "1", TEXT).ok()
        assert out.read_bytes() != first
    out.write_bytes(b"mine")
    decompose("-o", out, TEXT).fails(1, "exists and is no earlier output")
    assert out.read_bytes() == b"mine"
    decompose("-o", out, "--force", TEXT).ok()
    assert out.read_bytes() == first


def test_a_failure_leaves_no_file(tmp_path, dump):
    decompose("-o", tmp_path / "a.tsv", "--target", "#9999", TEXT).fails(2, "#9999")
    decompose("-o", tmp_path / "a.tsv", "--from", dump, "--positions", "x").fails(2, "x")
    decompose("-o", tmp_path / "no" / "a.tsv", TEXT).fails(1, "a.tsv")
    assert os.listdir(tmp_path) == []


def test_a_file_of_neurons_to_list(tmp_path):
    (tmp_path / "n.txt").write_text("# two\n3, L5N9\n".replace(", ", ","))
    p, = positions("--layers", "5", "--neurons", f"@{tmp_path / 'n.txt'}", TEXT)
    assert [k for k in listed(p) if k[0] == "neuron"] == [("neuron", 5, 3), ("neuron", 5, 9)]


@pytest.mark.parametrize("level", ["layer", "head", "neuron"])
def test_logit_lens_hands_over(level, dump):
    few = () if level == "layer" else ("-k", 3)  # of what there is no list
    for args in ((TEXT, "--target", " boat", "--positions", "-2:"), ("--from", dump, *few)):
        assert weir("logit-lens", "--dla", level, *args).ok().out == decompose("--level", level, *args).ok().out
