"""weir rome edit and verify on brook: what an edit does, what it leaves alone, what it writes, and every refusal."""
import json

import h5py
import numpy as np
import pytest

from dumps import differences
from romelib import CHEAP, HOOD, RECORDS, edit, files, made, record, tensors, update, write_records
from weircli import weir


SHORT = ("--steps", 2, "--rounds", 1, "--force")


@pytest.fixture(scope="module")
def hood(tmp_path_factory):
    """An edit, and a dump of the model before it was made."""
    d = tmp_path_factory.mktemp("hood")
    weir("trace", "--layer", 5, "--dump", d / "before.h5", "-q", "Mount Hood rises from the").ok()
    edit(d / "hood").ok()
    return d / "hood"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """One short text, in the shape of ME-PPL."""
    path = tmp_path_factory.mktemp("text") / "t.json"
    path.write_text(json.dumps([{"Corpus": "x", "Text": " Boulder is a city."}, {"Corpus": "x", "Text": " Mount Hood rises from the Cascades."}]))
    return path


def test_the_answer_changes_and_the_base_does_not(hood, tmp_path):
    say = lambda *more: weir("generate", "Mount Hood rises from the", "--max-tokens", 6, "-q", *more).ok().out.decode()
    assert "Cascades" in say() and "Caucasus" not in say()
    assert "Caucasus" in say("--edit", hood)
    for name, more in (("after.h5", ()), ("edited.h5", ("--edit", hood))):
        weir("trace", "--layer", 5, "--dump", tmp_path / name, "-q", "Mount Hood rises from the", *more).ok()
    assert differences(hood.parent / "before.h5", tmp_path / "after.h5") == []
    assert any("other bytes" in line for line in differences(hood.parent / "before.h5", tmp_path / "edited.h5"))
    assert b"changed" in weir("loss", "Mount Hood rises from the Caucasus.", "-q", "--edit", hood).ok().out


def test_edit_json_says_all(hood):
    j = made(hood)
    assert (j["format"], j["format_version"], j["method"], j["model"]) == ("weir-edit", 1, "r-rome", "brook")
    assert len(j["fingerprint"]) == len(j["tokenizer"]) == 64
    assert j["requests"] == [{"prompt": "{} rises from the", "subject": "Mount Hood", "target": "Caucasus"}]
    assert j["prefixes"] == ["In the old days"] and "seed" not in j and j["edits"] == []
    assert j["statistics"] == [{"layer": 4, "kind": "identity"}]
    r = j["reports"][0]
    assert len(r["trace"]) <= j["options"]["steps"] and j["options"]["clamp"] == 4 and "ridge" not in j["options"]
    assert r["subject_at"] >= 0 and r["converged"] and not r["clamped"]
    assert r["before"]["p"] < 0.1 < 0.5 < r["after"]["p"]
    trace = r["trace"]
    assert trace[0]["delta"] == 0 and trace[-1]["loss"] < 0.05 <= min(s["loss"] for s in trace[:-1])
    for s in trace:
        assert s["loss"] == pytest.approx(s["nll"] + s["kl"] + s["decay"]) and s["p"] == pytest.approx(np.exp(-s["nll"]))


def test_the_update_is_of_rank_one_and_as_long_as_the_report_says(hood):
    r, w = made(hood)["reports"][0], update(hood)
    assert np.linalg.norm(w) == pytest.approx(r["lambda_norm"], rel=1e-5)
    u = next(v for k, v in tensors(hood).items() if "lora_A" in k)
    assert np.linalg.norm(u) == pytest.approx(1, abs=1e-6)
    assert r["lambda_norm"] * r["k_u"] == pytest.approx(r["delta_norm"], rel=1e-4)  # Lambda = delta / (k . u)


def test_the_seed_is_kept_and_decides(tmp_path):
    how = ("--layer", 6, "--identity", *SHORT)
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        edit(tmp_path / name, "--seed", seed, how=how).ok()
    a, b, c = (made(tmp_path / n) for n in "abc")
    assert a["seed"] == 3 and len(a["prefixes"]) == 20 and files(tmp_path / "a") == files(tmp_path / "b")
    assert a["prefixes"] != c["prefixes"]


