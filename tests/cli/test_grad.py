"""Gradients (weir/grad.h) against central differences of a float64 model written in numpy (tests/grad/model64.py), at every hook point of
every family, through hooks that write and through edits; and that nothing but the scalar and the sequence decides about their bits."""
import sys

import numpy as np
import pytest

from weircli import ROOT

sys.path.insert(0, str(ROOT / "tests" / "grad"))
from model64 import Model, log_softmax, scalar  # noqa: E402
from probe import Probe, Refused  # noqa: E402

MODELS = ROOT / "tests" / "golden" / "models"
FAMILIES = ["gpt2", "llama-gqa-bf16", "llama-llama3-v4", "mistral-window-f16", "neox-parallel", "gemma2", "qwen3"]
BOUND = 1e-4  # of the length of what is summed; the step of the differences is 1e-5 of the largest value


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    return Probe(tmp_path_factory.mktemp("grad"))


@pytest.fixture(scope="module")
def models():
    return {name: Model(MODELS / name) for name in FAMILIES}


def text(m, n, seed=1):
    return np.random.default_rng(seed).integers(0, m.V, n)


def seq(ids, slot=-1):
    return f"seq {slot} " + " ".join(map(str, ids))


def terms_of(m, last):
    """One of each kind, two of them at one row, one that is repeated."""
    log_q = log_softmax(np.random.default_rng(2).normal(size=m.V))
    return [("nll", last - 4, 3, 1.0, None), ("logit", last, 5, 1.0, None), ("logit", last, 7, -1.0, None), ("kl", last - 1, 0, 2.0, log_q),
            ("nll", last - 1, 9, 0.5, None), ("logit", last, 5, 0.25, None)]


def points_of(m, ids, edit=None):
    """Names and values in the order of the pass."""
    seen = {}

    def see(name, x):
        seen[name] = edit(name, x) if edit else x
        return seen[name]
    m.run(ids, see)
    return seen


def differences(m, ids, points, grad, f, bound=BOUND, edit=None, floor=1e-9):
    """Central differences along a random direction at each point, with the gradient along it."""
    rng = np.random.default_rng(3)
    for name, x in points.items():
        finite = np.isfinite(x)
        u = np.where(finite, rng.normal(size=x.shape), 0)
        step = 1e-5 * np.abs(x[finite]).max()

        def moved(by):
            def see(k, v):
                v = edit(k, v) if edit else v
                return v + by * u if k == name else v
            return f(m.run(ids, see))
        expected = (moved(step) - moved(-step)) / (2 * step)
        products = grad[name].reshape(x.shape).astype(np.float64) * u
        length = np.linalg.norm(products[finite])
        assert abs(expected - products[finite].sum()) <= bound * length + floor, (name, expected, products[finite].sum())


def gradients(answer, kind="grad"):
    return {k.split(":", 1)[1]: v for k, v in answer.items() if k.startswith(kind + ":")}


def same(a, b):
    assert a.keys() == b.keys()
    for k in a:
        assert np.array_equal(np.asarray(a[k]).view(np.uint32 if np.asarray(a[k]).dtype == np.float32 else np.uint64),
                              np.asarray(b[k]).view(np.uint32 if np.asarray(b[k]).dtype == np.float32 else np.uint64)), k


