"""--edit in every tool, and rome's show, list, merge and diff. Edits are made here, by numpy, in PEFT's layout; the values of an edited model
are compared with those of the model that `rome merge` writes, and with sums in float64."""
import hashlib
import json
import os
import shutil
import struct

import h5py
import numpy as np
import pytest

from weircli import BROOK, ROOT, tools, trace, weir

GPT2 = ROOT / "tests/golden/models/gpt2"
TEXT = "Boulder is in the state of Colorado."
LAYER, UNIT = 5, 7


def sizes():
    c = json.loads((BROOK / "config.json").read_text())
    return c["n_embd"], c.get("n_inner") or 4 * c["n_embd"]


def write_adapter(path, tensors, **config):
    """An adapter's directory from {module: (A [r, in], B [out, r])}."""
    path.mkdir()
    header, data = {}, b""
    for module, pair in tensors.items():
        for letter, x in zip("AB", pair):
            raw = np.ascontiguousarray(x, np.float32).tobytes()
            header[f"base_model.model.{module}.lora_{letter}.weight"] = {
                "dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (path / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    r = next(iter(tensors.values()))[0].shape[0]
    (path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": r, "lora_alpha": r, "bias": "none",
                                                          "target_modules": list(tensors), **config}))
    return path


@pytest.fixture(scope="module")
def edits(tmp_path_factory):
    """Two edits of brook: one of a down projection, as rome makes them, and one of more."""
    d = tmp_path_factory.mktemp("edits")
    c, f = sizes()
    rng = np.random.default_rng(3)
    x = lambda *shape: 0.2 * rng.standard_normal(shape)
    name = f"transformer.h.{LAYER}."
    one = {name + "mlp.c_proj": (x(1, f), x(c, 1))}
    more = {name + "attn.c_attn": (x(2, c), x(3 * c, 2)), name + "attn.c_proj": (x(2, c), x(c, 2)), name + "mlp.c_fc": (x(2, c), x(f, 2))}
    write_adapter(d / "one", one)
    write_adapter(d / "more", more, lora_alpha=3)
    return d, one


@pytest.fixture(scope="module")
def merged(edits):
    d, _ = edits
    weir("rome", "merge", "--edit", d / "one", "--edit", d / "more", "--out", d / "merged", "-q").ok()
    return d / "merged"


def both(edits):
    return "--edit", edits[0] / "one", "--edit", edits[0] / "more"


def recorded(path, *args):
    trace("--layer", f"{LAYER - 1}-{LAYER + 1}", "--dump", path, "-q", *args, TEXT).ok()
    with h5py.File(path) as f:
        return {k: v[...] for k, v in f["activations"].items()}, dict(f.attrs)


def differs(a, b, bound):
    """Names of what differs by more than this part of its largest magnitude."""
    assert set(a) == set(b)
    return {k for k in a if not np.abs(a[k] - b[k]).max() <= bound * np.abs(b[k]).max()}


def test_values_are_those_of_the_merged_model(edits, merged, tmp_path):
    """brook is stored in F16: merging rounds, so that values agree to its precision; without the edit they do not."""
    plain, attrs = recorded(tmp_path / "a.h5")
    edited, about = recorded(tmp_path / "b.h5", *both(edits))
    weights, _ = recorded(tmp_path / "c.h5", "--model", merged)
    assert differs(edited, weights, 5e-3) == set()
    early = {k for k in plain if k.startswith(f"blocks.{LAYER - 1}.")}
    changed = differs(edited, plain, 5e-3)
    assert f"blocks.{LAYER}.hook_mlp_out" in changed and changed & early == set()
    assert all(np.array_equal(plain[k], edited[k]) for k in early)
    again, _ = recorded(tmp_path / "d.h5")
    assert differs(plain, again, 0) == set(), "a run without edits is the model again"
    assert attrs["edits"] == "[]" and [e["dir"] for e in json.loads(about["edits"])] == ["one", "more"]
    sha = hashlib.sha256((edits[0] / "one" / "adapter_model.safetensors").read_bytes()).hexdigest()
    assert json.loads(about["edits"])[0] == {"kind": "edit", "dir": "one", "sha256": sha, "method": None, "fingerprint": None}
    assert json.loads(about["interventions"]) == []


def test_loss_before_and_after(edits):
    said = weir("loss", "--json", "-q", *both(edits), TEXT).ok().json
    assert said["plain_loss"] == weir("loss", "--json", "-q", TEXT).ok().json["loss"] != said["loss"]
    assert [e["dir"] for e in said["interventions"]] == ["one", "more"]


def lines(*args):
    return [json.loads(line) for line in weir(*args, "-q").ok().out.splitlines()]