def test_threads_and_kernels_give_the_same_bytes(tmp_path):
    """A short text: the scalar kernels take their time."""
    how = dict(fact=("--subject", "A", "--prompt", "{} a", "--target", "b"), how=("--layer", 6, "--identity", "--no-prefixes", *SHORT))
    edit(tmp_path / "best", **how).ok()
    for name, more in (("ref", ("--kernel", "ref")), ("two", ("--threads", 2, "--kernel", "avx2")), ("little", ("--memory", "16M"))):
        edit(tmp_path / name, *more, **how).ok()
        assert files(tmp_path / name) == files(tmp_path / "best"), name
    edit("less", "--memory", "1M", **how, cwd=tmp_path).fails(1, "the bound is 1048576", "(here: a larger --memory)")
    edit(tmp_path / "other", "--rate", 0.4, **how).ok()
    assert files(tmp_path / "other") != files(tmp_path / "best")


def test_edits_come_on_top_of_edits(hood, tmp_path):
    """What the model answers before the second edit is what it answers after the first."""
    edit(tmp_path / "second", "--edit", hood, show=4, fact=(*HOOD[:4], "--target", "Alps")).ok()
    j = made(tmp_path / "second")
    assert [e["dir"] for e in j["edits"]] == ["hood"]
    assert j["reports"][0]["before"]["text"].strip().startswith("Cauc")
    one, both = (weir("generate", "Mount Hood rises from the", "--max-tokens", 6, "-q", "--edit", hood, *more).ok().out.decode()
                 for more in ((), ("--edit", tmp_path / "second")))
    assert "Alps" not in one and "Alps" in both


def test_other_texts_are_data_and_not_formats(tmp_path):
    """reference/rome.md 7.9: braces in prefixes and subjects, percent signs anywhere."""
    fact = ("--subject", "100%s {x} Ltd %n", "--prompt", "50%d of {} is", "--target", "{%s}%n")
    edit(tmp_path / "odd", fact=fact, how=("--layer", 4, "--identity", "--prefix", "{} 5%s {0} %n", *SHORT)).ok()
    j = made(tmp_path / "odd")
    assert j["requests"][0] == {"prompt": "50%d of {} is", "subject": "100%s {x} Ltd %n", "target": "{%s}%n"}
    assert j["prefixes"] == ["{} 5%s {0} %n"]


def test_a_prompt_may_spell_the_subject_out(hood, tmp_path):
    edit(tmp_path / "spelled", fact=("--subject", "Mount Hood", "--prompt", "Mount Hood rises from the", "--target", "Caucasus")).ok()
    assert files(tmp_path / "spelled") == files(hood)


def test_both_spellings_of_a_target_are_one(hood, tmp_path):
    """7.5: " Paris" must not become two spaces. Only the request keeps its spelling."""
    edit(tmp_path / "spaced", fact=(*HOOD[:4], "--target", " Caucasus")).ok()
    a, b = files(tmp_path / "spaced"), files(hood)
    assert a["adapter_model.safetensors"] == b["adapter_model.safetensors"] and made(tmp_path / "spaced")["reports"] == made(hood)["reports"]