def test_the_comparisons_can_fail(probe, models):
    m = models["gpt2"]
    ids, terms = text(m, 6), [("nll", 5, 3, 1.0, None)]
    a = probe.ask(MODELS / "gpt2", "threads 1", "want *", seq(ids), terms=terms)
    grad, points = gradients(a), points_of(m, ids)
    for name in points:
        wrong = {**grad, name: grad[name] * np.float32(1.1)}
        with pytest.raises(AssertionError):
            differences(m, ids, {name: points[name]}, wrong, lambda y: scalar(y, terms))
    b = {k: v.copy() if hasattr(v, "copy") else v for k, v in a.items()}
    b["grad:hook_embed"].view(np.uint32)[0, 0] ^= 1
    with pytest.raises(AssertionError):
        same(gradients(a), gradients(b))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_point_of_every_family(probe, models, name):
    m = models[name]
    ids = text(m, 9)
    terms = terms_of(m, 8)
    a = probe.ask(MODELS / name, "threads 1", "want *", seq(ids), terms=terms)
    points = points_of(m, ids)
    assert set(points) == set(gradients(a))
    for point, x in points.items():  # the model of the test is that of the library
        finite = np.isfinite(x)
        assert np.abs(a["value:" + point].reshape(x.shape)[finite] - x[finite]).max() <= 1e-5 * np.abs(x[finite]).max(), point
    assert a["loss"] == pytest.approx(scalar(m.run(ids), terms), rel=1e-5)
    for value, (kind, row, token, _, log_q) in zip(a["values"], terms):
        assert value == pytest.approx(scalar(m.run(ids), [(kind, row, token, 1.0, log_q)]), rel=1e-4)
    differences(m, ids, points, gradients(a), lambda y: scalar(y, terms))


@pytest.mark.parametrize("name", ["gpt2", "neox-parallel", "gemma2"])
def test_seeds_at_every_point(probe, models, name):
    """Any scalar of hook points: the seed of a point is the gradient of a product with it. All points at once, and no term."""
    m = models[name]
    ids = text(m, 6, 4)
    points = points_of(m, ids)
    rng = np.random.default_rng(5)
    seeds = {k: np.where(np.isfinite(x), rng.normal(size=x.shape), 0).astype(np.float32) for k, x in points.items()}
    lines = [f"seed {k} {probe.file(f's{i}', d.reshape(len(ids), -1))}" for i, (k, d) in enumerate(seeds.items())]
    a = probe.ask(MODELS / name, "threads 1", "want *", seq(ids), *lines)
    assert a["loss"] == 0

    total = [0.0]

    def differ(point):
        """The scalar when `point` is moved: the sum over points of seed times what follows saw there."""
        def run(by, u):
            total[0] = 0.0

            def see(k, x):
                x = x + by * u if k == point else x
                total[0] += (np.where(np.isfinite(x), x, 0) * seeds[k]).sum()
                return x
            m.run(ids, see)
            return total[0]
        return run
    grad = gradients(a)
    for point in [k for k in points if k.startswith(("blocks.1", "hook_embed", "ln_final", "unembed", "hook_logits"))]:
        x = points[point]
        u, step = np.where(np.isfinite(x), rng.normal(size=x.shape), 0), 1e-5 * np.abs(x[np.isfinite(x)]).max()
        expected = (differ(point)(step, u) - differ(point)(-step, u)) / (2 * step)
        products = grad[point].reshape(x.shape) * u
        assert abs(expected - products.sum()) <= 2e-4 * np.linalg.norm(products) + 1e-9, point


