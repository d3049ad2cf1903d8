"""`rome stats`: brook's second moments against numpy over the keys that `trace` records, whole, in shards, imported, and after a kill."""
import os
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import models
import rome_torch
import weirdump

WEIR = os.path.join(os.environ["WEIR_BIN"], "weir")
LAYER, WIDTH = 3, 768
SENTENCES = models.BROOK / "sentences.txt"


def stats(*args):
    subprocess.run([WEIR, "rome", "stats", *map(str, args), "-q"], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def of_text(out, *more):
    stats("--layer", LAYER, "-f", SENTENCES, "-o", out, *more)
    return read(out)


def read(path):
    """(sum [F, F], count)."""
    with h5py.File(path) as f:
        assert f.attrs["format"] == "weir-moments" and f.attrs["width"] == WIDTH and f.attrs["layer"] == LAYER and f.attrs["complete"] == 1
        full = np.zeros((WIDTH, WIDTH))
        full[np.triu_indices(WIDTH)] = f["sum"][...]
        return full + np.triu(full, 1).T, int(f.attrs["count"])


def close(a, b):
    return np.abs(a - b).max() <= 1e-12 * np.abs(b).max()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("stats") / "whole.h5"
    return path, *of_text(path)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """[tokens, F]"""
    dump, hook = tmp_path_factory.mktemp("keys") / "keys.h5", f"blocks.{LAYER}.mlp.hook_post"
    weirdump.run("weir", "trace", "-f", SENTENCES, "--hooks", hook, "--dump", dump, "-q")
    with h5py.File(dump) as f:
        return f["activations"][hook][...].astype(np.float64)


def test_sum(whole, keys):
    path, total, count = whole
    assert count == len(keys) and close(total, keys.T @ keys)
    assert not close(total, keys[1:].T @ keys[1:])  # one token less is seen
    c = rome_torch.covariance(path, 0.25).numpy()
    want = keys.T @ keys / len(keys)
    assert close(c, want + 0.25 * np.diag(want).mean() * np.eye(WIDTH))


def test_shards(whole, tmp_path):
    _, total, count = whole
    parts = [tmp_path / f"{i}.h5" for i in range(3)]
    found = [of_text(p, "--shard", f"{i}/3") for i, p in enumerate(parts)]
    assert sum(n for _, n in found) == count and all(n < count / 2 for _, n in found)
    stats(*(x for p in reversed(parts) for x in ("--merge", p)), "-o", tmp_path / "merged.h5")
    merged, n = read(tmp_path / "merged.h5")
    assert n == count and close(merged, total)


def test_import(whole, tmp_path):
    """The layout that kmeng01/rome publishes: a raw sum in float32, its count, and what made them."""
    _, total, count = whole
    np.savez(tmp_path / "published.npz", **{"mom2.constructor": "util.runningstats.SecondMoment()", "mom2.count": count,
                                            "mom2.mom2": total.astype(np.float32), "sample_size": 1000})
    stats("--import", tmp_path / "published.npz", "--layer", LAYER, "-o", tmp_path / "imported.h5")
    got, n = read(tmp_path / "imported.h5")
    assert n == count and np.array_equal(np.triu(got), np.triu(total.astype(np.float32)))


def test_resume_after_kill(whole, tmp_path):
    """Killed behind its first checkpoint (one thread, so that there is one); resumed, the sum has the same bits as in one run."""
    out, part = tmp_path / "killed.h5", tmp_path / "killed.h5.part"
    run = subprocess.Popen([WEIR, "rome", "stats", "--layer", str(LAYER), "-f", SENTENCES, "-o", out, "-q", "-t", "1", "--checkpoint", "1"],
                           stdin=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not part.exists() and run.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL and not out.exists()
    with h5py.File(part) as f:
        assert f.attrs["complete"] == 0 and 0 < f.attrs["count"] < whole[2]
    got, n = of_text(out, "--resume")
    assert n == whole[2] and np.array_equal(got, whole[1]) and not part.exists()