def test_weights_of_neurons_have_the_edit(edits, merged):
    """unembed, compose and neuron-top's tokens read weights: those of the merged model, to its rounding."""
    neuron = f"L{LAYER}N{UNIT}"
    same = lambda key, *args: [np.array([x[key] for x in rows]) for rows in (
        lines(*args, *both(edits)), lines(*args, "--model", merged), lines(*args))]
    for got in (same("score", "compose", "--format", "ndjson", "--neurons", neuron),):
        got, want, plain = got
        assert len(got) == len(want) and np.abs(got - want).max() < 2e-3 < np.abs(plain - want).max()
    scores = [{t["id"]: t["score"] for t in lines("unembed", "--format", "ndjson", neuron, "-k", "4096", *args)[0]["top"]}
              for args in (both(edits), ("--model", merged), ())]
    assert max(abs(scores[0][i] - scores[1][i]) for i in scores[1]) < 2e-2 < max(abs(scores[2][i] - scores[1][i]) for i in scores[1])


def test_tokens_beside_a_dump_are_those_of_its_run(edits, tmp_path):
    """A dump and a result name the edits of their run, and do not hold them: neuron-top reads no token from other weights."""
    d, neuron = edits[0], f"L{LAYER}N{UNIT}"
    tokens = lambda run: [n["out"] for n in map(json.loads, run.ok().out.splitlines()) if n.get("out")]
    top = lambda *args: weir("neuron-top", "--neurons", neuron, "--json", *args)
    for name, args in (("plain", ()), ("edited", both(edits))):
        trace("--layer", LAYER, "--dump", tmp_path / f"{name}.h5", "-q", *args, TEXT).ok()
    edited, plain = tmp_path / "edited.h5", tmp_path / "plain.h5"
    expected = tokens(top(*both(edits), TEXT))
    assert expected and expected == tokens(top(edited, *both(edits))) != tokens(top(plain))
    shutil.copytree(d / "one", tmp_path / "renamed")
    assert tokens(top(edited, "--edit", tmp_path / "renamed", "--edit", d / "more")) == expected
    said = top(edited)
    assert tokens(said) == [] and "tokens read from the weights are left out" in said.err and "edit one; edit more" in said.err, said.err
    assert top(edited, "--weights", "no").ok().err.count("--edit") == 0
    top(edited, "--weights", "yes").fails(2, "--edit", "edit one; edit more")
    top(edited, "-q", "--edit", d / "one").fails(2, "edited.h5 is of a run with other edits: edit one; edit more")
    top(edited, "-q", "--edit", d / "more", "--edit", d / "one").fails(2, "with other edits")
    top(plain, "-q", "--edit", d / "one").fails(2, "plain.h5 is of a run with other edits: none")
    weir("neuron-top", "--neurons", neuron, "--weights", "no", "-q", *both(edits), "-o", tmp_path / "r.h5", TEXT).ok()
    result = lambda *args: weir("neuron-top", tmp_path / "r.h5", "--json", *args)
    assert tokens(result("--weights", "yes", *both(edits))) == expected
    result("--weights", "yes").fails(2, "r.h5 is of a run with edits of the weights")
    result(*both(edits)).fails(2, "--edit is about the weights", "--weights yes")


def test_decompose_adds_up_with_edits(edits, tmp_path):
    """Heads and neurons of an edited layer sum to what it added; from a dump they cannot."""
    for level, part in (("head", "attn"), ("neuron", "mlp")):
        got = weir("decompose", "--level", level, "--layer", str(LAYER), "-k", "100000", "--json", "-q", *both(edits), TEXT).ok().json
        at = got["positions"][0]
        whole = next(e["logit"] for e in at["edits"] if e["kind"] == part)
        assert abs(sum(u["logit"] for u in at[level + "s"]) - whole) < 1e-3 * max(1, abs(whole)), level
    trace("--layer", "all", "--dump", tmp_path / "x.h5", "-q", "--hooks", "hook_*embed,*hook_attn_out,*hook_mlp_out,*hook_z,*mlp.hook_post,"
          "*hook_resid_post", *both(edits), TEXT).ok()
    weir("decompose", "--from", tmp_path / "x.h5", "--level", "head", "-q").fails(1, "edits of the weights", "--edit")
    said = weir("decompose", "--from", tmp_path / "x.h5", "--json", "-q").ok().json
    assert [e["dir"] for e in said["interventions"]] == ["one", "more"] and "heads" not in said["positions"][0]
    weir("decompose", "--from", tmp_path / "x.h5", "-q", "--edit", edits[0] / "one").fails(2, "--edit is about a run over text")


