"""`rome merge` of a GGUF file: the Hugging Face directory that it writes is opened by transformers and by weir, and is the file's own model in
F32: the weights that the file was made from, bit for bit, the same logits, the same token ids."""
import json
import os
import re

import gguf
import numpy as np
import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

import models
import tiny
import weirdump
from adapters import N
from test_adapter import close

VECTORS = models.ROOT / "tests" / "data" / "tokenizers" / "vectors" / "gpt2.jsonl"
GPT2 = models.ROOT / "tests" / "data" / "tokenizers" / "gpt2"
META = "\u2581"
from_gguf = pytest.mark.wants(only=lambda c: str(c.paths[-1]).endswith(".gguf"))


def merge(path, out, *edits):
    return json.loads(weirdump.run("rome", "merge", "-m", path, *(a for e in edits for a in ("--edit", e)), "-o", out, "--json", "-q"))


def opened(path):
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager", local_files_only=True).eval()


def weights(model, case):
    """By name. Gemma's gains are 1 + w, and that is what its GGUF files hold, rounded: the same w is not in them."""
    return {k: 1 + w if case.family == "gemma2" and "norm" in k else w for k, w in model.state_dict().items()}


def differing(a, b):
    """Names of the tensors that are not the same bits."""
    assert set(a) == set(b)
    return sorted(k for k in a if not torch.equal(a[k], b[k]))


def torch_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def captured(case, path, out, *extra):
    return weirdump.capture(path, models.ids_of(case, N), out, extra=("--ctx", N, *extra))


@from_gguf
def test_converted(loaded, tmp_path):
    """transformers sees the model that the file was made from; weir gives the file's bits at every hook point. RoPE divisors are stored
    rounded: with them both are near."""
    case, path, out = loaded.case, loaded.case.paths[-1], tmp_path / "out"
    assert merge(path, out)["written"]
    assert sorted(p.name for p in out.iterdir()) == ["config.json", "model.safetensors"]
    ours = opened(out)
    assert type(ours) is type(loaded.model) and differing(weights(ours, case), weights(loaded.model, case)) == []
    assert type(ours).__name__ in json.loads((out / "config.json").read_text())["architectures"]
    ids = models.ids_of(case, N)
    assert torch.equal(torch_logits(ours, ids), torch_logits(loaded.model, ids))
    a, b = (captured(case, p, tmp_path / "x.h5") for p in (path, out))
    assert set(a) == set(b)
    for name in a:
        assert np.array_equal(a[name], b[name]) if case.same_bits else np.allclose(a[name], b[name], rtol=1e-3, atol=1e-4), name


@from_gguf
def test_edited(loaded, adapters, tmp_path):
    """W + dW in double, rounded once; the logits are those of the file with the edit beside it."""
    case, path = loaded.case, loaded.case.paths[-1]
    adapter = adapters.path("plain")
    said = merge(path, tmp_path / "out", adapter)
    assert {m["dtype"] for m in said["matrices"]} == {"F32"}
    theirs, mine, old = (weights(m, case) for m in (adapters.merged64("plain"), opened(tmp_path / "out"), loaded.model))
    changed = differing(mine, old)
    assert 0 < len(changed) <= len(said["matrices"])
    for name in mine:
        assert torch.all((mine[name].double() - theirs[name]).abs() <= 1.001 * 2.0**-24 * theirs[name].abs() + 2.0**-25), name
    last = max((n for n in weirdump.points(path) if n.endswith("_logits") or n == "unembed.hook_out"), key=len)
    beside, inside, plain = (captured(case, p, tmp_path / "x.h5", *extra)[last] for p, extra in (
        (path, ("--edit", adapter)), (tmp_path / "out", ()), (path, ())))
    assert close(inside, beside) and not close(plain, beside)


# --- tokenizers
def texts():
    return [json.loads(line)["text"] for line in VECTORS.read_text().splitlines()]


def alphabet():
    same = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [chr(b) for b in same] + [chr(256 + i) for i in range(256 - len(same))]


def byte_level(pre):
    """GPT-2's alphabet and its first merges, and added tokens."""
    merges = (GPT2 / "merges.txt").read_text().splitlines()[1:1500]
    pieces = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *alphabet(), *(m.replace(" ", "") for m in merges), "<think>"]
    types = [3] * 3 + [1] * (len(pieces) - 4) + [4]

    def add(w):
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
        w.add_token_merges(merges)
        w.add_bos_token_id(1)
        w.add_eos_token_id(0)
        w.add_eot_token_id(2)
        w.add_add_bos_token(pre == "llama-bpe")
        w.add_chat_template("{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}")
    return pieces, types, None, add


def sentencepiece(prefix):
    """Pieces out of the texts, each reachable from its beginning; scores that are all different; without a prefix a token of spaces."""
    words = {(META + w)[:8] for text in texts() for w in re.findall(r"[\w.,']+", text)}
    parts = sorted({w[:n] for w in words for n in range(1, len(w) + 1)} | {w[i] for w in words for i in range(len(w))} | {META})[:3000]
    own = ["<mark>"] + ([] if prefix else [META * 3])
    pieces = ["<unk>", "<s>", "</s>", *("<0x%02X>" % b for b in range(256)), *parts, *own]
    types = [2, 3, 3] + [6] * 256 + [1] * len(parts) + [4] * len(own)
    rank = np.random.default_rng(5).permutation(len(parts))
    scores = [0.0] * 259 + [-float(r) for r in rank] + [0.0] * len(own)

    def add(w):
        w.add_tokenizer_model("llama")
        w.add_bos_token_id(1)
        w.add_eos_token_id(2)
        w.add_unk_token_id(0)
        w.add_add_bos_token(prefix)
        w.add_add_space_prefix(prefix)
    return pieces, types, scores, add


