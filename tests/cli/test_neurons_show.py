"""neuron-top's text, TSV and NDJSON: what they look like, and that programs can rely on it. tools/neurons/README.md is the measure: its
tables of keys are read here and hold for every object."""
import csv
import json
import os
import pty
import re
import subprocess
import unicodedata

import numpy as np
import pytest

from weircli import BIN, BROOK, ROOT, environment, weir

README = ROOT / "tools" / "neurons" / "README.md"
SENTENCES = [line for line in (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines() if line]
HOSTILE = ["A bell\x07 rings, \x1b[31mred\x1b[0m and \x1b]0;title\x07 gone.", "C1 \u009b31m, DEL \x7f, \u202eturned\u202c and\u2028broken.",
           "Emoji 🚣 and 👨\u200d👩\u200d👧 and 😀😀😀, 漢字かな交じり文, cafe\u0301."]
SGR = re.compile(r"\x1b\[([0-9;]*)m")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("show") / "text.txt"
    path.write_text("\n".join(SENTENCES[:60] + HOSTILE) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def result(text):
    """A search of everything, as a file that the outputs are made of."""
    path = text.with_name("r.h5")
    weir("neuron-top", "--layers", "5,6", "--neurons", "3,421,600", "-k", 15, "--quantiles", 2, "--random", 4, "--threshold", 0.5, "--file", text,
         "-o", path).ok()
    return path


def shown(result, *more, env=None):
    return weir("neuron-top", result, "--format", "text", *more, env={"LC_ALL": "C.UTF-8", **(env or {})}).ok().out.decode()


# --- NDJSON: the tables of README.md

def tables():
    """{title: [(key, types)]} of the sections about NDJSON."""
    found, title = {}, None
    for line in README.read_text(encoding="utf-8").split("## ndjson")[1].split("\n## ")[0].splitlines():
        if line.startswith("### ") or re.fullmatch(r"A \w+:", line):
            title = line.strip("# :")
        elif line.startswith("| `"):
            keys, types = [c.strip() for c in line.strip("|").split("|")][:2]
            found.setdefault(title, []).extend((k, types) for k in re.findall(r"`(\w+)`", keys))
    return found


KINDS = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None), "number": (int, float),
         "value": (dict, list, str)}


def is_kind(value, name):
    return isinstance(value, KINDS[name]) and (not isinstance(value, bool) or name == "boolean")


def against(o, table):
    """What of the object is not as the table says, or None."""
    if list(o) != [k for k, _ in table]:
        return f"keys {list(o)}"
    for key, types in table:
        if types and not any(is_kind(o[key], t) for t in types.split(" or ")):
            return f"{key} = {o[key]!r} is no {types}"
    return None


def strict(line):
    """JSON without NaN, and without a key that stands twice."""
    def no_constant(name):
        raise ValueError(name)

    def once(pairs):
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)
    return json.loads(line, parse_constant=no_constant, object_pairs_hook=once)


def check_objects(objects):
    """The first fault of all objects, or None."""
    t = tables()
    head, *neurons = objects
    faults = [against(head, t["Head"])]
    for o in neurons:
        faults.append(against(o, t["Neuron"]))
        for places in o["lists"].values():
            for p in places:
                faults.append(against(p, t["A place"]))
                if p["context"]:
                    faults.append(against(p["context"], t["A context"]))
    return next((f for f in faults if f), None)


def test_the_tables_were_found():
    t = tables()
    assert {k: len(v) for k, v in t.items()} == {"Head": 19, "Neuron": 22, "A place": 7, "A context": 10}


@pytest.fixture(scope="module")
def objects(result):
    out = weir("neuron-top", result, "--format", "ndjson").ok().out
    assert out.endswith(b"\n")
    return [strict(line) for line in out.decode().splitlines()]


