"""Each intervention at each kind of hook point: weir's numbers are those of the same operation done by hooks on the Hugging Face model, at
every point behind it, in one pass and token by token through a cache."""

import copy

import h5py
import numpy as np
import pytest
import torch

import compare
import edited
import models
import weirdump

CASES = ("brook", "llama-gqa-bf16", "gemma2", "neox-parallel", "qwen3")
chosen = pytest.mark.wants(only=lambda c: c.name in CASES)
TOKENS = 13
# One position for each operation, so that one run tries all of them at a point.
OPERATIONS = {"zero": 1, "mean": 2, "scale": 3, "add": 5, "set": 6, "patch": 8, "project": 12}


def sites(model):
    """A name of each kind of point: those outside the blocks and those of layer 1 (or 0 where there is one layer only)."""
    points = weirdump.points(model)
    layers = {p["layer"] for p in points.values()}
    layer = 1 if 1 in layers else 0
    return [p for p in points.values() if p["layer"] in (None, -1, layer) and not p["name"].endswith(("hook_result", "hook_logits"))]


def apply(kind, row, v):
    """One operation on one row (a torch vector), in place."""
    if kind == "zero":
        row[row > -1e30] = 0
    elif kind == "scale":
        row[row > -1e30] *= v
    elif kind == "add":
        row += v
    elif kind == "project":
        row -= v * (v @ row) / (v @ v)
    else:
        row[:] = v


def edit_of(operations, columns=slice(None)):
    """operations: (kind, position or None for all, float or float32 vector), in order."""
    def edit(x, first):
        for kind, pos, v in operations:
            v = torch.tensor(v, dtype=x.dtype)
            for t in range(x.shape[0]):
                if pos is None or first + t == pos:
                    row = x[t, columns].clone()
                    apply(kind, row, v)
                    x[t, columns] = row
        return x
    return edit


class Bench:
    """Vectors and recordings for one case."""

    def __init__(self, loaded, folder):
        self.loaded, self.case, self.tmp = loaded, loaded.case, folder
        self.ids = models.ids_of(self.case, TOKENS)
        self.plain = edited.capture(loaded.model, self.ids, {})
        self.other = self.tmp / "other.h5"  # another text: what is patched in, and averaged
        other = models.ids_of(self.case, TOKENS, seed=1)
        weirdump.run("trace", "--model", self.case.paths[0], "--ids", " ".join(map(str, other)), "--bos", "no", "--ctx", TOKENS,
                     "--hooks", "*", "--layers", "all", "--dump", self.other, "--quiet")
        self.files = 0

    def vector(self, name, width, positive=False):
        """(file, values) of a vector that is about as large as what flows there."""
        self.files += 1
        x = self.plain[name]
        v = np.random.default_rng(self.files).normal(size=width) * np.abs(x[np.isfinite(x)]).mean()
        v = (np.abs(v) + 0.5 if positive else v).astype(np.float32)
        path = self.tmp / f"v{self.files}.npy"
        np.save(path, v)
        return path, v

    def recorded(self, name):
        with h5py.File(self.other) as f:
            return f["activations"][name][...].reshape(TOKENS, -1)

    def operations(self, point):
        """(what to do, the options that say so) for every operation that the point takes."""
        name, done, options = point["name"], [], []
        keyed, scale = name.endswith(("hook_attn_scores", "hook_pattern")), name.endswith("hook_scale")
        width = np.prod(self.plain[name].shape[1:], dtype=int)
        for kind, pos in OPERATIONS.items():
            at = f"{name}[{pos}]"
            if (keyed and kind not in ("zero", "scale")) or (scale and kind in ("zero", "project")):  # no norm divides by 0
                continue
            file, v = self.vector(name, width, positive=scale) if kind in ("add", "set", "project") else (None, None)
            if kind == "zero":
                options += ["--ablate", at]
            elif kind == "mean":
                options += ["--ablate", f"{at}=mean:{self.other}"]
                v = self.recorded(name).astype(np.float64).mean(0).astype(np.float32)
            elif kind == "scale":
                options += ["--scale", f"{at}=-1.5"]
                v = np.float32(-1.5)
            elif kind == "add":
                options += ["--add", f"{at}={file}*2"]
                v = v * np.float32(2)
            elif kind == "patch":
                options += ["--patch", f"{at}={self.other}"]
                v = self.recorded(name)[pos]
            else:
                options += [f"--{'project-out' if kind == 'project' else kind}", f"{at}={file}"]
            done.append((kind, pos, 0.0 if v is None else v))
        return done, options

    def reference(self, edits, step=0):
        """(float64 values, tolerance) of Hugging Face with the edits."""
        ref64 = edited.capture(self.loaded.model64, self.ids, edits, step)
        return ref64, compare.tolerances(ref64, edited.capture(self.loaded.model, self.ids, edits, step))

    def weir(self, options, names=None, batch=()):
        """weir's values with the options, at every point or at those named."""
        return weirdump.capture(self.case.paths[0], self.ids, self.tmp / "x.h5", hooks=names and ",".join(names),
                                extra=("--ctx", TOKENS, "--compress", 0, *batch, *options))

    def check(self, edits, options, step=0, names=None, batch=()):
        """weir with the options against Hugging Face with the edits, at every point. Returns what is wrong."""
        ref64, tol = self.reference(edits, step)
        return compare.compare(self.weir(options, names, batch), ref64, tol, names or sorted(set(ref64)))[0]


