"""weir trace --loss: gradients in a dump. What is differentiated, against central differences of the float64 model of tests/grad/model64.py;
that documents, batches, threads, kernels and interruptions change no bit; what is refused; and what readers of dumps make of them."""
import sys

import h5py
import numpy as np
import pytest

from dumps import differences as dump_differences
from test_edits import sizes, write_adapter
from test_grad import differences, points_of
from weircli import BROOK, ROOT, trace, weir

sys.path.insert(0, str(ROOT / "tests" / "grad"))
from model64 import Model, log_softmax  # noqa: E402

MODELS = ROOT / "tests" / "golden" / "models"
POINTS = ["hook_embed", "blocks.0.attn.hook_z", "blocks.1.attn.hook_pattern", "blocks.1.mlp.hook_post", "blocks.1.hook_resid_mid",
          "ln_final.hook_scale", "unembed.hook_out"]
DOCS = [np.random.default_rng(5).integers(0, 60, n) for n in (12, 7, 1, 19)]


def gradients(model, dump, *options, points=POINTS, docs=DOCS):
    """A dict of [rows, ...] for each document, from a run of trace over ids."""
    trace("--model", MODELS / model, "--ids", "--hooks", ",".join(p + "_grad" for p in points), "--dump", dump, "--quiet", *options, "--",
          *(" ".join(map(str, d)) for d in docs)).ok()
    with h5py.File(dump) as f:
        assert set(f["activations"]) == {p + "_grad" for p in points}
        doc = f["tokens/doc"][:]
        return [{p: f[f"activations/{p}_grad"][:][doc == i] for p in points} for i in range(len(docs))]


def check(m, ids, grad, f, **more):
    """grad, of one window, is that of f(logits). The pattern's keys beyond the window are not there."""
    points = {k: x for k, x in points_of(m, ids, more.get("edit")).items() if k in grad}
    grad = {k: g[..., :len(ids)] if k.endswith("pattern") else g for k, g in grad.items()}
    differences(m, ids, points, grad, f, **more)


def nll(ids, share):
    """The sum over the window's next tokens, times share."""
    return lambda y: -share * log_softmax(y)[np.arange(len(ids) - 1), ids[1:]].sum()


@pytest.mark.parametrize("model", ["gpt2", "llama-gqa-bf16"])
@pytest.mark.parametrize("loss", ["nll", "nll-sum"])
def test_nll(tmp_path, model, loss):
    points = [p for p in POINTS if loss == "nll" or p.startswith("blocks.1")]
    for ids, grad in zip(DOCS, gradients(model, tmp_path / "g.h5", "--loss", loss, points=points)):
        if len(ids) == 1:  # nothing follows
            assert not any(g.any() for g in grad.values())
            continue
        check(Model(MODELS / model), ids, grad, nll(ids, 1 / (len(ids) - 1) if loss == "nll" else 1))


def test_windows_are_texts_of_their_own(tmp_path):
    """Of a document's mean each window has its part; a token that begins a window is predicted by nothing. Where windows overlap, a token
    counts in the one in which it is recorded."""
    m, ids = Model(MODELS / "gpt2"), DOCS[3]
    whole = gradients("gpt2", tmp_path / "g.h5", "--loss", "nll", "--ctx", 8, docs=[ids])[0]
    for at in (0, 8, 16):
        check(m, ids[at:at + 8], {k: g[at:at + 8] for k, g in whole.items()}, nll(ids[at:at + 8], 1 / 16))
    points = ["blocks.0.hook_attn_out", "hook_embed"]
    overlap = gradients("gpt2", tmp_path / "o.h5", "--loss", "nll", "--ctx", 8, "--stride", 4, points=points, docs=[ids])[0]
    at, window = 4, ids[4:12]  # the second window records its last four rows
    expected = gradients("gpt2", tmp_path / "w.h5", "--loss", "nll-sum", points=points, docs=[window])[0]
    for p in points:
        assert np.allclose(overlap[p][at + 4:at + 8], expected[p][4:] / 18, rtol=1e-5, atol=1e-6)