def test_ndjson_is_what_the_readme_says(objects):
    head, *neurons = objects
    assert head["schema"] == "weir-neurons/1" and head["neurons"] == len(neurons) == 6
    assert check_objects(objects) is None
    for o in neurons:
        assert sum(n for _, n in o["hist"]) == o["count"] == head["counted"]
        assert [b for b, _ in o["hist"]] == sorted({b for b, _ in o["hist"]})
        assert sorted(o["lists"]) == sorted(["top", "bottom", "random", *(f"band{i}" for i in range(5))])
        assert len(o["above"]) == len(head["options"]["thresholds"]) == 2 and o["above"][0] >= o["above"][1]
        top, bottom = ([p["value"] for p in o["lists"][name]] for name in ("top", "bottom"))
        assert top == sorted(top, reverse=True) and bottom == sorted(bottom) and top[0] == o["max"] and bottom[0] == o["min"]
    assert head["tokens"] == head["counted"] + sum(head["masked"].values())


def test_the_check_of_objects_can_fail(objects):
    for change in (lambda o: o[0].pop("docs"), lambda o: o[0].update(more=1), lambda o: o[0].update(complete=1), lambda o: o[1].update(unit="3"),
                   lambda o: o[1].update(mean=True), lambda o: o[1]["lists"]["top"][0].update(count="1"),
                   lambda o: o[-1]["lists"]["random"][-1]["context"].pop("ids")):
        broken = json.loads(json.dumps(objects))
        change(broken)
        assert check_objects(broken)
    with pytest.raises(ValueError):
        strict('{"a":NaN}')


def test_named_neurons_have_values_and_means(objects):
    for o in objects[1:]:
        assert o["token_means"]["highest"][0]["mean"] >= o["token_means"]["lowest"][0]["mean"]
        for p in o["lists"]["top"]:
            c = p["context"]
            assert len(c["values"]) == len(c["ids"]) and c["values"][c["hit"]] == p["value"]


# --- TSV

