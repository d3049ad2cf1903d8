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


def write(path, tensors):
    """One file of {name: array}, in F32."""
    head, data = {}, b""
    for name, x in tensors.items():
        own = np.ascontiguousarray(x, "<f4").tobytes()
        head[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


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


def bf16(x):
    """Rounded to nearest, ties to even: the upper halves."""
    bits = np.asarray(x, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def retyped(model, path, kind, without=""):
    """A copy of a checkpoint of one file, all its tensors stored as F32 or BF16, but for the one of this name."""
    shutil.copytree(model, path, ignore=shutil.ignore_patterns("moments", "recipe", "*.jsonl", "*.safetensors"))
    data, head = b"", {}
    tensors = weights(model)
    tensors.pop(without, None)
    for name, x in tensors.items():
        own = (bf16(x) if kind == "BF16" else x.astype("<f4")).tobytes()
        head[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    (path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


# --- GGUF: a GPT-2 whose matrices are quantised

def q8_0(x):
    """Rows of blocks of 32: a scale in half precision, and 32 bytes."""
    blocks = x.reshape(-1, 32)
    d = (np.abs(blocks).max(1) / 127).astype("<f2")
    q = np.rint(blocks / np.maximum(d.astype(float), 1e-12)[:, None]).clip(-127, 127).astype("i1")
    return np.concatenate([d.view("i1").reshape(-1, 2), q], 1).tobytes()


def text(x):
    return len(x.encode()).to_bytes(8, "little") + x.encode()


def value(x):
    """Type and bytes of a metadata value: bool, int, float, str, or a list of strings or integers."""
    if isinstance(x, bool):
        return 7, bytes([x])
    if isinstance(x, int):
        return 4, x.to_bytes(4, "little")
    if isinstance(x, float):
        return 6, np.float32(x).tobytes()
    if isinstance(x, str):
        return 8, text(x)
    kind = value(x[0])[0]
    return 9, kind.to_bytes(4, "little") + len(x).to_bytes(8, "little") + b"".join(value(v)[1] for v in x)


GPT2 = {"attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_1": "attn_norm", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}


def gguf_name(name):
    for ours, theirs in {"transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm"}.items():
        name = name.replace(ours, theirs)
    for ours, theirs in GPT2.items():
        name = name.replace(f".{ours}.", f".{theirs}.")
    return name.replace("transformer.h.", "blk.")


def gguf(model, path):
    """A GPT-2 checkpoint as one file, the matrices of its blocks in Q8_0, with its tokenizer."""
    c = json.loads((model / "config.json").read_text())
    t = json.loads((model / "tokenizer.json").read_text())["model"]
    tokens = sorted(t["vocab"], key=t["vocab"].get)
    meta = {"general.architecture": "gpt2", "gpt2.context_length": c["n_positions"], "gpt2.embedding_length": c["n_embd"],
            "gpt2.block_count": c["n_layer"], "gpt2.attention.head_count": c["n_head"], "gpt2.feed_forward_length": 4 * c["n_embd"],
            "gpt2.attention.layer_norm_epsilon": c["layer_norm_epsilon"], "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [3] + [1] * (len(tokens) - 1),
            "tokenizer.ggml.merges": [" ".join(m) for m in t["merges"]], "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 0,
            "tokenizer.ggml.add_bos_token": True}
    infos, data, tensors = b"", b"", weights(model)
    for name, x in tensors.items():
        name = gguf_name(name)
        matrix = name.startswith("blk.") and x.ndim == 2
        x = x.T if matrix else x
        infos += text(name) + x.ndim.to_bytes(4, "little") + b"".join(n.to_bytes(8, "little") for n in reversed(x.shape))
        infos += (8 if matrix else 0).to_bytes(4, "little") + len(data).to_bytes(8, "little")
        data += q8_0(np.ascontiguousarray(x)) if matrix else x.astype("<f4").tobytes()
        data += bytes(-len(data) % 32)
    head = b"GGUF" + (3).to_bytes(4, "little") + len(tensors).to_bytes(8, "little") + len(meta).to_bytes(8, "little")
    for key, x in meta.items():
        kind, raw = value(x)
        head += text(key) + kind.to_bytes(4, "little") + raw
    head += infos
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path