def test_results_say_which_edits(edits, tmp_path):
    trace("--layer", "all", "--dump", tmp_path / "x.h5", "-q", *both(edits), TEXT).ok()
    for source in (("--from", tmp_path / "x.h5"), (*both(edits), TEXT)):
        head = lines("logit-lens", "--format", "ndjson", *source)[0]
        assert [e["dir"] for e in head["interventions"]] == ["one", "more"]


def test_every_tool_that_runs_a_model_takes_edits():
    count = {t: weir(t, "--help").ok().out.count(b"  --edit DIR") for t in tools()}
    assert set(count.values()) == {0, 1}
    assert {t for t in count if count[t]} >= {"trace", "loss", "logit-lens", "attention", "decompose", "neuron-top", "health", "heads",
                                              "probe-pos", "lens-fit", "generate", "compose", "unembed"}


# --- what is refused

def test_edits_that_do_not_fit(edits, tmp_path):
    d, one = edits
    weir("loss", "--edit", tmp_path / "none", TEXT, "-q").fails(1, "adapter_config.json", "no such file: an edit is a directory")
    weir("loss", "--model", GPT2, "--ids", "1 2 3", "-q", "--edit", d / "one").fails(1, "layers 0 to 1")
    (name, (a, b)), = one.items()
    other = write_adapter(tmp_path / "other", one)
    (other / "edit.json").write_text(json.dumps({"format": "weir-edit", "fingerprint": "f" * 64, "method": "rome"}))
    weir("loss", "--edit", other, "-q", TEXT).fails(1, "made for another model", "ffffffffffff", "--force applies it")
    weir("loss", "--edit", other, "-q", "--force", TEXT).ok()
    weir("generate", "--edit", other, "-q", TEXT).fails(1, "made for another model", "--force")
    weir("rome", "verify", other, "-q").fails(1, "made for another model", "--force applies it")
    dora = write_adapter(tmp_path / "dora", one, use_dora=True)
    weir("loss", "--edit", dora, "-q", TEXT).fails(1, "use_dora")
    for how, make, word in (("a directory", lambda p: p.mkdir(), "a directory"), ("a pipe", os.mkfifo, "regular file"),
                            ("a link to nowhere", lambda p: p.symlink_to(tmp_path / "nowhere"), "No such file")):
        hidden = write_adapter(tmp_path / how, one)  # the model that it is for cannot be read
        make(hidden / "edit.json")
        weir("loss", "--edit", hidden, "-q", TEXT).fails(1, "edit.json", word)
        weir("rome", "show", hidden).fails(1, "edit.json", word)
    short = write_adapter(tmp_path / "short", {name: (a[:, :-1], b)})
    weir("loss", "--edit", short, "-q", TEXT).fails(1, "its shape begins", "lora_A")
    trace("--list-hooks", "--edit", d / "one").fails(2, "--list-hooks and --edit exclude each other")


# --- rome

def test_commands_and_their_help():
    text = weir("rome").ok().out
    assert text == weir("rome", "--help").ok().out and b"\nCommands\n" in text
    for name in ("list", "show", "merge", "diff"):
        r = weir("rome", name, "--help").ok()
        assert r.out.startswith(f"usage: weir rome {name} [options]".encode()) and r.out == weir("help", "rome", name).ok().out
    weir("rome", "lst").fails(2, 'no command is called "lst"', "did you mean list?", "see weir rome --help")
    weir("rome", "--edit", "x").fails(2, "a command's options stand behind its name")
    weir("rome", "list", "--jsno").fails(2, "rome list: unknown option --jsno", "see weir rome list --help")


def test_show_and_list(edits, tmp_path):
    d, one = edits
    (module, (a, b)), = one.items()
    said = {json.loads(line)["dir"].rsplit("/", 1)[-1]: json.loads(line) for line in weir("rome", "list", d, "--json").ok().out.splitlines()}
    assert set(said) == {"one", "more"}
    assert np.isclose(said["one"]["delta"], np.linalg.norm(b.astype(np.float32).astype(float) @ a.astype(np.float32)), rtol=1e-6)
    shown = weir("rome", "show", d / "more", "--json").ok().json
    assert [(m["rank"], m["name"].rsplit(".", 1)[-1]) for m in shown["modules"]] == [(2, "c_attn"), (2, "c_proj"), (2, "c_fc")]
    assert module.encode() in weir("rome", "show", d / "one").ok().out
    rng = np.random.default_rng(1)
    for shape in ((40, 3, 2), (3, 40, 40), (1, 1, 20000)):  # a rank beyond the matrix is no more work than its numbers
        r, a, b = shape[-1], rng.standard_normal((shape[-1], shape[0])), rng.standard_normal((shape[1], shape[-1]))
        wide = write_adapter(tmp_path / f"rank {shape}", {module: (a, b)})
        assert np.isclose(weir("rome", "show", wide, "--json").ok().json["modules"][0]["delta"],
                          np.linalg.norm(b.astype("f4").astype(float) @ a.astype("f4")), rtol=1e-6), shape
        shutil.rmtree(wide)
    empty = write_adapter(tmp_path / "empty", {module: (np.ones((1 << 20, 0)), np.ones((0, 1 << 20)))})
    weir("rome", "show", empty).fails(1, "do not fit together")
    shutil.rmtree(empty)
    assert "no edit here" in weir("rome", "list", cwd=tmp_path).ok().err
    bad = write_adapter(tmp_path / "bad", one, bias="all")
    r = weir("rome", "list", tmp_path)
    assert r.code == 1 and "bias" in r.err and r.out == b""
    weir("rome", "show").fails(2, "which directory?")
    weir("rome", "show", bad).fails(1, "bias")