def with_tokenizer(path, kind, monkeypatch):
    pieces, types, scores, add = kind
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**tiny.BLOCK_LLAMA, "vocab_size": len(pieces)}))
    meta = tiny.write_meta

    def write_meta(w, *args):
        meta(w, *args)
        w.add_token_list(pieces)
        w.add_token_types(types)
        if scores:
            w.add_token_scores(scores)
        add(w)
    monkeypatch.setattr(tiny, "write_meta", write_meta)
    tiny.write_gguf(str(path), model.state_dict(), {}, model, "llama", 24, "F32")


def weir_ids(model, path):
    found = [json.loads(line) for line in weirdump.run("weir", "tokenize", "-m", model, "--json", "-q", "-f", path).splitlines()]
    return [f["ids"] for f in found], found


def check_tokenizer(source, out, tmp_path):
    """Ids of varied texts, with added tokens in them: from the file, from the directory, and from transformers."""
    inside = [t for t in texts() if t] + ["a<s>b</s> <mark>  x <unk>", "<|im_start|>user\nhi<|im_end|>\n<think> 12", "   x    y", "<0x41>\u2581a"]
    docs = tmp_path / "texts.jsonl"
    docs.write_text("".join(json.dumps({"text": t}) + "\n" for t in inside))
    (want, whole), (got, again) = (weir_ids(p, docs) for p in (source, out))
    tok = AutoTokenizer.from_pretrained(out, local_files_only=True)
    theirs = tok(inside, add_special_tokens=False)["input_ids"]
    for text, a, b, c in zip(inside, want, got, theirs, strict=True):
        assert a == b == c, text
    assert whole == again and len({i for ids in want for i in ids}) > 300
    return tok


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe", "qwen2"])
def test_byte_level(pre, tmp_path, monkeypatch):
    kind = byte_level(pre)
    with_tokenizer(tmp_path / "x.gguf", kind, monkeypatch)
    merge(tmp_path / "x.gguf", tmp_path / "out")
    tok = check_tokenizer(tmp_path / "x.gguf", tmp_path / "out", tmp_path)
    assert (tok.bos_token, tok.eos_token, len(tok)) == ("<|im_start|>", "<|endoftext|>", len(kind[0]))
    assert tok("a")["input_ids"][0] == (1 if pre == "llama-bpe" else tok("a", add_special_tokens=False)["input_ids"][0])
    assert tok.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False) == "<|im_start|>hi<|im_end|>"
    assert json.loads((tmp_path / "out" / "config.json").read_text())["eos_token_id"] == [0, 2]
    assert tok.decode(tok("Hello, wörld! 12", add_special_tokens=False)["input_ids"]) == "Hello, wörld! 12"


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece(prefix, tmp_path, monkeypatch):
    with_tokenizer(tmp_path / "x.gguf", sentencepiece(prefix), monkeypatch)
    merge(tmp_path / "x.gguf", tmp_path / "out")
    tok = check_tokenizer(tmp_path / "x.gguf", tmp_path / "out", tmp_path)
    assert (tok.bos_token, tok.eos_token) == ("<s>", "</s>")
    assert (tok("a")["input_ids"][0] == 1) == prefix
    assert tok.decode(tok("Hello, wörld! 👍", add_special_tokens=False)["input_ids"]) == "Hello, wörld! 👍"


def test_tokens_can_differ(tmp_path, monkeypatch):
    """The check of ids must fail: a directory whose merges were turned round."""
    with_tokenizer(tmp_path / "x.gguf", byte_level("gpt-2"), monkeypatch)
    merge(tmp_path / "x.gguf", tmp_path / "out")
    saved = json.loads((tmp_path / "out" / "tokenizer.json").read_text())
    saved["model"]["merges"].reverse()
    (tmp_path / "out" / "tokenizer.json").write_text(json.dumps(saved))
    with pytest.raises(AssertionError):
        check_tokenizer(tmp_path / "x.gguf", tmp_path / "out", tmp_path)


@pytest.mark.skipif(not models.SMOLLM2.exists(), reason="shared/models has no SmolLM2")
def test_smollm2(tmp_path):
    """The real file: ids, chat template, and the bits of the logits."""
    case, out = models.smollm2_case(), tmp_path / "out"
    merge(models.SMOLLM2, out)
    tok = check_tokenizer(models.SMOLLM2, out, tmp_path)
    reader = gguf.GGUFReader(models.SMOLLM2)
    assert tok.chat_template == reader.get_field("tokenizer.chat_template").contents()
    a, b = (captured(case, p, tmp_path / "x.h5", "--hooks", "unembed.hook_out")["unembed.hook_out"] for p in (models.SMOLLM2, out))
    assert np.array_equal(a, b)
    theirs = torch_logits(opened(out), models.ids_of(case, N)).numpy()
    assert close(a, theirs, 1e-4) and not close(a, theirs[::-1], 1e-4)
    os.remove(out / "model.safetensors")
