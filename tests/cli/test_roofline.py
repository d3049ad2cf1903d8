"""weir roofline: against EXPECTED.tsv, the published figures, and the same sums written out here."""
import csv
import json
import math
import xml.etree.ElementTree as ET

import pytest

from weircli import BROOK, ROOT, weir

CONFIGS = ROOT / "tests" / "data" / "configs"
with open(CONFIGS / "EXPECTED.tsv", encoding="utf-8") as f:
    EXPECTED = {r["model"]: r for r in csv.DictReader((x for x in f if not x.startswith("#")), delimiter="\t")}
DECODERS = [m for m, r in EXPECTED.items() if r["kv_bytes_per_token_16bit"] != "-"]


def roofline(model, *args):
    return weir("roofline", "-j", "-q", *args, CONFIGS / f"{model}.json").ok().json


def config(model):
    c = json.loads((CONFIGS / f"{model}.json").read_text())
    return c.get("text_config", c)


@pytest.fixture(scope="module")
def at_64():
    return {m: roofline(m, "--context", "64") for m in DECODERS}


def test_there_are_decoders():
    assert len(DECODERS) >= 25 and {"gpt2", "deepseek-v3", "nemotron-h-8b", "gpt-oss-120b"} <= set(DECODERS)


@pytest.mark.parametrize("model", DECODERS)
def test_flops_bytes_and_cache_of_every_config(at_64, model):
    r, want = at_64[model], EXPECTED[model]
    load, matmul = r["loads"][0], int(want["matmul_params"])
    assert load["decode"]["flops"]["weights"] == 2 * matmul
    assert sum(m["times"] * m["used"] * m["in"] * m["out"] for m in r["crossing"]["matrices"]) == matmul
    assert r["attention"]["flops_per_key"] == int(want["attn_flops_per_token_per_context_token"])
    assert load["cache"]["bytes_per_token"] == int(want["kv_bytes_per_token_16bit"])
    read = int(want["active_params_no_input_embedding"])
    looked_up = load["decode"]["bytes"]["weights"] - 2 * read
    c = config(model)
    d = c.get("hidden_size") or c.get("n_embd") or c.get("d_model")
    rows = (want["tied"] == "no") + (int(want["position_params"]) > 0)
    assert looked_up == 2 * d * rows  # one row of each table that is looked up
    active = int(want["active_params"]) if want["active_params"] != "-" else int(want["total_params"])
    assert load["decode"]["bytes"]["weights_with_input_table"] == 2 * active
    assert load["decode"]["flops"]["attention"] == 64 * r["attention"]["flops_per_key"]  # no window is so short
    assert load["decode"]["bytes"]["cache"] == 64 * load["cache"]["bytes_per_token"]


@pytest.mark.parametrize("model, context, share", [
    ("gpt2", 4608, 0.966), ("llama-2-7b", 24704, 0.841), ("llama-3-8b", 26624, 0.831), ("llama-2-70b", 52224, 0.715),
    ("llama-3.1-405b", 97280, 0.574)])
def test_where_attention_overtakes(model, context, share):
    r = roofline(model, "--context", "131072")
    assert r["attention"]["overtakes_layers"] == context
    assert r["loads"][0]["decode"]["shares"]["attention_of_layer_flops"] == pytest.approx(share, abs=5e-4)
    if model == "gpt2":  # its biases are no multiplications: counted so, it is the 4,612 that others print
        assert r["attention"]["overtakes_layers_with_biases"] == 4612.5


def test_the_70b_on_an_h100():
    r = roofline("llama-2-70b")
    decode, m = r["loads"][0]["decode"], {x["item"]: x for x in r["crossing"]["matrices"]}
    assert r["hardware"]["ridge"] == pytest.approx(295.34, abs=0.01)
    assert decode["mlp_seconds"] == pytest.approx(33.65e-3, abs=5e-6) and decode["bytes"]["mlp"] == 112742891520
    assert decode["weights_seconds"] == pytest.approx(41.02e-3, abs=5e-6) and decode["bound"] == "memory"
    assert round(m["mlp_gate"]["batch_with_activations"]) == 310 and round(m["mlp_gate"]["batch"]) == 295
    s, ridge = m["mlp_gate"]["batch_with_activations"], r["hardware"]["ridge"]
    assert s / (1 + s * (1 / 8192 + 1 / 28672)) == pytest.approx(ridge, rel=1e-12)
    assert r["crossing"]["step"] is None and 295 < r["crossing"]["weights"] < 297


