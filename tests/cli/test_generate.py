"""weir generate: one by one as in a batch, whatever the threads; stops, ends, streams; what it records is what trace records."""
import json
import os
import pty
import shutil
import signal
import subprocess

import h5py
import numpy as np
import pytest

from weircli import BIN, BROOK, ROOT, environment, trace, weir

PROMPTS = ["The capital city of Colombia is", "The river", "Among the places of Colorado is", "x", "What is more, the habitat of"]
TINY = ROOT / "tests/golden/models"
MODELS = sorted(p.name for p in TINY.iterdir() if p.is_dir())


def generate(*args, **more):
    return weir("generate", "--quiet", *args, **more)


def texts(*args, **more):
    return [json.loads(line) for line in generate("--format", "ndjson", *args, **more).ok().out.splitlines()]


def bare(record):
    return {k: v for k, v in record.items() if k not in ("doc", "sample")}


# --- what is generated


def test_greedy_is_the_argmax_of_each_step(tmp_path):
    got = texts("--max-tokens", "6", "--ignore-eos", PROMPTS[0])[0]
    ids, n = got["prompt_ids"] + got["ids"], len(got["prompt_ids"])
    trace("--hooks", "unembed.hook_out", "--dump", tmp_path / "logits.h5", "--quiet", "--ids", " ".join(map(str, ids))).ok()
    with h5py.File(tmp_path / "logits.h5") as f:
        logits = f["activations/unembed.hook_out"][n - 1:-1]
    assert np.argmax(logits, 1).tolist() == got["ids"]
    assert got["text"] == " Bogotá." and got["end"] == "length" and len(got["ids"]) == 6


@pytest.mark.parametrize("model", MODELS)
def test_every_family_as_a_batch_and_alone(model):
    args = ("--model", TINY / model, "--ids", "--max-tokens", "9", "--logprob", "--stop-id", "1")
    prompts = ["3 5 7 9 2", "4", "6 6 6 6 6 6 6 6 6 6"]
    together = [bare(r) for r in texts(*args, *prompts)]
    assert together == [bare(texts(*args, p)[0]) for p in prompts]
    assert [bare(r) for r in texts(*args, "--batch", "2", "--threads", "1", "--kernel", "ref", *prompts)] == together


def test_batch_is_one_by_one_to_the_byte(tmp_path):
    few = ("--max-tokens", "9")
    together = generate(*few, *PROMPTS).ok().out
    assert together == b"\n".join(generate(*few, p).ok().out for p in PROMPTS)
    for more in (("--threads", "1", "--batch", "3", "--kernel", "avx2"), ("--batch", "1")):
        assert generate(*few, *more, *PROMPTS).ok().out == together, more
    (tmp_path / "p.txt").write_text("\n".join(PROMPTS) + "\n")
    assert generate(*few, "--file", tmp_path / "p.txt", "--memory", "40M").ok().out == together
    assert generate(*few, stdin="\n".join(PROMPTS).encode()).ok().out == together


DRAW = ("--temperature", "0.9", "--top-p", "0.9", "--top-k", "50", "--repetition-penalty", "1.1", "--seed", "3", "--max-tokens", "12")


def test_samples_are_the_same_alone_and_differ_from_each_other():
    together = texts(*DRAW, "-n", "3", *PROMPTS[:3])
    assert [(r["doc"], r["sample"]) for r in together] == [(d, s) for d in range(3) for s in range(3)]
    assert {r["seed"] for r in together} == {3}
    alone = texts(*DRAW, "-n", "3", PROMPTS[1])
    assert [bare(r) for r in alone] == [bare(r) for r in together[3:6]]
    assert [bare(r) for r in texts(*DRAW, "-n", "2", "--batch", "1", PROMPTS[1])] == [bare(r) for r in alone[:2]]
    assert len({r["text"] for r in together}) > 3
    long = " ".join(PROMPTS[:3] * 4)  # more tokens than a panel of keys has
    said = [generate(*DRAW, "-n", "5", "--json", "--batch", "64", *more, long, PROMPTS[1]).ok().json for more in ((), ("--hook", "stats:hook_embed"))]
    assert said[0]["texts"] == said[1]["texts"], "a prompt that is run once for all its samples, or for each"
    prompts = [len(r["prompt_ids"]) for r in said[0]["texts"]]
    assert max(prompts) > 48 and said[1]["rows_run"] - said[0]["rows_run"] == sum(n - 1 for n in prompts[1:5] + prompts[6:])
    other = [r["text"] for r in texts(*DRAW[:-4], "--seed", "4", "--max-tokens", "12", "-n", "3", *PROMPTS[:3])]
    assert other != [r["text"] for r in together]


