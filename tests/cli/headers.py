"""Checkpoints of any size that take no room: headers, and files that are empty behind them. Python's standard library only."""
import json
import struct


def write(directory, config, tensors, name="model.safetensors"):
    """Headers of real sizes over files that take no room. tensors: {name: (dtype, shape)}."""
    size = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "U8": 1, "I32": 4}
    directory.mkdir(exist_ok=True)
    header, at = {}, 0
    for key, (dtype, shape) in tensors.items():
        n = size[dtype]
        for s in shape:
            n *= s
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    with open(directory / name, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    (directory / "config.json").write_text(json.dumps(config) if isinstance(config, dict) else config.read_text())
    return directory