def written(m, probe, which):
    """(lines for the probe, the same as an edit of model64)"""
    rng = np.random.default_rng(6)
    d = rng.normal(size=m.C).astype(np.float32)
    np.save(probe.directory / "d.npy", d)
    file = probe.directory / "d.npy"

    def at(name, change):
        return lambda k, x: change(x.copy()) if k == name else x

    def put(x, index, value):
        x[index] = value
        return x
    q = d.astype(np.float64) / np.linalg.norm(d)
    return {
        "ablate neuron": ("hook ablate blocks.1.mlp.hook_post[-2:,1+3]", at("blocks.1.mlp.hook_post", lambda x: put(x, (slice(-2, None), [1, 3]), 0))),
        "ablate head": ("hook ablate blocks.0.attn.hook_z[:,1]", at("blocks.0.attn.hook_z", lambda x: put(x, (slice(None), 1), 0))),
        "steer": (f"hook steer blocks.1.hook_resid_pre={file}*2", at("blocks.1.hook_resid_pre", lambda x: x + 2 * d)),
        "set": (f"hook set blocks.0.hook_mlp_out[3]={file}", at("blocks.0.hook_mlp_out", lambda x: put(x, 3, d))),
        "scale": ("hook scale blocks.1.hook_attn_out=-1.5", at("blocks.1.hook_attn_out", lambda x: -1.5 * x)),
        "project": (f"hook project-out blocks.0.hook_resid_post={file}",
                    at("blocks.0.hook_resid_post", lambda x: x - np.outer(x @ q, q))),
        "scale of a norm": ("hook scale blocks.1.ln1.hook_scale=0.7", at("blocks.1.ln1.hook_scale", lambda x: 0.7 * x)),
        "final norm's scale": ("hook set ln_final.hook_scale[2]=" + str(one(probe, 3.0)), at("ln_final.hook_scale", lambda x: put(x, (2, 0), 3.0))),
        "normalized": ("hook scale blocks.0.ln2.hook_normalized[:,2]=3", at("blocks.0.ln2.hook_normalized", lambda x: put(x, (slice(None), 2), 3 * x[:, 2]))),
        "pattern": ("hook scale blocks.0.attn.hook_pattern[4,0]=0.3", at("blocks.0.attn.hook_pattern", lambda x: put(x, (4, 0), 0.3 * x[4, 0]))),
        "scores": ("hook scale blocks.1.attn.hook_attn_scores[:,1]=0.5", at("blocks.1.attn.hook_attn_scores", lambda x: put(x, (slice(None), 1), 0.5 * x[:, 1]))),
        "q": ("hook scale blocks.0.attn.hook_q=2", at("blocks.0.attn.hook_q", lambda x: 2 * x)),
        "scale of heads": ("hook scale blocks.1.attn.q_norm.hook_scale[:,1]=0.7",
                           at("blocks.1.attn.q_norm.hook_scale", lambda x: put(x, (slice(None), 1), 0.7 * x[:, 1]))),
        "normalized heads": ("hook scale blocks.0.attn.q_norm.hook_normalized[:,2]=3",
                             at("blocks.0.attn.q_norm.hook_normalized", lambda x: put(x, (slice(None), 2), 3 * x[:, 2]))),
        "logits": ("hook scale unembed.hook_out[-1]=0.5", at("unembed.hook_out", lambda x: put(x, -1, 0.5 * x[-1]))),
        "embed": ("hook scale hook_embed[1]=0.5", at("hook_embed", lambda x: put(x, 1, 0.5 * x[1]))),
        "pre": ("hook scale blocks.1.mlp.hook_pre=1.2", at("blocks.1.mlp.hook_pre", lambda x: 1.2 * x)),
    }[which]


def one(probe, x):
    np.save(probe.directory / "one.npy", np.float32([x]))
    return probe.directory / "one.npy"


WRITES = [("ablate neuron", "gpt2"), ("ablate head", "neox-parallel"), ("steer", "gemma2"), ("set", "gpt2"), ("scale", "neox-parallel"),
          ("project", "gemma2"), ("scale of a norm", "gpt2"), ("scale of a norm", "gemma2"), ("final norm's scale", "neox-parallel"),
          ("normalized", "gpt2"), ("pattern", "gemma2"), ("scores", "gemma2"), ("scores", "neox-parallel"), ("q", "gpt2"),
          ("logits", "gemma2"), ("logits", "gpt2"), ("embed", "neox-parallel"), ("pre", "gemma2"), ("scale of heads", "qwen3"),
          ("normalized heads", "qwen3")]


@pytest.mark.parametrize("which, name", WRITES)
def test_through_hooks_that_write(probe, models, name, which):
    m = models[name]
    ids, terms = text(m, 7, 7), [("nll", 6, 3, 1.0, None), ("logit", 4, 2, -0.5, None)]
    line, edit = written(m, probe, which)
    rows = ["rows 7"] if which == "scale of heads" else []  # no room behind what is kept of them
    a = probe.ask(MODELS / name, "threads 1", *rows, line, "want *", seq(ids), terms=terms)
    points = points_of(m, ids, edit)
    for point in ("unembed.hook_out", "blocks.1.hook_resid_post"):  # the hook did what the test thinks
        assert np.abs(a["value:" + point] - points[point]).max() <= 2e-5 * np.abs(points[point]).max()
    close = line.split()[2].split("[")[0].split("=")[0]
    near = {k: x for k, x in points.items() if k == close or k in ("hook_embed", "blocks.0.attn.hook_v", "blocks.1.hook_resid_pre",
                                                                   "blocks.0.ln1.hook_scale", "blocks.1.attn.hook_pattern", "blocks.1.ln2.hook_out")}
    differences(m, ids, near, gradients(a), lambda y: scalar(y, terms), edit=edit)
    if which == "scale":  # layers in which hooks write are kept, those before are made again
        assert within(gradients(a), probe, MODELS / name, "threads 1", "rows 7", line, "want *", seq(ids), terms=terms)


