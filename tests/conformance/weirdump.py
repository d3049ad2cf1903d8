"""Runs `trace` and reads its dumps. Python's standard library, numpy and h5py only: tests/golden uses it too."""

import json
import os
import subprocess
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("WEIR_BIN", ROOT / "build" / "bin"))
# Points that a glob does not choose: they grow with the context or the number of heads, and are recorded only when named.
NAMED_ONLY = ("blocks.*.attn.hook_attn_scores", "blocks.*.attn.hook_pattern", "blocks.*.attn.hook_result")


def command(tool, *args):
    return [str(BIN / tool), *[str(a) for a in args]]


def run(tool, *args, stdin=None, env=None):
    """Standard output of a run that must succeed. env: variables to set, None to take one away."""
    env = {k: v for k, v in {**os.environ, **(env or {})}.items() if v is not None}
    p = subprocess.run(command(tool, *args), input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                       capture_output=True, text=True, env=env)
    assert p.returncode == 0, f"{' '.join(command(tool, *args))}\nexit {p.returncode}: {p.stderr}"
    return p.stdout


def points(model):
    """`trace --list-hooks --json` as {name: record}."""
    listed = json.loads(run("trace", "--model", model, "--list-hooks", "--json"))
    listed = listed["hooks"] if isinstance(listed, dict) else listed
    return {p["name"]: p for p in listed}


def all_hooks():
    return ",".join(("*",) + NAMED_ONLY)


def read(path, n=None):
    """{hook name: [T, ...]} of a dump, in the reference's shapes: [T, heads, size] where a hook has heads. Scores and pattern are
    cut to the T keys that exist, after a look at the fill behind them."""
    values = {}
    with h5py.File(path, "r") as f:
        assert f.attrs["complete"] == 1
        for name, d in f["activations"].items():
            v = d[...]
            if name.endswith(("hook_attn_scores", "hook_pattern")):
                t = n or v.shape[0]
                fill = -np.inf if name.endswith("scores") else 0
                assert np.all(v[:, :, t:] == fill), f"{name}: keys beyond the sequence are not {fill}"
                v = v[:, :, :t]
            elif v.ndim == 2 and "heads" in d.attrs:
                v = v.reshape(v.shape[0], int(d.attrs["heads"]), int(d.attrs["head_size"]))
            values[name] = v
        values_ids = f["tokens/id"][...]
    return values, values_ids


def capture(model, ids, out, hooks=None, extra=(), env=None):
    """Every hook point (or those named) of one sequence of ids, as one document without BOS."""
    text = " ".join(str(i) for i in ids)
    run("trace", "--model", model, "--ids", text, "--bos", "no", "--hooks", hooks or all_hooks(), "--layers", "all",
        "--dump", out, "--quiet", *extra, env=env)
    values, seen = read(out, len(ids))
    assert seen.tolist() == list(ids)
    os.remove(out)
    return values