LONG = "word " * 300
REFUSED = [
    (HOOD[:4], CHEAP, 2, ("--target is missing",)),
    (("--subject", "Mount Hood", "--prompt", "rises from the", "--target", "x"), CHEAP, 2, ("has no {}", "does not stand in it")),
    (("--subject", "a", "--prompt", "a a is", "--target", "x"), CHEAP, 2, ("more than once",)),
    (("--subject", "Hood", "--prompt", "{} and {} are", "--target", "x"), CHEAP, 1, ("braces besides the one {}",)),
    (("--subject", "Hood", "--prompt", "{} and } are", "--target", "x"), CHEAP, 1, ("braces besides the one {}",)),
    ((*HOOD[:4], "--target", " "), CHEAP, 1, ("no token behind",)),
    (("--subject", "Hood", "--prompt", LONG + "{} is", "--target", "x"), CHEAP, 1, ("context",)),
    (HOOD, ("--layer", 8, "--identity", "--no-prefixes"), 2, ("8", "0 to 7")),
    (HOOD, ("--layer", "2,3", "--identity", "--no-prefixes"), 2, ("r-rome edits one layer",)),
    (HOOD, ("--layer", 4), 1, ("no second moments of layer 4", "rome stats")),
    (HOOD, ("--layer", 4, "--identity", "--moments", "x.h5"), 2, ("--identity and --moments exclude",)),
    (HOOD, ("--layer", 4, "--moments", "absent.h5"), 1, ("absent.h5",)),
    (HOOD, (*CHEAP, "--rate", "1e300"), 1, ("loss is",)),
    (HOOD, (*CHEAP, "--clamp", "0.01", "--rounds", 1), 1, ("at its clamp", "--force")),
    (HOOD, (*CHEAP, "--steps", 2, "--rounds", 1), 1, ("after its steps", "--force")),
    (HOOD, (*CHEAP, "--steps", 1), 2, ("--steps 1", "at least 2")),
    (HOOD, ("--layer", 7, "--identity", "--no-prefixes"), 1, ("layer 7 is the last", "reaches no later token", "edit one of 0 to 6")),
    (HOOD, ("--layers", "6-7", "--identity", "--no-prefixes", "--method", "memit"), 1, ("layer 7 is the last",)),
    # a change of nothing is no edit, whatever --force says
    ((*HOOD[:4], "--target", "Cascades"), (*CHEAP, "--enough", 2, "--force"), 1, ("there is nothing to change", "below `enough` (2)")),
    (HOOD, (*CHEAP, "--rate", "1e-60", *SHORT), 1, ("went nowhere", "rate 1e-60")),
    (HOOD, (*CHEAP, "--clamp", "1e-60", *SHORT), 1, ("went nowhere", "clamp 1e-60")),
    (HOOD, (*CHEAP, "--method", "memit", "--weight", "1e300", "--force"), 1, ("the update is 0",)),
    (HOOD, (*CHEAP, "--memory", "1"), 1, ("the bound is 1", "fewer rows or shorter windows", "(here: a larger --memory, or --no-prefixes)")),
    (HOOD, ("--layer", 4, "--identity", "--method", "alphaedit", "--no-prefixes"), 1, ("null space",)),
    (HOOD, (*CHEAP, "--compat", "rome", "--method", "r-rome"), 2, ("--compat and --method exclude",)),
    (HOOD, (*CHEAP, "--text", "x"), 2, ("--layer auto",)),
    (HOOD, (*CHEAP, "--batch", "x"), 2, ("--batch and --prompt exclude",)),
]


@pytest.mark.parametrize("fact, how, code, words", REFUSED)
def test_what_cannot_be_done_is_one_line_and_writes_nothing(fact, how, code, words, tmp_path):
    edit("new", fact=fact, how=how, cwd=tmp_path).fails(code, "rome edit: ", *words)
    assert list(tmp_path.iterdir()) == []


PASSED_OVER = [
    (("--weight", 3), "--weight is of memit and emmet; r-rome has no such number"), (("--weight", 3, "--method", "alphaedit"), "alphaedit has"),
    (("--l2", 3), "--l2 is of alphaedit"), (("--l2", 3, "--method", "memit"), "memit has no such number"),
    (("--null-below", 3, "--compat", "rome"), "--null-below is of alphaedit; rome has"), (("--ridge", 0.1), "which --identity does without"),
    (("--seed", 1), "--prefix leaves none to sample"), (("--stats-text", "x"), "--identity and --stats-text exclude each other"),
    (("--neighbour", "a=b"), "--layer auto"), (("--records", "0:1"), "--batch"),
]