def test_logprobs_are_those_of_trace(tmp_path):
    got = texts("--max-tokens", "7", "--logprob", PROMPTS[0])[0]
    dump = tmp_path / "d.h5"
    trace("--logprob", "--layer", "0", "--site", "resid_pre", "--dump", dump, "--ids",
          " ".join(map(str, got["prompt_ids"] + got["ids"]))).ok()
    with h5py.File(dump) as f:
        want = f["tokens/logprob"][-len(got["ids"]):]
    assert np.array(got["logprobs"], "f4").tobytes() == want.tobytes()


# --- ends


def test_a_stop_string_that_spans_tokens_is_cut_out():
    whole = texts(PROMPTS[0], "--max-tokens", "5")[0]["text"]
    assert whole == " Bogotá."
    for stop, want in (("gotá", " Bo"), (" B", ""), (".", " Bogotá")):
        r = texts(PROMPTS[0], "--stop", stop)[0]
        assert (r["text"], r["end"], r["stop"]) == (want, "stop", stop)
    assert generate(PROMPTS[0], "--stop", "tá.").ok().out.decode() == PROMPTS[0] + " Bogo\n"
    r = texts(PROMPTS[0], "--stop", "zzz", "--stop", "á", "--stop", "tá")[0]
    assert (r["text"], r["stop"]) == (" Bogo", "tá")
    r = texts(PROMPTS[0], "--max-tokens", "3", "--stop", "got-")[0]
    assert (r["text"], r["end"]) == (" Bogot", "length"), "what was held back is shown in the end"


def test_stop_ids_and_eos(tmp_path):
    free = texts(PROMPTS[0], "--max-tokens", "6", "--ignore-eos")[0]
    r = texts(PROMPTS[0], "--stop-id", str(free["ids"][2]))[0]
    assert r["end"] == "stop-id" and r["ids"] == free["ids"][:3] and r["text"] == " Bog"
    # generation_config.json may have a list
    model = tmp_path / "model"
    shutil.copytree(BROOK, model, copy_function=os.symlink, ignore=shutil.ignore_patterns("recipe", "generation_config.json"))
    (model / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, free["ids"][1]]}))
    r = texts("--model", model, PROMPTS[0])[0]
    assert r["end"] == "eos" and r["ids"] == free["ids"][:2]
    assert texts("--model", model, "--ignore-eos", "--max-tokens", "6", PROMPTS[0])[0]["ids"] == free["ids"]


def test_the_context_ends_a_text_and_says_so():
    n = len(texts(PROMPTS[0], "--max-tokens", "1")[0]["prompt_ids"])
    r = weir("generate", "--ctx", n + 3, "--ignore-eos", "--format", "ndjson", PROMPTS[0]).ok()
    assert json.loads(r.out)["end"] == "context" and len(json.loads(r.out)["ids"]) == 3
    assert f"the context of {n + 3} tokens is full: the text of document 0 ends after 3 of 64 tokens" in r.err
    generate("--ctx", n, PROMPTS[0]).fails(1, f"document 0 has {n} tokens, BOS counted", f"context of {n}", f"{n - 1} at most")


# --- texts that are known beforehand


def forced(tmp_path, ids, first):
    """Interventions that make the model say these ids, whatever it thinks: logits of one 1 at each position."""
    one = np.zeros((len(ids), 4096), "f4")
    one[range(len(ids)), ids] = 1
    np.save(tmp_path / "say.npy", one)
    return sum((["--set", f"unembed.hook_out[{first + i}]={tmp_path / 'say.npy'}@{i}"] for i in range(len(ids))), [])


def byte_tokens(text):
    """A token for each byte of a text."""
    vocab = json.loads((BROOK / "tokenizer.json").read_text())["model"]["vocab"]
    letters = [b for b in range(256) if 33 <= b < 127 or 161 <= b < 173 or 174 <= b]
    alphabet = {b: chr(b) for b in letters}
    alphabet.update({b: chr(256 + n) for n, b in enumerate(b for b in range(256) if b not in letters)})
    return [vocab[alphabet[b]] for b in text.encode()]


TEXT = "é😀 \x1b[31m日\n本"


