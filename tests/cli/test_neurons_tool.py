"""neuron-top as a user meets it: which neurons and sites can be named, runs that are cut into shards, stopped, killed and gone on
with, what a result file can and cannot show, and what is refused. What is in the lists is test_neurons_oracle.py's business."""
import filecmp
import json
import os
import pty
import random
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from checkpoints import copy_with
from weircli import BIN, BROOK, ROOT, environment, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
GPT2, LLAMA = MODELS / "gpt2", MODELS / "llama-gqa-bf16"
IDS = "5 9 13 2 40 41 42 7 7 8 30 21"
POST = "blocks.{}.mlp.hook_post"
SENTENCES = (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines(True)


def top(*args, **more):
    return weir("neuron-top", *args, **more)


def listed(*args, **more):
    """[(hook, unit)] in the order of the output."""
    lines = top(*args, "--format", "ndjson", "--quiet", **more).ok().out.splitlines()[1:]
    return [(o["hook"], o["unit"]) for o in map(json.loads, lines)]


def same(a, b):
    return filecmp.cmp(a, b, shallow=False)


# --- 250 sentences, whichever way they are run

@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """Options of a run that keeps all there is to keep."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(SENTENCES[:250]), encoding="utf-8")
    return ["--layer", "0", "-k", 8, "--quantiles", 2, "--random", 5, "--file", path]


@pytest.fixture(scope="module")
def whole(every, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "whole.h5"
    top(*every, "-o", path).ok()
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A result of three documents, all layers."""
    path = tmp_path_factory.mktemp("small") / "small.h5"
    top("-k", 4, "--context", "5,5", "-o", path, "The river bends.", "Two and two are four.", "Is it open? It is.").ok()
    return path


def test_threads_batches_and_kernels_leave_the_file_as_it_is(every, whole, tmp_path):
    top(*every, "--threads", 1, "--batch", 64, "--kernel", "avx2", "-o", tmp_path / "r.h5").ok()
    assert same(whole, tmp_path / "r.h5")


def test_another_question_is_another_file(every, whole, tmp_path):
    top(*every, "--seed", 1, "-o", tmp_path / "r.h5").ok()
    assert not same(whole, tmp_path / "r.h5")


def test_shards_in_any_order_are_the_whole(every, whole, tmp_path):
    parts = [tmp_path / f"{i}.h5" for i in range(3)]
    for i, part in enumerate(parts):
        top(*every, "--shard", f"{i}/3", "-o", part).ok()
    random.Random(3).shuffle(parts)
    top("--merge", *parts, "-o", tmp_path / "m.h5").ok()
    assert same(whole, tmp_path / "m.h5")
    for form in ("tsv", "ndjson"):
        top(whole, "--format", form, "-o", tmp_path / f"a.{form}").ok()
        top("--merge", *reversed(parts), "--format", form, "-o", tmp_path / f"b.{form}").ok()
        assert same(tmp_path / f"a.{form}", tmp_path / f"b.{form}")
    r = top("--merge", *parts[:2], "--limit", 1).ok()
    assert "not all of the 3 shards" in r.err
    top("--merge", parts[0], parts[0]).fails(1, parts[0].name, "both have shard")
    other = tmp_path / "other.h5"
    top(*[9 if x == 8 else x for x in every], "--shard", "1/3", "-o", other).ok()
    top("--merge", tmp_path / "0.h5", other).fails(1, "other.h5", "differ in k: 8 and 9")


def test_what_is_shown_live_is_what_the_file_shows(tmp_path):
    options = ["--layer", "1", "-k", 5, "--file", BROOK / "sentences.txt", "--max-tokens", 400]
    top(*options, "-o", tmp_path / "r.h5").ok()
    for form in ("text", "tsv", "ndjson", "html"):
        top(*options, "--format", form, "-o", tmp_path / f"live.{form}").ok()
        top(tmp_path / "r.h5", "-k", 5, "--format", form, "-o", tmp_path / f"file.{form}").ok()
        assert same(tmp_path / f"live.{form}", tmp_path / f"file.{form}"), form
    assert not same(tmp_path / "live.tsv", tmp_path / "live.text")


# --- runs that end early

SLOW = ["--kernel", "ref", "--threads", 1, "--checkpoint", 1]


def start(every, path, env=None):
    options = map(str, [*every, *SLOW, "-o", path])
    return subprocess.Popen([BIN / "weir", "neuron-top", *options], env=environment(**(env or {})), stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def rows(path):
    with h5py.File(path) as f:
        return f.attrs["rows_done"]


def wait_for(path, process):
    for _ in range(3000):
        if path.exists():
            return
        assert process.poll() is None, "it came to its end before there was a checkpoint"
        time.sleep(0.01)
    raise AssertionError(f"{path} did not come")


def test_a_killed_run_is_gone_on_with(every, whole, tmp_path):
    path, part = tmp_path / "r.h5", tmp_path / "r.h5.part"
    p = start(every, path)
    wait_for(part, p)
    p.kill()
    p.communicate(timeout=60)
    assert not path.exists()
    with h5py.File(part) as f:
        assert f.attrs["complete"] == 0 and 0 < f.attrs["rows_done"] < rows(whole)
    top(*every, "-o", path).fails(1, "r.h5.part", "--resume", "--force")
    top(*every, "--threshold", 1, "-o", path, "--resume").fails(1, "r.h5.part", "threshold")
    top(*every, "--bos", "no", "-o", path, "--resume").fails(1, "r.h5.part")
    r = top(*every, "-o", path, "--resume").ok()
    assert "going on behind them" in r.err
    assert same(whole, path) and not part.exists()


def test_a_run_that_is_killed_while_it_writes_a_checkpoint(every, whole, tmp_path):
    so = tmp_path / "killat.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", so, ROOT / "tests" / "support" / "killat.c", "-ldl"], check=True)
    p = start(every, tmp_path / "r.h5", env={"LD_PRELOAD": str(so), "WEIR_KILL_AFTER": "3"})
    p.communicate(timeout=60)
    assert p.returncode == -signal.SIGKILL and not (tmp_path / "r.h5").exists() and not (tmp_path / "r.h5.part").exists()
    top(*every, "-o", tmp_path / "r.h5", "--resume").ok()
    assert same(whole, tmp_path / "r.h5")
    assert sorted(os.listdir(tmp_path)) == ["killat.so", "r.h5"]


