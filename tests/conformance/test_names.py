"""Names, presence and values against TransformerLens: its TransformerBridge around the same local model, raw weights."""

import json
import re

import pytest
import torch
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

import compare
import models
import weirdump

# Points of weir that TransformerLens does not have.
OURS = {
    r"hook_logits": "logits behind a soft cap; TransformerLens has them only as the model's output",
}
# Points of TransformerLens that weir does not have, and why. Where the last entry is a name, that hook of weir holds the same tensor.
B = r"blocks\.(\d+)\."
THEIRS = [
    (B + r"hook_in", "a block's input", r"blocks.\1.hook_resid_pre"),
    (B + r"hook_out", "a block's output", r"blocks.\1.hook_resid_post"),
    (B + r"ln1\.hook_in", "a norm's input", r"blocks.\1.hook_resid_pre"),
    (B + r"ln2\.hook_in", "a norm's input; in parallel blocks the block's input", "mid or pre"),
    (B + r"ln1_post\.hook_in", "before the norm behind attention: weir's hook_attn_out is what is added to the stream", None),
    (B + r"ln1_post\.hook_out", "the norm behind attention", r"blocks.\1.hook_attn_out"),
    (B + r"ln2_post\.hook_in", "before the norm behind the MLP", None),
    (B + r"ln2_post\.hook_out", "the norm behind the MLP", r"blocks.\1.hook_mlp_out"),
    (B + r"attn\.hook_in", "attention's input", r"blocks.\1.ln1.hook_out"),
    (B + r"attn\.hook_hidden_states", "attention's output again", None),
    (B + r"attn\.hook_out", "attention's output, before a norm behind it", None),
    (B + r"attn\.(q|k|v)\.hook_in", "input of a projection", r"blocks.\1.ln1.hook_out"),
    (B + r"attn\.(q|k|v)\.hook_out", "output of a projection", r"blocks.\1.attn.hook_\2"),
    (B + r"attn\.(q|k)_norm\.hook_in", "what a norm of heads reads", r"blocks.\1.attn.hook_\2"),
    (B + r"attn\.hook_(q|k)_normed", "behind a norm of heads", r"blocks.\1.attn.\2_norm.hook_out"),
    (B + r"attn\.qkv\.hook_(in|out)", "fused projection: weir gives q, k and v apart, whatever the file's layout", None),
    (B + r"attn\.o\.hook_in", "input of the output projection", r"blocks.\1.attn.hook_z"),
    (B + r"attn\.o\.hook_out", "attention's output, before a norm behind it", None),
    (B + r"attn\.hook_(cos|sin)", "tables of RoPE, not activations", None),
    (B + r"(attn\.)?hook_(q|k|v)_input", "optional there (use_split_qkv_input): a copy of the stream for each head", None),
    (B + r"(attn\.)?hook_attn_in", "optional there (use_attn_in): a copy of the stream for each head", None),
    (B + r"hook_mlp_in", "optional there (use_hook_mlp_in): the stream before ln2, hook_resid_mid here", None),
    (B + r"mlp\.hook_in", "the MLP's input", r"blocks.\1.ln2.hook_out"),
    (B + r"mlp\.hook_out", "the MLP's output, before a norm behind it", None),
    (B + r"mlp\.(in|gate)\.hook_in", "input of a projection", r"blocks.\1.ln2.hook_out"),
    (B + r"mlp\.gate\.hook_out", "the gate", r"blocks.\1.mlp.hook_pre"),
    (B + r"mlp\.in\.hook_out", "the only projection, or up in gated models", "pre or pre_linear"),
    (B + r"mlp\.out\.hook_in", "the neuron", r"blocks.\1.mlp.hook_post"),
    (B + r"mlp\.out\.hook_out", "the MLP's output, before a norm behind it", None),
    (r"embed\.hook_in", "token ids: /tokens/id of a dump", None),
    (r"embed\.hook_out", "the embedding", "hook_embed"),
    (r"pos_embed\.hook_in", "positions: /tokens/ctx_pos of a dump", None),
    (r"pos_embed\.hook_out", "the position embedding", "hook_pos_embed"),
    (r"hook_pos_embed", "of rotary models: the tables of RoPE, not an activation", None),
    (r"rotary_emb\.hook_(cos|sin|in|out)", "tables of RoPE, not activations", None),
    (r"ln_final\.hook_in", "the last norm's input", "last resid_post"),
    (r"hook_unembed", "another name", "unembed.hook_out"),
]


