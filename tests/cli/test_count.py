"""weir count: all configurations of tests/data/configs against their table, checkpoints against their configurations, and what is refused."""
import json

import pytest

from headers import write
from weircli import BROOK, ROOT, SHARED, weir

CONFIGS = ROOT / "tests/data/configs"
GOLDEN = ROOT / "tests/golden/models"
PATHS = sorted(CONFIGS.glob("*.json"))


def table(text):
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return {row[0]: dict(zip(lines[0], row)) for row in lines[1:]}


def count(*args):
    return weir("count", "--quiet", "--json", *args).ok().json


@pytest.fixture(scope="module")
def models():
    return {m["model"]: m for m in count(*PATHS, "--lora", "8", "--train-tokens", "300e9")["models"]}


# --- configurations

def test_every_row_and_column():
    """Each number of EXPECTED.tsv, as it stands there. What it says of sources is not ours to print."""
    expected = table((CONFIGS / "EXPECTED.tsv").read_text())
    got = table(weir("count", "--quiet", "--format", "tsv", *PATHS).ok().out.decode())
    said = {"model", "published_source", "status", "published_figure"}
    assert set(got) == set(expected) and len(expected) == 30
    for name, row in expected.items():
        for column in row.keys() - said:
            assert got[name][column] == row[column], (name, column)
    assert set(next(iter(expected.values()))) - said <= set(next(iter(got.values())))


def test_sums_close(models):
    for name, m in models.items():
        p = m["parameters"]
        assert p["total"] == sum(p["by_item"].values()), name
        assert p["mlp"] == sum(v for k, v in p["by_item"].items() if k.startswith("mlp_") or "expert" in k or k == "router")
        assert p["attention"] == sum(v for k, v in p["by_item"].items() if k.startswith("attn_"))
        outside = p["total"] - sum(k["count"] * k["total"] for k in m["layers"])
        tables = sum(p["by_item"].get(k, 0) for k in ("embedding", "position", "unembedding"))
        assert tables <= outside < tables + 2_000_000, name
        for b in m["bytes"]:
            assert b["total"] == (p["total"] * b["bits"] + 7) // 8
        assert [b["bits"] for b in m["bytes"]] == [16, 8, 4]


def test_parts_that_the_table_lacks(models):
    llama, gpt2 = models["llama-3-8b"], models["gpt2"]
    assert llama["layers"][0]["by_item"] == {"attn_q": 4096 ** 2, "attn_k": 4096 * 1024, "attn_v": 4096 * 1024, "attn_o": 4096 ** 2,
                                             "mlp_gate": 4096 * 14336, "mlp_up": 4096 * 14336, "mlp_down": 4096 * 14336, "norm": 8192}
    assert gpt2["layers"][0]["by_item"]["mlp_up"] == 768 * 3072 + 3072 and gpt2["layers"][0]["by_item"]["attn_o"] == 768 * 768 + 768
    assert [(k["kind"], k["count"], k["first"]) for k in models["deepseek-v3"]["layers"]] == [("dense", 3, 0), ("moe", 58, 3)]
    assert [(k["kind"], k["count"]) for k in models["nemotron-h-8b"]["layers"]] == [("mixer", 24), ("mlp", 24), ("attention", 4)]
    assert [(k["kind"], k["count"]) for k in models["t5-base"]["layers"]] == [("enc", 12), ("dec", 12)]
    deepseek = models["deepseek-v3"]["parameters"]["by_item"]
    assert deepseek["attn_kv"] == 61 * 7168 * 576 and deepseek["shared_expert"] == 58 * 3 * 7168 * 2048
    assert deepseek["router"] == 58 * 256 * 7169 and deepseek["experts"] == 58 * 256 * 3 * 7168 * 2048
    # Mamba-2: 128 x 64 x 128 of state and 10,240 x 4 of convolution a layer
    assert models["nemotron-h-8b"]["per_token"]["state_bytes_16bit"] == 2 * 24 * (8192 * 128 + 10240 * 4)


