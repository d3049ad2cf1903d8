"""weir attention: every form against numpy over what `weir trace` records, live and from the dump, and each wrong input."""
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import h5py
import numpy as np
import pytest

from hostile import HOSTILE, hostile_tokenizer
from weircli import ROOT, built, trace, weir

TEXT = ["The capital city of Colombia is Bogotá.", "A boat 🚣 on the river."]
MODELS = ROOT / "tests" / "golden" / "models"
SVG = "{http://www.w3.org/2000/svg}"


def attention(*args, **more):
    return weir("attention", *args, **more)


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    path = tmp_path_factory.mktemp("attention") / "patterns.h5"
    trace("--hooks", "blocks.*.attn.{hook_pattern,hook_attn_scores}", "--dump", path, *TEXT).ok()
    return path


def patterns(path, name="hook_pattern"):
    """{(doc, layer, head): [n, keys]} with rows of whole documents, and {doc: ids}."""
    with h5py.File(path) as f:
        docs = f["docs/start"][...], f["docs/count"][...]
        out, ids = {}, {d: f["tokens/id"][s:s + n] for d, (s, n) in enumerate(zip(*docs))}
        for hook, x in f["activations"].items():
            if hook.endswith(name):
                for d, (s, n) in enumerate(zip(*docs)):
                    for h in range(x.shape[1]):
                        out[d, int(hook.split(".")[1]), h] = x[s:s + n, h, :n]
    return out, ids


def windows(run):
    """NDJSON: the head, and {(doc, first position): {(layer, head): rows}} with the window itself under "window"."""
    lines = [json.loads(line) for line in run.ok().out.splitlines()]
    out = {}
    for w in lines[1:]:
        first = min(t["pos"] for t in w["tokens"] if t["pos"] >= 0)
        out[w["doc"], first] = {"window": w, **{(h["layer"], h["head"]): h["pattern"] for h in w["heads"]}}
    return lines[0], out


def equal(rows, want):
    """Rows of growing length against a square."""
    return len(rows) == len(want) and all(
        len(row) <= len(w) and np.array_equal(np.array(row, dtype=np.float32), w[:len(row)]) and not w[len(row):].any()
        for row, w in zip(rows, want))


def test_ndjson_is_what_trace_records(dump):
    want, ids = patterns(dump)
    head, got = windows(attention("--layer", "all", "--format", "ndjson", *TEXT))
    assert head["schema"] == "weir-attention/1" and head["bos"] is True and head["source"]["positions"] == "all"
    assert len(head["heads"]) * len(got) == len(want)
    for d in (0, 1):
        w = got[d, 0]["window"]
        assert [t["id"] for t in w["tokens"]] == list(ids[d]) and [t["pos"] for t in w["tokens"]] == list(range(len(ids[d])))
        assert w["queries"] == list(range(len(ids[d])))
    for (d, layer, h), x in want.items():
        assert equal(got[d, 0][layer, h], x), (d, layer, h)
    assert not equal(got[0, 0][0, 0], want[0, 0, 1]), "the check can fail"
    assert "".join(t["text"] for t in got[0, 0]["window"]["tokens"][1:]) == TEXT[0]