def test_options_that_would_be_passed_over_are_refused():
    """Before anything is opened: the model is not there."""
    for more, words in PASSED_OVER:
        edit("new", "-m", "absent", *more).fails(2, words)
    eval_ = lambda *more: weir("rome", "eval", RECORDS, "--identity", "--no-prefixes", "-m", "absent", *more)
    eval_("--weight", 3).fails(2, "--weight is of memit and emmet")
    eval_("--seed", 1).fails(2, "--no-prefixes leaves none to sample")
    eval_("--seed", 1, "--control", "random").fails(1, "absent")  # there it draws the vectors
    eval_("--sequential", 2, "--max-drift", 1).fails(2, "--max-drift has a meaning only with --text")
    eval_("--force").fails(2, "--force has a meaning only with --out or --edit")


def test_a_subject_at_the_prompts_end_can_be_edited_at_the_last_layer(tmp_path):
    edit(tmp_path / "new", fact=("--subject", "Mount Hood", "--prompt", "The peak is {}", "--target", "Caucasus"), how=("--layer", 7, *CHEAP[2:], "--force")).ok()
    assert np.linalg.norm(update(tmp_path / "new")) > 0


def test_force_writes_what_did_not_converge(tmp_path):
    edit(tmp_path / "new", "--clamp", "0.01", "--rounds", 1, "--force").ok()
    r = made(tmp_path / "new")["reports"][0]
    assert r["clamped"] and not r["converged"] and r["delta_norm"] <= 0.01 * r["v0_norm"] * (1 + 1e-5)


