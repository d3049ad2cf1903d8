"""weir count against the parameters of Hugging Face's own classes, on the meta device: shapes without weights. Tied tensors count once; the
selection bias of DeepSeek-V3's router, a buffer there, is a parameter in weir, as in the released code."""
import json
import math
import sys
from pathlib import Path

import pytest
import torch
import transformers
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

import weirdump

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from headers import write  # noqa: E402

USUAL = dict(vocab_size=1000, hidden_size=96, intermediate_size=200, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
             pad_token_id=0, bos_token_id=1, eos_token_id=2)
ENCODER = {k: v for k, v in USUAL.items() if k != "num_key_value_heads"} | dict(max_position_embeddings=66)
EXPERTS = USUAL | dict(num_experts_per_tok=2)
LATENT = USUAL | dict(num_key_value_heads=6, moe_intermediate_size=50, n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=2,
                      first_k_dense_replace=1, kv_lora_rank=24, q_lora_rank=40, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12,
                      n_group=2, topk_group=1)
GPT = dict(vocab_size=1000, n_embd=96, n_layer=3, n_head=6, n_positions=64)
OPT = dict(vocab_size=1000, hidden_size=96, ffn_dim=200, num_hidden_layers=3, num_attention_heads=6, max_position_embeddings=64)
FALCON = dict(vocab_size=1000, hidden_size=96, num_hidden_layers=3, num_attention_heads=6)
T5 = dict(vocab_size=1000, d_model=96, d_kv=16, d_ff=200, num_layers=3, num_decoder_layers=2, num_heads=5)
HYBRID = USUAL | dict(num_hidden_layers=4, hybrid_override_pattern="M-*-", mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=32,
                      n_groups=4, conv_kernel=4, head_dim=16)

CASES = [(name, USUAL) for name in ("Llama", "Mistral", "SmolLM3", "Granite", "Phi3", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Olmo", "Olmo2",
                                    "Cohere", "StableLm", "Starcoder2", "Phi")]
CASES += [
    ("Llama", USUAL | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=32)),
    ("Cohere", USUAL | dict(use_qk_norm=True)),
    ("StableLm", USUAL | dict(qk_layernorm=True, use_qkv_bias=True, use_parallel_residual=True)),
    ("Starcoder2", USUAL | dict(use_bias=False)),
    ("Gemma3Text", USUAL | dict(head_dim=16)),
    ("Mixtral", EXPERTS | dict(num_local_experts=4)),
    ("Qwen2Moe", EXPERTS | dict(num_experts=4, moe_intermediate_size=50, shared_expert_intermediate_size=70, mlp_only_layers=[1])),
    ("Qwen3Moe", EXPERTS | dict(num_experts=4, moe_intermediate_size=50, head_dim=16, decoder_sparse_step=2)),
    ("Olmoe", EXPERTS | dict(num_experts=4)),
    ("GptOss", EXPERTS | dict(num_local_experts=4, head_dim=16)),
    ("Llama4Text", EXPERTS | dict(num_local_experts=4, head_dim=16, intermediate_size_mlp=300, interleave_moe_layer_step=2)),
    ("DeepseekV2", LATENT), ("DeepseekV3", LATENT), ("DeepseekV3", LATENT | dict(attention_bias=True)),
    ("DeepseekV3", LATENT | dict(q_lora_rank=None, attention_bias=True)),
    ("GPT2", GPT), ("GPTJ", GPT | dict(rotary_dim=8)), ("GPTNeoX", ENCODER),
    ("OPT", OPT | dict(word_embed_proj_dim=48, do_layer_norm_before=False)), ("OPT", OPT | dict(word_embed_proj_dim=96)),
    ("Bloom", dict(vocab_size=1000, hidden_size=96, n_layer=3, n_head=6)),
    ("Falcon", FALCON), ("Falcon", FALCON | dict(multi_query=False, bias=True)), ("Falcon", FALCON | dict(parallel_attn=False, alibi=True)),
    ("Falcon", FALCON | dict(new_decoder_architecture=True, num_kv_heads=2)),
    ("Falcon", FALCON | dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1)),
    ("Bert", ENCODER), ("Roberta", ENCODER | dict(type_vocab_size=1)),
    ("T5", T5), ("T5", T5 | dict(feed_forward_proj="gated-gelu")), ("MT5", T5),
    ("NemotronH", HYBRID),
]


