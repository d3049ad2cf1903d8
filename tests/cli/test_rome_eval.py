"""weir rome eval (each record alone, and one on top of the other) and weir rome stats on brook."""
import fcntl
import json
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

import checkpoints
from dumps import datasets
from romelib import RECORDS, edit, made, record, write_records
from weircli import BIN, BROOK, environment, weir

CHEAP = ("--layer", 5, "--identity", "--no-prefixes", "--steps", 12)


def evaluate(file, *more, how=CHEAP, **kw):
    return weir("rome", "eval", file, *how, *more, **kw)


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """Four records, and what an unbroken run makes of them."""
    d = tmp_path_factory.mktemp("four")
    (d / "r.jsonl").write_text("".join(RECORDS.read_text().splitlines(keepends=True)[:4]))
    (d / "t.txt").write_text("Among the places of Colorado is Boulder.\n")
    evaluate(d / "r.jsonl", "--text", d / "t.txt", "-o", d / "whole.ndjson", "-q").ok()
    return d


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_record_is_edited_from_the_model_as_it_is(four, tmp_path):
    """reference/rome.md 7.3: edits that pile up spoil the measure. The third record's line is what it is alone, and what rome edit
    makes of it."""
    evaluate(four / "r.jsonl", "--records", "2:3", "--text", four / "t.txt", "-o", tmp_path / "one.ndjson", "-q").ok()
    assert lines(tmp_path / "one.ndjson")[1] == lines(four / "whole.ndjson")[3]
    r = json.loads(RECORDS.read_text().splitlines()[2])["requested_rewrite"]
    edit(tmp_path / "e", "--force", fact=("--subject", r["subject"], "--prompt", r["prompt"], "--target", r["target_new"]["str"]), how=CHEAP).ok()
    line, report = lines(tmp_path / "one.ndjson")[1], made(tmp_path / "e")["reports"][0]
    for key in ("k_u", "k_cos", "lambda_norm", "share", "clamped", "converged"):
        assert line[key] == report[key], key


def test_scores_are_shares_and_differences(four):
    head, *rows = lines(four / "whole.ndjson")
    assert head["format"] == "weir-eval" and [r["record"] for r in rows] == [0, 1, 2, 3]
    table = evaluate(four / "r.jsonl", "--text", four / "t.txt", "--json", "-q").ok().json
    (layer,) = table["layers"]
    assert layer["records"] == 4 and layer["layer"] == 5
    for side in ("before", "after"):
        for name in ("ES", "PS", "NS", "EM", "PM", "NM", "said"):
            assert layer[side][name] == pytest.approx(np.mean([r[side][name] for r in rows])), (side, name)
        es, ps, ns = (layer[side][n] for n in ("ES", "PS", "NS"))
        assert (layer[side]["S"] or 0) == pytest.approx(3 / (1 / es + 1 / ps + 1 / ns) if es and ps and ns else 0)
    assert layer["after"]["ES"] > layer["before"]["ES"]
    assert layer["after"]["drift"] == pytest.approx(np.mean([r["drift"] for r in rows]))
    assert layer["after"]["worst_drift"] == max(r["drift"] for r in rows)


def test_both_forms_of_records_are_one(four, tmp_path):
    full = json.loads(RECORDS.read_text().splitlines()[0])
    r = full["requested_rewrite"]
    full["paraphrase_prompts"], full["neighborhood_prompts"] = full["paraphrase_prompts"][:1], full["neighborhood_prompts"][:1]
    flat = {"case_id": 0, "prompt": r["prompt"].replace("{}", r["subject"]), "subject": r["subject"], "target_new": r["target_new"]["str"],
            "ground_truth": r["target_true"]["str"], "rephrase_prompt": full["paraphrase_prompts"][0],
            "locality_prompt": full["neighborhood_prompts"][0], "locality_ground_truth": r["target_true"]["str"]}
    write_records(tmp_path / "full.jsonl", full)
    (tmp_path / "flat.json").write_text(json.dumps([flat], indent=1))
    outs = []
    for name in ("full.jsonl", "flat.json"):
        evaluate(tmp_path / name, "-o", tmp_path / "out", "-q").ok()
        outs.append((tmp_path / "out").read_text().splitlines()[1])
    assert outs[0] == outs[1]


