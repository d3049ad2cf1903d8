"""`rome edit` against the torch implementation of rome_torch.py: the same request, prefixes and second moments. The search's loss at every
pass, the direction u, Lambda and their lengths; the adapter in PEFT; and formulas altered one at a time, which must not agree."""
import copy
import dataclasses
import json
import os
import shutil
import subprocess
from unittest import mock

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoTokenizer

import adapters
import compare
import models
import reference
import rome_torch
import tiny
import weirdump
from rome_torch import METHODS, Net, Options, Rome, Rows

WEIR = os.path.join(os.environ["WEIR_BIN"], "weir")
SENTENCES = models.BROOK / "sentences.txt"
RIDGE = 1e-6
FLAGS = {"r-rome": (), "rome": ("--compat", "rome"), "compat-r-rome": ("--compat", "r-rome"), "p-rome": ("--method", "p-rome")}
FEW = ("--prefix", "The teacher wrote on", "--prefix", "Q: What is")  # where the number of prefixes is not what is tested
LOSS, COSINE, LENGTH = 1e-3, 0.9999, 1e-3  # bounds: of a loss, of a cosine, of a length's relative error


def rome(*args):
    return subprocess.run([WEIR, "rome", *map(str, args), "-q"], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def request(record):
    with open(models.BROOK / "edits.jsonl") as f:
        r = json.loads(f.readlines()[record])["requested_rewrite"]
    return dict(prompt=r["prompt"], subject=r["subject"], target=r["target_new"]["str"])


def net_of(model, folder, bos, **more):
    return Net(model, rome_torch.encoder(AutoTokenizer.from_pretrained(folder, local_files_only=True, **more)), bos)


class Bench:
    """A model at both ends, with the second moments of some layers."""

    def __init__(self, path, model, net, work, layers, tokens):
        self.path, self.model, self.net, self.work, self.file = path, model, net, work, {}
        for l in layers:
            self.file[l] = work / f"layer-{l}.h5"
            rome("stats", "-m", path, "-l", l, "-f", SENTENCES, "-o", self.file[l], "--max-tokens", tokens)
        self.C = {l: rome_torch.covariance(f, RIDGE) for l, f in self.file.items()}

    def weir(self, request, layers, *more):
        """What weir makes of it: edit.json, and for each layer A [F] and B [C] of its update."""
        out = self.work / "edit"
        shutil.rmtree(out, ignore_errors=True)
        moments = [x for l in layers for x in ("--moments", self.file[l])]
        rome("edit", "-m", self.path, "--layers", ",".join(map(str, layers)), "--subject", request["subject"], "--prompt", request["prompt"],
             "--target", request["target"], *(() if "--identity" in more else (*moments, "--ridge", RIDGE)), "--force", "-o", out, *more)
        said, tensors = json.loads((out / "edit.json").read_text()), load_file(out / "adapter_model.safetensors")
        half = lambda l, kind: next(v for k, v in tensors.items() if f".{l}.mlp." in k and f"lora_{kind}" in k)
        return said, {l: (half(l, "A")[0].astype(float), half(l, "B")[:, 0].astype(float)) for l in layers}, out

    def torch(self, said, cls=Rome, net=None, C=None):
        """The implementation in torch with all that weir says it used."""
        names = {f.name for f in dataclasses.fields(Options)}
        net = net or self.net
        assert bool(net.bos) == said["options"]["bos"]
        return cls(net, said["prefixes"], Options(**{k: v for k, v in said["options"].items() if k in names}), C or self.C)


def cosine(a, b):
    a, b = (np.asarray(x, dtype=float).ravel() for x in (a, b))
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def trace_differences(report, trace):
    ours, theirs = report["trace"], trace
    if len(ours) != len(theirs):
        return [f"{len(ours)} passes, torch {len(theirs)}"]
    return [f"pass {i}: {name} {a[name]}, torch {b[name]}" for i, (a, b) in enumerate(zip(ours, theirs))
            for name in ("loss", "nll", "kl", "decay", "p") if not abs(a[name] - b[name]) <= LOSS]


def differences(said, update, found):
    """What is not the same of a rank-one edit: a list of words."""
    r, (a, b) = said["reports"][0], update
    wrong = trace_differences(r, found.trace)
    sign = 1 if a @ found.u.double().numpy() > 0 else -1
    wrong += [f"cos {name} {c}" for name, c in (("u", sign * cosine(a, found.u)), ("Lambda", sign * cosine(b, found.Lambda)))
              if not c > COSINE]
    lengths = {"Lambda": (np.linalg.norm(a) * np.linalg.norm(b), found.Lambda.norm()), "k.u": (r["k_u"], found.k @ found.u),
               "lambda_norm": (r["lambda_norm"], found.Lambda.norm()), "v0_norm": (r["v0_norm"], found.v0.norm()),
               "delta_norm": (r["delta_norm"], found.delta.norm())}
    return wrong + [f"{name} {x}, torch {float(y)}" for name, (x, y) in lengths.items() if not abs(x - y) <= LENGTH * abs(y)]


# --- brook
@pytest.fixture(scope="module")
def brook(tmp_path_factory):
    case = models.brook_case()
    model = models.load(case)
    net = net_of(reference.in_float64(model), case.hf, 0)
    return Bench(case.hf, model, net, tmp_path_factory.mktemp("brook"), (3, 4), 4000)


# Records of edits.jsonl: a target of five tokens with the subject at the start; of one, in the middle; of one, at the start; of three
# behind "'s". The first with the 20 sampled prefixes of the default.
@pytest.mark.parametrize("record, more", ((0, ()), (2, FEW), (18, FEW), (14, FEW)))
def test_brook(brook, record, more):
    said, update, _ = brook.weir(request(record), [3], *more)
    assert len(said["prefixes"]) == (len(more) // 2 or 20)
    assert not differences(said, update[3], brook.torch(said).edit("r-rome", request(record), 3))


@pytest.mark.parametrize("method", [m for m in METHODS if m != "r-rome"])
def test_methods(brook, method):
    said, update, _ = brook.weir(request(18), [3], *FEW, *FLAGS[method])
    assert said["method"] == method
    assert not differences(said, update[3], brook.torch(said).edit(method, request(18), 3))


def test_float32_identity_and_options(brook):
    """In float32 at both ends; another search, which ends at its clamp; no prefixes; C = 1."""
    more = ("--identity", "--no-prefixes", "--steps", "7", "--rounds", "1", "--rate", "0.7", "--kl", "0.3", "--decay", "3", "--clamp", "0.4", "--enough", "0.001")
    said, update, _ = brook.weir(request(0), [3], *more)
    assert said["prefixes"] == [] and said["reports"][0]["clamped"] and len(said["reports"][0]["trace"]) == 7
    net = net_of(copy.deepcopy(brook.model), models.BROOK, 0)
    found = brook.torch(said, net=net, C={3: torch.eye(768, dtype=torch.float64)}).edit("r-rome", request(0), 3)
    assert found.u.dtype == torch.float32 and not differences(said, update[3], found)


def test_subject_at_token_zero(brook):
    """Without BOS a subject of one token is the first of all, where keys are of another kind: the published code's asymmetry."""
    net = Net(brook.net.model, brook.net.encode, None)
    q = dict(prompt="{} became a master of the", subject="Robert", target="guitar")
    for method in ("r-rome", "rome"):
        said, update, _ = brook.weir(q, [3], "--bos", "no", *FEW, *FLAGS[method])
        assert said["reports"][0]["subject_at"] == 0
        assert not differences(said, update[3], brook.torch(said, net=net).edit(method, q, 3))


# --- several layers
def check_updates(said, update, dw, traces):
    wrong = trace_differences(said["reports"][0], traces[0])
    for l, w in dw.items():
        a, b = update[l]
        w = w.double().numpy()
        mine = np.outer(b, a)
        if not cosine(mine, w) > COSINE or not abs(np.linalg.norm(mine) / np.linalg.norm(w) - 1) < LENGTH:
            wrong.append(f"layer {l}: cos {cosine(mine, w)}, lengths {np.linalg.norm(mine)}, torch {np.linalg.norm(w)}")
    return wrong


@pytest.mark.parametrize("method, layers", (("memit", [3, 4]), ("alphaedit", [3, 4]), ("emmet", [4])))
def test_spread(brook, method, layers):
    q = request(2)
    said, update, _ = brook.weir(q, layers, *FEW, "--method", method)
    assert said["method"] == method
    torch_ = brook.torch(said)
    run = lambda r: r.emmet([q], layers[0]) if method == "emmet" else getattr(r, method)([q], layers)
    assert not check_updates(said, update, *run(torch_))
    if method == "memit":  # weights of C, and the mean of the keys, are seen
        torch_.o.weight *= 1.01
        assert check_updates(said, update, *run(torch_))
        torch_.o.weight /= 1.01
        with mock.patch.object(torch_, "group_mean", lambda x: x.mean(0)):
            assert check_updates(said, update, *run(torch_))


# --- that it can fail
class NoDecay(Rome):
    def decay(self, delta, v0):
        return 0 * delta.norm()


class SquaredDecay(Rome):
    def decay(self, delta, v0):
        return self.o.decay * (delta.norm() / v0.norm())**2


class KlAtTheEnd(Rome):
    """Behind "SUBJECT is a", as the paper says and its code does not."""
    def kl_at(self, rows):
        return rows.len[-1] - 1


class LongMemory(Rome):
    """Rounds that are none."""
    def begin_anew(self, adam):
        pass


class TokenBefore(Rome):
    """The edit one token too early."""
    def edit(self, method, request, layer, means=None):
        with mock.patch.object(Net, "subject", lambda net, text, end, old=Net.subject: (lambda ids, at: (ids, at - 1))(*old(net, text, end))):
            return super().edit(method, request, layer, means)


MUTATIONS = {
    "u from the prompt's key": ("r-rome", Rome, dict(u=False)),
    "key of the prompt": ("r-rome", Rome, dict(k=False)),
    "present value of the prompt": ("r-rome", Rome, dict(o=False)),
    "v0 of the prompt": ("r-rome", Rome, dict(v0=False)),
    "plain means": ("r-rome", Rome, dict(groups=False)),
    "u from the prompt's key, compat": ("rome", Rome, dict(u=False)),
    "v0 the mean, compat": ("rome", Rome, dict(v0=True)),
    "no weight decay": ("r-rome", NoDecay, {}),
    "square of the length": ("r-rome", SquaredDecay, {}),
    "KL at another position": ("r-rome", KlAtTheEnd, {}),
    "another token": ("r-rome", TokenBefore, {}),
}


@pytest.fixture(scope="module")
def altered(brook):
    """{method: what weir makes of record 0}, for the mutations."""
    q = request(0)
    return {m: brook.weir(q, [3], *FEW, *FLAGS[m], "--kl", "1")[:2] for m in ("r-rome", "rome")}


def test_altered_is_right_unaltered(brook, altered):
    for method, (said, update) in altered.items():
        assert not differences(said, update[3], brook.torch(said).edit(method, request(0), 3))


@pytest.mark.parametrize("what", MUTATIONS)
def test_comparison_can_fail(brook, altered, what):
    method, cls, change = MUTATIONS[what]
    said, update = altered[method]
    found = brook.torch(said, cls).edit(method, request(0), 3, dataclasses.replace(METHODS[method], **change))
    assert differences(said, update[3], found)


def test_rounds(brook):
    """Adam's memory is cleared where a round left the target unlikely, and not where it did not."""
    said, update, _ = brook.weir(request(18), [3], *FEW, "--steps", "4", "--rounds", "3", "--rate", "0.2", "--enough", "0")
    right, wrong = (brook.torch(said, cls).edit("r-rome", request(18), 3) for cls in (Rome, LongMemory))
    assert len(said["reports"][0]["trace"]) > 4
    assert not differences(said, update[3], right) and differences(said, update[3], wrong)


def test_covariance_matters(brook, altered):
    said, update = altered["r-rome"]
    found = brook.torch(said, C={3: torch.eye(768, dtype=torch.float64)}).edit("r-rome", request(0), 3)
    wrong = differences(said, update[3], found)
    assert any(w.startswith("cos u") for w in wrong) and not any(w.startswith("pass") for w in wrong)


# --- SmolLM2
def test_smollm2(smollm2, smollm2_model, tmp_path):
    path = smollm2.paths[0]
    net = net_of(copy.deepcopy(smollm2_model), smollm2.hf, None, gguf_file=smollm2.gguf_file)
    bench = Bench(path, smollm2_model, net, tmp_path, (10,), 4000)
    q = dict(prompt="The mother tongue of {} is", subject="Danielle Darrieux", target="English")
    said, update, out = bench.weir(q, [10], "--prefix", "In the morning the", "--prefix", "I have heard that she was here", "--steps", "6")
    if said["options"]["bos"]:
        net.bos = [net.encode("<|im_start|>")[0][0]]
    assert not differences(said, update[10], bench.torch(said).edit("r-rome", q, 10))


# --- the families
TINY = ("llama-gqa-bf16", "gemma2", "neox-parallel", "mistral-window-f16", "qwen2", "qwen3")


@pytest.fixture(scope="module", params=TINY)
def family(request, tmp_path_factory):
    """A tiny checkpoint with brook's tokenizer."""
    work = tmp_path_factory.mktemp(request.param)
    kind, cls, config, options = tiny.CHECKPOINTS[request.param]
    wide = (kind, cls, dict(config, vocab_size=4096, max_position_embeddings=64), dict(options, gguf=False))
    with mock.patch.dict(tiny.CHECKPOINTS, {request.param: wide}):
        made = tiny.make(str(work), request.param)
    path = work / made["hf"]
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(models.BROOK / name, path)
    case = models.Case(request.param, kind, path, [path], None, made["dtype"], 4096, 64)
    model = models.load(case)
    layer = model.config.num_hidden_layers - 2  # at the last one the prompt's end cannot see the subject any more
    return case, layer, Bench(path, model, net_of(reference.in_float64(model), path, 0), work, (layer,), 600)


def check_in_peft(path, model, ids, out, work):
    """Every hook point of the edited model, with the adapter merged by PEFT."""
    ref64 = reference.capture(adapters.merged(reference.in_float64(model), out).double(), ids)
    tol = compare.tolerances(ref64, reference.capture(adapters.merged(model, out), ids))
    capture = lambda *more: weirdump.capture(path, ids, work / "x.h5", extra=more)
    wrong, _ = compare.compare(capture("--edit", out), ref64, tol)
    assert not wrong, "\n".join(map(str, wrong[:8]))
    wrong, _ = compare.compare(capture(), ref64, tol)
    assert "unembed.hook_out" in {w.hook for w in wrong}


def test_families(family):
    case, layer, bench = family
    q = dict(prompt="Geographers place the {} in the continent named", subject="Ganges", target="prairie")
    said, update, out = bench.weir(q, [layer], *FEW)
    found = bench.torch(said).edit("r-rome", q, layer)
    assert not differences(said, update[layer], found)
    ids = bench.net.subject(q["prompt"].format(q["subject"]), 27)[0]
    check_in_peft(case.paths[0], bench.model, ids, out, bench.work)


# --- the adapter
def test_adapter_in_peft(brook):
    """The edit of brook with PEFT: every hook point, the loss of a text, and the target's probability that the report tells."""
    q = request(18)
    said, _, out = brook.weir(q, [3], *FEW, *FLAGS["p-rome"])
    text = q["prompt"].format(q["subject"]) + " " + q["target"]
    ids = brook.net.bos + list(brook.net.encode(text)[0])
    check_in_peft(brook.path, brook.model, ids, out, brook.work)
    edited = adapters.merged(brook.net.model, out)
    with torch.no_grad(), reference.in_float64_only():
        log_p = torch.log_softmax(edited(torch.tensor([ids])).logits[0], -1)
    nll = -log_p[:-1].gather(1, torch.tensor(ids)[1:, None])[:, 0]
    ours = json.loads(weirdump.run("weir", "loss", "--edit", out, "--json", "-q", text))
    assert abs(ours["loss"] - float(nll.mean())) < 1e-5
    before, after = (said["reports"][0][x]["p"] for x in ("before", "after"))
    assert abs(np.exp(-float(nll[-1])) - after) < 1e-5 and after > 100 * before