def visible(position, window, chunked):
    if not window:
        return position
    return (position - 1) % window + 1 if chunked else min(position, window)


def test_memory_and_bars():
    args = ("roofline", "-q", "--weights", "4", "--context", "32768", "--batch", "8", CONFIGS / "qwen2.5-72b.json")
    blocks, signs = (weir(*args, env={"LC_ALL": locale}).ok().out.decode() for locale in ("C.UTF-8", "C"))
    held = 72706203648 / 2 + 8 * 32768 * 327680
    assert f"; with the weights {held / 1e9:.1f} GB: {held / 80e9:.3g} times the machine's memory" in signs
    assert "\u2588" in blocks and "#" not in blocks and "#" in signs and signs.isascii()


@pytest.mark.parametrize("model, window, chunked, windowed, layers", [
    ("mistral-7b-v0.1", 4096, False, 32, 32), ("gemma-2-2b", 4096, False, 13, 26), ("gpt-oss-120b", 128, False, 18, 36),
    ("llama-4-maverick", 8192, True, 36, 48)])
@pytest.mark.parametrize("context", [8193, 20000])
def test_windows(model, window, chunked, windowed, layers, context):
    r = roofline(model, "--context", str(context))
    per_layer = r["attention"]["flops_per_key"] / layers
    last = windowed * visible(context, window, chunked) + (layers - windowed) * context
    every = windowed * sum(visible(p, window, chunked) for p in range(1, context + 1)) + (layers - windowed) * context * (context + 1) // 2
    assert r["attention"]["flops_last"] == per_layer * last
    assert r["attention"]["flops_mean"] == pytest.approx(per_layer * every / context, rel=1e-15)
    assert r["attention"]["flops_last_without_windows"] == per_layer * layers * context
    kv = r["loads"][0]["cache"]["bytes_per_token"] / layers
    assert r["loads"][0]["decode"]["bytes"]["cache"] == kv * last == r["loads"][0]["cache"]["held"]
    assert r["loads"][0]["prefill"]["bytes"]["cache"] == kv * layers * context


def test_a_batch_touches_more_experts():
    one, many = (roofline("mixtral-8x7b-v0.1", "--batch", n)["loads"][0]["decode"] for n in ("1", "3"))
    experts = 2 * 32 * 8 * 3 * 4096 * 14336
    assert one["bytes"]["items"]["experts"] == experts / 4
    assert many["bytes"]["items"]["experts"] == pytest.approx(experts * (1 - 0.75 ** 3), rel=1e-14)
    assert many["flops"]["items"]["experts"] == 3 * one["flops"]["items"]["experts"]
    assert many["bytes"]["attn"] == one["bytes"]["attn"] and many["bytes"]["cache"] == 3 * one["bytes"]["cache"]


def test_prefill_reads_weights_once_and_makes_the_last_logits():
    r = roofline("llama-2-7b", "--context", "512", "--batch", "2")["loads"][0]
    p, d = r["prefill"], r["decode"]
    assert p["flops"]["mlp"] == 512 * d["flops"]["mlp"] and p["bytes"]["mlp"] == d["bytes"]["mlp"]
    assert p["flops"]["items"]["unembedding"] == d["flops"]["items"]["unembedding"]
    assert p["flops"]["attention"] == 2 * 524288 * 512 * 513 / 2
    assert p["seconds"] == max(p["flops"]["total"] / 989.4e12, p["bytes"]["total"] / 3.35e12) and p["bound"] == "compute"


def test_bits_activations_and_latent_attention():
    few = ("--weights", "4", "--cache", "8", "--activations")
    whole, small = (roofline("llama-3-8b", "--context", "100", *a)["loads"][0] for a in ((), few))
    assert small["decode"]["bytes"]["weights"] * 4 == whole["decode"]["bytes"]["weights"]
    assert small["decode"]["bytes"]["cache"] * 2 == whole["decode"]["bytes"]["cache"]
    r = roofline("llama-3-8b")
    moved = sum(m["times"] * m["used"] * (m["in"] + m["out"]) for m in r["crossing"]["matrices"])
    assert small["decode"]["bytes"]["activations"] == 2 * moved and whole["decode"]["bytes"]["activations"] == 0
    assert roofline("deepseek-v3", "--absorbed")["attention"]["flops_per_key"] == 61 * 2 * 128 * (2 * 512 + 64)