def test_threads_do_not_change_a_byte(four, tmp_path):
    for threads in (1, 3):
        evaluate(four / "r.jsonl", "--text", four / "t.txt", "-o", tmp_path / "out", "--threads", threads, "-q").ok()
        assert (tmp_path / "out").read_bytes() == (four / "whole.ndjson").read_bytes()


def test_a_run_goes_on_where_it_ended(four, tmp_path):
    """Cut in the middle of a line, as a kill leaves it."""
    whole = (four / "whole.ndjson").read_bytes()
    out, part = tmp_path / "out", tmp_path / "out.part"
    args = ("--text", four / "t.txt", "-o", out)
    part.write_bytes(whole[:whole.rindex(b'{"record"') + 40])
    evaluate(four / "r.jsonl", *args).fails(1, "--resume goes on", "--force replaces")
    r = evaluate(four / "r.jsonl", *args, "--resume").ok()
    assert "has 3 lines" in r.err and out.read_bytes() == whole and not part.exists()
    evaluate(four / "r.jsonl", *args, "--resume").fails(1, "nothing to go on with")
    part.write_bytes(whole)
    evaluate(four / "r.jsonl", *args, "--resume", "--rate", 0.4).fails(1, "of another model, file or option")
    part.write_bytes(whole[:30] + b"x")
    evaluate(four / "r.jsonl", *args, "--resume").fails(1, "of another model, file or option")
    part.write_bytes(whole[:30])  # killed in its very first line
    evaluate(four / "r.jsonl", *args, "--resume").ok()
    assert out.read_bytes() == whole
    part.write_bytes(whole.replace(b'"record":1', b'"record":?'))
    evaluate(four / "r.jsonl", *args, "--resume").fails(1, "out.part")


@pytest.mark.parametrize("text, words", [
    ("", ("r.jsonl",)),
    ("[]", ("r.jsonl",)),
    ("{", ("r.jsonl",)),
    ('{"case_id": 1}', ("r.jsonl", "no prompt")),
    (json.dumps(record("{} is", "Hood", "x")).replace('"x"', "7"), ("r.jsonl",)),
    (json.dumps({"prompt": "no one is", "subject": "Hood", "target_new": "x", "ground_truth": "y"}), ("does not stand once",)),
    (json.dumps(record("{} is\0", "Hood", "x")), ("NUL",)),
    (json.dumps(record("{} is", "Hood", "x"))[:-3], ("r.jsonl",)),
])
def test_bad_records(text, words, tmp_path):
    (tmp_path / "r.jsonl").write_text(text)
    evaluate("r.jsonl", cwd=tmp_path).fails(1, "rome eval: ", *words)


def test_bad_ranges_and_layers(four):
    for records in ("4", "2:2", "x", "0:9", "-1:2"):
        evaluate(four / "r.jsonl", f"--records={records}").fails(2, "--records")
    evaluate(four / "r.jsonl", how=("--layer", "auto", "--identity")).fails(2, "--layers all")
    weir("rome", "eval").fails(2, "one file of records")


def test_a_record_that_cannot_be_edited_is_told_and_left_out(tmp_path):
    write_records(tmp_path / "r.jsonl", record("no place for it", "Hood", "x"), json.loads(RECORDS.read_text().splitlines()[0]))
    r = evaluate(tmp_path / "r.jsonl", "-o", tmp_path / "out").ok()
    assert "of 2 records 1 could not be edited" in r.err and 'record 0: the prompt "no place for it" has no {}' in r.err
    first, second = lines(tmp_path / "out")[1:]
    assert "no {}" in first["error"] and "after" in second