def test_a_stopped_run_leaves_a_part(every, whole, tmp_path):
    path, part = tmp_path / "r.h5", tmp_path / "r.h5.part"
    p = start(every, path)
    wait_for(part, p)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 1 and err.startswith("neuron-top: stopped by signal 2; what ") and "--resume" in err
    assert not path.exists()
    shown = top(part, "--limit", 1).ok()
    assert "not come to its end" in shown.err and b"L0N0" in shown.out
    top(*every, "-o", path, "--resume").ok()
    assert same(whole, path) and not part.exists()


def test_nothing_is_left_to_do(small, tmp_path):
    path = tmp_path / "r.h5"
    text = ["The river bends.", "Two and two are four.", "Is it open? It is."]
    shutil.copy(small, path)
    r = top("-k", 4, "--context", "5,5", "-o", path, "--resume", *text).ok()
    assert "nothing is left to do" in r.err and same(small, path)
    top("-k", 5, "--context", "5,5", "-o", path, "--resume", *text).fails(1, "r.h5", "another run", "k")
    assert same(small, path)
    top("-k", 5, "-o", path, *text).ok()
    assert not same(small, path)


def test_standard_input_cannot_be_gone_on_with(tmp_path):
    top("-o", tmp_path / "r.h5", "--resume", "-", stdin=b"A text.\n").fails(2, "--resume", "standard input")


# --- which neurons

NAMES = {
    "421": [(POST.format(layer), 421) for layer in (0, 1)],
    "0:3": [(POST.format(layer), unit) for layer in (0, 1) for unit in range(3)],
    "L1N9": [(POST.format(1), 9)],
    "l0n2:4": [(POST.format(0), 2), (POST.format(0), 3)],
    "L1N5,7,L0N7,7": [(POST.format(0), 7), (POST.format(1), 5), (POST.format(1), 7)],
}


@pytest.mark.parametrize("name", NAMES)
def test_neurons_by_name(name, small):
    assert listed("--layers", "0,1", "--neurons", name, "The river.") == NAMES[name]
    assert listed(small, "--layers", "0,1", "--neurons", name) == NAMES[name], "a result is asked in the same words"