def on_a_terminal(args):
    """The pieces in which a terminal is written to."""
    leader, follower = pty.openpty()
    p = subprocess.Popen([BIN / "weir", "generate", "--quiet", *args], stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.PIPE,
                         env=environment(TERM="dumb"))
    os.close(follower)
    pieces = []
    try:
        while piece := os.read(leader, 4096):
            pieces.append(piece)
    except OSError:  # the other side is closed
        pass
    os.close(leader)
    assert p.wait() == 0, p.stderr.read()
    return pieces


def test_a_character_waits_until_it_is_whole_and_nothing_acts_on_the_terminal(tmp_path):
    ids = byte_tokens(TEXT)
    say = forced(tmp_path, ids, 1)
    args = (*say, "--max-tokens", len(ids), "x")
    r = texts(*args)[0]
    assert r["ids"] == ids and r["text"] == TEXT
    assert generate(*args).ok().out == ("x" + TEXT + "\n").encode()
    pieces = on_a_terminal(list(map(str, args)))
    for piece in pieces:
        piece.decode()
    assert b"".join(pieces).decode().replace("\r\n", "\n") == "x" + TEXT.replace("\x1b", "\\x1b") + "\n"
    assert len(pieces) > 1, "it streams"  # how many reads they come in is the machine's
    assert generate(*say[:2], "--max-tokens", "1", "x").ok().out == b"x\xc3\n", "what never became whole is shown in the end"


def test_stop_strings_meet_bytes(tmp_path):
    ids = byte_tokens("é😀 日\n本")
    r = texts(*forced(tmp_path, ids[:-3], 1), "--max-tokens", "30", "--stop", "日\n本!", "--stop", " 日\n", "x")[0]
    assert (r["text"], r["end"], r["ids"]) == ("é😀", "stop", ids[:-3])


# --- interventions and records


def differing(a, b):
    """Names of activations and token columns that differ."""
    bad = []
    with h5py.File(a) as f, h5py.File(b) as g:
        for group in ("activations", "tokens"):
            assert sorted(f[group]) == sorted(g[group])
            bad += [k for k in f[group] if f[group][k][()].tobytes() != g[group][k][()].tobytes()]
        bad += [k for k in ("start", "count") if f["docs"][k][()].tolist() != g["docs"][k][()].tolist()]
    return bad


@pytest.mark.parametrize("more", [(), ("--ablate", "L3N7", "--scale", "blocks.2.hook_attn_out[3:9]=0.5")])
def test_a_dump_is_what_trace_records_of_the_same_ids(tmp_path, more):
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    what = ("--layer", "1-3", "--site", "resid_post,post,pattern", "--logprob")
    got = texts("--max-tokens", "9", *what, *more, "--dump", a, "--batch", "4", *PROMPTS[:3])
    ids = "\n".join(" ".join(map(str, r["prompt_ids"] + r["ids"])) for r in got)
    trace(*what, *more, "--dump", b, "--ids", stdin=ids.encode()).ok()
    assert differing(a, b) == []
    if more:
        c = tmp_path / "c.h5"
        trace(*what, "--dump", c, "--ids", stdin=ids.encode()).ok()
        assert len(differing(a, c)) > 3, "the comparison can fail"


def test_an_edit_is_compared_and_is_the_same_in_a_batch(tmp_path):
    edit = make_edit(tmp_path / "edit")
    before = texts("--max-tokens", "12", *PROMPTS[:2])
    after = texts("--edit", edit, "--max-tokens", "12", *PROMPTS[:2])
    assert [r["text"] for r in before] != [r["text"] for r in after]
    assert bare(after[1]) == bare(texts("--edit", edit, "--max-tokens", "12", "--batch", "2", "--threads", "1", PROMPTS[1])[0])
    pairs = generate("--edit", edit, "--compare", "--max-tokens", "12", "--json", *PROMPTS[:2]).ok().json["texts"]
    assert [p["before"]["text"] for p in pairs] == [r["text"] for r in before]
    assert [p["after"]["text"] for p in pairs] == [r["text"] for r in after]


def make_edit(path):
    """A rank-one update of a down projection, as a PEFT LoRA directory."""
    rng = np.random.default_rng(0)
    name = "transformer.h.3.mlp.c_proj"
    part = {"lora_A": rng.normal(0, 0.04, (1, 768)), "lora_B": rng.normal(0, 6, (192, 1))}
    data = {k: v.astype("f4").tobytes() for k, v in part.items()}
    head, at = {}, 0
    for k, v in part.items():
        head[f"base_model.model.{name}.{k}.weight"] = {"dtype": "F32", "shape": list(v.shape), "data_offsets": [at, at + len(data[k])]}
        at += len(data[k])
    text = json.dumps(head).encode()
    path.mkdir()
    (path / "adapter_model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data.values()))
    (path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": [name],
                                                          "fan_in_fan_out": True, "bias": "none"}))
    return path