def test_a_file_of_which_nothing_can_be_edited_is_a_failure(tmp_path):
    """One line with the reason, no table; the lines stay."""
    write_records(tmp_path / "r.jsonl", record("no place for it", "Hood", "x"))
    for more in ((), ("--json",), ("-q",)):
        evaluate(tmp_path / "r.jsonl", "-o", tmp_path / "out", *more).fails(1, 'no record could be edited; the first, record 0: the prompt "no place')
        assert "no {}" in lines(tmp_path / "out")[1]["error"]
    evaluate(tmp_path / "r.jsonl", "--sequential", 1, "-q").fails(1, "no record could be edited; the first, record 0")


def test_a_layer_where_nothing_can_be_edited_is_told_and_the_others_go_on(four):
    how = ("--layers", "6,7", "--identity", "--no-prefixes", "--steps", 12)
    r = evaluate(four / "r.jsonl", "--records", "0:1", how=how).ok()
    assert r.out.decode().splitlines()[-1].startswith("7          no record could be edited: layer 7 is the last")
    assert "layer 7: of 1 records 1 could not be edited (the first, record 0: layer 7 is the last" in r.err
    j = evaluate(four / "r.jsonl", "--records", "0:1", "--json", "-q", how=how).ok().json
    assert [(t["layer"], t["failed"]) for t in j["layers"]] == [(6, 0), (7, 1)] and j["layers"][1]["after"]["ES"] is None


def test_memory_is_no_fault_of_a_record(four, tmp_path):
    for more in ((), ("--sequential", 2)):
        evaluate(four / "r.jsonl", "--memory", 1, "-o", tmp_path / "out", *more).fails(1, "the bound is 1", "(here: a larger --memory)")
    assert list(tmp_path.iterdir()) == []  # nothing to go on with


def test_the_control_is_random_in_every_layer(four):
    """A random vector as long as the edit's, in each layer that the method changes: what the model answers stays."""
    how = ("--layers", "3-5", "--identity", "--no-prefixes", "--steps", 12, "--method", "memit", "--weight", 1)
    true, random = (evaluate(four / "r.jsonl", "--records", "0:1", "--text", four / "t.txt", "--json", "-q", *more, how=how).ok().json["layers"][0]["after"]
                    for more in ((), ("--control", "random")))
    assert true["ES"] == 1 and random["ES"] == 0 and 0 < abs(random["drift"]) < 0.2


def test_the_control_goes_on_with_its_own_seed(four, tmp_path):
    """Also where it draws nothing but the vectors, because prefixes are given."""
    args = ("--records", "0:1", "--control", "random", "-q", "-o", tmp_path / "out")
    evaluate(four / "r.jsonl", *args, "--seed", 1).ok()
    (tmp_path / "out.part").write_bytes((tmp_path / "out").read_bytes())
    evaluate(four / "r.jsonl", *args, "--seed", 2, "--resume").fails(1, "of another model, file or option")


def test_a_text_without_a_number_fails_every_record(four, tmp_path):
    """Not only the first that a thread comes to: results would depend on how many there are."""
    model = checkpoints.copy_with(BROOK, tmp_path / "m", "wpe.weight", (200, 0), np.nan)
    (tmp_path / "t.txt").write_text("The river bends. " * 60)
    evaluate(four / "r.jsonl", "-m", model, "--records", "0:2", "--text", tmp_path / "t.txt", "--threads", 1, "-o", tmp_path / "out", "-q").fails(1, "not finite")
    assert ["not finite" in r["error"] for r in lines(tmp_path / "out")[1:]] == [True, True]


def test_what_eval_reads_is_not_written_over(four, tmp_path):
    for name in ("out", "out.part"):
        (tmp_path / name).write_bytes((four / "r.jsonl").read_bytes())
        evaluate(name, "-o", "out", "--force", cwd=tmp_path).fails(1, f"{name} is also read")
        assert (tmp_path / name).read_bytes() == (four / "r.jsonl").read_bytes()
        (tmp_path / name).unlink()