def test_neurons_from_a_file_and_by_repeated_options(tmp_path):
    (tmp_path / "list").write_text("# mine\n421, \n".replace(", ", "") + "  L1N9,0:2  # three more\n\n")
    want = [(POST.format(0), u) for u in (0, 1, 421)] + [(POST.format(1), u) for u in (0, 1, 9, 421)]
    assert listed("--layers", "0,1", "--neurons", f"@{tmp_path / 'list'}", "The river.") == want
    assert listed("--layers", "0,1", "--neurons", "421", "--neurons", "L1N9", "--neurons", "0:2", "The river.") == want


def test_all_neurons_of_all_layers(small):
    def names(*args):
        out = top(*args, "--sign", "+", "-k", 1, "--format", "tsv") if args[0] != small else top(*args, "-k", 1, "--format", "tsv")
        rows = [line.split("\t") for line in out.ok().out.decode().splitlines()[1:]]
        return [(row[2], int(row[1])) for row in rows if row[4] == "top"]

    everything = names("The river.")
    assert everything == [(POST.format(layer), unit) for layer in range(8) for unit in range(768)]
    assert names("--neurons", "all", "--layers", "all", "The river.") == everything == names(small)


def test_named_neurons_know_more(small):
    more = lambda *args: json.loads(top(*args, "--format", "ndjson", "The river bends.").ok().out.splitlines()[1])
    named = more("--neurons", "L0N3")
    assert named["token_means"] and len(named["related"]["by_r"]) > 0 and named["lists"]["top"][0]["context"]["values"]
    assert more("--neurons", "L0N3", "--correlated", "no")["related"] is None
    plain = more("--layer", 0)
    assert plain["token_means"] is None and plain["related"] is None and plain["lists"]["top"][0]["context"]["values"] is None
    assert more("--layer", 0, "--neurons", "0:65")["token_means"] is None, "65 are too many"
    top("--layer", 0, "--neurons", "0:65", "--correlated", "yes", "A.").fails(2, "--correlated", "64")
    top("--correlated", "yes", "A.").fails(2, "--correlated", "--neurons")


# --- what a neuron is

GATED = {"pre": "hook_pre", "gate": "hook_pre", "up": "hook_pre_linear", "post": "hook_post"}
OTHERS = {"mlp_out": "hook_mlp_out", "resid_pre": "hook_resid_pre", "resid-mid": "hook_resid_mid", "resid_post": "hook_resid_post",
          "z": "attn.hook_z", "blocks.*.ln2.hook_normalized": "ln2.hook_normalized", "attn_out": "hook_attn_out"}


def recorded(tmp_path, hook, *options):
    trace(*options, "--hooks", hook, "--dump", tmp_path / "d.h5").ok()
    with h5py.File(tmp_path / "d.h5") as f:
        return f[f"activations/{hook}"][:]


@pytest.mark.parametrize("site", [*GATED, *OTHERS])
def test_sites(site, tmp_path):
    hook = f"blocks.1.mlp.{GATED[site]}" if site in GATED else f"blocks.1.{OTHERS[site]}"
    run = ["--model", LLAMA, "--ids", IDS]
    values = recorded(tmp_path, hook, *run)
    lines = top(*run, "--layer", 1, "--site", site, "-k", 1, "--mask", "none", "--format", "ndjson").ok().out.splitlines()
    found = [json.loads(line) for line in lines[1:]]
    assert [o["hook"] for o in found] == [hook] * values.shape[1]
    assert [np.float32(o["max"]) for o in found] == values.max(axis=0).tolist()
    assert [np.float32(o["lists"]["bottom"][0]["value"]) for o in found] == values.min(axis=0).tolist()


def test_the_activation_of_the_gate(tmp_path):
    run = ["--model", LLAMA, "--ids", IDS]
    gate = recorded(tmp_path, "blocks.1.mlp.hook_pre", *run).astype(np.float64)
    act = gate / (1 + np.exp(-gate))
    found = [json.loads(line) for line in
             top(*run, "--layer", 1, "--site", "gate-act", "--mask", "none", "--format", "ndjson").ok().out.splitlines()[1:]]
    assert {o["site"] for o in found} == {"gate-act"}
    assert np.allclose([o["max"] for o in found], act.max(axis=0), rtol=1e-6, atol=1e-9)
    assert np.allclose([o["mean"] for o in found], act.mean(axis=0), rtol=1e-6, atol=1e-9)


