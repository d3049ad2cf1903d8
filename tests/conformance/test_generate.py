"""weir generate and the rules of sampling against transformers."""
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from transformers import generation

import models
import weirdump

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from samplelib import Sampler  # noqa: E402

NEW = 32


def weir(path, ids, *args):
    return json.loads(weirdump.run("weir", "generate", "--quiet", "--model", path, "--ids", "--bos", "no", "--ignore-eos", "--format", "ndjson",
                                   *args, " ".join(map(str, ids))))


def greedy(model, ids, n, **more):
    """transformers' own text, and the lead of each token over the next best."""
    config = generation.GenerationConfig(do_sample=False, max_new_tokens=n, output_scores=True, return_dict_in_generate=True, pad_token_id=0,
                                         **more)  # and no token that ends the text
    model.generation_config = generation.GenerationConfig()
    out = model.generate(torch.tensor([ids]), generation_config=config)
    lead = [float((s[0].topk(2).values[0] - s[0].topk(2).values[1])) for s in out.scores]
    return out.sequences[0, len(ids):].tolist(), lead


def agree(got, want, lead):
    """The same tokens, up to a tie that rounding decides."""
    for g, w, m in zip(got, want, lead, strict=True):
        if g != w:
            return m < 1e-3
    return True


def test_the_comparison_can_fail():
    assert agree([1, 2, 3], [1, 2, 3], [1, 1, 1]) and agree([1, 9, 3], [1, 2, 3], [1, 1e-5, 1])
    assert not agree([1, 9, 3], [1, 2, 3], [1, 0.5, 1])


def test_greedy_text(loaded):
    ids = models.ids_of(loaded.case, 3)
    n = min(NEW, loaded.case.ctx - 3)
    want, lead = greedy(loaded.model, ids, n)
    for path in loaded.case.paths:
        assert agree(weir(path, ids, "--max-tokens", n)["ids"], want, lead), path


def test_smollm2(smollm2, smollm2_model):
    ids = [1, 9690, 198, 2683, 359, 253, 5356]
    for more, args in (({}, ()), ({"repetition_penalty": 1.3}, ("--repetition-penalty", "1.3"))):
        want, lead = greedy(smollm2_model, ids, NEW, **more)
        got = weir(models.SMOLLM2, ids, "--max-tokens", NEW, *args)["ids"]
        assert agree(got, want, lead), (got, want)


# --- the rules


def processors(model, o):
    """What transformers itself builds of these options, in its order."""
    config = generation.GenerationConfig(do_sample=o["temperature"] > 0, **{k: v for k, v in o.items() if k != "temperature" or v > 0})
    return model._get_logits_processor(config, input_ids_seq_length=4, logits_processor=[])


@pytest.mark.parametrize("seed", range(4))
def test_rules_are_those_of_transformers(seed):
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=1))
    rng = np.random.default_rng(seed)
    for case in range(60):
        v = 50
        o = dict(temperature=float(rng.choice([0.6, 1.0, 1.7])), top_k=int(rng.choice([0, 1, 7, 60])), top_p=float(rng.choice([1.0, 0.9, 0.4])),
                 min_p=float(rng.choice([0.0, 0.05, 0.4])), repetition_penalty=float(rng.choice([1.0, 1.4, 0.7])))
        x = rng.normal(0, rng.choice([0.3, 3]), v).astype("f4")
        ids = rng.integers(0, v, 4)
        want = processors(model, o)(torch.tensor(ids[None]), torch.tensor(x[None]))[0].numpy()
        got = Sampler(v, **o).scores(x, ids)
        kept = np.isfinite(want)
        assert (np.isfinite(got) == kept).all(), (case, o)
        assert got[kept].tobytes() == want[kept].tobytes(), (case, o)