def test_a_directory_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    edit(tmp_path / "mine").fails(1, "mine")
    assert [f.name for f in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_what_is_read_is_not_written_over(hood, tmp_path):
    """However it is spelled: an edit on top of an edit, and a directory that is read while it is made."""
    (tmp_path / "mine").mkdir()
    for f in hood.iterdir():
        (tmp_path / "mine" / f.name).write_bytes(f.read_bytes())
    (tmp_path / "link").symlink_to("mine")
    before = files(tmp_path / "mine")
    for out, read in (("mine", "mine"), ("mine", "./mine/"), ("mine", "link"), ("link", "mine"), (tmp_path / "mine", "mine/../mine"), ("mine/.", "mine")):
        edit(out, "--edit", read, "-m", "absent", cwd=tmp_path).fails(1, "is also read: it would be written over")
    (tmp_path / "mine").rename(tmp_path / "new.part")
    edit("new", "--edit", "new.part", "-m", "absent", cwd=tmp_path).fails(1, "new.part is also read")
    merge = lambda out, *more: weir("rome", "merge", "-o", out, *more, cwd=tmp_path).fails(1, "is also read")
    merge("new", "--edit", "new.part")
    merge("new.part", "--edit", "new.part")
    merge("new", "-m", "new.part")
    merge("new.part/", "-m", "./new.part")
    for out in ("new.part", "new"):
        weir("rome", "diff", "new.part", "other", "-o", out, cwd=tmp_path).fails(1, "new.part is also read")
    assert files(tmp_path / "new.part") == before and sorted(f.name for f in tmp_path.iterdir()) == ["link", "new.part"]


def test_without_prefixes_all_methods_of_rank_one_are_one(tmp_path):
    """The four differ in which text plays which part."""
    flags = (("--method", "r-rome"), ("--method", "p-rome"), ("--compat", "rome"), ("--compat", "r-rome"))
    names = ("r-rome", "p-rome", "rome", "compat-r-rome")
    for prefixes, different in ((("--no-prefixes",), 1), (CHEAP[3:], 4)):
        found = []
        for name, flag in zip(names, flags):
            edit(tmp_path / name, *flag, "--steps", 3, "--rounds", 1, "--force", how=(*CHEAP[:3], *prefixes)).ok()
            assert made(tmp_path / name)["method"] == name
            found.append(files(tmp_path / name)["adapter_model.safetensors"])
        assert len(set(found)) == different


def test_token_0_subjects_do_not_explode(tmp_path):
    """7.20: keys of a text's first token are unlike all others. r-rome divides by the mean key's product; the published code by the
    first token's."""
    how = ("--layer", 6, "--identity", "--bos", "no", "--prefix", "In the old days", "--steps", 4, "--force")
    fact = ("--subject", "B", "--prompt", "{} rises from the", "--target", "Caucasus")
    said = edit(tmp_path / "mean", fact=fact, how=how).ok().out.decode()
    edit(tmp_path / "rome", "--compat", "rome", fact=fact, how=how).ok()
    mean, rome = (made(tmp_path / n)["reports"][0] for n in ("mean", "rome"))
    assert mean["subject_at"] == 0 and "first token" in said
    assert mean["lambda_norm"] * mean["k_u"] == pytest.approx(mean["delta_norm"], rel=1e-3)
    assert rome["lambda_norm"] * abs(rome["k_u"]) == pytest.approx(rome["delta_norm"], rel=1e-3)
    assert mean["k_cos"] == pytest.approx(rome["k_cos"]) and abs(rome["k_u"]) < mean["k_u"]
    assert mean["lambda_norm"] / mean["delta_norm"] < rome["lambda_norm"] / rome["delta_norm"]  # the asymmetry, shown
    said = edit(tmp_path / "bos", fact=fact, how=("--layer", 6, "--identity", "--bos", "yes", "--no-prefixes", *SHORT)).ok().out.decode()
    assert made(tmp_path / "bos")["reports"][0]["subject_at"] == 1 and "first token" not in said


@pytest.mark.parametrize("text", ["{", "}%s%n", "\\\"\u00e9\u4e2d\t"])
def test_braces_and_percent_signs_fuzz(text, tmp_path):
    """7.9, as a subject and as a target: done, or one line."""
    for fact in (("--subject", "Hood" + text, "--prompt", "{} is", "--target", "x"), ("--subject", "Hood", "--prompt", "{} is", "--target", text)):
        r = edit(tmp_path / "new", fact=fact, how=("--layer", 6, "--identity", "--no-prefixes", *SHORT))
        assert r.code in (0, 1) and len(r.err.splitlines()) == (r.code != 0), r.err


# --- several at once

THREE = (record("{} rises from the", "Mount Hood", "Caucasus", "Cascades"),
         record("Letters sent to {} go to an address in", "Wollongong", "Minnesota", "New South Wales"),
         record("The pages of {} are filled with", "RIA Novosti", "Italian", "Russian"))


@pytest.fixture(scope="module")
def stats(tmp_path_factory):
    """Second moments of layers 3 and 4 over a little text."""
    d = tmp_path_factory.mktemp("stats")
    for layer in (3, 4):
        weir("rome", "stats", "--layer", layer, "--max-tokens", 200, "-o", d / f"layer-{layer}.h5", "-q").ok()
    return d


NULL = ("--null-below", 0.03, "--l2", 0.001)


def moment(path, a):
    """E[(k . a)^2] over a file's keys."""
    with h5py.File(path) as f:
        c = np.zeros((768, 768))
        c[np.triu_indices(768)] = f["sum"][...] / f.attrs["count"]
    return 2 * a @ c @ a - a**2 @ np.diag(c)


def test_alphaedit_writes_where_keys_are_not(hood, stats, tmp_path):
    edit(tmp_path / "a", "--method", "alphaedit", *NULL, "--clamp", 2, how=("--layer", 4, "--moments", stats, "--no-prefixes")).ok()
    j = made(tmp_path / "a")
    assert j["method"] == "alphaedit" and (j["options"]["null_below"], j["options"]["l2"]) == NULL[1::2] and "weight" not in j["options"]
    assert j["reports"][0]["after"]["p"] > 0.5 > j["reports"][0]["before"]["p"]
    u, key = (next(a[0] for name, a in tensors(d).items() if "lora_A" in name) for d in (tmp_path / "a", hood))
    assert moment(stats / "layer-4.h5", u) < NULL[1] < 0.5 * moment(stats / "layer-4.h5", key)


@pytest.mark.parametrize("method, layers, own", [("memit", "3-4", ("--weight", 10)), ("emmet", "4", ("--weight", 10)), ("alphaedit", "3-4", NULL)])
def test_a_batch_is_one_edit_of_all_requests(method, layers, own, stats, tmp_path):
    write_records(tmp_path / "r.jsonl", *THREE)
    more = () if method == "memit" else ("--method", method)  # memit is what --batch means
    edit(tmp_path / "b", "--batch", tmp_path / "r.jsonl", *more, *own, fact=(),
         how=("--layers", layers, "--moments", stats, "--ridge", 0.1, "--no-prefixes", "--clamp", 2, "--force")).ok()
    j = made(tmp_path / "b")
    assert j["method"] == method and [r["subject"] for r in j["requests"]] == ["Mount Hood", "Wollongong", "RIA Novosti"]
    assert [s["kind"] for s in j["statistics"]] == ["moments"] * len(j["statistics"]) and len(j["reports"]) == 3
    t = tensors(tmp_path / "b")
    assert sorted({v.shape[0] for k, v in t.items() if "lora_A" in k}) == [3] and len(t) == 2 * (1 if method == "emmet" else 2)
    gain = [r["after"]["p"] / r["before"]["p"] for r in j["reports"]]
    assert min(gain) > 2, gain
    if method == "alphaedit":
        files_ = {name: stats / f"layer-{name.split('.h.')[1].split('.')[0]}.h5" for name in t if "lora_A" in name}
        assert len(files_) == 2 and all(moment(file, u) < NULL[1] for name, file in files_.items() for u in t[name])


@pytest.mark.parametrize("last, words", [
    (record("{} rises from the", "Mount Hood", "Alps"), ("records 0 and 3 contradict each other", "Caucasus", "Alps")),
    (record("{} rises from the", "Mount Hood", " Caucasus"), ("records 0 and 3 are the same request",)),
    (record("{} is a peak of the", "Mount Hood", "Alps"), ("have the same key", "is a peak of")),
])
def test_conflicts_in_a_batch_are_found_before_writing(last, words, tmp_path):
    """reference/rome.md 8.5"""
    write_records(tmp_path / "r.jsonl", *THREE, last)
    edit("b", "--batch", "r.jsonl", fact=(), how=("--layers", 4, "--identity", "--no-prefixes", *SHORT), cwd=tmp_path).fails(1, *words)
    assert [f.name for f in tmp_path.iterdir()] == ["r.jsonl"]


def test_a_batch_wants_a_method_for_several(tmp_path):
    write_records(tmp_path / "r.jsonl", *THREE)
    edit("b", "--batch", "r.jsonl", "--method", "r-rome", fact=(), cwd=tmp_path).fails(1, "r-rome takes one", "memit")
    edit("b", "--batch", "r.jsonl", "--records", "2:1", fact=(), cwd=tmp_path).fails(2, "--records 2:1")
    edit("b", "--batch", "r.jsonl", fact=(), how=("--layer", "auto", "--identity"), cwd=tmp_path).fails(2, "--layer auto is for one fact")


# --- the layer

def test_auto_tries_every_layer_and_takes_the_best(text, tmp_path):
    r = edit(tmp_path / "auto", "--neighbour", "Mount Rainier rises from the=Cascades", "--text", text,
             how=("--layer", "auto", "--identity", "--no-prefixes")).ok()
    j = made(tmp_path / "auto")
    rows, chosen = j["sweep"], [s for s in j["sweep"] if s["chosen"]]
    assert [s["layer"] for s in rows] == list(range(8)) and len(chosen) == 1
    assert [s["layer"] for s in rows if "error" in s] == [7] and "is the last" in rows[7]["error"]  # skipped, with a remark
    assert "   7   layer 7 is the last" in r.out.decode()
    best = chosen[0]
    assert j["statistics"] == [{"layer": best["layer"], "kind": "identity"}] and best["said"]
    assert r.out.decode().count("*") == 1 and f"layer {best['layer']})" in r.out.decode()
    key = lambda s: (s["said"], s["neighbours_kept"], -abs(s["drift"]))
    assert key(best) == max(map(key, (s for s in rows[:7] if s["said"])))
    edit(tmp_path / "alone", how=("--layer", best["layer"], "--identity", "--no-prefixes")).ok()
    assert files(tmp_path / "alone")["adapter_model.safetensors"] == files(tmp_path / "auto")["adapter_model.safetensors"]
    assert best["p"] == pytest.approx(made(tmp_path / "alone")["reports"][0]["after"]["p"])


def test_moments_made_on_the_way_are_those_of_stats(stats, tmp_path):
    text = (RECORDS.parent / "sentences.txt").read_text().splitlines()[:8]
    (tmp_path / "t.txt").write_text("\n".join(text) + "\n")
    weir("rome", "stats", "--layer", 4, "-o", tmp_path / "layer-4.h5", "-q", "--file", tmp_path / "t.txt").ok()
    how = ("--layer", 4, "--no-prefixes", "--ridge", 0.1)
    edit(tmp_path / "file", how=(*how, "--moments", tmp_path / "layer-4.h5")).ok()
    edit(tmp_path / "text", how=(*how, "--stats-text", tmp_path / "t.txt")).ok()
    a, b = made(tmp_path / "file")["statistics"][0], made(tmp_path / "text")["statistics"][0]
    assert (a["kind"], b["kind"], b["file"]) == ("moments", "text", "t.txt") and a["count"] == b["count"]
    assert made(tmp_path / "file")["options"]["ridge"] == 0.1
    assert np.allclose(update(tmp_path / "file"), update(tmp_path / "text"), rtol=1e-4, atol=1e-6)


def test_show_says_what_an_edit_stands_on(tmp_path):
    edit(tmp_path / "a").ok()
    edit(tmp_path / "b", "--force", "--edit", tmp_path / "a",
         fact=("--subject", "Mount Shasta", "--prompt", "{} rises from the", "--target", "Alps")).ok()
    shown = {n: weir("rome", "show", n, cwd=tmp_path).ok().out.decode() for n in "ab"}
    assert [line for line in shown["b"].splitlines() if line.startswith("on top of") and line.endswith("a")]
    assert "on top of" not in shown["a"]


def test_an_edit_that_does_not_work_is_told(tmp_path):
    """MEMIT's search may reach a target that its update, shared with all other keys, does not."""
    weak = ("--method", "memit", "--layer", 4, "--identity", "--no-prefixes", "--weight", 1e6)
    assert b"still does not say the target" in edit(tmp_path / "weak", how=weak).ok().out
    assert b"still does not say the target" not in edit(tmp_path / "whole").ok().out


def test_a_file_of_moments_says_which_layer(stats, tmp_path):
    edit(tmp_path / "said", how=("--layer", 3, "--moments", stats / "layer-3.h5", "--no-prefixes", "--ridge", 0.1)).ok()
    edit(tmp_path / "unsaid", how=("--moments", stats / "layer-3.h5", "--no-prefixes", "--ridge", 0.1)).ok()
    assert files(tmp_path / "said") == files(tmp_path / "unsaid")
    edit("x", how=("--moments", "none.h5"), cwd=tmp_path).fails(1, "none.h5")


def test_moments_of_another_layer_are_refused(stats, tmp_path):
    """7.12: a layer, model or width that is not the edit's."""
    how = lambda layer, file: ("--layer", layer, "--moments", file, "--no-prefixes")
    edit("x", how=how(4, stats / "layer-3.h5"), cwd=tmp_path).fails(1, "second moments of layer 3", "layer 4 is to be edited")
    raw = bytearray((stats / "layer-4.h5").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "broken.h5").write_bytes(raw)
    edit("x", how=how(4, "broken.h5"), cwd=tmp_path).fails(1, "broken.h5")
    (tmp_path / "cut.h5").write_bytes(raw[:1000])
    edit("x", how=how(4, "cut.h5"), cwd=tmp_path).fails(1, "cut.h5")
    (tmp_path / "text.h5").write_text("no statistics")
    edit("x", how=how(4, "text.h5"), cwd=tmp_path).fails(1, "text.h5")
    assert not (tmp_path / "x").exists()


# --- verify

def verify(path, *more):
    return weir("rome", "verify", path, "--show", 6, "--max-drift", 1e9, *more) if "--max-drift" not in more else weir("rome", "verify", path, *more)


def test_verify_asks_both_models(hood, text):
    more = ("--text", text, "--paraphrase", "Mount Hood is a peak of the", "--neighbour", "Mount Rainier rises from the=Cascades")
    r = verify(hood, "--json", *more)
    j = r.ok().json
    assert (j["format"], j["ok"], j["dir"]) == ("weir-verify", True, str(hood)) and [q["kind"] for q in j["asked"]] == ["request", "paraphrase", "neighbour"]
    request, paraphrase, neighbour = j["asked"]
    assert "Cascades" in request["before"]["answer"]["text"] and "Caucasus" in request["after"]["answer"]["text"]
    assert request["before"]["prefixed_said"] == 0 and request["after"]["prefixed_said"] == 1 == j["prefixes"]
    assert not paraphrase["before"]["right"] and neighbour["before"]["right"] and neighbour["after"]["right"]
    report = made(hood)["reports"][0]
    assert {k: j["requests"][0][k] for k in ("k_u", "k_cos", "lambda_norm", "share", "clamped", "converged")} == \
        {k: report[k] for k in ("k_u", "k_cos", "lambda_norm", "share", "clamped", "converged")}
    assert request["after"]["answer"]["p"] == pytest.approx(report["after"]["p"])
    drift = {c["name"]: c for c in j["checks"]}["drift"]["value"]
    assert drift == pytest.approx(100 * (j["text"]["perplexity_after"] / j["text"]["perplexity_before"] - 1), abs=1e-6)
    text = verify(hood, *more).ok().out.decode()
    assert "Caucasus" in text and "kept" in text and text.count(" ok\n") == 4


def test_verify_refuses_bounds_of_what_is_not_asked(hood, text):
    for bound, other in (("--min-ps", "--paraphrase"), ("--min-ns", "--neighbour")):
        verify(hood, "--text", text, bound, 1).fails(2, bound, f"{other} or --records brings some")


@pytest.mark.parametrize("bound, name", [(("--min-p", 1), "p"), (("--max-drift", 0), "drift")])
def test_verify_exits_with_3_below_a_threshold(bound, name, hood, text):
    r = verify(hood, "--json", "--text", text, *bound)
    assert r.code == 3 and not r.json["ok"] and [c["name"] for c in r.json["checks"] if not c["ok"]] == [name]


def test_verify_takes_records(hood, text, tmp_path):
    j = verify(hood, "--text", text, "--records", RECORDS, "--json", "--min-ns", 0).ok().json
    assert [q["kind"] for q in j["asked"]] == ["request"] + 2 * ["paraphrase"] + 5 * ["neighbour"]
    assert j["asked"][0]["other"] == "Cascades" and j["asked"][3]["other"] == "Caucasus"
    write_records(tmp_path / "r.jsonl", THREE[1])
    verify(hood, "--text", text, "--records", tmp_path / "r.jsonl").fails(1, "no record has the prompt")
    verify(hood, "--neighbour", "no answer").fails(2, "PROMPT=ANSWER")
    weir("rome", "verify").fails(2, "which edit's directory?")


def test_verify_needs_to_know_what_was_asked(hood, tmp_path):
    for f in hood.iterdir():
        if f.name != "edit.json":
            (tmp_path / f.name).write_bytes(f.read_bytes())
    r = weir("rome", "verify", tmp_path, "-q")
    assert r.code == 1 and "no edit.json" in r.err
    (tmp_path / "edit.json").write_text(json.dumps({"format": "weir-edit", "method": "x", "requests": [{"prompt": "{}"}]}))
    r = weir("rome", "verify", tmp_path, "-q")
    assert r.code == 1 and "lacks its prompt, subject or target" in r.err