def test_ctrl_c_ends_with_what_there_is(tmp_path):
    args = ["generate", "--quiet", "--ignore-eos", "--max-tokens", "200", "--format", "ndjson", "--stop", "á"]
    for more in ((), ("--layer", "0", "--dump", str(tmp_path / "a.h5"))):
        p = subprocess.Popen([BIN / "weir", *args, *more, *PROMPTS * 12], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                             env=environment())
        first = p.stdout.readline()
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        assert p.returncode == 1 and b"stopped by signal 2 behind" in err, (err, out[:300])
        lines = [json.loads(line) for line in (first + out).splitlines()]
        assert lines[0]["text"] == " Bogot" and lines[0]["end"] == "stop"
        assert len(lines) < 60 or any(r["end"] == "interrupted" and len(r["ids"]) < 200 for r in lines)
    with h5py.File(tmp_path / "a.h5.part") as f:
        assert f.attrs["complete"] == 0 and len(f["tokens/id"]) >= len(lines[0]["prompt_ids"])
    assert b"a.h5.part" in err


def test_samples_are_documents_of_a_dump(tmp_path):
    got = texts(*DRAW, "-n", "2", "--layer", "0", "--site", "resid_pre", "--dump", tmp_path / "a.h5", *PROMPTS[:2])
    assert [bare(r) for r in got] == [bare(r) for r in texts(*DRAW, "-n", "2", *PROMPTS[:2])]
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["docs/count"][:].tolist() == [len(r["prompt_ids"]) + len(r["ids"]) for r in got]
        assert f["tokens/id"][:].tolist() == sum((r["prompt_ids"] + r["ids"] for r in got), [])
        assert f.attrs["complete"] == 1


def test_positions_of_interventions_are_absolute():
    plain = texts("--max-tokens", "12", PROMPTS[0])[0]
    n = len(plain["prompt_ids"])
    at = lambda where: texts("--max-tokens", "12", "--scale", f"blocks.3.hook_resid_post[{where}]=-3", PROMPTS[0])[0]
    changed = at(f"{n + 1}")
    k = next(i for i, (a, b) in enumerate(zip(plain["ids"], changed["ids"])) if a != b)
    assert k == 2, "the token at n + 1 is run to choose the one at n + 2"
    assert bare(at("-1"))["ids"] == bare(at(f"{n - 1}:"))["ids"] != plain["ids"], "-1 is the newest token, each time"
    r = generate("--max-tokens", "3", "--scale", "blocks.3.hook_resid_post[200]=-3", PROMPTS[0])
    assert r.code == 1 and "changed nothing: no sequence has such a position" in r.err


# --- compare


def columns(out):
    lines = out.decode().splitlines()
    return lines, [line.split(" | ") for line in lines[1:]]


CHANGE = ("--scale", "blocks.5.hook_resid_post=0.1", "--max-tokens", "14", "--ignore-eos")


def test_compare_shows_both_texts():
    before = texts("--max-tokens", "14", "--ignore-eos", PROMPTS[0])[0]
    after = texts(*CHANGE, PROMPTS[0])[0]
    pair = texts("--compare", *CHANGE, PROMPTS[0])[0]
    assert pair["before"]["text"] == before["text"] != after["text"] == pair["after"]["text"]
    lines, rows = columns(generate("--compare", *CHANGE, "--width", "80", PROMPTS[0]).ok().out)
    assert lines[0] == PROMPTS[0] and lines[1].split() == ["before", "|", "after"]
    assert all(len(line) <= 80 for line in lines)
    left, right = (" ".join(" ".join(r[i].split()) if i < len(r) else "" for r in rows[1:]).split() for i in (0, 1))
    assert [w.rstrip("|") for w in left if w != "|"] == before["text"].split() and right == after["text"].split()


def test_compare_stacks_on_narrow_terminals_and_colours_on_demand():
    out = generate("--compare", *CHANGE, "--width", "40", PROMPTS[0]).ok().out.decode()
    assert "before:\n" in out and "after:\n" in out and all(len(line) <= 40 for line in out.splitlines()[1:])
    coloured = generate("--compare", *CHANGE, "--color", "16", PROMPTS[0]).ok().out
    assert b"\x1b[31m" in coloured and b"\x1b[32m" in coloured
    same = generate("--compare", "--scale", "L0N0=1", "--color", "16", "--max-tokens", "8", PROMPTS[0]).ok().out
    assert b"\x1b[31m" not in same and b"\x1b[32m" not in same, "equal words have no colour"


