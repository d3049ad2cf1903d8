"""logit-lens as a user meets it: the table on a terminal, formats and files, options, dumps, and what each mistake says."""
import json
import re
import shlex
import shutil
import subprocess
import unicodedata

import h5py
import numpy as np
import pytest

from lenses import STATS, STREAM, Table, records, tsv
from weircli import BIN, BROOK, ROOT, environment, tokens, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
CITY = "The capital city of Colombia is"
UTF8 = {"LC_ALL": "C.UTF-8"}
NEOX = ["--model", MODELS / "neox-parallel", "--ids"]


def lens(*args, **more):
    return weir("logit-lens", *args, **more)


def table(*args, **more):
    return lens(*args, **more).ok().out.decode()


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """The stream of one sentence, as a dump."""
    path = tmp_path_factory.mktemp("stream") / "stream.h5"
    trace("--hooks", STREAM, "--dump", path, CITY).ok()
    return path


# --- the table

def columns(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pages(text):
    """[(document or None, names of lines, {line: [(star, token, number)]}, input cells)] of a table without colours."""
    out, doc = [], None
    for block in text.split("\n\n")[1:]:
        rows = block.rstrip("\n").split("\n")
        if rows[0].startswith("document "):
            doc = rows[0]
            continue
        out.append((doc, rows))
    return out


def short(stat, x):
    """A number as the table has it."""
    if stat == "prob" and x < 0.00095:
        return re.sub("e-0", "e-", f"{x:.0e}") if x >= 0.95e-9 else "0"
    if stat == "prob":
        return "1.00" if x >= 0.9995 else f"{x:.3f}"[1:]
    return f"{x:.{0 if stat == 'rank' else 1 if stat == 'logit' or x >= 9.995 else 2}f}"


@pytest.mark.parametrize("stat", ["prob", "rank", "kl", "logit"])
def test_the_table_says_what_the_tsv_says(stat):
    t = tsv(CITY, "--target", "final")
    (_, rows), = pages(table(CITY, "--target", "final", "--stat", stat, "--width", 200, env=UTF8))
    width = 15 if stat == "logit" else 14
    assert rows[0].startswith(f"{stat} ") and "0 <|endoftex" in rows[0] and [row.split()[0] for row in rows[1:]] == t.lines
    for row, line in zip(rows[1:], t.lines):
        for pos in range(7):
            cell, want = row[len(row) - (7 - pos) * (width + 1) + 1:][:width], t.cells[0, pos, line]
            token = want["top1"].replace(" ", "·", 1) if want["top1"].startswith(" ") else want["top1"]
            assert cell[0] == ("*" if want["top1_id"] == want["next_id"] else " ")
            assert cell[1:9].rstrip() == (token if len(token) <= 8 else token[:7] + "…")
            assert cell[9:].strip() == short(stat, float(want[stat])), (line, pos, cell)


def test_the_head_tells_how_to_compare_it():
    head = table(CITY, "--stat", "kl-prev", "--bos", "no").split("\n\n")[0]
    for word in ("logit-lens  brook  arguments", "each row's own statistics", "BOS no", "kl_prev: KL(this row"):
        assert word in head
    assert "CACHED" in table(CITY, "--norm", "cached") and "NONE" in table(CITY, "--norm", "none")
    assert "of ' is'" in table(CITY, "--target", " is") and "token that follows" in table(CITY, "--target", "next")
    assert "' of' minus ' is'" in table(CITY, "--contrast", " of, is"), "--contrast alone shows the contrast"


def test_pages_by_width_have_the_same_cells():
    whole = pages(table(CITY, "--layers", "5-7", "--width", 200))
    narrow = pages(table(CITY, "--layers", "5-7", "--width", 40))
    assert len(whole) == 1 and len(narrow) == 4
    assert all(len(row) <= 40 for _, rows in narrow for row in rows)
    for i, row in enumerate(whole[0][1]):
        assert row.split() == [row.split()[0]] + [w for _, rows in narrow for w in rows[i].split()[1:]]
    assert table(CITY, "--width", 20).count("\n\n") == 7, "one position a page is the least"


def test_documents_have_titles_and_batches_do_not_show():
    text = [CITY, "Two of them"]
    want = table(*text, "--layers", 7, "--width", 60)
    assert re.findall(r"^document \d+$", want, re.M) == ["document 1"]
    for batch in (1, 4, 7):
        assert table(*text, "--layers", 7, "--width", 60, "--batch", batch) == want


def test_bottom_up_is_the_other_way_round():
    (_, down), (_, up) = pages(table(CITY, "--width", 200))[0], pages(table(CITY, "--width", 200, "--bottom-up"))[0]
    assert up == down[::-1]


def test_more_tokens_stand_below_the_first():
    t = tsv(CITY, "-k", 3, "--layers", 6)
    (_, rows), = pages(table(CITY, "-k", 3, "--layers", 6, "--width", 200, env=UTF8))
    assert len(rows) == 1 + 2 * 3 and [row.split()[0] for row in rows[1::3]] == t.lines
    for j in range(3):
        cell = rows[1 + j][-14:]
        assert cell[1:9].strip("· ") == t.cells[0, 6, "L6"][f"top{j + 1}"].strip()
        assert cell[9:].strip() == f"{float(t.cells[0, 6, 'L6'][f'p{j + 1}']):.3f}"[1:]
    (_, rows), = pages(table(CITY, "-k", 2, "--layers", 6, "--stat", "kl", "--width", 200))
    assert rows[2][-5:].strip() == "", "the number of the line is not that of its second token"


def test_split_characters_are_drawn_once_and_wide_ones_keep_the_columns():
    text = "é🚣日本 x"
    n = len(tokens(text)[0]["ids"]) + 1
    out = table(text, "--layers", 7, "--width", 400, env=UTF8)
    (_, rows), = pages(out)
    parts = re.findall(r"(\S)(\d)/(\d)", rows[0])
    assert "".join(c for c, i, _ in parts if i == "1") == "🚣日本" and len(parts) > 6
    assert {columns(row) for row in rows[1:]} == {columns(rows[0])} and columns(rows[0]) == 5 + 15 * n - 1
    assert "\\x" in rows[1], "a predicted part of a character is shown as its bytes"
    ascii_only = lens("--layers", 7, "the water", "--width", 400, env={"LC_ALL": "C"}).ok().out
    assert ascii_only.isascii() and b"_water" in ascii_only


def test_nothing_in_a_text_acts_on_the_terminal():
    out = lens("--layers", 7, "\x1b[31m\x07\x9b1m red\u202e", env=UTF8).ok().out
    assert not set(out) & (set(range(32)) - {10}) and "\u202e" not in out.decode()


@pytest.mark.parametrize("colour, code", [("16", r"97;4[14]m"), ("256", r"38;5;231;48;5;\d+m"), ("24bit", r"48;2;\d+;\d+;\d+m")])
def test_colours(colour, code):
    plain, coloured = (table(CITY, "--stat", "rank", "--color", c) for c in ("never", colour))
    assert re.search("\x1b\\[" + code, coloured) or re.search("\x1b\\[.*" + code, coloured)
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain == table(CITY, "--stat", "rank")
    for line in coloured.split("\n"):
        assert len(re.findall("\x1b\\[0m", line)) * 2 == line.count("\x1b["), "what begins ends in its line"
    both = table(CITY, "--contrast", " of, is", "--color", "24bit")
    red, blue = (set(re.findall(rf"48;2;{rgb}m", both)) for rgb in (r"\d+;(?:38|3\d|4\d);\d\d", r"4\d;\d+;1?\d\d"))
    assert red and blue, "a contrast has both signs"


# --- input

def test_without_a_text_it_is_the_first_sentence():
    first = (BROOK / "sentences.txt").read_text(encoding="utf-8").split("\n")[0]
    r = lens("--layers", 7).ok()
    assert r.err == "logit-lens: standard input is empty, so the text is the first of brook's sentences\n"
    assert r.out.replace(b"the first of brook's sentences", b"arguments") == lens("--layers", 7, first).ok().out


def test_a_text_from_standard_input_and_files(tmp_path):
    (tmp_path / "t.txt").write_text(CITY + "\nTwo\n")
    want = tsv(CITY, "Two", "--layers", 7)
    assert want.head["input"] == "arguments"
    for args, more, name in ((["--file", tmp_path / "t.txt"], {}, "t.txt"), (["-"], {"stdin": (CITY + "\nTwo").encode()}, "standard input")):
        t = tsv(*args, "--layers", 7, **more)
        assert t.cells == want.cells and t.head["input"] == name
    second = tsv("--file", tmp_path / "t.txt", "--layers", 7, "--shard", "1/2")
    assert second.cells == {k: c for k, c in want.cells.items() if k[0] == 1}, "a shard keeps its documents' numbers"


# --- formats and files

def test_ndjson_says_what_the_tsv_says():
    ask = ["é🚣 x", "--contrast", "#3,#7", "--target", "next", "--layers", "0,7", "-k", 4]
    t = tsv(*ask)
    head, positions = records(*ask)
    assert lens(*ask, "--json").ok().out == lens(*ask, "--format", "ndjson").ok().out
    assert head["schema"] == "weir-lens/1" and t.head["schema"] == "weir-lens-tsv/1"
    assert {k: v for k, v in head.items() if k != "schema"} == {k: v for k, v in t.head.items() if k != "schema"}
    assert head["stats"] == list(STATS) and len(head["contrast"]) == 2
    for p in positions:
        for cell in p["lines"]:
            want = t.cells[p["doc"], p["pos"], cell["line"]]
            for stat in STATS:
                number = cell[stat]
                assert want[stat] in ("nan", "0") if number is None else float(want[stat]) == number
            assert [str(x["id"]) for x in cell["top"]] == [want[f"top{j}_id"] for j in (1, 2, 3, 4)]
            for j, x in enumerate(cell["top"], 1):
                assert np.exp(x["logprob"]) == pytest.approx(float(want[f"p{j}"]), rel=1e-6)
        assert (p["next"] is None) == (want["next_id"] == "") == (p["target"] is None)
    texts = b"".join(bytes.fromhex(p["input"]["hex"]) if p["input"]["hex"] else p["input"]["token"].encode() for p in positions[1:])
    assert texts.decode() == "é🚣 x", "the bytes of the tokens are those of the text"


def test_only_what_is_shown_is_computed_and_all_is_there_for_programs():
    head, positions = records(CITY, "--layers", 7)
    assert head["stats"] == [s for s in STATS if s != "contrast"] and len(positions[0]["lines"][0]["top"]) == 10 and head["k"] == 10
    assert tsv(CITY, "--layers", 7).head["k"] == 1


@pytest.mark.parametrize("name, begins", [("x.tsv", b"# {"), ("x.ndjson", b"{"), ("x.jsonl", b"{"), ("x.svg", b"<?xml"),
                                          ("x.html", b"<!doctype html>"), ("x.txt", b"logit-lens  brook")])
def test_files_are_whole_and_foreign_ones_stay(tmp_path, name, begins):
    path = tmp_path / name
    assert lens(CITY, "-o", path).ok().out == b""
    first = path.read_bytes()
    assert first.lower().startswith(begins)
    lens(CITY, "-o", path).ok()
    assert path.read_bytes() == first, "an earlier output of the kind is replaced"
    path.write_bytes(b"mine")
    lens(CITY, "-o", path).fails(1, str(path), "no earlier output of this kind", "--force")
    assert path.read_bytes() == b"mine" and len(list(tmp_path.iterdir())) == 1
    lens(CITY, "-o", path, "--force").ok()
    assert path.read_bytes() == first


def test_a_plot_stands_beside_the_output(tmp_path):
    r = lens(CITY, "--stats-plot", "p.svg", cwd=tmp_path).ok()
    assert r.out == table(CITY).encode() and (tmp_path / "p.svg").read_bytes().startswith(b"<?xml")
    lens(CITY, "--stats-plot", "p.svg", "-o", "t.tsv", cwd=tmp_path).ok()
    assert Table((tmp_path / "t.tsv").read_bytes()).cells == tsv(CITY).cells
    (tmp_path / "p.svg").write_bytes(b"mine")
    lens(CITY, "--stats-plot", "p.svg", "-o", "u.tsv", cwd=tmp_path).fails(1, "p.svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.svg", "t.tsv"]


def test_a_failed_run_leaves_nothing(tmp_path):
    lens("--positions", "40:", "-o", tmp_path / "x.tsv", "--stats-plot", tmp_path / "p.svg", "x").fails(1, "--positions 40:", "no document")
    assert list(tmp_path.iterdir()) == []
    lens("--positions", "40:", "x").fails(1, "--positions 40:")


def test_a_reader_that_has_seen_enough():
    command = f"set -o pipefail; '{BIN}/weir' logit-lens -q --format tsv --file '{BROOK}/sentences.txt' | head -c 10 >/dev/null"
    p = subprocess.run(["bash", "-c", command],
                       env=environment(), stderr=subprocess.PIPE, timeout=60)
    assert p.returncode == 1 and p.stderr == b""


def test_a_word_without_its_space_is_another_token():
    r = lens(CITY, "--target", "The").ok()
    assert r.err == 'logit-lens: --target: "The" begins a text or goes on in a word; behind a space the token is " The"\n'
    assert lens(CITY, "--contrast", "The, The").ok().err.count("--contrast:") == 1
    for silent in ((" The",), ("#1234",), (".",), ("The", "--quiet")):
        assert lens(CITY, "--target", *silent).ok().err == ""


# --- values that are changed

def test_interventions_act_and_are_named():
    plain, changed = tsv(CITY), tsv(CITY, "--ablate", "blocks.3.hook_attn_out")
    for key, cell in plain.cells.items():
        same = all(changed.cells[key][c] == cell[c] for c in ("logit", "entropy", "top1_id"))
        assert same == (key[2] in ("embed", "L0", "L1", "L2")), key
    assert changed.head["interventions"][0]["selector"] == "blocks.3.hook_attn_out" and plain.head["interventions"] is None
    assert "values changed by ablate blocks.3.hook_attn_out=zero; scale L2N5=3\n" in table(
        CITY, "--ablate", "blocks.3.hook_attn_out", "--scale", "L2N5=3")
    lens(CITY, "--scale", "unembed.hook_in=2").fails(2, "--scale unembed.hook_in", "behind the stream")
    lens(CITY, "--ablate", ",".join(f"blocks.{i % 8}.hook_mlp_out" for i in range(40)) + ",unembed.hook_in").fails(2, "behind the stream")
    lens(CITY, "--ablate", "ln_final.*").fails(2, "ln_final.hook_scale", "behind the stream")


def test_logits_that_are_not_finite_are_a_false_condition():
    r = lens(CITY, "--layers", "0,7", "--scale", "blocks.3.hook_resid_post=1e38", "--format", "tsv")
    assert r.code == 3 and "7 of 14 cells have logits that are not finite" in r.err.splitlines()[-1]
    t = Table(r.out)
    bad = t.cells[0, 3, "out"]
    assert (bad["prob"], bad["entropy"], bad["rank"], bad["top1_id"]) == ("nan", "nan", "0", "") and t.cells[0, 3, "L0"]["entropy"] != "nan"
    r = lens(CITY, "--layers", 7, "--scale", "blocks.3.hook_resid_post=1e38", "-q")
    assert b" -           -" in r.out and r.code == 3


# --- the vocabulary's padding

@pytest.fixture(scope="module")
def padded(tmp_path_factory):
    """Brook with a tokenizer that lacks the last 400 of its tokens: from there on the vocabulary is padding."""
    d = tmp_path_factory.mktemp("padded")
    for f in BROOK.glob("*"):
        if f.is_file() and f.suffix != ".jsonl":
            shutil.copy(f, d / f.name)
    tok = json.loads((d / "tokenizer.json").read_text(encoding="utf-8"))
    vocab = tok["model"]["vocab"]
    gone = {piece for piece, i in vocab.items() if i >= 3696}
    tok["model"]["vocab"] = {p: i for p, i in vocab.items() if p not in gone}
    pair = lambda m: m if isinstance(m, list) else m.split(" ")
    tok["model"]["merges"] = [m for m in tok["model"]["merges"] if not {"".join(pair(m)), *pair(m)} & gone]
    (d / "tokenizer.json").write_text(json.dumps(tok), encoding="utf-8")
    return d


def test_padding_is_named_or_left_out(padded):
    text = "Among the places of Colorado is Boulder."
    shown = tsv(text, "--model", padded)
    assert shown.head["padding_from"] == 3696 and not shown.head["padding_masked"]
    assert all(re.fullmatch(r"<#\d+>", c["top1"]) for c in shown.cells.values() if int(c["top1_id"]) >= 3696)
    left_out = tsv(text, "--model", padded, "--mask-padding", "-k", 20)
    assert left_out.head["padding_masked"] and all(int(c[f"top{j}_id"]) < 3696 for c in left_out.cells.values() for j in range(1, 21))
    more = [float(c["p1"]) > float(shown.cells[k]["p1"]) for k, c in left_out.cells.items() if c["top1_id"] == shown.cells[k]["top1_id"]]
    assert more.count(True) > len(more) / 2, "what is left shares all the probability"
    assert "tokens from #3696 on LEFT OUT" in table(text, "--model", padded, "--mask-padding")
    lens("--model", padded, "--mask-padding", "--target", "#3696", text).fails(2, "#3696", "--mask-padding")
    lens("--model", padded, "--target", "#3696", "--layers", 7, text).ok()
    assert "has all 4096 tokens" in lens("--mask-padding", "--layers", 7, text).ok().err


# --- dumps

def test_a_dump_is_the_operand_or_from(stream):
    want = tsv(CITY)
    for args in ([stream], ["--from", stream]):
        t = tsv(*args)
        assert t.cells == want.cells and t.head["source"]["text"] == want.head["source"]["text"]
        assert t.head.keys() == want.head.keys()
        assert all(t.head[k] == want.head[k] for k in t.head if k not in ("input", "source"))
    assert table(stream, "--layers", "2,5", "--stat", "kl").split("\n\n")[1] == table(CITY, "--layers", "2,5", "--stat", "kl").split("\n\n")[1]


def test_what_a_dump_lacks_is_named(stream, tmp_path):
    def dump(name, *hooks):
        trace("--hooks", ",".join(hooks), "--dump", tmp_path / name, CITY).ok()
        return tmp_path / name

    early = dump("early.h5", "blocks.{0,1}.hook_resid_post")
    lens(early).fails(1, "early.h5 lacks blocks.7.hook_resid_post", "behind the last block", "weir trace --hooks 'blocks.0.hook_resid_pre")
    some = dump("some.h5", "blocks.{2,7}.hook_resid_post", "blocks.4.hook_attn_out")
    assert tsv(some).lines == ["L2", "out"], "without --layers, those that are there"
    assert tsv(some, "--site", "attn-out").lines == ["L4 attn", "out"]
    lens(some, "--layers", "2,3").fails(1, "some.h5 lacks blocks.3.hook_resid_post")
    lens(some, "--site", "attn-out", "--layers", "2").fails(1, "lacks blocks.2.hook_attn_out", "--hooks 'blocks.2.hook_attn_out'")
    lens(some, "--site", "mlp-out").fails(1, "has no layer of --site mlp-out")
    units = dump("units.h5", "blocks.7.hook_resid_post[:, 3]")
    lens(units).fails(1, "only 1 of the 192 units of blocks.7.hook_resid_post")
    lens(stream, "--bos", "no").fails(2, "--bos", "stream.h5")
    lens(stream, "--ablate", "L1N1").fails(2, "--ablate")
    lens(stream, "--positions", "@x").fails(2, "--positions @x")
    lens(stream, "--positions", "9:").fails(1, "--positions 9:")
    lens("--from", stream, "text").fails(2, "--from", "text")
    lens(stream, "--model", MODELS / "gpt2").fails(1, "another model", "brook")
    lens("nowhere.h5").fails(1, "nowhere.h5", "no such file")
    (tmp_path / "bad.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    lens(tmp_path / "bad.h5").fails(1, "bad.h5")


def test_a_dump_that_was_rounded_says_so(tmp_path):
    trace("--hooks", STREAM, "--dtype", "f16", "--dump", tmp_path / "d.h5", CITY).ok()
    r = lens(tmp_path / "d.h5").ok()
    assert "float16" in r.err and "not exactly the model's own" in r.err


def test_a_dump_of_another_text_of_the_stream(tmp_path):
    """Interventions of the run that was recorded stand in the head."""
    trace("--hooks", STREAM, "--ablate", "blocks.3.hook_attn_out", "--dump", tmp_path / "d.h5", CITY).ok()
    live, dump = tsv(CITY, "--ablate", "blocks.3.hook_attn_out"), tsv(tmp_path / "d.h5")
    assert dump.cells == live.cells and dump.head["interventions"] == live.head["interventions"]


# --- direct logit attribution

def test_dla_is_what_decompose_does():
    assert lens("--dla", "head", "--target", " B", CITY).ok().out == weir("decompose", "--level", "head", "--target", " B", CITY).ok().out
    lens("--dla", "head", "--stat", "kl", CITY).fails(2, "--dla", "--stat")
    lens("--dla", "layer", "-o", "x.html", CITY).fails(2, "--dla", "text, tsv and ndjson")
    lens("--dla", "neurone", CITY).fails(2, "layer|head|neuron")


# --- mistakes

@pytest.mark.parametrize("args, words", [
    (["--site", "resid"], ["--site resid", "resid-pre, resid-mid, resid-post, attn-out, mlp-out"]),
    (["--site", "resid-post,"], ["--site"]),
    (["--layers", "8"], ["layer 8 does not exist", "0 to 7"]),
    (["--layer-step", "0"], ["--layer-step 0", "at least 1"]),
    (["--target", "Bogota"], ['"Bogota" is 3 tokens ("B", "og", "ota")', "#ID"]),
    (["--target", "Asia"], ['"Asia" is 2 tokens', 'but " Asia", with a space before it, is one']),
    (["--target", "#4096"], ["--target #4096", "4096 tokens"]),
    (["--target", "#x"], ["--target"]),
    (["--contrast", "x"], ["--contrast", "comma"]),
    (["--contrast", " is,Bogota"], ["--contrast", '"Bogota" is 3 tokens']),
    (["--stat", "contrast"], ["--stat contrast", "--contrast A,B"]),
    (["--stat", "jds"], ["--stat jds", "jsd"]),
    (["--norm", "twice"], ["--norm twice", "recompute|cached|none"]),
    (["-k", "0"], ["-k 0"]),
    (["--positions", "x"], ["--positions", '"x"']),
    (["--format", "pdf"], ["--format pdf", "text|tsv|ndjson|svg|html"]),
    (["--format", "h5"], ["--format h5", "-o FILE.h5"]),
    (["--json", "--format", "tsv"], ["--json", "ndjson"]),
    (["--format", "tsv", "--width", "80"], ["--width", "text table"]),
    (["--format", "html", "--bottom-up"], ["--bottom-up", "text table"]),
    (["--stats-plot", "-"], ["--stats-plot -", "name a file"]),
    (["--stats-plot", "x.svg", "-o", "x.svg"], ["--stats-plot", "same file"]),
    (["--width", "5"], ["--width 5", "at least 20"]),
    (["--shard", "0/2", "--max-tokens", "5"], ["--shard", "--max-tokens"]),
])
def test_wrong_command_lines(args, words, tmp_path):
    lens(*args, CITY, cwd=tmp_path).fails(2, *words)
    assert list(tmp_path.iterdir()) == []


def test_what_a_model_lacks_is_said():
    lens(*NEOX, "--site", "resid-mid", "3 4").fails(2, "--site resid-mid", "adds attention and MLP at once")
    r = lens(*NEOX, "-k", 81, "-q", "3 4").fails(2, "-k 81", "80 tokens")
    assert r.out == b""
    lens(*NEOX, "-q", "--target", " is", "3 4").fails(2, "--target", "no tokenizer", "#1234")
    assert "caps no logits" in lens("--no-softcap", "--layers", 7, "x").ok().err
    with_ids = lens(*NEOX, "-q", "--target", "#5", "3 4").ok().out
    assert b"<#3>" in with_ids and b"of '#5'" in with_ids
    _, positions = records(*NEOX, "-q", "3 4")
    assert positions[0]["input"] == {"id": 3, "token": None, "hex": None}


def test_a_token_by_its_own_spelling():
    i = tokens(" is")[0]["ids"][0]
    by = [lens("--target", name, "--stat", "rank", CITY).ok().out for name in (" is", f"#{i}", "\u0120is")]
    assert by[0] == by[1] == by[2]


def test_one_token_one_layer(tmp_path):
    """The smallest of everything: one token, one layer, k = V."""
    model = ["--model", MODELS / "llama-q4_0", "--ids", "-q"]
    t = tsv(*model, "-k", 40, "7")
    assert t.lines == ["embed", "out"] and len(t.cells) == 2
    for c in t.cells.values():
        assert {int(c[f"top{j}_id"]) for j in range(1, 41)} == set(range(40))
        assert sum(float(c[f"p{j}"]) for j in range(1, 41)) == pytest.approx(1, abs=1e-6)
        assert c["ce"] == "nan" and c["next"] == ""
    with h5py.File(tmp_path / "x.h5", "w"):
        pass
    lens(tmp_path / "x.h5").fails(1, "x.h5")


def test_the_page_of_the_outputs_shows_a_real_run():
    page = (ROOT / "tools" / "lens" / "README.md").read_text(encoding="utf-8")
    command, shown = re.search(r"```\n\$ weir (logit-lens [^\n]*)\n(.*?)\n```", page, re.S).groups()
    assert lens(*shlex.split(command)[1:], env=UTF8).ok().out.decode() == shown + "\n"
    t = tsv(*shlex.split(command)[1:])
    for stat in STATS:
        assert f"| `{stat}`" in page or f"`{stat}`, " in page or f", `{stat}` |" in page
    for column in t.columns[:11]:
        assert f"`{column}`" in page
    for key in t.head:
        assert f"`{key}`" in page