def test_logits(tmp_path):
    """At the last token of each document, which stands in its last window."""
    m, ids = Model(MODELS / "gemma2"), DOCS[3]
    for ids, grad in zip(DOCS, gradients("gemma2", tmp_path / "g.h5", "--loss", "logit:#5-#9")):
        if len(ids) > 1:
            check(m, ids, grad, lambda y: y[-1, 5] - y[-1, 9])
    one = gradients("gemma2", tmp_path / "o.h5", "--loss", "logit:#5", "--ctx", 8, docs=[ids], points=["blocks.1.mlp.hook_post", "unembed.hook_out"])[0]
    assert not one["blocks.1.mlp.hook_post"][:16].any() and not one["unembed.hook_out"][:16].any()
    check(m, ids[16:], {k: g[16:] for k, g in one.items()}, lambda y: y[-1, 5])


def test_through_a_patch_and_its_kin(tmp_path):
    """What a patch took from a dump is constant; rows that the dump lacks are the model's own."""
    m, ids, point = Model(MODELS / "gpt2"), DOCS[0], "blocks.0.hook_resid_post"
    text = lambda ids: " ".join(map(str, ids))
    trace("--model", MODELS / "gpt2", "--ids", "--hooks", point, "--dump", tmp_path / "clean.h5", "--quiet", text(DOCS[1])).ok()
    with h5py.File(tmp_path / "clean.h5") as f:
        clean = f["activations/" + point][:]

    def edit(name, x):
        if name == point:
            x = x.copy()
            x[2], x[4] = clean[2], clean[4]
        return x
    patch = ("--patch", f"{point}[2+4+10]={tmp_path / 'clean.h5'}")  # which has 7 rows
    points = ["hook_embed", "blocks.0.mlp.hook_post", "blocks.1.hook_resid_mid"]
    grad = gradients("gpt2", tmp_path / "g.h5", "--loss", "nll", *patch, docs=[ids], points=points)[0]
    check(m, ids, grad, nll(ids, 1 / 11), edit=edit)
    assert not grad["blocks.0.mlp.hook_post"][[2, 4]].any() and grad["blocks.0.mlp.hook_post"][[3, 10]].any()


def test_values_and_gradients_are_those_of_other_runs(tmp_path):
    """Bits: the batch, the threads, the kernel, the memory, what else is recorded, whether rows are chosen."""
    args = ["--model", MODELS / "gpt2", "--ids", "--quiet", "--logprob", "--loss", "nll", "--hooks", "blocks.1.{*,*scores,*result}_grad,{hook_embed,unembed.hook_out}_grad,*resid_post"]
    lines = [" ".join(map(str, d)) for d in DOCS * 3]
    ways = [["--batch", 19, "--threads", 1, "--kernel", "ref"], ["--batch", 40, "--threads", 2, "--kernel", "avx2"], ["--memory", "3M", "--batch", 24], []]
    for i, way in enumerate(ways):
        trace(*args, *way, "--dump", tmp_path / f"{i}.h5", "--", *lines).ok()
        assert dump_differences(tmp_path / "0.h5", tmp_path / f"{i}.h5") == []
    trace(*args, "--positions", "0:3", "--dump", tmp_path / "few.h5", "--", *lines).ok()
    trace(*args[:4], "--logprob", "--hooks", "*resid_post", "--dump", tmp_path / "forward.h5", "--", *lines).ok()
    with h5py.File(tmp_path / "0.h5") as a, h5py.File(tmp_path / "few.h5") as few, h5py.File(tmp_path / "forward.h5") as forward:
        chosen = a["tokens/pos"][:] < 3
        assert np.isfinite(a["activations/blocks.1.attn.hook_attn_scores_grad"][:]).all()  # also of keys that are not there
        for name in few["activations"]:
            assert np.array_equal(a["activations"][name][:][chosen], few["activations"][name][:]), name
        for name in forward["activations"]:
            assert np.array_equal(a["activations"][name][:], forward["activations"][name][:])
        assert np.array_equal(a["tokens/logprob"][:], forward["tokens/logprob"][:], equal_nan=True)