# --- the command line


@pytest.mark.parametrize("args, words", [
    (("--temperature", "-1"), ("--temperature -1", "at least 0")),
    (("--temperature", "1e-50"), ("--temperature", "too small")),
    (("--temperature", "1e38"), ("--temperature", "1e6")),
    (("--repetition-penalty", "1e38"), ("--repetition-penalty", "1e6")),
    (("--temperature", "1", "--top-p", "0"), ("--top-p", "above 0")),
    (("--temperature", "1", "--top-p", "1.5"), ("--top-p",)),
    (("--temperature", "1", "--min-p", "2"), ("--min-p",)),
    (("--repetition-penalty", "0"), ("--repetition-penalty",)),
    (("--top-k", "5"), ("--top-k has a meaning only with --temperature",)),
    (("-n", "2"), ("greedy sampling draws nothing", "--temperature")),
    (("--max-tokens", "0"), ("--max-tokens 0",)),
    (("--stop", ""), ("--stop", "empty")),
    (("--stop-id", "x"), ("--stop-id x", "0 to 4095")),
    (("--stop-id", "4096"), ("--stop-id 4096", "0 to 4095")),
    (("--compare",), ("nothing on this command line changes the model",)),
    (("--compare", "--ablate", "L0N0", "--format", "tsv"), ("--compare", "text, ndjson and --json")),
    (("--compare", "--ablate", "L0N0", "--dump", "x.h5"), ("exclude each other",)),
    (("--logprob",), ("--logprob has no place in text",)),
    (("--layer", "3"), ("--layer has a meaning only with --dump",)),
    (("--dump", "-"), ("needs a file",)),
    (("--dump", "x.h5", "--hooks", "blocks.0.hook_resid_pre[1]"), ("a position in brackets",)),
    (("--ctx", "100000"), ("more than the model's context of 256",)),
    (("--json", "--format", "tsv"), ("exclude each other",)),
    (("--system", "S"), ("--system has a meaning only with --chat",)),
])
def test_wrong_command_lines(args, words, tmp_path):
    generate(*args, "text", cwd=tmp_path).fails(2, *words)
    assert list(tmp_path.iterdir()) == []


def test_ids_without_a_tokenizer_are_shown_as_numbers():
    r = generate("--model", TINY / "gpt2", "--ids", "--max-tokens", "4", "1 2 3").ok()
    assert [int(x) for x in r.out.split()][:3] == [1, 2, 3] and len(r.out.split()) == 7
    generate("--model", TINY / "gpt2", "--ids", "--stop", "a", "1 2 3").fails(2, "--stop a", "no tokenizer")


def test_tsv_has_a_line_a_token():
    rows = [line.split("\t") for line in generate("--format", "tsv", "--logprob", "--max-tokens", "5", PROMPTS[0]).ok().out.decode().splitlines()]
    got = texts("--max-tokens", "5", "--logprob", PROMPTS[0])[0]
    assert rows[0] == ["doc", "sample", "pos", "id", "token", "logprob"]
    assert [int(r[3]) for r in rows[1:]] == got["ids"]
    assert [int(r[2]) for r in rows[1:]] == list(range(len(got["prompt_ids"]), len(got["prompt_ids"]) + 5))
    assert [np.float32(r[5]) for r in rows[1:]] == [np.float32(x) for x in got["logprobs"]]


def test_a_reader_that_goes_away_ends_the_run():
    """`| head -1`: what nobody reads is not made."""
    args = [BIN / "weir", "generate", "--max-tokens", "20", "--ignore-eos", "-T", "1", "-n", "2000", "--batch", "2", "The river"]
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    p.stdout.read(1)
    p.stdout.close()
    err = p.stderr.read().decode()
    assert p.wait(timeout=120) == 1
    tokens = [int(w.split()[0].replace(",", "")) for w in err.split("generate: ")[1:] if "tokens," in w]
    assert tokens and tokens[0] < 20000, err  # of 40000


def test_what_an_interrupted_run_left_is_kept(tmp_path):
    (tmp_path / "a.h5.part").write_bytes(b"mine")
    more = ("--layer", "0", "--dump", tmp_path / "a.h5", "--max-tokens", "2", "x")
    generate(*more).fails(1, "a.h5.part", "generate cannot go on with", "--force begins again")
    assert (tmp_path / "a.h5.part").read_bytes() == b"mine"