def same_as(name, spec, mine):
    """Weir's name for TransformerLens's, or None."""
    pattern, _, target = spec
    if target is None:
        return None
    m = re.fullmatch(pattern, name)
    if target == "mid or pre":
        mid = f"blocks.{m[1]}.hook_resid_mid"
        return mid if mid in mine else f"blocks.{m[1]}.hook_resid_pre"
    if target == "pre or pre_linear":
        up = f"blocks.{m[1]}.mlp.hook_pre_linear"
        return up if up in mine else f"blocks.{m[1]}.mlp.hook_pre"
    if target == "last resid_post":
        return max((k for k in mine if k.endswith("hook_resid_post")), key=lambda k: int(k.split(".")[1]))
    return m.expand(target)


def can_be_bridged(case):
    """TransformerLens cannot wrap a GPT-NeoX without attention biases."""
    config = json.loads((case.hf / "config.json").read_text())
    return config["model_type"] != "gpt_neox" or config.get("attention_bias", True)


@pytest.fixture(scope="session")
def bridge(loaded):
    model = models.load(loaded.case)
    b = build_bridge_from_module(model, type(model).__name__, hf_config=model.config)
    b.set_use_attn_result(True)
    return b


@pytest.mark.wants(only=can_be_bridged)
def test_names(loaded, bridge):
    theirs = set(bridge.hook_dict)
    mine = set(weirdump.points(loaded.case.paths[0]))
    unexplained = [k for k in sorted(mine - theirs) if not any(re.fullmatch(p, k) for p in OURS)]
    assert not unexplained, f"not in TransformerLens: {unexplained}"
    unexplained = [k for k in sorted(theirs - mine) if not any(re.fullmatch(p, k) for p, _, _ in THEIRS)]
    assert not unexplained, f"missing from weir: {unexplained}"
    for name in sorted(theirs - mine):
        spec = next(s for s in THEIRS if re.fullmatch(s[0], name))
        other = same_as(name, spec, mine)
        assert other is None or other in mine, f"{name} should be weir's {other}"


def test_points_are_what_is_recorded(loaded, tmp_path):
    """--list-hooks tells the truth: every point listed can be recorded, and nothing else is."""
    got = loaded.weir(loaded.case.paths[0], 13, tmp_path / "x.h5")
    assert set(got) == set(weirdump.points(loaded.case.paths[0]))


@pytest.mark.wants(only=can_be_bridged)
def test_values(loaded, bridge, tmp_path):
    """TransformerLens's own values for weir's names, and for its other names of the same tensors."""
    ids, _, tol = loaded.reference(13)
    got = loaded.weir(loaded.case.paths[0], 13, tmp_path / "x.h5")
    with torch.no_grad():
        _, cache = bridge.run_with_cache(torch.tensor([ids]))
    compared = 0
    for name in cache:
        spec = next((s for s in THEIRS if re.fullmatch(s[0], name)), None)
        mine = name if name in got else same_as(name, spec, got)
        if mine is None:
            continue
        v = cache[name][0].float().numpy()
        if name.endswith(("hook_attn_scores", "hook_pattern")) or re.search(r"attn\.(q|k)_norm\.|_normed$", name):  # heads come first
            v = v.swapaxes(0, 1)
        v = v.reshape(got[mine].shape)
        # Both are fp32: each may be off by its own error.
        d, _ = compare.compare_hook(f"{name} (weir: {mine})", got[mine], v, 2 * tol[mine])
        assert d is None, str(d)
        compared += 1
    never = [k for k in got if k in bridge.hook_dict and k not in cache]
    # TransformerLens lists rot_q and rot_k of GPT-NeoX but never fires them.
    allowed = ("hook_rot_q", "hook_rot_k") if loaded.model.config.model_type == "gpt_neox" else ()
    assert not [k for k in never if not k.endswith(allowed)] if allowed else not never
    assert compared >= len(got) - len(never) - len([k for k in got if k not in bridge.hook_dict])