def test_goes_on_where_it_stopped(tmp_path):
    """A window that finds no room in a pass ends the run; what was there is kept, and the loss is part of what it is."""
    text = tmp_path / "ids.txt"
    text.write_text("\n".join(" ".join(map(str, d)) for d in [*([DOCS[0]] * 90), DOCS[3], DOCS[1]]) + "\n")
    args = ["--model", MODELS / "gpt2", "--ids", "--quiet", "--file", text, "--hooks", "blocks.*.hook_resid_post_grad"]
    dump = tmp_path / "x.h5"
    trace(*args, "--loss", "nll", "--batch", 16, "--dump", dump).fails(1, "ids.txt:91: a window goes through in one pass here", "19 tokens", "--batch 19", "--resume goes on")
    trace(*args, "--loss", "nll-sum", "--dump", dump, "--resume").fails(1, "was begun with another run_options", "nll-sum")
    trace(*args, "--loss", "nll", "--dump", dump, "--resume").ok()
    trace(*args, "--loss", "nll", "--dump", tmp_path / "y.h5").ok()
    assert dump_differences(dump, tmp_path / "y.h5") == []
    assert "is complete" in trace(*[a for a in args if a != "--quiet"], "--loss", "nll", "--dump", dump, "--resume").ok().err
    trace(*args, "--loss", "logit:#1-#2", "--dump", dump, "--resume").fails(2, "is complete, but of another run: its run_options")
    args[-1] = "blocks.*.hook_attn_out_grad"
    trace(*args, "--loss", "nll", "--dump", dump, "--resume").fails(2, "does not hold blocks.0.hook_attn_out_grad")


