"""Models larger than --memory: a random bfloat16 checkpoint of more than three times the bound. The bits are those of a run
without a bound; memory stays under the bound; in the order of layers the file is read about once, in the order of batches
again and again. Bytes read are what the system fetched from the disk for the process (ru_inblock), while another thread
takes the file out of the system's cache whenever that holds more than --memory, as a machine without more to spare would."""
import ctypes
import json
import mmap
import os
import struct
import subprocess
import threading

import numpy as np
import pytest

from dumps import differences
from weircli import BROOK, environment

L, C, F, HEADS, V = 12, 768, 2048, 12, 320
MEMORY = 52_000_000
DOCS, TOKENS, BATCH = 6, 64, 64


def shapes():
    yield "model.embed_tokens.weight", (V, C)
    for i in range(L):
        at = f"model.layers.{i}."
        for name in "qkvo":
            yield f"{at}self_attn.{name}_proj.weight", (C, C)
        yield f"{at}mlp.gate_proj.weight", (F, C)
        yield f"{at}mlp.up_proj.weight", (F, C)
        yield f"{at}mlp.down_proj.weight", (C, F)
        yield f"{at}input_layernorm.weight", (C,)
        yield f"{at}post_attention_layernorm.weight", (C,)
    yield "model.norm.weight", (C,)
    yield "lm_head.weight", (V, C)


def bfloat16(rng, shape):
    x = np.ones(shape, np.float32) if len(shape) == 1 else rng.standard_normal(shape, np.float32) * np.float32(0.03)
    return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()


def write_checkpoint(path):
    header, offset = {}, 0
    for name, shape in shapes():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    rng = np.random.default_rng(3)
    with open(path / "model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, shape in shapes():
            f.write(bfloat16(rng, shape))
        f.flush()
        os.fsync(f.fileno())  # pages that are not on disk yet stay in the cache
    config = {"model_type": "llama", "hidden_size": C, "intermediate_size": F, "num_hidden_layers": L, "vocab_size": V,
              "num_attention_heads": HEADS, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = write_checkpoint(tmp_path_factory.mktemp("big"))
    assert os.path.getsize(path / "model.safetensors") >= 3 * MEMORY
    return path


class CachedPages:
    """How much of a file is in the system's cache: mincore."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None)
        self.libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        self.libc.mmap.restype = ctypes.c_void_p
        self.libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.size = os.path.getsize(path)
        self.held = np.zeros((self.size + mmap.PAGESIZE - 1) // mmap.PAGESIZE, np.uint8)
        self.fd = os.open(path, os.O_RDONLY)
        self.at = self.libc.mmap(None, self.size, mmap.PROT_READ, mmap.MAP_SHARED, self.fd, 0)

    def bytes(self):
        assert self.libc.mincore(self.at, self.size, self.held.ctypes.data) == 0
        return int((self.held & 1).sum()) * mmap.PAGESIZE

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.libc.munmap(self.at, self.size)
        os.close(self.fd)


# A process begins with the peak of the one that it was forked from; a shell's is small, Python's is not.
SHELL = ("sh", "-c", '"$@"; exit $?', "sh")


class Measured:
    """A run of trace: its peak of resident memory (as it says itself), and the bytes that were read from the disk for it."""

    def __init__(self, model, dump, *options, evict=None):
        rng = np.random.default_rng(5)
        ids = [" ".join(map(str, rng.integers(0, V, TOKENS))) for _ in range(DOCS)]
        args = ["weir", "trace", "--model", model, "--ids", *ids, "--batch", BATCH, "--site", "resid_post", "--positions", "last",
                "--logprob", "--threads", "2", "--dump", dump, "--json", *options]
        done = threading.Event()
        thread = threading.Thread(target=self.evict, args=(evict, done)) if evict else None
        if thread:
            thread.start()
        p = subprocess.Popen([*SHELL, *map(str, args)], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.stdout.read(), p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        done.set()
        if thread:
            thread.join()
        assert p.returncode == 0, err.decode()
        self.json, self.err = json.loads(out), err.decode()
        self.peak = self.json["memory"]["peak"]
        self.read = usage.ru_inblock * 512

    @staticmethod
    def evict(path, done):
        with CachedPages(path) as pages:
            os.posix_fadvise(pages.fd, 0, 0, os.POSIX_FADV_DONTNEED)
            while not done.wait(0.005):
                if pages.bytes() > MEMORY:
                    os.posix_fadvise(pages.fd, 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.fixture(scope="module")
def free(model, tmp_path_factory):
    dump = tmp_path_factory.mktemp("free") / "free.h5"
    m = Measured(model, dump)
    m.dump = dump
    return m


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """What the program takes without a model to speak of."""
    p = subprocess.run([*SHELL, "weir", "trace", "--site", "resid_post", "--dump", tmp_path_factory.mktemp("small") / "a.h5", "--json",
                        "--quiet", "The river."], env=environment(), capture_output=True, check=True)
    return json.loads(p.stdout)["memory"]["peak"]


BOUND = ("--memory", MEMORY)


def test_the_bits_are_those_of_a_run_without_a_bound(model, free, tmp_path):
    for name, options in (("layer", ("--order", "layer")), ("batch", ())):
        m = Measured(model, tmp_path / f"{name}.h5", *BOUND, *options)
        assert not differences(tmp_path / f"{name}.h5", free.dump)
        again = m.json["memory"]["packed_again"]
        assert again == 0 if options else again >= (DOCS - 1) * L / 2
        assert ("packed again" in m.err) == (not options), m.err


def test_memory_stays_under_the_bound(model, free, program, tmp_path):
    size = os.path.getsize(model / "model.safetensors")
    assert free.peak > size  # the measure sees what is too much
    assert free.peak < 1.15 * size + program  # and the file's pages are not counted on top of the packed weights
    for options in (("--order", "layer"), ()):
        m = Measured(model, tmp_path / "a.h5", *BOUND, *options)
        (tmp_path / "a.h5").unlink()
        print(f"peak {m.peak / 1e6:.1f} MB with --memory {MEMORY / 1e6:.0f} MB, the program alone {program / 1e6:.1f} MB, {options}")
        assert m.peak < MEMORY + program / 2, (m.peak, program, options)  # of which a part is the recorder's


def test_layer_by_layer_the_file_is_read_once(model, tmp_path):
    file = model / "model.safetensors"
    size = os.path.getsize(file)
    layer = Measured(model, tmp_path / "layer.h5", *BOUND, "--order", "layer", evict=file)
    if layer.read < size / 2:
        pytest.skip("this file system does not say what is read from the disk")
    batch = Measured(model, tmp_path / "batch.h5", *BOUND, evict=file)
    print(f"layer by layer {layer.read / size:.2f} times the file, in batches {batch.read / size:.2f} times")
    assert layer.read < 1.5 * size, (layer.read, size)
    assert batch.read > 2 * size, (batch.read, size)


def test_a_bound_without_room_for_one_layer_is_refused_with_the_numbers(model):
    for options in ((), ("--order", "layer")):
        p = subprocess.run(["weir", "trace", "--model", model, "--ids", "1 2", "--hook", "stats:resid_post", "--batch", "8",
                            "--memory", "13M", *options], env=environment(), capture_output=True, text=True)
        assert p.returncode == 1 and "packed weights of one layer" in p.stderr and "13" in p.stderr, p.stderr
        assert str(2 * C * (4 * C + 2 * (F + -F % 48) + F)) in p.stderr, p.stderr  # outputs in panels of 48
