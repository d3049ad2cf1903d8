"""lib/model/bringing.md: its commands run in directories that hold exactly the files it lists (small stand-ins of the same classes), its
sizes are those of `weir count`, and its complaints are those of the tools."""
import json
import re
import shlex
import shutil

import numpy as np
import pytest

import checkpoints
from weircli import BROOK, ROOT, weir

PAGE = (ROOT / "lib/model/bringing.md").read_text()
GOLDEN = ROOT / "tests/golden/models"
WEIGHTS = "model.safetensors"
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"

LLAMA = dict(model_type="llama", rms_norm_eps=1e-5, rope_theta=500000.0, vocab_size=128256, tie_word_embeddings=True)
SMOL = dict(LLAMA, vocab_size=49152)
QWEN2 = dict(model_type="qwen2", vocab_size=151936, tie_word_embeddings=True)
QWEN3 = dict(model_type="qwen3", head_dim=128, vocab_size=151936, tie_word_embeddings=True)


def sizes(base, C, L, H, K, F):
    return dict(base, hidden_size=C, num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=K, intermediate_size=F)


# What the config.json files of the repositories say, as far as it makes a size.
PUBLISHED = {
    "openai-community/gpt2": dict(model_type="gpt2", n_embd=768, n_layer=12, n_head=12, n_positions=1024, vocab_size=50257),
    "meta-llama/Llama-3.2-1B": sizes(LLAMA, 2048, 16, 32, 8, 8192),
    "meta-llama/Llama-3.2-3B": sizes(LLAMA, 3072, 28, 24, 8, 8192),
    "Qwen/Qwen2.5-0.5B": sizes(QWEN2, 896, 24, 14, 2, 4864),
    "Qwen/Qwen2.5-1.5B": sizes(QWEN2, 1536, 28, 12, 2, 8960),
    "Qwen/Qwen3-0.6B": sizes(QWEN3, 1024, 28, 16, 8, 3072),
    "Qwen/Qwen3-1.7B": sizes(QWEN3, 2048, 28, 16, 8, 6144),
    "Qwen/Qwen3-4B": sizes(QWEN3, 2560, 36, 32, 8, 9728),
    "HuggingFaceTB/SmolLM2-135M": sizes(SMOL, 576, 30, 9, 3, 1536),
    "HuggingFaceTB/SmolLM2-360M": sizes(SMOL, 960, 32, 15, 5, 2560),
    "HuggingFaceTB/SmolLM2-1.7B": sizes(SMOL, 2048, 24, 32, 32, 8192),
}


def rows():
    """{repository: (parameters, bytes, bytes of keys and values)} of the table."""
    found = re.findall(r"^\| `([\w.-]+/[\w.-]+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|", PAGE, re.M)
    return {repo: tuple(int(x.replace(",", "")) for x in numbers) for repo, *numbers in found}