def test_merge_writes_only_what_changed(edits, merged):
    """The files are the original's but for the elements of the changed tensors, which are the sums rounded to F16."""
    d, one = edits
    assert {p.name for p in merged.iterdir()} == {p.name for p in BROOK.iterdir() if p.is_file()}
    for p in merged.iterdir():
        if p.suffix != ".safetensors":
            assert p.read_bytes() == (BROOK / p.name).read_bytes(), p.name
    (module, (a, b)), = one.items()
    old, new = ((x / "model.safetensors").read_bytes() for x in (BROOK, merged))
    n = struct.unpack("<Q", old[:8])[0]
    assert len(old) == len(new) and old[:8 + n] == new[:8 + n]
    changed = []
    for name, t in json.loads(old[8:8 + n]).items():
        if name == "__metadata__":
            continue
        x, y = (np.frombuffer(raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]], np.float16).reshape(t["shape"]) for raw in (old, new))
        if not np.array_equal(x, y):
            changed.append(name)
        if name.endswith(f"h.{LAYER}.mlp.c_proj.weight"):
            delta = (b.astype(np.float32).astype(float) @ a.astype(np.float32)).T
            assert np.array_equal(y, (x.astype(float) + delta).astype(np.float16))
    assert len(changed) == 4 and all(f"h.{LAYER}." in name for name in changed)


def test_merge_refuses(edits, tmp_path):
    d, _ = edits
    weir("rome", "merge", "--edit", d / "one").fails(2, "--out DIR is missing")
    weir("rome", "merge", "--out", tmp_path / "x").fails(2, "no --edit")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("x")
    weir("rome", "merge", "--edit", d / "one", "--out", tmp_path / "there", "-q").fails(1, "it exists and nothing in it says that it is a merged checkpoint")
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


def test_diff_finds_the_edit(edits, merged, tmp_path):
    d, one = edits
    weir("rome", "merge", "--edit", d / "one", "--out", tmp_path / "m", "-q").ok()
    (_, (a, b)), = one.items()
    found = weir("rome", "diff", BROOK, tmp_path / "m", "--json", "-q", "-o", tmp_path / "taken").ok().json
    (m,) = found["matrices"]
    sigma = np.linalg.norm(a) * np.linalg.norm(b)
    assert (m["layer"], m["matrix"], m["rank_99"]) == (LAYER, "down", 1) and found["others"] == []
    assert np.isclose(m["singular_values"][0], sigma, rtol=1e-3) and m["singular_values"][1] < 0.02 * sigma
    assert json.loads((tmp_path / "taken" / "edit.json").read_text())["method"] == "difference"
    taken = weir("loss", "--json", "-q", "--edit", tmp_path / "taken", TEXT).ok().json["loss"]
    assert abs(taken - weir("loss", "--json", "-q", "--edit", d / "one", TEXT).ok().json["loss"]) < 2e-2
    assert weir("rome", "diff", BROOK, BROOK, "--json").ok().json["matrices"] == []
    assert {(m["layer"], m["matrix"]) for m in weir("rome", "diff", BROOK, merged, "--json", "-q").ok().json["matrices"]} == {
        (LAYER, x) for x in ("q", "k", "v", "o", "pre", "down")}
    weir("rome", "diff", BROOK, GPT2, "-q").fails(1, "other sizes")
    weir("rome", "diff", BROOK).fails(2, "two checkpoints are needed")
    weir("rome", "diff", BROOK, BROOK, "-q", "-o", tmp_path / "no").fails(1, "no matrix differs")
    weir("rome", "diff", BROOK, merged, "--rank", "2").fails(2, "--rank has a meaning only with --out")
