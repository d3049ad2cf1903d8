#!/usr/bin/env python3
"""Writes tests/data/quants/TYPE.bin: random blocks of each GGUF block type and what gguf-py makes of them.

    build/venv/bin/python tests/conformance/make_quants.py

Layout of a file, little endian: int32 blocks, the blocks, then float32 [blocks x elements]. The scales of the first blocks are
ordinary, those of the rest are subnormal, infinite, NaN, zeros of both signs, the largest, the smallest normal.
"""
import pathlib
import struct

import gguf
import numpy as np

SPECIAL = [0x0001, 0x8003, 0x03FF, 0x7C00, 0xFC00, 0x7E01, 0x0000, 0x8000, 0x7BFF, 0x0400]
# byte offsets of the binary16 scales in a block
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}


def main():
    out = pathlib.Path(__file__).resolve().parent.parent / "data" / "quants"
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20)
    for name, at in SCALES.items():
        qtype = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[qtype]
        ordinary = 6 if elements == 32 else 3
        blocks = rng.integers(0, 256, (ordinary + len(SPECIAL), size), dtype=np.uint8)
        for b in range(len(blocks)):
            for i, offset in enumerate(at):
                if b < ordinary:
                    half = np.float16(rng.normal() * 0.1)
                else:
                    half = np.array(SPECIAL[(b - ordinary + 3 * i) % len(SPECIAL)], dtype=np.uint16).view(np.float16)
                blocks[b, offset:offset + 2] = np.frombuffer(half.tobytes(), dtype=np.uint8)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(blocks, qtype).astype("<f4")
        assert values.shape == (len(blocks), elements)
        data = struct.pack("<i", len(blocks)) + blocks.tobytes() + values.tobytes()
        (out / f"{name}.bin").write_bytes(data)
        print(name, len(blocks), "blocks", len(data), "bytes")


if __name__ == "__main__":
    main()