def test_rules(models):
    d_ff = {name: m["d_ff"] for name, m in models.items()}
    for name, pair in (("llama-2-70b", (1.3, 4096)), ("llama-3-70b", (1.3, 4096)), ("llama-3-8b", (1.3, 1024)),
                       ("llama-3.1-405b", (1.2, 4096)), ("llama-3.2-1b", (1.5, 256)), ("llama-2-7b", (1, 256))):
        assert d_ff[name]["rounding"] == {"multiplier": pair[0], "multiple": pair[1], "published_pair": True}, name
    assert d_ff["gpt2"]["rounding"] is None and d_ff["gpt2"]["matched_to_8d2"] == 3072
    assert d_ff["llama-3-70b"]["matched_to_8d2"] == 21845
    in_d2 = {name: round(f["mlp_in_d2"], 2) for name, f in d_ff.items()}
    assert [in_d2[n] for n in ("llama-3-8b", "llama-3.1-405b", "qwen2.5-72b", "llama-3.2-1b", "palm-540b", "gemma-7b")] \
        == [10.5, 9.75, 10.83, 12, 12, 24]
    rules = models["llama-2-7b"]["rules"]
    assert rules["model_12Ld2_Vd"]["rule"] == 12 * 32 * 4096 ** 2 + 32000 * 4096
    assert round(rules["model_12Ld2_2Vd"]["error"], 4) == round((6.7045949e9 - 6738415616) / 6738415616, 4)
    assert models["gpt2"]["rules"]["layer_12d2"]["exact"] == 2362368 + 4722432 + 4 * 768
    assert models["llama-3-8b"]["layers"][0]["mlp_to_attention"] == pytest.approx(4.2)


def test_training_and_adapters(models):
    assert f"{models['gpt3-175b']['training']['flops_6ND']:.3g}" == "3.14e+23"
    assert models["mixtral-8x7b-v0.1"]["training"]["flops_6ND"] == pytest.approx(6 * 12879925248 * 300e9, rel=1e-15)
    # peft's own count for Llama 2 7B, r = 8, q and v
    assert models["llama-2-7b"]["lora"] == {"rank": 8, "targets": "q,v", "matrices": 64, "parameters": 4194304,
                                            "share": pytest.approx(4194304 / 6738415616)}
    every = count(CONFIGS / "mixtral-8x7b-v0.1.json", "--lora", "2", "--lora-targets", "all")["lora"]
    assert every["matrices"] == 32 * (4 + 3 * 8)
    assert every["parameters"] == 2 * 32 * (2 * 8192 + 2 * 5120 + 3 * 8 * (4096 + 14336))


def test_forms_agree(tmp_path):
    """Text, a column a model, and the picture say what JSON says."""
    one, two = CONFIGS / "llama-3-8b.json", CONFIGS / "gpt2.json"
    text = weir("count", one, "--width", "60").ok().out.decode()
    for figure in ("8,030,261,248", "7,504,924,672", "41,943,040", "176,160,768", "70.20%", "80.77%", "round-up(1.3 x 8d/3, 1024)"):
        assert figure in text
    strips = [line.strip() for line in text.splitlines() if line.startswith("  |")]
    assert len(strips) == 2 and {len(s) for s in strips} == {58}
    assert abs(strips[0].count("d") / 56 - 58720256 / 218112000) < 0.02 and abs(strips[1].count("m") / 56 - .702) < 0.02
    side = weir("count", one, two).ok().out.decode()
    assert [line.split()[-2:] for line in side.splitlines() if line.startswith("  total")] == [["8,030,261,248", "124,439,808"]]
    picture = tmp_path / "p.svg"
    assert weir("count", one, two, "-o", picture).ok().out == b""
    svg = picture.read_text()
    bars = [float(line.split('height="')[1].split('"')[0]) for line in svg.splitlines() if line.startswith("<rect x")]
    assert svg.endswith("</svg>\n") and 439.9 < bars[0] + sum(bars[1:8]) < 440.1 and "mlp_down 58,720,256 (26.9%)" in svg
    weir("count", two, "--svg", picture).ok()  # ours may be replaced
    (tmp_path / "other.svg").write_text("mine")
    weir("count", two, "--svg", tmp_path / "other.svg").fails(1, "other.svg")
    assert (tmp_path / "other.svg").read_text() == "mine"


# --- checkpoints

def check_file(path):
    """The sums close; returns the file's part and {what of a difference: surplus}."""
    f = count(path)["file"]
    assert f["elements"] == f["by_configuration"] + sum(line["surplus"] for line in f["lines"])
    assert f["elements"] == sum(line["elements"] for line in f["lines"]) == sum(f["elements_by_type"].values())
    assert f["tensors"] == sum(line["tensors"] for line in f["lines"])
    return f, {line["what"]: line["surplus"] for line in f["lines"] if line["surplus"]}