def test_logits_written_behind_and_before_the_cap(probe, models):
    m = models["gemma2"]
    ids, terms = text(m, 5), [("nll", 4, 3, 1.0, None), ("nll", 2, 7, 1.0, None)]

    def edit(k, x):
        if k == "unembed.hook_out":
            return np.where(np.arange(5)[:, None] == 4, 0.5 * x, x)
        return 3 * x if k == "hook_logits" else x
    a = probe.ask(MODELS / "gemma2", "threads 1", "hook scale unembed.hook_out[4]=0.5", "hook scale hook_logits=3", "want *", seq(ids), terms=terms)
    points = points_of(m, ids, edit)
    differences(m, ids, {k: points[k] for k in ("unembed.hook_out", "hook_logits", "unembed.hook_in", "hook_embed")}, gradients(a),
                lambda y: scalar(y, terms), edit=edit)


@pytest.mark.parametrize("name", ["gpt2", "llama-gqa-bf16"])
def test_through_edits(probe, models, name):
    """W' = W + sum of u outer v, for every matrix of layer 1."""
    m = Model(MODELS / name)
    rng = np.random.default_rng(8)
    ids, terms, lines = text(m, 6), [("nll", 5, 3, 1.0, None)], []
    layer = m.layer
    names = [n for n in ("q", "k", "v", "o", "pre", "up", "down") if n in layer(1)]
    changed = {}
    for n in names:
        w, b = layer(1)[n]
        r = 1 + len(changed) % 3
        u, v = (rng.normal(size=(r, k)).astype(np.float32) * 0.1 for k in w.shape)
        path = probe.directory / f"edit-{n}"
        np.concatenate([u.ravel(), v.ravel()]).tofile(path)
        lines.append(f"edit 1 {('q', 'k', 'v', 'o', 'pre', 'up', 'down').index(n)} {r} {path}")
        changed[n] = (w + u.T.astype(np.float64) @ v, b)
    plain = gradients(probe.ask(MODELS / name, "threads 1", "want *", seq(ids), terms=terms))
    edited = gradients(probe.ask(MODELS / name, "threads 1", *lines, "want *", seq(ids), terms=terms))
    m.layer = lambda l: {**layer(l), **changed} if l == 1 else layer(l)
    assert not np.allclose(plain["hook_embed"], edited["hook_embed"])
    differences(m, ids, points_of(m, ids), edited, lambda y: scalar(y, terms))


# --- bits

def within(a, probe, model, *lines, **more):
    """Under bounds of memory, from one that is refused on, every bit is the same. Returns how many were enough but not plenty."""
    with pytest.raises(Refused, match="the way back needs [0-9]+ bytes for what it keeps of each layer"):
        probe.ask(model, "memory 1000", *lines, **more)
    enough = 0
    for bound in (1 << 16, 1 << 17, 1 << 18):
        try:
            same(a, gradients(probe.ask(model, f"memory {bound}", *lines, **more)))
            enough += 1
        except Refused:
            assert not enough
    return enough


@pytest.mark.parametrize("name", ["gpt2", "llama-gqa-bf16", "neox-parallel", "gemma2", "qwen3"])
def test_bits(probe, models, name):
    """Threads, tables, bounds of memory (weights and activations made again), what is asked for, hooks that listen: no bit changes."""
    m = models[name]
    ids, terms = text(m, 20, 9), terms_of(m, 19)
    model = MODELS / name
    a = gradients(probe.ask(model, "threads 1", "kernel ref", "want *", seq(ids), terms=terms))
    assert within(a, probe, model, "threads 1", "rows 20", "want *", seq(ids), terms=terms) >= 2
    same(a, gradients(probe.ask(model, "threads 3", "want *", seq(ids), terms=terms)))
    for kernel in ("avx2", "avx512"):
        try:
            same(a, gradients(probe.ask(model, "threads 2", f"kernel {kernel}", "want *", seq(ids), terms=terms)))
        except Refused as e:
            assert "machine" in str(e)
    for point in ("hook_embed", "blocks.1.attn.hook_q", "blocks.0.hook_resid_mid", "blocks.1.mlp.hook_post", "unembed.hook_in"):
        if point in a:
            assert np.array_equal(a[point], gradients(probe.ask(model, "threads 1", f"want {point}", seq(ids), terms=terms))[point])