def test_tsv_says_what_ndjson_says(result, objects):
    out = weir("neuron-top", result, "--format", "tsv").ok().out.decode()
    rows = list(csv.DictReader(out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
    assert len(out.splitlines()) == out.count("\n") == len(rows) + 1, "no cell breaks its line"
    want = [(o["layer"], o["unit"], name, p) for o in objects[1:] for name in ("top", "bottom", *(f"band{i}" for i in range(5)), "random")
            for p in o["lists"][name]]
    assert len(rows) == len(want) > 200
    for row, (layer, unit, name, p) in zip(rows, want):
        assert None not in row and None not in row.values()
        assert (int(row["layer"]), int(row["neuron"]), row["list"]) == (layer, unit, name)
        assert (int(row["doc"]), int(row["pos"]), float(row["value"]), int(row["count"])) == (p["doc"], p["pos"], p["value"], p["count"] or 0)
        assert int(row["token_id"]) == p["context"]["ids"][p["context"]["hit"]] and int(row["hit_byte"]) == p["context"]["at"][0]
    ranks = [int(row["rank"]) for row in rows]
    assert ranks[:3] == [1, 2, 3] and max(ranks) == 15


# --- text

def columns(line):
    wide = lambda c: 0 if unicodedata.combining(c) or c in "\u200d\ufe0f" else 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return sum(map(wide, line))


def control(text):
    """Characters that act on a terminal or break a line, but for line ends and colours."""
    return [c for c in SGR.sub("", text).replace("\n", "") if unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in "\u202e\u202c"]


def test_nothing_in_a_text_acts_on_the_terminal(result):
    for more in (["--color", "never"], ["--color", "24bit"]):
        assert control(shown(result, "-k", 15, *more)) == []
    assert control("\x1b[1mbold\x1b[0m\n") == [] and control("a\x07b\x1b[2J") == ["\x07", "\x1b"] and control("\u009b31m") and control("a\u202e")


def test_the_head_and_a_neuron(result):
    out = shown(result)
    head = out.split("\n\n")[0]
    for word in ("brook", "post", "max", "text of 8 tokens", "BOS masked", "counted", "seed"):
        assert word in head, word
    blocks = out.split("\n\n")[1:]
    assert [b.split()[0] for b in blocks] == [f"L{layer}N{unit}" for layer in (5, 6) for unit in (3, 421, 600)]
    for block in blocks:
        for word in ("max +", "min -", "mean ", "sd ", "skew ", "kurt ", ">0 ", ">0.5 ", "  hist ", "  top\n", "  bottom\n", "  random\n", "99.9% to 100%"):
            assert word in block, word


PLACE = re.compile(r" +\d+ +[-+][\d.e+-]+ +\d+:\d+ ")


def token_columns(block):
    """Where the brackets of a list's lines begin; lines whose text has brackets of its own are left out."""
    lines = [re.sub(r" {2}then '.*", "", line) for line in block.splitlines() if PLACE.match(line)]
    return {columns(line[:line.index("[")]) for line in lines if line.count("[") == 1}


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_lists_fit_the_width_and_tokens_stand_below_each_other(result, width):
    out = shown(result, "--width", width, "--color", "never")
    lists = re.split(r"^  (?:top|bottom|random|from .*)$", out, flags=re.M)[1:]
    assert len(lists) == 6 * 8
    for block in lists:
        assert len(token_columns(block.split("\n\n")[0])) <= 1, block
    longest = max(columns(line) for line in out.splitlines() if PLACE.match(line))
    assert 30 < longest <= width


def test_the_measure_of_lists_can_fail():
    assert token_columns("   1  +1.5  2:7  a[b]\n   2  +1.4  3:4  aa[b]\n") == {18, 19}
    assert columns("漢a\u0301") == 3


def test_wider_terminals_show_more(result):
    sizes = [len(shown(result, "--width", w)) for w in (40, 80, 120)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


@pytest.mark.parametrize("colour, sign", [("24bit", r"48;2;\d+;\d+;\d+"), ("256", r"48;5;\d+"), ("16", r"97;4[14]|3[14]")])
def test_colours_add_nothing_but_colours(result, colour, sign):
    plain = shown(result, "--color", "never", "--width", 100)
    out = shown(result, "--color", colour, "--width", 100)
    assert SGR.sub("", out) == plain and not SGR.search(plain)
    codes = set(SGR.findall(out))
    assert any(re.search(sign, c) for c in codes)
    others = {"24bit": "48;5;", "256": "48;2;", "16": "48;"}[colour]
    assert not any(others in c for c in codes)
    assert out.count("\x1b[0m") >= 1 and out.rfind("\x1b[0m") == max(m.start() for m in SGR.finditer(out)), "what was begun is ended"
    for line in out.splitlines():
        codes = SGR.findall(line)
        assert not codes or codes[-1] == "0", line


def on_a_terminal(args, **env):
    """Output on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    base = environment(TERM="xterm-256color", LC_ALL="C.UTF-8", **env)
    for name in ("NO_COLOR", "COLORTERM"):
        if name not in env:
            base.pop(name, None)
    child = subprocess.Popen([str(BIN / "weir"), *map(str, args)], stdout=theirs, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=base)
    os.close(theirs)
    out = b""
    try:
        while part := os.read(ours, 1 << 16):
            out += part
    except OSError:  # the terminal is gone: the end
        pass
    os.close(ours)
    assert child.wait(timeout=60) == 0, child.stderr.read()
    child.stderr.close()
    return out.decode()


def test_colours_on_a_terminal_and_none_with_no_color(result):
    args = ["neuron-top", result, "-k", 3, "--width", 90]
    assert "48;5;" in on_a_terminal(args)
    assert "48;2;" in on_a_terminal(args, COLORTERM="truecolor")
    assert not SGR.search(on_a_terminal(args, NO_COLOR="1"))
    assert not SGR.search(shown(result)), "none in a pipe"


def test_ascii_where_the_locale_is_not_utf8(result):
    out = shown(result, env={"LC_ALL": "C"})
    blocks = set("▁▂▃▄▅▆▇█…")
    assert not blocks & set(out) and "..." in out
    assert blocks & set(shown(result))
    assert "漢" in out or "\\x" in out, "texts are shown all the same"


def test_a_character_at_the_edge_is_whole(text):
    """Context of one token on each side: the emoji's other tokens come along, in every format."""
    args = ["neuron-top", "--layer", 6, "--neurons", "3", "-k", 400, "--dedup", "none", "--context", "1,1", "--file", text]
    found = [strict(line) for line in weir(*args, "--format", "ndjson").ok().out.splitlines()][1]["lists"]
    doc = len(SENTENCES[:60]) + 2
    here = [p for part in found.values() for p in part if p["doc"] == doc]
    assert len(here) > 20 and any(p["context"]["split"] for p in here)
    for p in here:
        c = p["context"]
        first, end = c["at"]
        raw = bytes.fromhex(c["hex"]) if c["hex"] else c["text"].encode()
        part = raw[first:end]
        if part.decode(errors="ignore").encode() != part:  # a part of a character: all of it is there
            assert any(f <= c["hit"] < f + n for f, n in c["split"])
    out = weir(*args, "--format", "text", "--width", 200, env={"LC_ALL": "C.UTF-8"}).ok().out.decode()
    assert re.search(r"\[ ?🚣\][123]/3", out) and "\ufffd" not in out


# --- what a list that is shown in part could mislead about

def test_agrees_and_kinds_are_of_the_list_that_is_kept(result, objects):
    """-k 2 shows two places of 15, and the numbers are those of all 15: the text says so."""
    assert shown(result, "-k", 2) != shown(result, "-k", 15)
    for k in (2, 15):
        blocks = shown(result, "-k", k, "--width", 200).split("\n\n")[1:]
        for o, block in zip(objects[1:], blocks):
            agree, kinds = o["agreement"], o["clusters"]
            assert f" comes next at {agree['agree']} of {agree['places']} top places kept" in block
            assert f"  kinds  {kinds['clusters']} among 15 top places kept " in block and kinds["places"] == 15


def test_places_that_nothing_follows_cannot_agree():
    out = weir("neuron-top", "--neurons", "L6N3", "--format", "text", "The river bends").ok().out.decode()
    kept = len(re.findall(r"^ +\d+ +[-+]", out.split("\n  top\n")[1].split("\n  bottom\n")[0], flags=re.M))
    assert f" of {kept - 1} top places kept (not the last of a text)" in out and f"among {kept} top places kept" in out


def test_more_places_than_are_compared(text):
    out = weir("neuron-top", "--neurons", "L6N3", "-k", 300, "--dedup", "none", "--format", "text", "--file", text, "--limit", 1).ok().out.decode()
    assert "among the first 256 of 300 top places kept" in out


FLOOR = "lie at -0.17, the minimum of GELU"


def test_lists_at_the_minimum_of_gelu_are_told_once(result):
    said = lambda *more: weir("neuron-top", *more).ok().err.count(FLOOR)
    assert said(result) == said(result, "--limit", 1) == said(result, "--sign", "-") == 1
    for more in (["--quiet"], ["--sign", "+"], ["--format", "tsv"], ["--format", "ndjson"], ["--limit", 1, "--quiet"]):
        assert said(result, *more) == 0, more
    assert said("--layer", 6, "--neurons", "3", "--site", "pre", "-k", 5, "--file", BROOK / "sentences.txt", "--max-tokens", 500) == 0
    assert said("--layer", 6, "--neurons", "3", "The river bends.") == 0, "five values, and few of them there"


def test_no_such_remark_where_values_go_below(tmp_path):
    """A gated MLP's products: near -0.17 they are by chance, and others are lower."""
    model = ROOT / "tests" / "golden" / "models" / "llama-gqa-bf16"
    r = weir("neuron-top", "--model", model, "--ids", "-k", 1, "5 9 13 2 40 41 42 7 7 8 30 21").ok()
    assert "minimum" not in r.err and b"bottom" in r.out


# --- --search

def head_of(*args):
    return weir("neuron-top", "--layers", "5,6", "--search", "The river bends.", "-k", 2, "--format", "text", *args).ok().out.decode().split(
        "\n\n")[0].splitlines()


def test_search_says_what_was_run_like_the_lists_do(result):
    lists = weir("neuron-top", "--layers", "5,6", "-k", 2, "--format", "text", "The river bends.").ok().out.decode().splitlines()
    head = head_of()
    assert head[0] == "brook  The river bends." and lists[0].startswith("brook  ")
    assert head[1] == lists[1] == "7 tokens in 1 document; 6 counted, 1 BOS masked"
    assert head[2].startswith("neuron = post; rank: value") and len(head) == 3
    assert head_of("--site", "post,resid_post", "--ablate", "L5N3", "--mask", "none")[1:] == [
        "7 tokens in 1 document; 7 counted, none masked", "neuron = post, resid_post; rank: value, each neuron by its best token here",
        'values changed by [{"kind":"ablate","selector":"L5N3","value":"zero"}]']
    counted = strict(weir("neuron-top", result, "--format", "ndjson", "--limit", 1).ok().out.splitlines()[0])["counted"]
    assert head_of(result)[2:] == ["neuron = post; rank: z, each neuron by its best token here",
                                   f"z = (value - mean) / sd in {result}: text.txt, {counted:,} tokens counted"]


def test_search_as_ndjson_has_the_head_of_lists(result):
    same = lambda *args: strict(weir("neuron-top", "--layers", "5,6", *args, "--format", "ndjson").ok().out.splitlines()[0])
    search, lists = same("--search", "The river bends."), same("The river bends.")
    shared = [key for key in lists if key not in ("schema", "options", "neurons")]
    assert list(search) == ["schema", *shared, "beside", "ranked_by"]
    assert {k: search[k] for k in shared if k != "input"} == {k: lists[k] for k in shared if k != "input"}
    assert search["model"] == "brook" and search["input"] == "The river bends." and search["beside"] is None
    assert same(result, "--search", "The river bends.")["beside"] == str(result)


def test_the_lowest_of_a_text_are_at_the_minimum_of_gelu(result):
    said = lambda *more: weir("neuron-top", "--layers", "5,6", "--search", "The river bends.", "-k", 2, *more).ok().err.count(FLOOR)
    assert said() == 1 and said("--quiet") == said("--sign", "+") == said("--format", "tsv") == said(result) == 0

def test_search_ranks_neurons_by_their_value_on_a_text(text, tmp_path):
    args = ["neuron-top", "--layers", "5,6", "--search", "The capital of France is Paris."]
    out = weir(*args, "-k", 25, "--format", "tsv").ok().out.decode()
    rows = list(csv.DictReader(out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    top = [r for r in rows if r["list"] == "top"]
    assert len(top) == 25 and [float(r["value"]) for r in top] == sorted((float(r["value"]) for r in top), reverse=True)
    found = [strict(line) for line in weir(*args, "-k", 25, "--format", "ndjson").ok().out.splitlines()]
    assert found[0]["schema"] == "weir-neurons-search/1" and found[0]["ranked_by"] == "value"
    assert [(o["layer"], o["unit"], o["value"]) for o in found[1:26]] == [(int(r["layer"]), int(r["neuron"]), float(r["value"])) for r in top]
    best = weir("neuron-top", "--layers", top[0]["layer"], "--neurons", top[0]["neuron"], "-k", 1, "--format", "ndjson",
                "The capital of France is Paris.").ok().out.splitlines()[1]
    assert strict(best)["max"] == float(top[0]["value"])
    assert f"L{top[0]['layer']}N{top[0]['neuron']}" in weir(*args, "-k", 3).ok().out.decode().split("\nhighest\n")[1].splitlines()[0]


def test_search_with_a_result_ranks_by_z(text, tmp_path):
    weir("neuron-top", "--layers", "6", "--file", text, "-k", 1, "-o", tmp_path / "r.h5").ok()
    stats = {o["unit"]: o for o in map(strict, weir("neuron-top", tmp_path / "r.h5", "--format", "ndjson").ok().out.splitlines()[1:])}
    found = [strict(line) for line in weir("neuron-top", tmp_path / "r.h5", "--layers", "6", "--search", "The capital of France is Paris.", "-k", 30,
                                           "--format", "ndjson").ok().out.splitlines()]
    assert found[0]["ranked_by"] == "z"
    top = [o for o in found[1:] if o["list"] == "top"]
    assert [o["z"] for o in top] == sorted((o["z"] for o in top), reverse=True) and len(top) == 30
    for o in top:
        s = stats[o["unit"]]
        assert o["z"] == pytest.approx((float(np.float32(o["value"])) - s["mean"]) / s["sd"], rel=1e-12)