def gpt2_tensors(c, masks=True):
    d, n = c["n_embd"], c["n_positions"]
    t = {"wte.weight": [c["vocab_size"], d], "wpe.weight": [n, d], "ln_f.weight": [d], "ln_f.bias": [d]}
    for i in range(c["n_layer"]):
        h = f"h.{i}."
        for name, a, b in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d)):
            t[h + name + ".weight"], t[h + name + ".bias"] = [a, b], [b]
        for name in ("ln_1", "ln_2"):
            t[h + name + ".weight"] = t[h + name + ".bias"] = [d]
        if masks:
            t[h + "attn.bias"] = [1, 1, n, n]
    return {k: ("F32", s) for k, s in t.items()}


def llama_tensors(c, dtype="F16"):
    d, f, k = c["hidden_size"], c["intermediate_size"], c["hidden_size"] // c["num_attention_heads"]
    kv = k * c["num_key_value_heads"]
    t = {"model.embed_tokens.weight": [c["vocab_size"], d], "model.norm.weight": [d], "lm_head.weight": [c["vocab_size"], d]}
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        for name, a, b in (("self_attn.q_proj", d, d), ("self_attn.k_proj", kv, d), ("self_attn.v_proj", kv, d), ("self_attn.o_proj", d, d),
                           ("mlp.gate_proj", f, d), ("mlp.up_proj", f, d), ("mlp.down_proj", d, f)):
            t[p + name + ".weight"] = [a, b]
        t[p + "input_layernorm.weight"] = t[p + "post_attention_layernorm.weight"] = [d]
    return {k: (dtype, s) for k, s in t.items()}


def load(name):
    return json.loads((CONFIGS / f"{name}.json").read_text())


@pytest.mark.parametrize("name, elements", [("gpt2", 137022720), ("gpt2-medium", 379988992)])
def test_causal_masks(tmp_path, name, elements):
    c = load(name)
    f, why = check_file(write(tmp_path / name, c, gpt2_tensors(c)))
    assert f["elements"] == elements and f["parameters"] == f["by_configuration"]
    assert why == {"causal masks and positions: buffers": c["n_layer"] * 1024 ** 2}