@pytest.mark.parametrize("name", ["llama-gqa-bf16", "neox-parallel", "gemma2"])
def test_batch_and_cache(probe, models, name):
    """A sequence's rows in a batch, and behind a cached prefix, have the bits that they have alone; gradients at the prefix' rows are those
    of its values as constants, so not compared."""
    m = models[name]
    model, ids, other = MODELS / name, text(m, 12, 10), text(m, 7, 11)
    terms = [("nll", 11, 3, 1.0, None), ("logit", 9, 2, 0.5, None)]
    alone = gradients(probe.ask(model, "threads 1", "want *", seq(ids), terms=terms))
    batch = gradients(probe.ask(model, "threads 2", "want *", seq(other), seq(ids), seq(other),
                                terms=[*((k, row + 7, *rest) for k, row, *rest in terms), ("nll", 20, 1, 1.0, None)]))
    keyed = ("scores", "pattern")
    for point, x in batch.items():
        if not point.endswith(keyed):
            assert np.array_equal(x[7:19], alone[point]), point
    cached = gradients(probe.ask(model, "threads 1", "slots 1", "want *", "prefix 0 " + " ".join(map(str, ids[:5])), seq(ids[5:], 0),
                                 terms=[(k, row - 5, *rest) for k, row, *rest in terms]))
    last = f"blocks.{m.L - 1}."
    for point in ("unembed.hook_in", last + "hook_resid_post", last + "mlp.hook_pre", last + "attn.hook_z", last + "attn.hook_q"):
        assert np.array_equal(cached[point], alone[point][5:]), point
    points = points_of(m, ids)  # what comes before: against differences, the prefix held

    def rows_only(x):
        x = x.copy()
        x[:5] = 0
        return x
    grad = {k: np.concatenate([np.zeros((5, v.shape[1]), np.float32), v]) for k, v in cached.items()}
    hold = {k: points[k] for k in points if k.endswith(("hook_q", "hook_k", "hook_v", "hook_pattern", "hook_z", "mlp.hook_pre"))}
    rng = np.random.default_rng(12)
    for point, x in hold.items():
        u = rows_only(np.where(np.isfinite(x), rng.normal(size=x.shape), 0))
        step = 1e-5 * np.abs(x[np.isfinite(x)]).max()
        move = lambda by: scalar(m.run(ids, lambda k, v: v + by * u if k == point else v), terms)
        products = grad[point].reshape(x.shape) * u
        assert abs((move(step) - move(-step)) / (2 * step) - products.sum()) <= 2e-4 * np.linalg.norm(products) + 1e-9, point


@pytest.mark.parametrize("name", ["gpt2", "neox-parallel", "gemma2"])
def test_from_a_layer(probe, models, name):
    """A pass that begins with the stream before a layer goes back to that stream, with the bits of the whole pass."""
    m = models[name]
    model, ids = MODELS / name, text(m, 8, 13)
    terms = [("nll", 7, 3, 1.0, None)]
    whole = probe.ask(model, "threads 1", "want *", seq(ids), terms=terms)
    for layer in range(m.L + 1):
        before = f"blocks.{layer}.hook_resid_pre" if layer < m.L else f"blocks.{layer - 1}.hook_resid_post"
        stream = probe.file("stream", whole["value:" + before])
        points = [p for p in (before, f"blocks.{layer - 1}.hook_resid_post" if layer else before, "unembed.hook_in")]
        a = probe.ask(model, "threads 1", *(f"want {p}" for p in points), f"from {layer} {stream}", seq(ids), terms=terms)
        assert a["loss"] == whole["loss"]
        for p in points:
            assert np.array_equal(a["grad:" + p], whole["grad:" + p]), (layer, p)
        if layer:
            earlier = f"blocks.{layer - 1}.mlp.hook_post"
            with pytest.raises(Refused, match=f"gradients at {earlier}: the last pass began behind it"):
                probe.ask(model, "threads 1", f"want {earlier}", f"from {layer} {stream}", seq(ids), terms=terms)