def test_two_runs_do_not_write_one_file(four, tmp_path):
    (tmp_path / "out.part").write_bytes(b"")
    with open(tmp_path / "out.part", "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        for more in ((), ("--force",), ("--resume",)):
            evaluate(four / "r.jsonl", "-o", tmp_path / "out", *more).fails(1, "out.part: another run is writing it")


# --- one on top of the other

def test_sequential_edits_pile_up_and_the_first_is_pristine(four, tmp_path):
    j = evaluate(four / "r.jsonl", "--sequential", 3, "--text", four / "t.txt", "--json", "-o", tmp_path / "out", "-q").ok().json
    alone = lines(four / "whole.ndjson")[1:]
    assert [r["edits"] for r in j["rows"]] == [1, 2, 3] and j["rows"] == lines(tmp_path / "out")[1:]
    assert j["rows"][0]["share"] == alone[0]["share"] and j["rows"][0]["drift"] == pytest.approx(alone[0]["drift"], rel=1e-3)
    assert j["rows"][0]["kept"] is None and j["rows"][1]["share"] != alone[1]["share"]
    some = evaluate(four / "r.jsonl", "--sequential", 3, "--every", 2, "--text", four / "t.txt", "--json", "-q").ok().json
    assert some["rows"] == [r | {"broke": s["broke"]} for r, s in zip(j["rows"][1:], some["rows"])]


def test_sequential_names_the_edit_that_broke_the_model(four):
    """7.15, 7.16: which edit was it?"""
    args = ("--sequential", 3, "--clamp", 60, "--rate", 30, "--decay", 0, "--kl", 0, "--text", four / "t.txt")
    j = evaluate(four / "r.jsonl", *args, "--max-drift", 5, "--json", "-q").ok().json
    rows = j["rows"]
    beyond = [r for r in rows if r["drift"] > 0.05 or (r["kept"] is not None and r["kept"] < 0.8)]
    assert beyond and j["broke"] == beyond[0]["record"] and [r["broke"] for r in rows] == [r is beyond[0] for r in rows]
    out = evaluate(four / "r.jsonl", *args, "--max-drift", 5, "-q").ok().out.decode()
    assert f"the model broke at edit {beyond[0]['edits']}: record {beyond[0]['record']}" in out
    calm = evaluate(four / "r.jsonl", "--sequential", 1, "-q").ok().out.decode()
    assert "no edit broke the model" in calm and "no --text" in calm


def test_sequential_excludes_what_it_cannot_do(four):
    evaluate(four / "r.jsonl", "--sequential", 2, "--resume", "-o", "x").fails(2, "--sequential and --resume")
    evaluate(four / "r.jsonl", "--every", 2).fails(2, "--every", "--sequential")
    evaluate(four / "r.jsonl", "--sequential", 5).fails(2, "--sequential 5 is more than the records, which are 4")
    evaluate(four / "r.jsonl", "--sequential", 2, "--records", "3:4").fails(2, "more than the records that --records leaves, which are 1")
    evaluate(four / "r.jsonl", "--sequential", 2, how=("--layers", "3,4", "--identity", "--no-prefixes")).fails(2, "one layer")


def test_sequential_leaves_out_what_cannot_be_edited_or_asked(four, tmp_path):
    """A row is of an edit that was made, and tells of it once, also where what cannot be edited comes last."""
    one, two = map(json.loads, RECORDS.read_text().splitlines()[:2])
    write_records(tmp_path / "r.jsonl", record("{} is in", "Hood", "Oregon", truth=" "), one, two, record("no place for it", "Hood", "x"))
    for more, expected in (((), [(1, 1), (2, 2)]), (("--every", 3), [(2, 2)])):
        r = evaluate(tmp_path / "r.jsonl", "--sequential", 4, *more, "--json").ok()
        assert [(row["edits"], row["record"]) for row in r.json["rows"]] == expected and r.json["failed"] == 2
        assert "record 0 is left out" in r.err and "record 3 is left out" in r.err


def test_sequential_is_of_the_records_that_are_chosen(four):
    j = evaluate(four / "r.jsonl", "--sequential", 1, "--records", "2:4", "--json", "-q").ok().json
    assert [r["record"] for r in j["rows"]] == [2]


def stop(p, part, n):
    """Ends a run once its file has n lines; what it said."""
    while p.poll() is None and not (part.exists() and part.read_bytes().count(b"\n") >= n):
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    err = p.communicate()[1].decode()
    assert p.returncode == 1, err
    return err


def test_a_stopped_pile_begins_anew(tmp_path):
    """Each edit depends on those before it, which the lines do not hold: nothing is promised that cannot be kept."""
    args = ["--sequential", "400", "-o", str(tmp_path / "out"), "--threads", "1"]
    p = subprocess.Popen([str(BIN / "weir"), "rome", "eval", str(RECORDS), *map(str, CHEAP), *args], env=environment(), stderr=subprocess.PIPE,
                         stdout=subprocess.DEVNULL)
    err = stop(p, tmp_path / "out.part", 2)
    assert "out.part has" in err and "a run with --sequential begins anew, with --force" in err and "--resume" not in err
    r = evaluate(RECORDS, "--sequential", 1, "-o", tmp_path / "out").fails(1, "left by an interrupted run: --force replaces it")
    assert "--resume" not in r.err
    evaluate(RECORDS, "--sequential", 1, "-o", tmp_path / "out", "--force").ok()
    assert len(lines(tmp_path / "out")) == 2 and not (tmp_path / "out.part").exists()


# --- second moments

def stats(*args, **kw):
    return weir("rome", "stats", *args, **kw)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A text, the keys of layer 1 over it, and their second moments as weir has them."""
    d = tmp_path_factory.mktemp("keys")
    (d / "t.txt").write_text("".join((BROOK / "sentences.txt").read_text().splitlines(keepends=True)[:12]))
    stats("--layer", 1, "--file", "t.txt", "-o", "whole.h5", "-q", cwd=d).ok()
    weir("trace", "--layer", 1, "--site", "mlp_post", "--dump", "keys.h5", "--file", "t.txt", "-q", cwd=d).ok()
    return d


def sums(path):
    with h5py.File(path) as f:
        return f["sum"][...], {k: v for k, v in f.attrs.items()}


def test_stats_are_the_second_moments(keys):
    with h5py.File(keys / "keys.h5") as f:
        k = next(o for n, o in datasets(f).items() if "hook_post" in n)[...].astype(float).reshape(-1, 768)
    s, about = sums(keys / "whole.h5")
    assert about["count"] == len(k) and about["width"] == 768 and about["layer"] == 1 and about["complete"]
    full = (k.T @ k)[np.triu_indices(768)]
    assert np.allclose(s, full, rtol=1e-12, atol=1e-9 * abs(full).max())
    assert not np.allclose(s, 1.001 * full, rtol=1e-6, atol=0)


def test_shards_add_up_to_the_whole(keys, tmp_path):
    for i in range(2):
        stats("--layer", 1, "--file", "t.txt", "--shard", f"{i}/2", "-o", tmp_path / f"{i}.h5", "-q", cwd=keys).ok()
    stats("--merge", "1.h5", "--merge", "0.h5", "-o", "both.h5", "-q", cwd=tmp_path).ok()
    (a, x), (b, y) = sums(tmp_path / "both.h5"), sums(keys / "whole.h5")
    assert np.allclose(a, b, rtol=1e-12, atol=1e-12 * abs(b).max()) and x["count"] == y["count"] and x["fingerprint"] == y["fingerprint"]
    stats("--merge", "0.h5", "-o", "x.h5", cwd=tmp_path).fails(1)
    stats("--merge", "0.h5", "--merge", "0.h5", "-o", "x.h5", cwd=tmp_path).fails(1)
    edit("x", how=("--layer", 1, "--moments", "0.h5", "--no-prefixes"), cwd=tmp_path).fails(1, "--merge makes the whole")
    assert not (tmp_path / "x.h5").exists() and not (tmp_path / "x").exists()


def test_published_statistics_are_taken_over(keys, tmp_path):
    rng = np.random.default_rng(1)
    k = 10 * np.concatenate([rng.normal(size=(50, 768)), np.eye(768)])
    np.savez(tmp_path / "m.npz", **{"mom2.constructor": "x", "mom2.count": 2000, "mom2.mom2": (k.T @ k).astype("<f4"), "sample_size": 5})
    stats("--import", "m.npz", "--layer", 1, "-o", "m.h5", "-q", cwd=tmp_path).ok()
    s, about = sums(tmp_path / "m.h5")
    assert about["count"] == 2000 and np.allclose(s, (k.T @ k).astype("<f4")[np.triu_indices(768)])
    r = edit(tmp_path / "e", "--steps", 2, "--rounds", 1, "--force", how=("--layer", 1, "--moments", tmp_path / "m.h5", "--no-prefixes")).ok()
    assert "nobody can tell whether" in r.err
    edit("x", how=("--layer", 2, "--moments", tmp_path / "m.h5", "--no-prefixes"), cwd=tmp_path).fails(1, "of layer 1", "layer 2 is to be edited")
    stats("--import", "m.npz", "-o", "x.h5", cwd=tmp_path).fails(2, "of which layer are the keys of m.npz? --layer N")
    small = np.eye(5, dtype="<f4")
    np.savez(tmp_path / "small.npz", **{"mom2.count": 9, "mom2.mom2": small})
    stats("--import", "small.npz", "--layer", 1, "-o", "small.h5", "-q", cwd=tmp_path).ok()
    edit("x", how=("--layer", 1, "--moments", "small.h5", "--no-prefixes"), cwd=tmp_path).fails(1, "of 5 neurons", "768")
    (tmp_path / "bad.npz").write_bytes((tmp_path / "m.npz").read_bytes()[:2000])  # a truncated download
    stats("--import", "bad.npz", "--layer", 1, "-o", "bad.h5", cwd=tmp_path).fails(1, "bad.npz")
    assert not (tmp_path / "bad.h5").exists()


def used(pid):
    """Hundredths of a second of the processor."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().split()[13:15]))


def test_an_interrupted_count_goes_on(tmp_path):
    (tmp_path / "t.txt").write_text("".join((BROOK / "sentences.txt").read_text().splitlines(keepends=True)[:150]))
    args = [str(BIN / "weir"), "rome", "stats", "--layer", "1", "--file", "t.txt", "--batch", "8", "--threads", "1", "-q"]
    p = subprocess.Popen([*args, "-o", "x.h5"], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    while p.poll() is None and used(p.pid) < 12:  # until it counts
        time.sleep(0.01)
    p.send_signal(signal.SIGINT)
    err = p.communicate()[1].decode()
    assert p.returncode == 1 and "--resume goes on with it" in err, err
    edit("x", how=("--layer", 1, "--moments", "x.h5.part", "--no-prefixes"), cwd=tmp_path).fails(1, "not complete")
    weir(*args[1:], "-o", "x.h5", cwd=tmp_path).fails(1, "--resume goes on", "--force replaces")
    weir(*args[1:], "-o", "x.h5", "--resume", "--layer=2", cwd=tmp_path).fails(2, "--layer")
    for other in (("--ablate", "L0N0"), ("--ctx", 100), ("--bos", "no")):  # keys of another run are not added to these
        weir(*args[1:], "-o", "x.h5", "--resume", *other, cwd=tmp_path).fails(1, "is of another model, layer, text, shard or option")
    weir(*args[1:], "-o", "x.h5", "--resume", cwd=tmp_path).ok()
    weir(*args[1:], "-o", "whole.h5", cwd=tmp_path).ok()
    (a, x), (b, y) = sums(tmp_path / "x.h5"), sums(tmp_path / "whole.h5")
    assert a.tobytes() == b.tobytes() and x["count"] == y["count"] and not (tmp_path / "x.h5.part").exists()


def test_keys_of_a_changed_model_serve_no_other(tmp_path):
    """What was counted with an edit or an intervention is not the second moments of the model as it is."""
    how = lambda path, *more: ("--layer", 1, "--moments", path, "--ridge", 1, "--no-prefixes", "--steps", 2, "--force", *more)
    edit(tmp_path / "low", "--force", how=("--layer", 0, "--identity", "--no-prefixes", "--steps", 2)).ok()
    stats("--layer", 1, "--max-tokens", 20, "-o", "a.h5", "-q", "--edit", "low", cwd=tmp_path).ok()
    edit("x", how=how("a.h5"), cwd=tmp_path).fails(1, "a.h5: second moments of another model: brook with edit low")
    edit("high", how=how("a.h5", "--edit", "low"), cwd=tmp_path).ok()
    stats("--layer", 1, "--max-tokens", 20, "-o", "b.h5", "-q", "--ablate", "L0N3", cwd=tmp_path).ok()
    edit("x", how=how("b.h5"), cwd=tmp_path).fails(1, "brook with ablate L0N3=zero")
    edit("x", how=how("b.h5", "--edit", "low"), cwd=tmp_path).fails(1, "brook with ablate L0N3=zero")
    assert not (tmp_path / "x").exists()


def test_stats_refusals(tmp_path):
    stats("--layer", 1, cwd=tmp_path).fails(2, "-o FILE.h5")
    stats("--layer", 8, "-o", "x.h5", cwd=tmp_path).fails(2, "0 to 7")
    stats("-o", "x.h5", cwd=tmp_path).fails(2, "which layer's keys?")
    (tmp_path / "letter.h5").write_text("dear")
    stats("--layer", 1, "-o", "letter.h5", cwd=tmp_path).fails(1, "holds no second moments")
    stats("--layer", 1, "-o", "x.h5", "--resume", "--file", BROOK / "sentences.txt", cwd=tmp_path).fails(1, "nothing to go on with")
    assert [f.name for f in tmp_path.iterdir()] == ["letter.h5"]


def test_stats_out_of_files_pass_over_nothing(keys, tmp_path):
    whole = (keys / "whole.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(whole)
    merge = lambda *more: stats("--merge", "a.h5", *more, cwd=tmp_path)
    merge("-o", "a.h5").fails(1, "a.h5 is also read")
    merge("-o", "b.h5", "b.h5").fails(2, '"b.h5": --merge takes one file')
    for more in (("--ctx", 5), ("-m", "absent"), ("--edit", "x"), ("--max-tokens", 3)):
        merge("-o", "b.h5", *more).fails(2, "is of a run over a text, and --merge runs nothing")
    (tmp_path / "b.h5.part").write_bytes(whole)
    merge("-o", "b.h5").fails(1, "b.h5.part is there, left by an interrupted run: --force replaces it")
    stats("--merge", "b.h5.part", "-o", "b.h5", "--force", cwd=tmp_path).fails(1, "b.h5.part is also read")
    assert (tmp_path / "a.h5").read_bytes() == whole == (tmp_path / "b.h5.part").read_bytes()
    s = stats("--layer", 1, "--max-tokens", 5, "-o", "c.h5", "--json", "-q", cwd=tmp_path).ok().json
    assert (s["file"], s["layer"], s["width"], s["count"], s["shards"]) == ("c.h5", 1, 768, 5, 0)


def test_known_leaves_out_what_the_model_does_not_know(four, tmp_path):
    """The first record with its answers exchanged: the model prefers the new one without any edit."""
    first, second = (json.loads(x) for x in (four / "r.jsonl").read_text().splitlines()[:2])
    r = first["requested_rewrite"]
    r["target_new"], r["target_true"] = r["target_true"], r["target_new"]
    (tmp_path / "r.jsonl").write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    got = evaluate(tmp_path / "r.jsonl", "--known", "--json", "-o", tmp_path / "k.ndjson").ok()
    assert "1 of 2 records are left out by --known" in got.err
    (layer,) = got.json["layers"]
    assert layer["left_out"] == 1 and layer["before"]["ES"] == 0
    head, one, two = lines(tmp_path / "k.ndjson")
    assert head["known"] and one["left_out"] and "after" not in one and two["after"]
    evaluate(tmp_path / "r.jsonl", "--known", "--records", "0:1").fails(1, "no record could be edited", "--known")
    (layer,) = evaluate(tmp_path / "r.jsonl", "--json", "-q").ok().json["layers"]
    assert layer["left_out"] == 0 and layer["failed"] == 1  # without the option it is tried: there is nothing to change