@pytest.mark.parametrize("name, elements", [("llama-2-7b", 6738417664), ("llama-2-70b", 68976653312)])
def test_rotary_frequencies(tmp_path, name, elements):
    """In shards, as on the hub."""
    c = load(name)
    t = llama_tensors(c)
    t |= {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": ("F32", [64]) for i in range(c["num_hidden_layers"])}
    keys = list(t)
    parts = [keys[:100], keys[100:]]
    for i, part in enumerate(parts):
        write(tmp_path, c, {k: t[k] for k in part}, f"model-{i}.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {k: f"model-{i}.safetensors" for i, p in enumerate(parts) for k in p}}))
    f, why = check_file(tmp_path)
    assert f["elements"] == elements and why == {"RoPE's frequencies: buffers": c["num_hidden_layers"] * 64}


@pytest.mark.parametrize("name, elements", [("falcon-7b", 7217189760), ("falcon-40b", 41835970560)])
def test_tied_head_stored_twice(tmp_path, name, elements):
    c = load(name)
    d, kv, two = c["hidden_size"], 1 if name == "falcon-7b" else 8, name == "falcon-40b"
    t = {"transformer.word_embeddings.weight": [65024, d], "lm_head.weight": [65024, d],
         "transformer.ln_f.weight": [d], "transformer.ln_f.bias": [d]}
    for i in range(c["num_hidden_layers"]):
        p = f"transformer.h.{i}."
        t[p + "self_attention.query_key_value.weight"] = [d + 2 * kv * 64, d]
        t[p + "self_attention.dense.weight"] = [d, d]
        t[p + "mlp.dense_h_to_4h.weight"], t[p + "mlp.dense_4h_to_h.weight"] = [4 * d, d], [d, 4 * d]
        for norm in ("ln_attn", "ln_mlp") if two else ("input_layernorm",):
            t[p + norm + ".weight"] = t[p + norm + ".bias"] = [d]
    f, why = check_file(write(tmp_path, c, {k: ("BF16", s) for k, s in t.items()}))
    assert f["elements"] == elements and why == {"copies of a table that is there already": 65024 * d}


def small(**more):
    return {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 1000, **more}


def test_fp8_scales(tmp_path):
    """A scale for each block of 128 x 128, as DeepSeek stores them."""
    c = small()
    t, scales = llama_tensors(c), 0
    for key in [k for k in t if "_proj" in k]:
        a, b = t[key][1]
        t[key] = ("F8_E4M3", [a, b])
        t[key + "_scale_inv"] = ("F32", [a // 128, b // 128])
        scales += (a // 128) * (b // 128)
    f, why = check_file(write(tmp_path, c, t))
    assert why == {"scales and tables of the quantisation": scales} and f["parameters"] == f["by_configuration"]


def test_mxfp4_blocks(tmp_path):
    """gpt-oss: 16 bytes hold 32 weights, with a scale of a byte. Two elements for each byte would be the published 120,412,337,472."""
    c = load("gpt-oss-120b")
    d, e = 2880, 128
    t = {"model.embed_tokens.weight": ("BF16", [201088, d]), "lm_head.weight": ("BF16", [201088, d]), "model.norm.weight": ("BF16", [d])}
    for i in range(36):
        p = f"model.layers.{i}."
        for name, n in (("q", 4096), ("k", 512), ("v", 512)):
            t[f"{p}self_attn.{name}_proj.weight"], t[f"{p}self_attn.{name}_proj.bias"] = ("BF16", [n, d]), ("BF16", [n])
        t[p + "self_attn.o_proj.weight"], t[p + "self_attn.o_proj.bias"] = ("BF16", [d, 4096]), ("BF16", [d])
        t[p + "self_attn.sinks"] = ("BF16", [64])
        t[p + "mlp.router.weight"], t[p + "mlp.router.bias"] = ("BF16", [e, d]), ("BF16", [e])
        for name, n in (("gate_up_proj", 2 * d), ("down_proj", d)):
            t[f"{p}mlp.experts.{name}_blocks"] = ("U8", [e, n, d // 32, 16])
            t[f"{p}mlp.experts.{name}_scales"] = ("U8", [e, n, d // 32])
            t[f"{p}mlp.experts.{name}_bias"] = ("BF16", [e, n])
        t[p + "input_layernorm.weight"] = t[p + "post_attention_layernorm.weight"] = ("BF16", [d])
    f, why = check_file(write(tmp_path, c, t))
    weights = 36 * e * 3 * d * d
    assert f["parameters"] == f["by_configuration"] == 116829156672
    assert why == {"packed weights, several an element": -weights // 2, "scales and tables of the quantisation": weights // 32}
    assert f["elements"] + weights // 2 == 120412337472


def test_gptq_and_bitsandbytes(tmp_path):
    """Four bits in other words: eight weights an I32, two a byte."""
    for bits, per in (({"bits": 4}, 8), ({"bits": 8}, 4)):
        c = small(quantization_config={"quant_method": "gptq", **bits})
        t = llama_tensors(c)
        for key in [k for k in t if "_proj" in k]:
            a, b = t.pop(key)[1]
            base = key[:-len("weight")]
            t[base + "qweight"], t[base + "scales"], t[base + "g_idx"] = ("I32", [b // per, a]), ("F16", [b // 128, a]), ("I32", [b])
        f, why = check_file(write(tmp_path / f"gptq{per}", c, t))
        assert f["parameters"] == f["by_configuration"] and set(why) == {"packed weights, several an element",
                                                                         "scales and tables of the quantisation"}
    t = llama_tensors(small())
    key = "model.layers.0.mlp.down_proj.weight"
    t[key] = ("U8", [256 * 512 // 2, 1])
    t[key + ".absmax"], t[key + ".quant_map"] = ("F32", [256 * 512 // 64]), ("F32", [16])
    f, why = check_file(write(tmp_path / "bnb", small(), t))
    assert f["parameters"] == f["by_configuration"]
    assert why == {"packed weights, several an element": -256 * 256, "scales and tables of the quantisation": 2048 + 16}


def test_what_differs_is_said(tmp_path):
    """Padding rows, an absent head, further layers with their tables, another module, a name that nobody knows."""
    c = small()
    t = llama_tensors(c, "F32")
    del t["lm_head.weight"]
    t["model.embed_tokens.weight"] = ("F32", [1024, 256])
    t["model.layers.2.embed_tokens.weight"] = t["model.layers.2.shared_head.head.weight"] = ("F32", [1000, 256])
    t["model.layers.2.eh_proj.weight"] = ("F32", [256, 512])
    t["vision_tower.layers.0.self_attn.q_proj.weight"] = ("F32", [3, 5])
    t["model.layers.0.frobnicator.weight"] = ("F32", [7])
    t["model.layers.1.mlp.gate_proj.weight"] = ("F32", [500, 256])
    _, why = check_file(write(tmp_path, c, t))
    assert why == {"embedding: 24 rows more than the configuration says (padding)": 24 * 256,
                   "unembedding: not in the file": -1000 * 256,
                   "copies of a table that is there already": 2 * 1000 * 256,
                   "layers behind the last, which predict further tokens": 256 * 512,
                   "another module (vision, audio)": 15, "tensors whose names weir does not know": 7,
                   "mlp_gate: less than the configuration says, and weir does not know why": -12 * 256}
    text = weir("count", tmp_path).ok().out.decode()
    assert "+ 6,144  embedding: 24 rows more" in text and "- 256,000  unembedding: not in the file" in text


def test_one_file_and_a_directory_without_tensors(tmp_path):
    c = small()
    write(tmp_path, c, llama_tensors(c))
    whole = count(tmp_path)
    assert count(tmp_path / "model.safetensors")["file"] == whole["file"] and whole["file"]["elements"] == whole["parameters"]["total"]
    (tmp_path / "model.safetensors").unlink()
    assert "file" not in count(tmp_path) and count(tmp_path)["parameters"] == whole["parameters"]


def test_brook_and_the_golden_models():
    """Directories and their GGUF twins: the same parameters, apart from what the file says it has besides."""
    f, why = check_file(BROOK)
    assert not why and f["elements"] == count()["parameters"]["total"]
    for path in sorted(p for p in GOLDEN.iterdir() if p.is_dir()):
        f, why = check_file(path)
        g, other = check_file(f"{path}.gguf")
        assert f["parameters"] == f["by_configuration"] == g["parameters"] == g["by_configuration"], path.name
        assert set(why) | set(other) <= {"RoPE's frequencies: buffers", "causal masks and positions: buffers",
                                         "copies of a table that is there already"}, (path.name, why, other)


def test_smollm2():
    path = SHARED / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.exists():
        pytest.skip("SmolLM2 is not beside this repository")
    f, why = check_file(path)
    assert f["parameters"] == 134515008 and not why and "Q4_1" in f["elements_by_type"]


# --- what is refused, and what is remarked

BAD = [
    ({"hidden_size": -4}, 1, "hidden_size: -4 is not a size"),
    ({"hidden_size": "256"}, 1, "hidden_size:"),
    ({"hidden_size": 2.5}, 1, "hidden_size:"),
    ({"hidden_size": [256]}, 1, "hidden_size:"),
    ({"hidden_size": 1 << 41}, 1, "is not a size"),
    ({"hidden_size": None}, 1, "there is no hidden_size"),
    ({"num_attention_heads": 0}, 1, "num_attention_heads: 0 is not a size"),
    ({"num_attention_heads": 3}, 1, "3 heads do not divide the width 256"),
    ({"num_key_value_heads": 3}, 1, "4 query heads cannot share 3"),
    ({"num_hidden_layers": 10 ** 9}, 1, "1000000000 layers are more than any model has"),
    ({"num_hidden_layers": 10 ** 30}, 1, "num_hidden_layers:"),
    ({"intermediate_size": None}, 1, "there is no intermediate_size"),
    ({"hidden_size": 1 << 40, "intermediate_size": 1 << 40, "num_attention_heads": 1, "num_key_value_heads": 1}, 1, "more parameters than can be counted"),
    ({"n_embd": 128}, 1, "n_embd: is 128, but hidden_size is 256"),
    ({"tie_word_embeddings": "no"}, 1, "tie_word_embeddings:"),
    ({"layer_types": ["full_attention"]}, 1, "1 entries for 2 layers"),
    ({"layer_types": ["full_attention", "linear_attention"]}, 1, 'layer 1 is "linear_attention"'),
    ({"num_local_experts": 4}, 1, "num_experts_per_tok"),
    ({"num_local_experts": 4, "num_experts_per_tok": 5}, 1, "5 of 4 experts cannot be chosen"),
    ({"kv_lora_rank": 64}, 1, "qk_nope_head_dim"),
    ({"model_type": 7}, 1, "model_type:"),
    ({"model_type": None}, 1, "model_type"),
    ({"is_encoder_decoder": True}, 1, "is_encoder_decoder"),
    ({"model_type": "rwkv7", "num_attention_heads": None}, 1, 'model_type "rwkv7" is not known, and without num_attention_heads'),
    ({"model_type": "jamba", "mamba_d_state": 16}, 1, 'mamba_d_state: model_type "jamba" is not known'),
    ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-"}, 1, "mamba_num_heads"),
    ({"model_type": "nemotron_h", "hybrid_override_pattern": "-"}, 1, "1 entries for 2 layers"),
    ({"model_type": "nemotron_h", "layers_block_type": ["mlp", "moe"]}, 1, 'layer 1 is "moe"'),
    ({"model_type": "nemotron_h"}, 1, "there is no hybrid_override_pattern"),
    ({"model_type": "nemotron_h", "hybrid_override_pattern": "-?"}, 1, "layer 1 is '?'"),
    ({"model_type": "gpt2"}, 1, "there is no max_position_embeddings"),
    ({"norm": "batchnorm"}, 1, "batchnorm"),
    ({"position_embedding": "dice"}, 1, "dice"),
]


@pytest.mark.parametrize("change, code, words", BAD, ids=[w for _, _, w in BAD])
def test_refused_in_one_line(tmp_path, change, code, words):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({k: v for k, v in (small() | change).items() if v is not None}))
    weir("count", "--quiet", path).fails(code, "c.json", words)


def test_no_configuration(tmp_path):
    (tmp_path / "a.json").write_text("[1]")
    weir("count", tmp_path / "a.json").fails(1, "a.json")
    weir("count", tmp_path / "nowhere.json").fails(1, "nowhere.json", "No such file")
    weir("count", tmp_path).fails(1, "config.json", "No such file")
    config = CONFIGS / "gpt2.json"
    weir("count", config, "--lora", "4", "--lora-targets", "q,z").fails(2, '"z" is none of q, k, v')
    weir("count", config, "--lora", "4", "--lora-targets", "gate").fails(2, 'no matrix "gate"')
    weir("count", config, "--lora-targets", "q").fails(2, "--lora")
    weir("count", config, "--bits", "16,x").fails(2, "--bits")
    weir("count", config, "--model", BROOK).fails(2, "operands")
    weir("count", config, "-o", tmp_path / "x.svg", "--json").fails(2, "picture")


def test_unknown_types_are_read_with_a_remark(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(small(model_type="newllama")))
    run = weir("count", "--json", path).ok()
    assert 'model_type "newllama" is not known' in run.err and run.json["remarks"][0].startswith('model_type "newllama"')
    path.write_text(json.dumps(small()))
    assert count(path)["parameters"] == run.json["parameters"] and count(path)["remarks"] == []


def test_windows_tables_and_other_fields(tmp_path):
    """Fields that no configuration of the table has."""
    path = tmp_path / "c.json"

    def of(**fields):
        path.write_text(json.dumps({k: v for k, v in small(**fields).items() if v is not None}))
        return count(path)["parameters"]["by_item"]

    plain = of()
    assert of(attention_bias=True)["attn_k"] == plain["attn_k"] + 2 * 128 and of(attention_bias=True)["attn_o"] == plain["attn_o"] + 2 * 256
    assert of(mlp_bias=True)["mlp_down"] == plain["mlp_down"] + 512 and of(mlp_bias=True)["mlp_gate"] == plain["mlp_gate"] + 1024
    assert of(model_type="olmo2")["attn_rest"] == 2 * (256 + 128) and of(model_type="qwen3")["attn_rest"] == 2 * 2 * 64
    assert "norm" not in of(model_type="olmo") and of(model_type="cohere")["norm"] == 3 * 256
    assert of(model_type="phi", max_position_embeddings=64)["unembedding"] == 256 * 1000 + 1000
    opt = of(model_type="opt", max_position_embeddings=64, word_embed_proj_dim=128, do_layer_norm_before=False)
    assert opt["position"] == 66 * 256 and opt["embedding"] == 128 * 1000 and opt["other"] == 2 * 128 * 256 and opt["norm"] == 8 * 256
    qwen = of(model_type="qwen2_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=96,
              mlp_only_layers=[0])
    assert qwen["shared_expert"] == 3 * 96 * 256 + 256 and qwen["router"] == 4 * 256 and qwen["mlp_up"] == 512 * 256
    old = of(model_type="nemotron_h", hybrid_override_pattern="*-", n_routed_experts=8, num_experts_per_tok=2)
    assert old == of(model_type="nemotron_h", layers_block_type=["full_attention", "mlp"]) and old["mlp_up"] == 256 * 512 and "router" not in old
    lite = of(model_type="deepseek_v2", kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16)
    assert lite["attn_q"] == 2 * 256 * 4 * 24 and lite["attn_kv"] == 2 * 256 * 40 and lite["attn_rest"] == 2 * 32