def finite(value):
    """What JSON cannot say is left out."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@pytest.mark.parametrize("name, fields", CASES, ids=[f"{i}-{n}" for i, (n, _) in enumerate(CASES)])
def test_parameters_of_the_class(tmp_path, name, fields):
    config = getattr(transformers, name + "Config")(**fields)
    make = {"bert": AutoModel, "roberta": AutoModel, "t5": AutoModelForSeq2SeqLM, "mt5": AutoModelForSeq2SeqLM}
    with torch.device("meta"):
        model = make.get(config.model_type, AutoModelForCausalLM).from_config(config)
    model.tie_weights()
    theirs = sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())
    theirs += sum(b.numel() for n, b in model.named_buffers() if n.endswith("e_score_correction_bias"))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(finite(config.to_dict() | fields), default=str))
    ours = json.loads(weirdump.run("weir", "count", "--quiet", "--json", path))
    assert ours["parameters"]["total"] == theirs


def deepseek_v3():
    """Every tensor of the released checkpoint: {name: (dtype, shape)}."""
    d, vocab, t = 7168, 129280, {}

    def matrix(name, a, b):
        t[name + ".weight"] = ("F8_E4M3", [a, b])
        t[name + ".weight_scale_inv"] = ("F32", [-(-a // 128), -(-b // 128)])

    def plain(name, *shape):
        t[name] = ("BF16", list(shape))

    def mlp(name, width):
        for part, a, b in (("gate", width, d), ("up", width, d), ("down", d, width)):
            matrix(f"{name}.{part}_proj", a, b)

    plain("model.embed_tokens.weight", vocab, d), plain("lm_head.weight", vocab, d), plain("model.norm.weight", d)
    for i in range(62):
        p = f"model.layers.{i}."
        for name, a, b in (("q_a_proj", 1536, d), ("q_b_proj", 128 * 192, 1536), ("kv_a_proj_with_mqa", 576, d),
                           ("kv_b_proj", 128 * 256, 512), ("o_proj", d, 128 * 128)):
            matrix(f"{p}self_attn.{name}", a, b)
        for name, n in (("self_attn.q_a_layernorm", 1536), ("self_attn.kv_a_layernorm", 512), ("input_layernorm", d),
                        ("post_attention_layernorm", d)):
            plain(f"{p}{name}.weight", n)
        if i < 3:
            mlp(p + "mlp", 18432)
            continue
        plain(p + "mlp.gate.weight", 256, d)
        t[p + "mlp.gate.e_score_correction_bias"] = ("F32", [256])
        for e in [f"experts.{j}" for j in range(256)] + ["shared_experts"]:
            mlp(f"{p}mlp.{e}", 2048)
    p = "model.layers.61."
    plain(p + "embed_tokens.weight", vocab, d), plain(p + "shared_head.head.weight", vocab, d), plain(p + "eh_proj.weight", d, 2 * d)
    for name in ("shared_head.norm", "enorm", "hnorm"):
        plain(f"{p}{name}.weight", d)
    return t


def test_deepseek_v3_to_the_last_element(tmp_path):
    """The hub's total, which is no count of parameters, and all that makes the difference."""
    write(tmp_path, weirdump.ROOT / "tests/data/configs/deepseek-v3.json", deepseek_v3())
    f = json.loads(weirdump.run("weir", "count", "--quiet", "--json", tmp_path))["file"]
    assert f["elements"] == 684531386000 and f["parameters"] == f["by_configuration"] == 671026419200
    assert {line["what"]: line["surplus"] for line in f["lines"] if line["surplus"]} == {
        "scales and tables of the quantisation": 41540496,
        "layers behind the last, which predict further tokens": 11610068224,
        "copies of a table that is there already": 1853358080}