def test_rows_are_the_softmax_of_scores_and_sum_to_1(dump):
    scores, _ = patterns(dump, "hook_attn_scores")
    _, got = windows(attention("--layer", "all", "--format", "ndjson", *TEXT))
    for (d, layer, h), s in scores.items():
        for i, row in enumerate(got[d, 0][layer, h]):
            assert len(row) == i + 1 and abs(sum(row) - 1) < 1e-6
            e = np.exp(s[i, :i + 1].astype(float) - s[i, :i + 1].max())
            assert np.allclose(row, e / e.sum(), rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("form", ["text", "tsv", "ndjson", "svg"])
def test_a_dump_gives_the_same(dump, form):
    head = re.compile(rb"^(# \{.*|\{\"schema.*|attention  .*|<text x=\"12\" y=\"42\".*)\n", re.M)  # names the input
    live = attention("--layer", "1,3", "--heads", "0-2", "--format", form, "-q", *TEXT).ok().out
    for more in (("--from", dump), (dump,)):
        assert head.sub(b"", attention(*more, "--layer", "1,3", "--heads", "0-2", "--format", form).ok().out) == head.sub(b"", live)


def test_tsv(dump):
    want, ids = patterns(dump)
    lines = attention("--heads", "L2H1,L5H0", "--format", "tsv", *TEXT).ok().out.decode().split("\n")
    assert json.loads(lines[0][2:])["heads"] == [{"layer": 2, "head": 1}, {"layer": 5, "head": 0}]
    rows = [line.split("\t") for line in lines[2:-1]]
    assert lines[1].split("\t") == ["layer", "head", "doc", "query", "key", "weight", "query_id", "query_token", "key_id", "key_token"]
    assert len(rows) == 2 * sum(n * (n + 1) // 2 for n in map(len, ids.values()))
    for layer, head, doc, query, key, value, query_id, query_token, key_id, _ in rows:
        d, q, k = int(doc), int(query), int(key)
        assert np.float32(value) == want[d, int(layer), int(head)][q, k]
        assert (int(query_id), int(key_id)) == (ids[d][q], ids[d][k])
    assert {r[7] for r in rows} >= {" capital", "\\x9a"}, "a part of a character is shown as bytes"


def test_which_heads():
    def heads(*args, form="tsv"):
        return [(h["layer"], h["head"]) for h in json.loads(attention(*args, "--format", form, "x").ok().out.split(b"\n")[0].lstrip(b"# "))["heads"]]
    L, H = 8, 6
    assert heads("--layer", "2", "--heads", "0,4") == [(2, 0), (2, 4)]
    assert heads("--layer", "0-1,7", "--heads", "1-2") == [(0, 1), (0, 2), (1, 1), (1, 2), (7, 1), (7, 2)]
    assert heads("--heads", "L6H3,L0H5,L6H3") == [(0, 5), (6, 3)]
    assert heads("--layer", "3") == [(3, h) for h in range(H)]
    assert heads("--layer", "3", "--heads", "all") == heads("--layers", "3")
    assert heads() == [(L // 2, h) for h in range(H)]
    assert heads("--heads", "2") == [(L // 2, 2)]
    r = attention("--format", "tsv", "x")
    assert "layer 4 is shown" in r.err


def test_windows_batches_and_positions(tmp_path):
    text = "The capital city of Colombia is Bogotá, and the capital city of Kenya is Nairobi. " * 2
    options = ["--ctx", "16", "--stride", "9"]
    path = tmp_path / "w.h5"
    trace("--hooks", "blocks.2.attn.hook_pattern", "--dump", path, *options, text).ok()
    with h5py.File(path) as f:
        x, pos, ctx_pos = (f[k][...] for k in ("activations/blocks.2.attn.hook_pattern", "tokens/pos", "tokens/ctx_pos"))
    want = attention("--layer", "2", "--format", "ndjson", *options, text)
    _, got = windows(want)
    assert len(got) > 3
    seen = []
    for g in got.values():
        w = g["window"]
        assert w["tokens"][0]["id"] == 0 and (w["tokens"][0]["pos"] == 0) == (w["tokens"][1]["pos"] == 1), "BOS begins each window"
        for n, q in enumerate(w["queries"]):
            row = list(pos).index(w["tokens"][q]["pos"])
            seen.append(row)
            assert ctx_pos[row] == q
            for h in range(6):
                assert np.array_equal(np.array(g[2, h][n], dtype=np.float32), x[row, h, :q + 1])
    assert sorted(seen) == list(range(len(pos))), "each token is a query once"
    tail = [line for line in want.out.split(b"\n")[1:]]
    assert attention("--layer", "2", "--format", "ndjson", "--batch", "40", *options, text).ok().out == want.out
    assert attention(path, "--format", "ndjson").ok().out.split(b"\n")[1:] == tail
    one = attention("--layer", "2", "--format", "ndjson", text).ok().out
    assert attention("--layer", "2", "--format", "ndjson", "--batch", "7", "--threads", "1", text).ok().out == one, "windows in pieces"
    last = windows(attention("--layer", "2", "--format", "ndjson", "--positions", "-2:", *TEXT))[1]
    whole = windows(attention("--layer", "2", "--format", "ndjson", *TEXT))[1]
    for key, w in last.items():
        assert len(w["window"]["queries"]) == 2 and all(w[2, h] == whole[key][2, h][-2:] for h in range(6))
        assert [t["id"] for t in w["window"]["tokens"]] == [t["id"] for t in whole[key]["window"]["tokens"]]


def test_positions_of_a_dump(dump):
    for positions in ("last", "2:5"):
        options = ("--layer", "2", "--format", "ndjson", "--positions", positions)
        runs = attention(*options, *TEXT), attention(dump, *options)
        assert runs[0].out.split(b"\n")[1:] == runs[1].out.split(b"\n")[1:]  # also the tokens that no query reads
        live, old = (windows(r)[1] for r in runs)
        assert [{k: v for k, v in w.items() if k != "window"} for w in live.values()] == \
            [{k: v for k, v in w.items() if k != "window"} for w in old.values()]


def test_shards_keep_the_numbers_of_documents(tmp_path):
    """Live, and from the dump of a shard."""
    (tmp_path / "text.txt").write_text("".join(f"Line {i} of a text.\n" for i in range(6)))
    options = ("--file", tmp_path / "text.txt", "--shard", "1/2")
    live = windows(attention("--layer", "2", "--format", "ndjson", *options))[1]
    assert [doc for doc, _ in live] == [3, 4, 5]
    trace("--hooks", "blocks.2.attn.hook_pattern", "--dump", tmp_path / "s.h5", *options).ok()
    assert windows(attention(tmp_path / "s.h5", "--format", "ndjson"))[1] == live


def test_interventions(tmp_path):
    edit = ("--ablate", "blocks.0.hook_mlp_out=zero")
    path = tmp_path / "a.h5"
    trace("--hooks", "blocks.1.attn.hook_pattern", "--dump", path, *edit, *TEXT).ok()
    want, _ = patterns(path)
    head, got = windows(attention("--layer", "1", "--format", "ndjson", *edit, *TEXT))
    assert head["interventions"] and all(equal(got[d, 0][1, h], x) for (d, _, h), x in want.items())
    plain = windows(attention("--layer", "1", "--format", "ndjson", *TEXT))[1]
    assert plain[0, 0][1, 0] != got[0, 0][1, 0]
    assert b"values changed by" in attention("--layer", "1", *edit, *TEXT).ok().out


@pytest.mark.parametrize("model", ["gpt2", "llama-gqa-bf16", "gemma2", "neox-parallel", "mistral-window-f16"])
def test_families(model, tmp_path):
    """Grouped keys, soft caps, sliding windows, parallel blocks, and heads that are few."""
    ids = "5 9 13 2 7 11 3 8 1 6 12 4"
    options = ("--model", MODELS / model, "--ids")
    path = tmp_path / "f.h5"
    trace("--hooks", "blocks.*.attn.hook_pattern", "--dump", path, *options, ids).ok()
    want, _ = patterns(path)
    _, got = windows(attention("--layer", "all", "--format", "ndjson", *options, ids))
    assert len(want) > 1
    for (d, layer, h), x in want.items():
        assert equal(got[d, 0][layer, h], x)
        assert all(abs(sum(row) - 1) < 1e-6 for row in got[d, 0][layer, h])
    attention(*options, "--layer", "0", "--heads", "0", "5").ok()  # one token


# --- the terminal

def test_text_map(dump):
    want, ids = patterns(dump)
    out = attention("--heads", "L2H1", "--width", "400", TEXT[0], env={"LC_ALL": "C.UTF-8"}).ok().out.decode()
    rows = [line for line in out.splitlines() if re.match(r" +\d+ ", line)]
    assert len(rows) == len(ids[0]) and "L2H1  document 0" in out and "BOS yes" in out
    steps = "·░▒▓█"
    for i, line in enumerate(rows):
        w = want[0, 2, 1][i, :i + 1]
        cells = line[-2 * (i + 1):]
        assert cells == "".join(2 * steps[np.searchsorted([.05, .25, .5, .75], x, side="right")] for x in w)
        assert int(line.split()[0]) == i
        most = int(np.argmax(w))
        assert re.search(rf"\.?\d[\d.]* +{most} ", line[18:30]), (line, most)
    ascii_out = attention("--heads", "L2H1", TEXT[0], env={"LC_ALL": "C"}).ok().out.decode()
    assert not set("░▒▓█") & set(ascii_out) and "@@" in ascii_out


def test_pages_and_colours():
    text = " ".join(f"word{i}" for i in range(30))
    whole = attention("--heads", "L2H1", "--width", "1000", text).ok().out.decode().splitlines()
    paged = attention("--heads", "L2H1", "--width", "80", text).ok().out.decode().splitlines()
    assert max(map(len, paged)) <= 80 < max(map(len, whole))
    cells = 0
    for lines in (whole, paged):
        n = sum(len(line[43:]) for line in lines if re.match(r" +\d+ ", line))
        cells, before = n, cells
    assert cells == before, "no cell is lost"
    for colour, code in (("16", "41m"), ("256", "48;5;"), ("24bit", "48;2;")):
        out = attention("--heads", "L2H1", "--color", colour, TEXT[0]).ok().out.decode()
        assert code in out
    assert "\x1b" not in attention("--heads", "L2H1", TEXT[0]).ok().out.decode()


# --- pictures and files

def test_svg(dump, tmp_path):
    want, ids = patterns(dump)
    attention("--heads", "L2H1,L3H0", "-o", tmp_path / "a.svg", *TEXT).ok()
    root = ET.parse(tmp_path / "a.svg").getroot()
    said = [e.text for e in root.iter(SVG + "title")][1:]
    assert len(said) == 2 * sum(n * (n + 1) // 2 for n in map(len, ids.values()))
    expected = [f"{x[q, k]:.9g}" for d in (0, 1) for x in (want[d, 2, 1], want[d, 3, 0]) for q in range(len(x)) for k in range(q + 1)]
    assert [np.float32(s.rsplit(": ", 1)[1]) for s in said] == [np.float32(e) for e in expected]
    assert re.fullmatch(r"3 ' city' reads 2 ' capital': [\d.e-]+", said[6 + 2])


def test_hostile_tokens(tmp_path):
    """Tokens that try to be markup, or are no text: pictures are XML, tables have their columns, JSON is JSON."""
    model = tmp_path / "m<&"
    model.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(MODELS / "gpt2" / name, model / name)
    hostile_tokenizer(model / "tokenizer.json")
    options = ("--model", model, "--ids", "--bos", "no", "--heads", "L0H0", " ".join(str(i) for i in range(len(HOSTILE) + 1)))
    root = ET.fromstring(attention("--format", "svg", *options).ok().out)
    assert "</script><script>hacked=1</script>" in "".join(root.itertext())
    rows = attention("--format", "tsv", *options).ok().out.decode().split("\n")[2:-1]
    assert {row.count("\t") for row in rows} == {9} and len(rows) == (len(HOSTILE) + 1) * (len(HOSTILE) + 2) // 2
    window = json.loads(attention("--format", "ndjson", *options).ok().out.split(b"\n")[1])
    assert window["tokens"][0]["text"] == HOSTILE[0].decode()
    text = attention(*options).ok().out
    assert b"\x1b" not in text and b"\0" not in text and text.decode()


def test_files_are_replaced_only_if_they_are_ours(tmp_path):
    for name in ("a.tsv", "a.ndjson", "a.svg", "a.html", "a.txt"):
        path = tmp_path / name
        path.write_text("mine")
        attention("--heads", "L0H0", "-o", path, "x").fails(1, name, "exists")
        assert path.read_text() == "mine"
        attention("--heads", "L0H0", "-o", path, "--force", "x").ok()
        first = path.read_bytes()
        attention("--heads", "L0H0", "-o", path, "x").ok()
        assert path.read_bytes() == first


# --- wrong inputs

@pytest.mark.parametrize("args, words", [
    (["--heads", "9"], ["--heads 9", "heads 0 to 5"]),
    (["--heads", "L9H0"], ["--heads L9H0", "layers 0 to 7"]),
    (["--heads", "L2"], ["--heads L2", "L6H3"]),
    (["--heads", "1,,2"], ["--heads", "L6H3"]),
    (["--heads", "3-1"], ["--heads 3-1"]),
    (["--heads", "99999999999"], ["--heads 99999999999"]),
    (["--layer", "8"], ["--layer", "8"]),
    (["--width", "50", "--format", "tsv"], ["--width", "text"]),
    (["--json", "--format", "svg"], ["--json"]),
    (["--from", "x.h5"], ["--from", "\"text\""]),
])
def test_wrong_command_lines(args, words):
    attention(*args, "text").fails(2, *words)


def test_wrong_dumps(dump, tmp_path):
    attention("--layer", "1", "no_such.h5").fails(1, "no_such.h5", "no such file")
    attention(dump, "--ctx", "8").fails(2, "--ctx", "run over text")
    attention(dump, "--model", MODELS / "gpt2").fails(1, "another model", "--force")
    attention(dump, "--positions", "@span").fails(2, "--positions @span")
    attention(dump, "--positions", "900:", "--layer", "1").fails(1, "no document has a row")
    some = tmp_path / "some.h5"
    trace("--hooks", "blocks.1.attn.hook_pattern", "--dump", some, "x").ok()
    attention(some, "--layer", "2").fails(1, "lacks blocks.2.attn.hook_pattern", "weir trace --hooks")
    attention(some, "-q").ok()
    none = tmp_path / "none.h5"
    trace("--layer", "1", "--dump", none, "x").ok()
    attention(none).fails(1, "no attention pattern", "weir trace")
    part = tmp_path / "part.h5"
    trace("--hooks", "blocks.1.attn.hook_pattern[:,0]", "--dump", part, "x").ok()
    attention(part, "--layer", "1").fails(1, "only some of the weights")


def test_too_much(tmp_path):
    """A picture and a page say what to choose less of."""
    text = " ".join(str(i) for i in range(120))
    attention("--layer", "all", "-o", tmp_path / "a.svg", text).fails(1, "at most 100000 cells", "--heads")
    assert not list(tmp_path.iterdir())
    lines = "\n".join([text] * 120)
    attention("--layer", "all", "-o", tmp_path / "a.html", stdin=lines.encode()).fails(1, "at most 12582912 weights", "--heads")
    assert not list(tmp_path.iterdir())


def test_too_long_a_window(tmp_path):
    gather = built("attention_gather.c", tmp_path)

    def said(*args):
        return subprocess.run([gather, *map(str, args)], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    assert said(1024, 131071) == "fits" and said(1, 4096) == "fits"
    for word in ("1024 heads", "131073 tokens", "document 3", "--heads", "--ctx"):
        assert word in said(1024, 131072), word


def test_no_text(tmp_path):
    attention(stdin=b"").ok()
    empty = tmp_path / "empty.txt"
    empty.touch()
    attention("--file", empty).fails(1, "no document")
