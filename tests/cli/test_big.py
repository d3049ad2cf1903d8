"""Opening a sparse checkpoint of 10 GB reads its header and nothing of its weights: counted by the pages that the kernel then holds."""
import ctypes
import json
import mmap
import os
import struct
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BIN = os.path.join(ROOT, os.environ.get("WEIR_BIN", "build/bin"))
PAGE = mmap.PAGESIZE


def cached_bytes(path):
    size = os.path.getsize(path)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    pages = (size + PAGE - 1) // PAGE
    with open(path, "rb") as f:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, f.fileno(), 0)
        assert at not in (None, ctypes.c_void_p(-1).value)
        held = (ctypes.c_ubyte * pages)()
        assert libc.mincore(at, size, held) == 0
        libc.munmap(at, size)
    return sum(b & 1 for b in held) * PAGE


def sparse_llama(path):
    c, f, v, layers, heads = 4096, 11008, 32000, 24, 32
    shapes = {"model.embed_tokens.weight": [v, c], "model.norm.weight": [c], "lm_head.weight": [v, c]}
    for i in range(layers):
        at = f"model.layers.{i}."
        for name in "qkvo":
            shapes[f"{at}self_attn.{name}_proj.weight"] = [c, c]
        shapes.update({f"{at}mlp.gate_proj.weight": [f, c], f"{at}mlp.up_proj.weight": [f, c], f"{at}mlp.down_proj.weight": [c, f],
                       f"{at}input_layernorm.weight": [c], f"{at}post_attention_layernorm.weight": [c]})
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 2
        for n in shape:
            size *= n
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + offset)
    config = {"model_type": "llama", "hidden_size": c, "intermediate_size": f, "num_hidden_layers": layers, "vocab_size": v,
              "num_attention_heads": heads, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
    (path / "config.json").write_text(json.dumps(config))
    return path / "model.safetensors"


def test_opening_ten_gigabytes_reads_none_of_the_weights(tmp_path):
    file = sparse_llama(tmp_path)
    size = os.path.getsize(file)
    assert size > 10e9
    before = cached_bytes(file)
    subprocess.run([f"{BIN}/trace", "--model", tmp_path, "--list-hooks"], check=True, stdout=subprocess.DEVNULL)
    read = cached_bytes(file) - before
    assert read < 0.01 * size, f"{read} bytes"


def test_the_count_can_fail(tmp_path):
    file = sparse_llama(tmp_path)
    with open(file, "rb") as f:
        for at in range(0, 256 << 20, 1 << 20):
            f.seek(at)
            f.read(1 << 20)
    assert cached_bytes(file) > 0.01 * os.path.getsize(file)
