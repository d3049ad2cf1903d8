"""logit-lens against numpy in float64 over the rows that `weir trace` recorded: every statistic of every cell, at every site, on brook and on
tiny checkpoints of every family; and the promise that nothing but the rows decides a byte."""
import numpy as np
import pytest

from lenses import EVERYTHING, STREAM, Model, Rows, compare, oracle, order, tsv
from weircli import BROOK, ROOT, tokens, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
SENTENCES = [line for line in (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines() if line]
SITES = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")
IDS = "5 9 13 2 30 31 32 7 7 8 30 21\n3 4\n11"
TINY = ["gemma2", "gpt2", "llama-gqa-bf16", "llama-llama3-v4", "mistral-window-f16", "neox-parallel"]


@pytest.fixture(scope="module")
def brook(tmp_path_factory):
    """Two sentences through brook: the model's end, its rows, the text, the dump."""
    d = tmp_path_factory.mktemp("brook")
    (d / "t.txt").write_text("\n".join((SENTENCES[54], SENTENCES[22])), encoding="utf-8")
    trace("--hooks", EVERYTHING + ",unembed.hook_out", "--file", d / "t.txt", "--dump", d / "d.h5").ok()
    return Model(BROOK), Rows(d / "d.h5"), d / "t.txt", d / "d.h5"


def tiny(name, tmp_path):
    (tmp_path / "ids").write_text(IDS)
    hooks = "blocks.*.{hook_resid_pre,hook_resid_mid,hook_resid_post,hook_attn_out,hook_mlp_out},unembed.hook_out"
    if name == "gemma2":
        hooks += ",hook_logits"
    if name == "neox-parallel":
        hooks = hooks.replace("hook_resid_mid,", "")
    trace("--model", MODELS / name, "--ids", "--hooks", hooks, "--file", tmp_path / "ids", "--dump", tmp_path / "d.h5").ok()
    return Model(MODELS / name), Rows(tmp_path / "d.h5"), ["--model", MODELS / name, "--ids", "--file", tmp_path / "ids"]


def test_every_statistic_at_every_site(brook):
    model, rows, text, _ = brook
    a, b = (tokens(" is")[0]["ids"][0], tokens(" of")[0]["ids"][0])
    t = tsv("--file", text, "--site", ",".join(SITES), "--layers", "0,3,7", "--contrast", " is, of", "-k", 7)
    lines = order(model, SITES, (0, 3, 7))
    assert t.lines == [name for name, _, _ in lines] and [x["hook"] for x in t.head["lines"]] == [hook for _, hook, _ in lines]
    assert len(t.lines) == 3 * 5 and len(rows.id) > 20
    assert compare(t, rows, oracle(model, rows, lines, contrast=(a, b)), k=7) == []


@pytest.mark.parametrize("target", ["next", "final", "#274"])
def test_targets(brook, target):
    model, rows, text, _ = brook
    t = tsv("--file", text, "--target", target, "--site", "resid_post,attn-out", "--layers", "2,5-7")
    want = oracle(model, rows, order(model, ("resid_post", "attn_out"), (2, 5, 6, 7)), target=274 if target == "#274" else target)
    assert compare(t, rows, want) == []
    shown = {(c["doc"], c["pos"]): c["target_id"] for c in t.cells.values()}
    ids = {"next": rows.next, "final": want["out"]["z"].argmax(axis=1), "#274": np.full(len(rows.id), 274)}[target]
    for r, i in enumerate(ids):
        assert shown[str(rows.doc[r]), str(rows.pos[r])] == ("" if i < 0 else str(i))


@pytest.mark.parametrize("norm", ["cached", "none"])
def test_other_norms_are_labelled_and_right(brook, norm):
    model, rows, text, _ = brook
    t = tsv("--file", text, "--norm", norm, "--site", "attn-out,resid-post", "--layers", "4,7", "--target", "next")
    lines = order(model, ("attn_out", "resid_post"), (4, 7), norm=norm)
    assert t.head["norm"] == norm and t.lines == [name for name, _, _ in lines] and t.lines[-2:] == ["L7", "out"]
    assert compare(t, rows, oracle(model, rows, lines, norm=norm, target="next"), near=5e-5) == []


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("norm", ["recompute", "cached"])
def test_every_family(name, norm, tmp_path):
    model, rows, args = tiny(name, tmp_path)
    sites = [s for s in SITES if not (name == "neox-parallel" and s == "resid_mid")]
    t = tsv(*args, "--site", ",".join(sites), "--norm", norm, "--target", "next", "-k", model.V, "--contrast", "#3,#7")
    want = oracle(model, rows, order(model, sites, norm=norm), norm=norm, target="next", contrast=(3, 7))
    assert compare(t, rows, want, k=model.V) == []


def test_a_soft_cap_is_applied_unless_it_is_left_out(tmp_path):
    model, rows, args = tiny("gemma2", tmp_path)
    lines = order(model, ("resid_post",))
    capped, raw = (oracle(model, rows, lines, cap=cap) for cap in (True, False))
    assert np.abs(capped["out"]["z"] - raw["out"]["z"]).max() > 0.1
    with_cap, without = tsv(*args), tsv(*args, "--no-softcap")
    assert compare(with_cap, rows, capped) == [] and compare(without, rows, raw) == []
    assert compare(with_cap, rows, raw) and compare(without, rows, capped), "the two can be told apart"
    assert without.head["softcap_left_out"] and not with_cap.head["softcap_left_out"]
    assert b"soft cap LEFT OUT" in weir("logit-lens", *args, "--no-softcap").ok().out


@pytest.mark.parametrize("name", ["brook", *TINY])
def test_the_last_line_is_the_model_to_the_bit(name, tmp_path, brook):
    model, rows, args = (brook[0], brook[1], ["--file", brook[2]]) if name == "brook" else tiny(name, tmp_path)
    logits = rows.hooks["hook_logits" if name == "gemma2" else "unembed.hook_out"]
    for token in (3, model.V - 1):
        t = tsv(*args, "--target", f"#{token}", "--layers", 0, "--site", "mlp-out")
        for r in range(len(rows.id)):
            cell = t.cells[rows.doc[r], rows.pos[r], "out"]
            assert np.float32(cell["logit"]) == logits[r, token], "bit for bit"
            assert int(cell["rank"]) == 1 + np.count_nonzero(logits[r] > logits[r, token]) + np.count_nonzero(
                logits[r, :token] == logits[r, token]), "1-based, of equals the lower id first"
            assert (cell["kl"], cell["jsd"]) == ("0", "0")
    t = tsv(*args, "--layers", 0, "--site", "mlp-out")
    for r in range(len(rows.id)):
        cell = t.cells[rows.doc[r], rows.pos[r], "out"]
        assert int(cell["top1_id"]) == logits[r].argmax() and np.float32(cell["logit"]) == logits[r].max()


def test_bounds(brook):
    t = tsv("--file", brook[2], "--site", "resid_post,mlp-out")
    for (_, _, line), c in t.cells.items():
        assert 0 <= float(c["jsd"]) <= np.log(2) and float(c["kl"]) >= 0 and 0 <= float(c["entropy"]) <= np.log(4096)
        assert (c["kl_prev"] == "nan") == (line in ("embed", "L0 mlp"))
        assert c["kl_prev"] == "nan" or float(c["kl_prev"]) >= 0


def data(*args, **more):
    """The bytes behind the head, which names the input."""
    return weir("logit-lens", "--format", "tsv", *args, **more).ok().out.split(b"\n", 1)[1]


def test_nothing_but_the_rows_decides_a_byte(brook, tmp_path):
    """A run, a dump, any batch, thread count or kernel table; a document longer than a batch."""
    _, _, text, dump = brook
    ask = ["--site", "resid-mid,resid-post", "--layer-step", 7, "-k", 3, "--target", "next"]
    want = data("--file", text, *ask)
    for change in (["--batch", 1], ["--batch", 11, "--threads", 1], ["--threads", 2, "--kernel", "ref"]):
        assert data("--file", text, *ask, *change) == want, change
    assert data(dump, *ask) == want and data("--from", dump, *ask, "--batch", 7, "--kernel", "avx2") == want
    for option in ("0:2,last", "-3:"):
        some = data("--file", text, *ask, "--positions", option, "--batch", 9)
        keys = {tuple(line.split(b"\t")[:3]) for line in some.splitlines()[1:]}
        assert 0 < len(keys) < len(want.splitlines())
        assert set(some.splitlines()) <= set(want.splitlines()), "rows that are kept do not depend on those that are not"
    again = data("--file", text, *ask, "--positions", "last")
    assert {line.split(b"\t")[7] for line in again.splitlines()[1:]} == {b""}, "nothing follows the last token"


def test_rows_that_are_not_kept_still_say_what_comes_next(brook):
    _, rows, text, dump = brook
    t = tsv("--file", text, "--positions", "2")
    second = np.flatnonzero(rows.pos == 2)
    assert [t.cells[rows.doc[r], 2, "out"]["next_id"] for r in second] == [str(rows.id[r + 1]) for r in second]
    assert tsv(dump, "--positions", "2").cells == t.cells


def test_windows_of_a_long_document(tmp_path):
    """--ctx and --stride: what follows is the token of the document, in whatever window it stands."""
    (tmp_path / "t.txt").write_text(" ".join(SENTENCES[:3]), encoding="utf-8")
    window = ["--file", tmp_path / "t.txt", "--ctx", 16, "--stride", 9]
    trace(*window, "--hooks", STREAM, "--dump", tmp_path / "d.h5").ok()
    rows = Rows(tmp_path / "d.h5")
    assert rows.doc[-1] == 0 and len(rows.id) > 40 and np.count_nonzero(rows.next < 0) == 1
    live, model = tsv(*window, "--batch", 5, "--layers", 6), Model(BROOK)
    assert compare(live, rows, oracle(model, rows, order(model, ("resid_post",), (6,)))) == []
    assert tsv(tmp_path / "d.h5", "--layers", 6).cells == live.cells
    assert live.head["ctx"] == 16 and live.head["stride"] == 9


# --- the comparison itself can fail

def test_the_comparison_can_fail(brook):
    model, rows, text, _ = brook
    t = tsv("--file", text, "--layers", "3", "--target", "next")
    lines = order(model, ("resid_post",), (3,))
    want = oracle(model, rows, lines, target="next")
    assert compare(t, rows, want) == []
    assert compare(t, rows, oracle(model, rows, lines, target="final")), "another target"
    assert compare(t, rows, oracle(model, rows, order(model, ("resid_post",), (4,)), target="next")), "another layer"
    key = next(k for k, c in t.cells.items() if c["line"] == "L3" and c["next"])
    for column in ("prob", "logit", "rank", "entropy", "kl", "kl_prev", "jsd", "ce", "p1", "top1_id"):
        cell = t.cells[key]
        old = cell[column]
        cell[column] = "7" if column in ("rank", "top1_id") and old != "7" else "1" if old in ("nan", "7") else repr(float(old) * 1.01 + 1e-3)
        assert len(compare(t, rows, want)) == (2 if column == "none" else 1), column
        cell[column] = old
    del t.cells[key]
    assert "missing" in compare(t, rows, want)[0]
    want.pop("L3")
    assert "too many" in compare(t, rows, want)[-1]