def test_sizes_are_those_of_count(tmp_path):
    table = rows()
    assert table.keys() == PUBLISHED.keys()
    for repo, config in PUBLISHED.items():
        (tmp_path / "config.json").write_text(json.dumps(config))
        got = weir("count", "-q", "--json", tmp_path / "config.json").ok().json
        bits = 32 if config["model_type"] == "gpt2" else 16
        n = got["parameters"]["total"]
        assert table[repo] == (n, n * bits // 8, 2 * got["per_token"]["kv_bytes_16bit"]), repo


# --- stand-ins
def tensors(config):
    """Random weights of the class, small."""
    rng, c = np.random.default_rng(1), config
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32) * np.float32(0.1)
    if c["model_type"] == "gpt2":
        width, out = c["n_embd"], {"wte.weight": draw(c["vocab_size"], c["n_embd"]), "wpe.weight": draw(c["n_positions"], c["n_embd"])}
        norm = lambda name: {f"{name}.weight": np.ones(width, np.float32), f"{name}.bias": draw(width)}
        conv = lambda name, i, o: {f"{name}.weight": draw(i, o), f"{name}.bias": draw(o)}
        for l in range(c["n_layer"]):
            p = f"h.{l}."
            out |= norm(p + "ln_1") | norm(p + "ln_2") | conv(p + "attn.c_attn", width, 3 * width) | conv(p + "attn.c_proj", width, width)
            out |= conv(p + "mlp.c_fc", width, 4 * width) | conv(p + "mlp.c_proj", 4 * width, width)
        return out | norm("ln_f")
    width, hidden, d = c["hidden_size"], c["intermediate_size"], c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])
    heads = {"q": c["num_attention_heads"] * d, "k": c["num_key_value_heads"] * d, "v": c["num_key_value_heads"] * d}
    out = {"model.embed_tokens.weight": draw(c["vocab_size"], width), "model.norm.weight": np.ones(width, np.float32)}
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        out |= {f"{p}{n}_layernorm.weight": np.ones(width, np.float32) for n in ("input", "post_attention")}
        out |= {f"{p}self_attn.{n}_proj.weight": draw(size, width) for n, size in heads.items()}
        if c["model_type"] == "qwen2":
            out |= {f"{p}self_attn.{n}_proj.bias": draw(size) for n, size in heads.items()}
        if c["model_type"] == "qwen3":
            out |= {f"{p}self_attn.{n}_norm.weight": np.ones(d, np.float32) for n in "qk"}
        out |= {f"{p}self_attn.o_proj.weight": draw(width, heads["q"]), f"{p}mlp.down_proj.weight": draw(width, hidden)}
        out |= {f"{p}mlp.{n}_proj.weight": draw(hidden, width) for n in ("gate", "up")}
    return out


def stand_in(repo, path, files):
    """A directory with exactly these files: the class and options of the repository, small sizes, brook's tokenizer."""
    config = dict(PUBLISHED[repo], vocab_size=4096)
    small = dict(n_embd=16, n_layer=8, n_head=2, n_positions=64) if config["model_type"] == "gpt2" else dict(
        hidden_size=16, num_hidden_layers=8, num_attention_heads=2, num_key_value_heads=1, intermediate_size=24)
    config.update(small, **({"head_dim": 10} if "head_dim" in config else {}))
    made = {"config.json": json.dumps(config), "generation_config.json": json.dumps({"eos_token_id": [0]}),
            "tokenizer.json": (BROOK / "tokenizer.json").read_text(),
            "tokenizer_config.json": json.dumps({**json.loads((BROOK / "tokenizer_config.json").read_text()), "chat_template": TEMPLATE})}
    path.mkdir()
    for name in files:
        checkpoints.write(path / name, tensors(config)) if name == WEIGHTS else (path / name).write_text(made[name])


def commands():
    """The lines of the page's shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
    return [line.split("  #")[0].strip() for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def brought(tmp_path_factory):
    """What the page's commands download, as stand-ins."""
    home = tmp_path_factory.mktemp("models")
    for line in commands():
        words = shlex.split(line)
        if words[:2] != ["hf", "download"]:
            continue
        repo, folder = words[2], words[words.index("--local-dir") + 1]
        files = words[3:words.index("--local-dir")]
        if repo in PUBLISHED and folder == repo.split("/")[1] and WEIGHTS in files:
            stand_in(repo, home / folder, files)
        elif files and files[0].endswith(".gguf"):
            (home / folder).mkdir()
            shutil.copy(GOLDEN / "qwen3.gguf", home / folder / files[0])
    return home


def test_commands_run(brought):
    assert {"gpt2", "Llama-3.2-1B", "Qwen2.5-0.5B", "Qwen3-0.6B", "SmolLM2-135M"} <= {p.name for p in brought.iterdir()}
    ran = {}
    for line in commands():
        tool, *args = shlex.split(line)
        if tool == "weir":
            ran[line] = weir(*args, cwd=brought).ok()
            model = args[args.index("--model") + 1] if "--model" in args else args[1]
            ran.setdefault(model, 0)
    assert {p.name for p in brought.iterdir() if p.is_dir() and not list(p.glob("*.gguf"))} <= ran.keys()
    listed = next(r for line, r in ran.items() if "--list-hooks" in line and "Qwen3" in line and ".gguf" not in line)
    assert b"blocks.7.attn.q_norm.hook_out" in listed.out
    assert (brought / "gpt2.h5").stat().st_size > 1000