def test_the_crossing_is_where_both_times_are_equal():
    for more in ((), ("--activations",)):
        args = ("--context", "16", "--hardware", "v100", *more)
        r = roofline("llama-3.2-1b", *args)
        batch = r["crossing"]["step"]
        low, high = (roofline("llama-3.2-1b", "--batch", b, *args)["loads"][0]["decode"]["bound"] for b in (math.floor(batch), math.ceil(batch)))
        assert (low, high) == ("memory", "compute")


def test_a_machine_of_ones_own(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"flops": 2e12, "bandwidth": 1e11, "memory": 64e9}')
    r = roofline("gpt2", "--hardware", path)
    assert r["hardware"]["ridge"] == 20 and r["hardware"]["name"] == "mine.json"
    for text, words in (('{"flops": 1e12}', "bandwidth"), ('{"flops": -1, "bandwidth": 1}', "above 0"), ("{}x", "mine.json"),
                        ('{"flops": 1, "bandwidth": 1, "colour": 3}', '"colour"')):
        path.write_text(text)
        weir("roofline", "-q", "--hardware", path, CONFIGS / "gpt2.json").fails(1, words, "mine.json")


def test_sweeps(tmp_path):
    svg = tmp_path / "s.svg"
    loads = ("--context", "1000:5000", "--batch", "1:4")
    out = weir("roofline", "-q", *loads, "--format", "tsv", "--svg", svg, CONFIGS / "llama-3-8b.json").ok()
    rows = list(csv.DictReader(out.out.decode().splitlines(), delimiter="\t"))
    assert [(r["context"], r["batch"]) for r in rows] == [(c, b) for c in ("1000", "2000", "4000", "5000") for b in ("1", "2", "4")]
    assert all(float(r["seconds"]) == pytest.approx(max(float(r["flops"]) / 989.4e12, float(r["bytes"]) / 3.35e12), rel=1e-8) for r in rows)
    paths = ET.parse(svg).getroot().findall("{http://www.w3.org/2000/svg}circle")
    assert len(paths) == 2 * 12
    assert b"tokens/s" in weir("roofline", "-q", "--batch", "1:512", CONFIGS / "gpt2.json").ok().out


def test_measured_beside_the_bound():
    r = weir("roofline", "-j", "-q", "--measure", "--tokens", "2", "--context", "16", "-t", "1").ok().json["measured"]
    assert r["weight_bits"] in (16, 32) or 16 < r["weight_bits"] < 32
    assert r["hardware"]["flops"] > 1e8 and r["hardware"]["bandwidth"] > 1e7
    for what in ("decode", "prefill"):
        assert 0 < r[what]["measured_seconds"] < 60 and r[what]["seconds"] > 0
    assert r["prefill"]["compute_seconds"] > r["decode"]["compute_seconds"]


@pytest.mark.parametrize("args, code, words", [
    (("--context", "5:3"), 2, ("--context 5:3",)), (("--context", "x"), 2, ("--context x",)), (("--batch", "0"), 2, ("--batch 0",)),
    (("--batch", "1:"), 2, ("--batch 1:",)), (("--hardware", "h1000"), 2, ("h1000",)), (("--svg", "x.svg"), 2, ("sweep",)),
    (("--weights", "0"), 2, ("bits",)), (("--measure", "--context", "1:64"), 2, ("one load",)),
    (("--measure", "--context", "8"), 2, ("--tokens 16", "8")), (("--tokens", "3"), 2, ("--tokens", "--measure")),
    (("--measure", "--context", "99999"), 2, ("99999", "256")), ((BROOK / "tokenizer.json",), 1, ("tokenizer.json",)),
    ((CONFIGS / "t5-base.json",), 1, ("no decoder alone",)), ((CONFIGS / "bert-base-uncased.json",), 1, ("no decoder alone",)),
    ((BROOK, BROOK), 2, ("one model",))])
def test_wrong_lines(args, code, words, tmp_path):
    weir("roofline", "-q", *args, cwd=tmp_path).fails(code, *words)
    assert list(tmp_path.iterdir()) == []