# --- hooks that hear gradients

def test_grad_points_are_heard(probe, models):
    m = models["gemma2"]
    ids, terms = text(m, 6), [("nll", 5, 3, 1.0, None)]
    a = probe.ask(MODELS / "gemma2", "threads 1", "want *", "hear *_grad,*scores_grad,*pattern_grad,*result_grad", seq(ids), terms=terms)
    same(gradients(a), gradients(a, "heard"))
    a = probe.ask(MODELS / "gemma2", "threads 1", "hear resid_post_grad", seq(ids), terms=terms)
    assert set(gradients(a, "heard")) == {f"blocks.{l}.hook_resid_post" for l in range(m.L)}
    with pytest.raises(Refused, match='no hook point "blocks.0.hook_mlpout_grad"; the nearest is "blocks.0.hook_mlp_out_grad"'):
        probe.ask(MODELS / "gemma2", "threads 1", "hear blocks.0.hook_mlpout_grad", seq(ids), terms=terms)


def test_writing_a_gradient_goes_on(probe, models):
    """Ablating a gradient stops it there: what is left is the gradient along the other paths."""
    m = models["gpt2"]
    ids, terms = text(m, 6), [("nll", 5, 3, 1.0, None)]
    a = probe.ask(MODELS / "gpt2", "threads 1", "hook ablate blocks.1.hook_mlp_out_grad,blocks.1.hook_attn_out_grad", "want *", seq(ids), terms=terms)
    grad = gradients(a)
    assert np.array_equal(grad["blocks.1.hook_resid_pre"], grad["blocks.1.hook_resid_post"])
    assert not grad["blocks.1.mlp.hook_post"].any() and grad["blocks.0.mlp.hook_post"].any()


@pytest.mark.parametrize("lines, message", [
    (["term nll 6 1 1"], "term 0 is about row 6: the last pass had rows 0 to 5"),
    (["term nll -1 1 1"], "term 0 is about row -1: the last pass had rows 0 to 5"),
    (["term nll 5 1 1", "term logit 5 67 1"], "term 1 is about token 67: the vocabulary has 0 to 66"),
    (["term nll 5 1 nan"], "the weight of term 0 is not finite"),
    (["term kl 5 1 1"], "term 0 is a KL and has no log_q"),
    ([], "a gradient of nothing: no term and no seed"),
    (["memory -1", "term nll 5 1 1"], "memory is -1: it cannot be negative"),
    (["hook scale unembed.hook_out=1e38", "hook scale unembed.hook_out=1e38", "term nll 5 1 1"],
     "the loss is not finite: term 0, at row 5, is"),
])
def test_errors(probe, models, lines, message):
    with pytest.raises(Refused) as e:
        probe.ask(MODELS / "gpt2", "threads 1", "want hook_embed", seq(text(models["gpt2"], 6)), *lines)
    assert str(e.value).startswith(message)


def test_one_token(probe, models):
    for name, m in models.items():
        a = probe.ask(MODELS / name, "threads 2", "want *", seq([3]), terms=[("nll", 0, 3, 1.0, None)])
        ids = np.array([3])
        points = {k: x for k, x in points_of(m, ids).items() if not k.endswith(("scores", "pattern", "hook_q", "hook_k", "rot_q", "rot_k"))}
        differences(m, ids, points, gradients(a), lambda y: scalar(y, [("nll", 0, 3, 1.0, None)]), 1e-3, floor=1e-7)
        for silent in ("hook_q", "hook_k"):  # one key: the pattern is 1 whatever they are
            assert not gradients(a)[f"blocks.0.attn.{silent}"].any()