@pytest.mark.parametrize("options, words", [
    (["--hooks", "blocks.2.hook_mlp_out_grad"], ["blocks.2.hook_mlp_out_grad is a gradient", "add --loss nll"]),
    (["--layer", "3", "--site", "resid_post,resid_post_grad"], ["blocks.3.hook_resid_post_grad is a gradient", "add --loss nll"]),
    (["--loss", "nll", "--hooks", "blocks.2.hook_mlp_out"], ["--loss nll goes back, but nothing asks for a gradient"]),
    (["--loss", "mean", "--hooks", "resid_post_grad"], ["--loss mean: it is nll, nll-sum, logit:TOKEN or logit:TOKEN-TOKEN"]),
    (["--loss", "logit:", "--hooks", "resid_post_grad"], ["--loss logit:: it is nll"]),
    (["--loss", "logit: Paris-", "--hooks", "resid_post_grad"], ["--loss logit: Paris-: it is nll"]),
    (["--loss", "logit: Paris- Paris", "--hooks", "resid_post_grad"], ["both are token", "always 0"]),
    (["--loss", "logit:the river- Paris", "--hooks", "resid_post_grad"], ['--loss "the river" is 2 tokens']),
    (["--loss", "logit:#99999", "--hooks", "resid_post_grad"], ["--loss #99999: the model has"]),
    (["--loss", "nll", "--hooks", "resid_post_grad", "--order", "layer"], ["--loss goes back through whole passes"]),
    (["--loss", "nll", "--hooks", "resid_post_grad", "--hook", "lens:resid_post_grad"], ["hook lens: blocks.0.hook_resid_post_grad is a gradient"]),
    (["--loss", "nll", "--hooks", "resid_post_grad", "--scale", "*result_grad=0"], ["hook_result_grad, which is read-only (hook_z_grad can be written)"]),
])
def test_refusals(tmp_path, options, words):
    trace(*options, "--dump", tmp_path / "x.h5", "The river").fails(2, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("hook", ["log:resid_post,resid_post_grad", "stats:resid_post,L2N5_grad", "topk:post,post_grad,k=2", "template:*,*_grad"])
def test_a_gradient_that_cannot_come_is_refused(hook):
    """Also where the same hook has values to listen to, and in tools that never go back."""
    words = [f"--hook {hook}", "_grad, a gradient, but this run only goes forward", "--loss"]
    trace("--hook", hook, "The river").fails(2, *words)
    weir("generate", "--hook", hook, "The river").fails(2, *words)
    weir("logit-lens", "--hook", hook, "The river").fails(2, *words)


def test_hooks_hear_them(tmp_path):
    """In the pass that they are of, the latest layer first; a recorder of a hook's own; an intervention on a gradient is one of the run's."""
    lines = trace("--loss", "nll", "--batch", 8, "--hook", "log:resid_post,blocks.{2,3}.hook_resid_post_grad", "The river bends.",
                  "A text.").ok().out.decode().splitlines()[1:]
    heard = [line.split("\t")[:2] for line in lines]
    forward = [f"blocks.{l}.hook_resid_post" for l in range(8)]
    assert heard == [[n, p] for n in "01" for p in [*forward, "blocks.3.hook_resid_post_grad", "blocks.2.hook_resid_post_grad"]]
    trace("--loss", "nll", "--scale", "blocks.5.hook_resid_post_grad=0", "--hooks", "blocks.{4,6}.hook_resid_post_grad", "--hook",
          "topk:blocks.3.mlp.hook_post_grad,k=1", "--dump", tmp_path / "g.h5", "The river bends.").ok()
    with h5py.File(tmp_path / "g.h5") as f:
        assert "resid_post_grad" in f.attrs["interventions"]
        assert f["activations/blocks.6.hook_resid_post_grad"][:].any() and not f["activations/blocks.4.hook_resid_post_grad"][:].any()
        assert len(f["hooks/topk/blocks.3.mlp.hook_post_grad.value"]) == len(f["tokens/id"])


def test_readers(tmp_path):
    """Values beside gradients are read as ever; gradients alone are no values, and are found by their own names."""
    names = "blocks.*.{hook_resid_pre,hook_resid_post,mlp.hook_post,attn.hook_pattern}"
    text = ["The river bends here.", "A second text."]
    both, values, grads = (tmp_path / n for n in ("both.h5", "values.h5", "grads.h5"))
    trace("--quiet", "--loss", "nll", "--hooks", f"{names},{names}_grad", "--dump", both, *text).ok()
    trace("--quiet", "--hooks", names, "--dump", values, *text).ok()
    trace("--quiet", "--loss", "nll", "--hooks", names + "_grad", "--dump", grads, *text).ok()
    for tool in (["health"], ["neuron-top", "--neurons", "3", "--layer", "2"], ["logit-lens", "--format", "tsv"]):
        a, b = (weir(*tool, f).ok().out.decode().replace(f.name, "") for f in (both, values))
        assert a.splitlines()[1:] == b.splitlines()[1:], tool  # the first line says where from
    weir("health", grads).fails(1, "has nothing of the stream")
    weir("neuron-top", grads).fails(2, "post was not recorded", "mlp.hook_post_grad")
    weir("logit-lens", grads).fails(1, "lacks blocks.7.hook_resid_post")
    weir("attention", grads).fails(1, "has no attention pattern")
    assert b"L2N3" in weir("neuron-top", grads, "--site", "blocks.*.mlp.hook_post_grad", "--neurons", "L2N3").ok().out
    trace("--quiet", "--loss", "nll", "--edit", edit_of(tmp_path), "--hooks", names + "_grad", "--dump", tmp_path / "edited.h5", *text).ok()
    assert weir("diff", grads, both).code == 3 and weir("diff", grads, grads).ok()
    differ = weir("diff", grads, tmp_path / "edited.h5").out.decode()
    assert "blocks.7.hook_resid_post_grad" in differ and "differs" in differ
    listed = trace("--list-hooks", "--hooks", "resid_post_grad").ok().out.decode().splitlines()
    assert [line.split()[0] for line in listed] == [f"blocks.{l}.hook_resid_post_grad" for l in range(8)]


def edit_of(where):
    """An edit of brook, of the form of weir rome's."""
    c, f = sizes()
    rng = np.random.default_rng(3)
    return write_adapter(where / "edit", {"transformer.h.5.mlp.c_proj": (0.2 * rng.standard_normal((1, f)), 0.2 * rng.standard_normal((c, 1)))})


def test_shards(tmp_path):
    """Shards of a text make the dump of the whole, and have to be of one loss."""
    text = tmp_path / "t.txt"
    text.write_text("\n".join((BROOK / "sentences.txt").read_text().splitlines()[:6]) + "\n")
    args = ["--quiet", "--hooks", "blocks.7.hook_resid_post_grad", "--file", text]
    for i, loss in (("0/2", "nll"), ("1/2", "nll"), ("1/2", "nll-sum")):
        trace(*args, "--loss", loss, "--shard", i, "--dump", tmp_path / f"{i[0]}{loss}.h5").ok()
    trace(*args, "--loss", "nll", "--dump", tmp_path / "whole.h5").ok()
    weir("merge", tmp_path / "all.h5", tmp_path / "0nll.h5", tmp_path / "1nll.h5", "--quiet").ok()
    with h5py.File(tmp_path / "all.h5") as a, h5py.File(tmp_path / "whole.h5") as b:
        name = "activations/blocks.7.hook_resid_post_grad"
        assert np.array_equal(a[name][:], b[name][:])
    assert weir("merge", tmp_path / "no.h5", tmp_path / "0nll.h5", tmp_path / "1nll-sum.h5").code == 1
