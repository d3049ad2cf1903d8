"""The tuned lens against tuned-lens 0.2.0's own classes, around brook: with random translators that the package saved, and with those
that `weir lens-fit` trained. The package lives in an environment of its own, build/venv-tuned (its dependencies are many); both
conversions of parameters are the lines that lib/include/weir/tuned.h documents, run as they stand there."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BROOK = ROOT / "lib" / "brook"
VENV = Path(os.environ.get("WEIR_VENV_TUNED", ROOT / "build" / "venv-tuned"))
CLASSES = Path(__file__).with_name("tuned_classes.py")
IDS = [0, 871, 35, 1200, 7, 2999, 402, 402, 18]  # BOS and anything
WEIR = os.path.join(os.environ["WEIR_BIN"], "weir")


@pytest.fixture(scope="session")
def tuned_python():
    """The environment's Python; made at the first run."""
    python = VENV / "bin" / "python"
    if not (VENV / ".complete").exists():
        index = os.environ.get("WEIR_TORCH_INDEX")
        pip = [str(VENV / "bin" / "pip"), "install", "-q"]
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([*pip, "torch==2.13.0", *(["--index-url", index] if index else [])], check=True)
        subprocess.run([*pip, "transformers==5.24.*", "safetensors", "tuned-lens==0.2.0"], check=True)
        (VENV / ".complete").touch()
    return python


def documented_line(file):
    """The line of tuned.h that writes this file, run in a directory by the environment's python3."""
    lines = [line.strip(" *\n") for line in open(ROOT / "lib/include/weir/tuned.h", encoding="utf-8")]
    found = [line for line in lines if re.match(r'python3 -c ".*save(_file)?\(.*\'' + re.escape(file) + r"'\)\"$", line)]
    assert len(found) == 1, found
    return found[0]


def convert(directory, to):
    env = {**os.environ, "PATH": f"{VENV / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", documented_line(to)], cwd=directory, env=env, check=True)


def classes(python, *args):
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    subprocess.run([python, CLASSES, *map(str, args)], env=env, check=True, stderr=subprocess.DEVNULL)


def reference(python, lens, out):
    classes(python, "logits", BROOK, lens, out, *IDS)
    return np.load(out)


def by_weir(*more):
    """{line: {position: cell}} of logit-lens over the ids; cells have the 1,000 likeliest tokens."""
    run = subprocess.run([WEIR, "logit-lens", "--model", BROOK, "--ids", "--bos", "no", "--format", "ndjson", "-k", "1000", "-q", *map(str, more),
                          " ".join(map(str, IDS))], stdout=subprocess.PIPE, check=True)
    head, *rows = [json.loads(line) for line in run.stdout.splitlines()]
    return head, rows


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def wrong(head, rows, ref, count=None):
    """What differs from the reference by more than four times its own fp32 does, or 8e-6 of the row: a list of texts."""
    found = []
    f64, f32, final = log_softmax(ref["f64"]), log_softmax(ref["f32"]), log_softmax(ref["final"])
    bound = np.maximum(4 * np.abs(f64 - f32).max(axis=-1), 8e-6 * np.abs(ref["f64"]).max(axis=-1))
    translators = [line["layer"] + (line["site"] == "resid_post") for line in head["lines"]]
    for t, row in enumerate(rows):
        for l, i in enumerate(translators):
            cell = row["lines"][l]
            want, most = (f64[i, t], bound[i, t]) if i < len(f64) else (final[t], bound[-1, t])
            ids = [top["id"] for top in cell["top"]]
            got = np.array([top["logprob"] for top in cell["top"]])
            error = np.abs(got - want[ids]).max()
            kl = float((np.exp(final[t]) * (final[t] - want)).sum())
            if error > most or abs(cell["kl"] - kl) > 1e-5 + 1e-5 * kl + most:
                found.append(f"{head['lines'][l]['line']}, position {t}: {error:.3g} (bound {most:.3g}), kl {cell['kl']:.7g} for {kl:.7g}")
            if count is not None:
                count.append(i)
    return found


@pytest.fixture(scope="session")
def random_lens(tuned_python, tmp_path_factory):
    lens = tmp_path_factory.mktemp("tuned") / "lens"
    classes(tuned_python, "make", BROOK, lens, 5)
    convert(lens, "params.safetensors")
    return lens, reference(tuned_python, lens, lens.parent / "ref.npz")


def test_random_translators(random_lens):
    lens, ref = random_lens
    count = []
    assert wrong(*by_weir("--tuned", lens), ref, count) == []
    assert count == list(range(9)) * len(IDS)  # every translator, and the final row without one
    assert wrong(*by_weir("--tuned", lens, "--site", "resid-pre"), ref) == []


def test_comparison_can_fail(random_lens):
    """The plain lens is not the tuned one; only the final row is the same."""
    _, ref = random_lens
    head, rows = by_weir()
    assert len(wrong(head, rows, ref)) == 8 * len(IDS)


def test_fitted_lens_in_the_package(tuned_python, tmp_path):
    """What weir trained, loaded by the package: the same numbers."""
    subprocess.run([WEIR, "lens-fit", "--model", BROOK, "-o", tmp_path / "lens", "--steps", "6", "--tokens-per-step", "256", "--lr", "0.01",
                    "-q", "--file", BROOK / "sentences.txt"], stdout=subprocess.DEVNULL, check=True)
    convert(tmp_path / "lens", "params.pt")
    ref = reference(tuned_python, tmp_path / "lens", tmp_path / "ref.npz")
    assert wrong(*by_weir("--tuned", tmp_path / "lens"), ref) == []
    assert len(wrong(*by_weir(), ref)) == 8 * len(IDS)