def test_several_sites_at_once():
    run = ["--model", LLAMA, "--ids", IDS, "--layers", "1-2"]
    hooks = [hook for hook, _ in listed(*run, "--site", "up,gate", "--neurons", 3)]
    assert hooks == [f"blocks.{i}.mlp.{name}" for name in ("hook_pre_linear", "hook_pre") for i in (1, 2)]
    assert [hook for hook, _ in listed(*run, "--site", "blocks.{0,2}.mlp.hook_p{re,ost}", "--neurons", 3)] == [
        "blocks.2.mlp.hook_pre", "blocks.2.mlp.hook_post"]


NAMED_SITES = ["post", "mlp_post", "mlp-post", "pre", "mlp_pre", "resid-mid", "ln1", "ln2", "q", "k", "v", "z", "attn_out", "*hook_resid_post",
               "*.mlp.hook_p{re,ost}", "blocks.1.*.hook_out", "up", "gate"]


def test_sites_have_one_name(tmp_path):
    """Whatever a site is called, a run and a dump give the same result, and it says the same of itself."""
    run = ["--model", LLAMA, "--ids", IDS, "--layer", 1]
    trace(*run, "--hooks", "blocks.1.*", "--dump", tmp_path / "d.h5").ok()
    for site in NAMED_SITES:
        top(*run, "--site", site, "-k", 2, "--weights", "no", "-o", tmp_path / "a.h5").ok()
        top(tmp_path / "d.h5", "--site", site, "-k", 2, "--weights", "no", "-o", tmp_path / "b.h5").ok()
        assert same(tmp_path / "a.h5", tmp_path / "b.h5"), site


@pytest.mark.parametrize("site", ["L1N3", "l1n3", "L1H0", "blocks.1.mlp.hook_post[3]"])
def test_units_are_not_sites(small, site, tmp_path):
    """A neuron that is named as a site would be the whole layer."""
    top("--site", site, "The river.").fails(2, site, "--neurons")
    trace("--layer", 1, "--dump", tmp_path / "d.h5", "--quiet", "The river.").ok()
    top(tmp_path / "d.h5", "--site", site).fails(2, site, "--neurons")


# --- interventions, masks, rank, order

def test_interventions_come_first():
    one = lambda *more: json.loads(top("--neurons", "L1N5", *more, "--format", "ndjson", "The river bends.").ok().out.splitlines()[1])
    assert one("--ablate", "L1N5")["max"] == one("--ablate", "L1N5")["min"] == 0
    before, after = one(), one("--ablate", "L0N7")
    assert before["max"] != 0 and before["lists"] != after["lists"]


def test_masks_are_by_id_and_counted():
    head = lambda mask: json.loads(top("--layer", 0, "--mask", mask, "--model", LLAMA, "--ids", IDS, "--format", "ndjson").ok().out.splitlines()[0])
    assert head("none")["masked"] == {"bos": 0, "special": 0, "id": 0} and head("none")["counted"] == 12
    assert head("7,40")["masked"]["id"] == 3 and head("7,40")["counted"] == 9