@pytest.fixture(scope="session")
def prepared(loaded, tmp_path_factory):
    return Bench(loaded, tmp_path_factory.mktemp("interventions"))


@pytest.fixture
def bench(prepared):
    """Each test begins with the first vector."""
    return copy.copy(prepared)


@chosen
def test_without_an_edit(bench):
    """The reference itself, before anything is changed: the same values as reference.py's, in one pass and token by token."""
    assert not bench.check({}, ())
    one = edited.capture(bench.loaded.model64, bench.ids, {}, step=1)
    _, ref64, _ = bench.loaded.reference(TOKENS)
    wrong, _ = compare.compare(one, ref64, compare.tolerances(ref64, bench.plain), sorted(one))
    assert not wrong, "\n".join(map(str, wrong[:12]))


@chosen
def test_every_operation_at_every_point(bench):
    tried, wrong = set(), []
    for point in sites(bench.case.paths[0]):
        done, options = bench.operations(point)
        tried |= {kind for kind, _, _ in done}
        for w in bench.check({point["name"]: edit_of(done)}, options)[:3]:
            wrong.append(f"edited {point['name']}: {w}")
    assert tried == set(OPERATIONS)
    assert not wrong, "\n".join(wrong[:20])


@chosen
def test_heads_and_units(bench):
    """Head 1 alone, and some neurons; a direction within one head."""
    z, post, q = "blocks.0.attn.hook_z", "blocks.1.mlp.hook_post", "blocks.1.attn.hook_q"
    size = bench.plain[z].shape[2]
    head, units = slice(size, 2 * size), [2, 5, 6]
    for name, columns, brackets in ((z, head, "[:, 1]"), (q, head, "[:, 1]"), (post, units, "[:, 2+5:7]")):
        n = size if columns is head else len(units)
        (added, a), (direction, d) = bench.vector(name, n), bench.vector(name, n)
        edits = {name: edit_of([("add", None, a), ("project", None, d), ("scale", None, np.float32(0.5))], columns)}
        at = name + brackets
        options = ("--add", f"{at}={added}", "--project-out", f"{at}={direction}", "--scale", f"{at}=0.5")
        wrong = bench.check(edits, options)
        assert not wrong, f"{name}: " + "\n".join(map(str, wrong[:12]))


@chosen
def test_several_at_once(bench):
    """At several points, and in the order of the command line at one."""
    first, second = "blocks.0.hook_resid_post", "blocks.1.hook_attn_out"
    (file, v), (other, w) = bench.vector(first, bench.plain[first].shape[1]), bench.vector(second, bench.plain[second].shape[1])
    edits = {first: edit_of([("add", 4, v), ("scale", None, np.float32(2)), ("add", 4, v)]),
             second: edit_of([("set", 7, w), ("scale", 7, np.float32(3))])}
    options = ("--add", f"{first}[4]={file}", "--set", f"{second}[7]={other}", "--scale", f"{first}=2", "--scale", f"{second}[7]=3",
               "--add", f"{first}[4]={file}")
    wrong = bench.check(edits, options)
    assert not wrong, "\n".join(map(str, wrong[:12]))


@chosen
def test_token_by_token(bench):
    """Absolute positions with a cache on both sides: one token a pass, and four."""
    names = [f"blocks.{l}.hook_resid_post" for l in (0, 1)] + ["unembed.hook_out"]
    for site in ("hook_resid_pre", "attn.hook_z", "hook_attn_out", "mlp.hook_post", "hook_mlp_out", "hook_resid_post"):
        point = {"name": f"blocks.0.{site}"}
        done, options = bench.operations(point)
        for step in (1, 4):
            wrong = bench.check({point["name"]: edit_of(done)}, options, step, names, ("--batch", step))
            assert not wrong, f"{site}, {step} at a time: " + "\n".join(map(str, wrong[:12]))


@chosen
def test_a_wrong_edit_is_seen(bench):
    """Every operation at the next position, or with a slightly other value, fails the comparison."""
    point = {"name": "blocks.0.hook_resid_post"}
    done, options = bench.operations(point)
    got = bench.weir(options)

    def wrong(operations):
        ref64, tol = bench.reference({point["name"]: edit_of(operations)})
        return compare.compare(got, ref64, tol, sorted(ref64))[0]
    assert not wrong(done)
    for i, (kind, pos, v) in enumerate(done):
        assert wrong(done[:i] + [(kind, pos + 1, v)] + done[i + 1:]), f"{kind} at the wrong position"
        if kind != "zero":
            change = np.float32(1.001) if kind != "project" else np.linspace(1, 1.1, v.size).astype(np.float32)
            assert wrong(done[:i] + [(kind, pos, v * change)] + done[i + 1:]), f"{kind} with a wrong value"
