"""Block types end to end: a token's row of the embedding, as `hook_embed` gives it, against gguf-py's dequantisation, to the bit.

Rows are 256 wide, so that every block type tiles them; blocks are random bytes, so that scales of every kind occur: normal,
subnormal, infinite and NaN.
"""

import gguf
import numpy as np
import pytest
import transformers
from gguf import GGMLQuantizationType as Q

import tiny
import weirdump

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
VOCAB, WIDTH = 96, 256
# Byte offsets of the fp16 scales in a block.
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208]}
# 0, subnormal, smallest normal, largest, infinite, NaN
SPECIAL = [0x0000, 0x8000, 0x0001, 0x03FF, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01]


def random_rows(kind):
    gen = np.random.default_rng([17, *kind.encode()])
    block, size = gguf.GGML_QUANT_SIZES[Q[kind]]
    n = VOCAB * WIDTH // block
    raw = gen.integers(0, 256, (n, size), dtype=np.uint8)
    for at in SCALES.get(kind, []):
        special = np.array(SPECIAL, dtype=np.uint16)[gen.integers(0, len(SPECIAL), n // 4)]
        raw[: n // 4, at:at + 2] = special.view(np.uint8).reshape(-1, 2)
    return raw.reshape(VOCAB, -1)


@pytest.fixture(scope="module")
def model():
    config = transformers.LlamaConfig(**{**tiny.SUPER_LLAMA, "tie_word_embeddings": True, "vocab_size": VOCAB})
    return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize("kind", TYPES)
def test_embedding_rows(kind, model, tmp_path):
    raw = random_rows(kind)
    with np.errstate(all="ignore"):
        want = gguf.quants.dequantize(raw.reshape(VOCAB, -1), Q[kind]).astype(np.float32).reshape(VOCAB, WIDTH)
    state = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
    path = tmp_path / f"{kind}.gguf"
    tiny.write_gguf(str(path), state, {"model.embed_tokens.weight": (Q[kind], raw)}, model, "llama", 128, "F32")
    got = weirdump.capture(path, list(range(VOCAB)), tmp_path / "x.h5", hooks="hook_embed")["hook_embed"]
    both_nan = np.isnan(got) & np.isnan(want)
    different = (got.view(np.uint32) != want.view(np.uint32)) & ~both_nan
    assert not different.any(), f"{different.sum()} of {different.size} values, first at {np.argwhere(different)[0]}"
    if kind in SCALES:  # the special scales did occur
        assert np.isinf(want).any() and np.isnan(want).any() and ((np.abs(want) > 0) & (np.abs(want) < 6e-5)).any()