def test_every_listed_file_is_needed(brought, tmp_path):
    """Without config.json or the weights nothing runs; without the tokenizer ids alone do."""
    for name, word in (("config.json", "no config.json"), (WEIGHTS, WEIGHTS), ("tokenizer.json", "no tokenizer")):
        path = tmp_path / name
        shutil.copytree(brought / "Qwen3-0.6B", path)
        (path / name).unlink()
        weir("trace", "--model", path, "--layer", 0, "--dump", tmp_path / "x.h5", "-q", "Hello").fails(1, word)


# --- complaints
def spoilt(path):
    """{a part of the line that the page shows: the arguments that make a tool say it}"""
    def model(name, source="qwen3", **config):
        shutil.copytree(GOLDEN / source, path / name)
        old = json.loads((path / name / "config.json").read_text())
        (path / name / "config.json").write_text(json.dumps({**old, **config}))
        return path / name
    (path / "none").mkdir()
    pickled, pointer, short = model("pickled"), model("pointer"), model("short")
    (pickled / WEIGHTS).rename(pickled / "pytorch_model.bin")
    (pointer / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n")
    (short / WEIGHTS).write_bytes((short / WEIGHTS).read_bytes()[:20000])
    shard = model("shard", "mistral-window-f16")
    (shard / "model-00002-of-00003.safetensors").unlink()
    piece = model("piece")
    (piece / "tokenizer.model").write_text("")
    wide = model("wide")
    shutil.copy(BROOK / "tokenizer.json", wide)
    (path / "folder").mkdir()
    shutil.copy(GOLDEN / "qwen3.gguf", path / "folder" / "model.gguf")
    names = lambda m, *more: ("trace", "--model", m, *more, "--list-hooks")
    text = lambda m, *more: ("trace", "--model", m, "--layer", 0, "--dump", path / "x.h5", *more, "The river bends.")
    return {
        "no config.json is there": names(path / "none"),
        "the weights are in pytorch_model.bin": names(pickled),
        "this is a pointer of Git LFS": names(pointer),
        "the file is cut short": names(short),
        "which is not there: download it": names(shard),
        "the directory holds no config.json but a GGUF file": names(path / "folder"),
        '"qwen3_moe" is not supported': names(model("moe", model_type="qwen3_moe")),
        "quantization_config: not supported": names(model("gptq", quantization_config={"quant_method": "gptq"})),
        'RoPE of type "yarn" is not supported': names(model("yarn", rope_scaling={"rope_type": "yarn", "factor": 4.0})),
        "no tokenizer here": text(GOLDEN / "qwen3"),
        "tokenizer.model is not read": text(piece),
        "is outside the vocabulary": text(wide),
        "for the packed weights of one layer": ("trace", "--model", GOLDEN / "qwen3", "--ids", "--layer", 0, "--dump", path / "x.h5",
                                               "--memory", "10K", "1 2 3"),
        "this model has no chat template": ("generate", "--chat", "hello"),
    }


def test_complaints_are_those_of_the_page(tmp_path):
    shown = re.findall(r"^\| `([^`]+)` \|", PAGE.split("## When it does not work")[1], re.M)
    made = spoilt(tmp_path)
    assert len(shown) == len(made)
    for line in shown:
        part = next(p for p in made if p in line)
        run = weir(*made[part])
        said = run.err.splitlines()[-1]
        assert run.code == 1 and not run.out, (line, run.err)
        for piece in line.split("..."):  # what stands between is a path or a number
            assert piece.strip() in said, (line, said)
