"""Checkpoints for the tests of this directory: the numbers of safetensors files, read and written without anything of weir."""
import json
import shutil

import numpy as np

KINDS = {"F16": "<f2", "F32": "<f4"}


def header(raw):
    """Of a file's bytes: {name: {dtype, shape, ...}} and where the data begins."""
    data = 8 + int.from_bytes(raw[:8], "little")
    return {name: t for name, t in json.loads(raw[8:data]).items() if name != "__metadata__"}, data


def read(path):
    """All tensors of one file, as float64."""
    raw = path.read_bytes()
    tensors, data = header(raw)
    out = {}
    for name, t in tensors.items():
        own = raw[data:][slice(*t["data_offsets"])]
        if t["dtype"] == "BF16":
            x = (np.frombuffer(own, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            x = np.frombuffer(own, KINDS[t["dtype"]])
        out[name] = x.astype(np.float64).reshape(t["shape"])
    return out


def weights(path):
    """All tensors of a checkpoint, its files together."""
    return {name: x for file in path.glob("*.safetensors") for name, x in read(file).items()}


def copy_with(model, path, tensor, at, value):
    """A copy of a checkpoint with another number at one place of a tensor, which is the one whose name ends so."""
    shutil.copytree(model, path)
    file = path / "model.safetensors"
    raw = bytearray(file.read_bytes())
    tensors, data = header(raw)
    name, t = next((n, t) for n, t in tensors.items() if n.endswith(tensor))
    number = np.array(value, KINDS[t["dtype"]])
    begin = data + t["data_offsets"][0] + number.itemsize * int(np.ravel_multi_index(at, t["shape"]))
    raw[begin:begin + number.itemsize] = number.tobytes()
    file.write_bytes(raw)
    assert np.array_equal(weights(path)[name][at], float(value), equal_nan=True)
    return path