def test_ranked_by_the_mean_of_documents(tmp_path):
    lines = (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines()[:40]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    trace("--layer", 1, "--site", "post", "--file", tmp_path / "t.txt", "--dump", tmp_path / "d.h5").ok()
    with h5py.File(tmp_path / "d.h5") as f:
        values, doc, counted = f["activations"][POST.format(1)][:], f["tokens/doc"][:], f["tokens/flags"][:] & 3 == 0
    found = [json.loads(line) for line in top("--layer", 1, "--rank-by", "mean", "--dedup", "none", "-k", 5, "--file", tmp_path / "t.txt",
                                              "--format", "ndjson").ok().out.splitlines()[1:]]
    for o in found[::97]:
        mean = np.array([values[(doc == d) & counted, o["unit"]].mean(dtype=np.float64) for d in range(40)])
        assert [p["doc"] for p in o["lists"]["top"]] == np.argsort(-mean, kind="stable")[:5].tolist()
        assert np.allclose([p["value"] for p in o["lists"]["top"]], np.sort(mean)[::-1][:5], rtol=1e-6)


@pytest.mark.parametrize("by, key, sign", [("max", "max", -1), ("min", "min", 1), ("mean", "mean", -1), ("sd", "sd", -1),
                                           ("skew", "skew", -1), ("kurtosis", "kurtosis", -1)])
def test_order_and_number(small, by, key, sign):
    lines = top(small, "--layer", 2, "--sort", by, "--format", "ndjson").ok().out.splitlines()[1:]
    found = [json.loads(line) for line in lines]
    figures = [o[key] for o in found]
    assert len(found) == 768 and figures == sorted(figures, key=lambda x: sign * x) and len(set(figures)) > 500
    short = top(small, "--layer", 2, "--sort", by, "--limit", 7, "--format", "ndjson").ok().out.splitlines()[1:]
    assert short == lines[:7]


def test_density_chooses(small):
    shares = lambda *more: [o["above"][0] / o["count"] for o in map(
        json.loads, top(small, "--layers", "0,3", "--format", "ndjson", *more).ok().out.splitlines()[1:])]
    want = [x for x in shares() if 0.25 <= x <= 0.5]
    assert 0 < len(want) < 1536 and shares("--min-density", 0.25, "--max-density", 0.5) == want


@pytest.mark.parametrize("options, words", [
    (["--min-density", 99], ("--min-density 99", "0 to 1")), (["--max-density", 1.5], ("--max-density 1.5", "0 to 1")),
    (["--min-density", 0.5, "--max-density", 0.2], ("--min-density 0.5", "--max-density 0.2"))])
def test_densities_are_shares(small, options, words):
    top(small, *options).fails(2, *words)


def test_a_filter_that_nothing_passes_says_what_there_is(small):
    found = map(json.loads, top(small, "--layer", 2, "--format", "ndjson").ok().out.splitlines()[1:])
    shares = [o["above"][0] / o["count"] for o in found]
    assert max(shares) < 1
    for more in ([], ["--limit", 1], ["--format", "tsv"], ["--sort", "clusters"]):
        r = top(small, "--layer", 2, "--min-density", (1 + max(shares)) / 2, *more).ok()
        line, = r.err.splitlines()
        assert f"here it is {min(shares):.3g} to {max(shares):.3g}" in line
    assert top(small, "--layer", 2, "--min-density", (1 + max(shares)) / 2, "--quiet").ok().err == ""


# --- waiting

def test_a_long_wait_for_the_weights_is_explained(tmp_path):
    """All neurons with the plainest kernel: half a minute, of which two seconds are waited for here."""
    p = subprocess.Popen([BIN / "weir", "neuron-top", "-k", "1", "--weights", "yes", "--kernel", "ref", "--threads", "1", "-o",
                          tmp_path / "r.tsv", "The river."], env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
    lines = [p.stderr.readline() for _ in range(2)]
    p.kill()
    p.communicate(timeout=60)
    assert "rows in" in lines[0] and "reading tokens from the weights: about " in lines[1] and "--weights no" in lines[1]


def test_a_terminal_shows_how_far_the_weights_are(tmp_path):
    top("--layer", 1, "--weights", "no", "-k", 1, "-o", tmp_path / "r.h5", "The river.").ok()
    ours, theirs = pty.openpty()
    p = subprocess.Popen([BIN / "weir", "neuron-top", tmp_path / "r.h5", "--weights", "yes", "--format", "tsv"], env=environment(),
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    assert p.wait(timeout=60) == 0
    said = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "[" in said and "%" in said and "tokens" not in said


def test_help_names_what_joins_shards_and_what_a_dump_knows():
    words = lambda tool: " ".join(weir(tool, "--help").ok().out.decode().split())
    for tool in ("trace", "neuron-top"):
        assert "weir merge joins their dumps, neuron-top --merge its results" in words(tool)
    assert "From a dump: the median of the rows that were recorded" in words("neuron-top")


# --- what a file can show

def test_a_result_shows_less_but_not_more(small):
    o = json.loads(top(small, "--neurons", "L3N9", "-k", 2, "--context", "1,2", "--format", "ndjson").ok().out.splitlines()[1])
    assert len(o["lists"]["top"]) == 2 and all(len(p["context"]["ids"]) <= 4 for p in o["lists"]["top"])
    assert o == json.loads(top("--neurons", "L3N9", "--from", small, "-k", 2, "--context", "1,2", "--format", "ndjson").ok().out.splitlines()[1])
    top(small, "-k", 5).fails(2, "-k 5", "4 places")
    top(small, "--context", "6,5").fails(2, "--context 6,5")
    top(small, "--layers", 8).fails(2, "--layer 8")
    top(small, "--neurons", "L8N3").fails(2, "L8N3")
    top(small, "--layer", 3, "--neurons", "L4N3").fails(2, "L4N3")
    top(small, "--neurons", 768).fails(2, "768")


@pytest.mark.parametrize("option", [["--dedup", "none"], ["--sign", "abs"], ["--site", "pre"], ["--mask", "none"], ["--random", 3],
                                    ["--rank-by", "max"], ["--threshold", 1], ["--max-norm-ratio", 3], ["--ctx", 64], ["--ablate", "L1N5"],
                                    ["--file", BROOK / "sentences.txt"], ["--shard", "0/2"], ["--max-tokens", 5]])
def test_a_result_cannot_be_searched_again(small, option):
    top(small, *option).fails(2, option[0], "small.h5")


def test_weights_can_be_added_to_a_result(tmp_path):
    top("--layer", 1, "--weights", "no", "-k", 2, "-o", tmp_path / "r.h5", "The river.").ok()
    first = lambda *args: json.loads(top(*args, "--format", "ndjson").ok().out.splitlines()[1])
    assert first(tmp_path / "r.h5")["out"] is None
    with_weights = first(tmp_path / "r.h5", "--weights", "yes")
    assert with_weights["out"] == first("--layer", 1, "--weights", "yes", "-k", 2, "The river.")["out"] is not None
    top(tmp_path / "r.h5", "--weights", "yes", "--model", GPT2).fails(1, "r.h5", "another model")


def test_search(small):
    run = lambda *args: [json.loads(line) for line in top(*args, "--search", "The river bends.", "-k", 6, "--format", "ndjson").ok().out.splitlines()]
    head, *plain = run()
    assert head["ranked_by"] == "value" and [o["list"] for o in plain] == ["top"] * 6 + ["bottom"] * 6
    highest = [o["value"] for o in plain[:6]]
    every = sorted((o["max"] for o in map(json.loads, top("--format", "ndjson", "The river bends.").ok().out.splitlines()[1:])), reverse=True)
    assert highest == every[:6]
    head, *beside = run(small)
    assert head["ranked_by"] == "z" and all(o["z"] is not None for o in beside)
    top("--search", "A", "B").fails(2, "--search", "B")
    top("--search", "A", "--format", "html").fails(2, "--search")
    top(small, "--search", "5 9", "--model", GPT2, "--ids", "--quiet").fails(1, "small.h5", "another model")


# --- values that are not finite

def broken_model(tmp_path):
    """gpt2's small fixture with a bias that is not a number: unit 3 of layer 1."""
    return copy_with(GPT2, tmp_path / "model", "h.1.mlp.c_fc.bias", (3,), np.nan)


def test_values_that_are_not_finite_are_named(tmp_path):
    model = broken_model(tmp_path)
    for out in ([], ["-o", tmp_path / "r.h5"], ["-o", tmp_path / "r.tsv"]):
        r = top("--model", model, "--ids", "--layer", 1, "--quiet", *out, IDS)
        line, = r.err.splitlines()
        assert r.code == 3 and "L1N3 (12)" in line and "12 values of 1 neurons" in line and "not finite" in line
        assert bool(r.out) == (not out)
    with h5py.File(tmp_path / "r.h5") as f:
        assert f[f"neurons/{POST.format(1)}/nonfinite"][3] == 12
    assert top(tmp_path / "r.h5", "--quiet").code == 3, "and so says whoever shows that file"
    assert top("--model", GPT2, "--ids", "--layer", 1, "--quiet", IDS).code == 0


# --- what is refused

@pytest.mark.parametrize("option", [["--limit", 2], ["--sort", "max"], ["--min-density", 0.1], ["--quantiles", 2], ["--weights", "yes"],
                                    ["--threshold", 1], ["--context", "2,2"], ["--dedup", "doc"], ["--rank-by", "mean"]])
def test_search_has_no_room_for_these(option):
    top("--search", "The river.", *option).fails(2, option[0], "--search")


@pytest.mark.parametrize("args, words", [
    (["--neurons", 768], ("768", "units")),
    (["--neurons", "L9N3"], ("L9N3", "7")),
    (["--neurons", "L3N9", "--layer", 2], ("L3N9", "layer 3")),
    (["--neurons", "4:2"], ("--neurons", "4:2")),
    (["--neurons", "x"], ("--neurons", '"x"', "L3N9")),
    (["--layer", 8], ("layer 8", "0 to 7")),
    (["--site", "pots"], ("pots", "nearest", "post")),
    (["--site", "gate-act"], ("gate-act", "no gate")),
    (["--site", "pattern"], ("pattern",)),
    (["-k", 10001], ("k 10001", "10000")),
    (["-k", 0], ("k 0", "at least 1")),
    (["--format", "xml"], ("--format xml", "ndjson")),
    (["--format", "h5"], ("--format h5", "-o FILE.h5")),
    (["--json", "--format", "tsv"], ("--json",)),
    (["--dedup", "text:0"], ("--dedup text:0", "text:N")),
    (["--dedup", "words"], ("--dedup words", "window")),
    (["--context", 3], ("--context 3", "10,10")),
    (["--context", "3,-1"], ("--context 3,-1",)),
    (["--mask", "eos"], ("--mask", "eos")),
    (["--mask", 99999], ("--mask", "99999", "4096")),
    (["--threshold", "nan"], ("--threshold nan",)),
    (["--max-norm-ratio", "0.5"], ("--max-norm-ratio 0.5", "1 or more")),
    (["--max-norm-ratio", 3, "--site", "hook_embed"], ("--max-norm-ratio", "hook_embed")),
    (["--shard", "0/2", "--max-tokens", 5], ("--shard", "--max-tokens")),
    (["--resume"], ("--resume", "--out")),
    (["--resume", "-o", "x.tsv"], ("--resume", "-o FILE.h5")),
    (["--resume", "--force", "-o", "x.h5"], ("--resume", "--force")),
    (["--width", 3], ("--width 3",)),
])
def test_a_wrong_command_line(args, words, tmp_path):
    top(*args, "The river.", cwd=tmp_path).fails(2, *words)
    assert not list(tmp_path.iterdir())


def test_files_that_do_not_go_together(small, tmp_path):
    (tmp_path / "no.h5").write_text("no HDF5")
    top("--merge").fails(2, "--merge")
    top("--merge", small, tmp_path / "no.h5").fails(1, "no.h5")
    top("--from", tmp_path / "none.h5").fails(1, "none.h5")
    top("--from", small, "The river.").fails(2, "--from")
    top(small, small).fails(2, "--merge")
    top(small, "The river.").fails(2, "small.h5")
    top(small, "--resume", "-o", tmp_path / "x.h5").fails(2, "--resume")
    top("--neurons", f"@{tmp_path / 'none'}", "A.").fails(1, "none")
    top("--layer", 0, "").fails(1, "no document")


def test_a_foreign_file_is_not_replaced(tmp_path):
    for name in ("notes.tsv", "notes.ndjson", "notes.html", "notes.h5", "notes.txt"):
        (tmp_path / name).write_text("my notes")
        top("--layer", 0, "-k", 2, "-o", tmp_path / name, "The river.").fails(1, name, "exists")
        assert (tmp_path / name).read_text() == "my notes"
    for name in ("a.tsv", "a.ndjson", "a.html", "a.h5"):
        top("--layer", 0, "-k", 2, "-o", tmp_path / name, "The river.").ok()
        was = (tmp_path / name).read_bytes()
        top("--layer", 0, "-k", 1, "-o", tmp_path / name, "The river.").ok()
        assert (tmp_path / name).read_bytes() != was, "our own is"
    top("--layer", 0, "-k", 2, "--force", "-o", tmp_path / "notes.txt", "The river.").ok()
    assert "L0N0" in (tmp_path / "notes.txt").read_text()
    assert len(list(tmp_path.iterdir())) == 9, "and nothing else is left"


def test_a_result_shows_one_of_its_lists(small):
    """--sign chooses among the lists that a result keeps."""

    def names(*args):
        head, *lines = [line.split("\t") for line in top(small, "--neurons", 3, "--format", "tsv", *args).ok().out.decode().splitlines()]
        return {line[head.index("list")] for line in lines}

    assert names() == {"top", "bottom"} and names("--sign", "+") == {"top"} and names("--sign", "-") == {"bottom"}
    for form in ("text", "ndjson", "html"):
        assert top(small, "--layer", 3, "--format", form, "--sign", "+").ok().out != top(small, "--layer", 3, "--format", form).ok().out


def test_a_mistyped_file_is_not_a_text(tmp_path):
    top("nothere.h5", cwd=tmp_path).fails(1, "nothere.h5")


@pytest.mark.parametrize("option", [["--neurons", 3], ["--limit", 1], ["-k", 1], ["--sort", "max"]])
def test_a_result_is_written_whole(small, tmp_path, option):
    top(small, *option, "-o", tmp_path / "part.h5").fails(2, "written whole")
    assert not list(tmp_path.iterdir())
