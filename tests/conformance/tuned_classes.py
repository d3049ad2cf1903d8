#!/usr/bin/env python3
"""What tuned-lens 0.2.0's own classes say; run by the Python of an environment that has them (test_tuned.py makes it).

    tuned_classes.py make MODEL DIR SEED          a lens with random translators, saved by the package itself
    tuned_classes.py logits MODEL DIR OUT.npz ID...   its logits at every layer: f64 [L, T, V], f32, and final [T, V]
"""
import sys

import numpy as np
import torch
import transformers
from tuned_lens.nn.lenses import TunedLens

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def load(path, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype, attn_implementation="eager").eval()


def make(path, out, seed):
    """Translators that are felt: each moves a row by about a third of its length."""
    lens = TunedLens.from_model(load(path, torch.float32))
    gen = torch.Generator().manual_seed(int(seed))
    for translator in lens:
        c = translator.weight.shape[0]
        translator.weight.data = torch.randn(c, c, generator=gen) * 0.3 * c**-0.5
        translator.bias.data = torch.randn(c, generator=gen) * 0.2
    lens.save(out)


def logits(path, lens_dir, dtype, ids):
    model = load(path, dtype)
    lens = TunedLens.from_model_and_pretrained(model, lens_dir).to(dtype)
    with torch.inference_mode():
        out = model(torch.tensor([ids]), output_hidden_states=True)
        rows = [lens(out.hidden_states[i][0], idx=i) for i in range(len(lens))]
    return torch.stack(rows).double().numpy(), out.logits[0].double().numpy()


def main():
    verb, path, lens_dir, *rest = sys.argv[1:]
    if verb == "make":
        make(path, lens_dir, rest[0])
        return
    ids = [int(i) for i in rest[1:]]
    f64, final = logits(path, lens_dir, torch.float64, ids)
    f32, _ = logits(path, lens_dir, torch.float32, ids)
    np.savez(rest[0], f64=f64, f32=f32, final=final)


if __name__ == "__main__":
    main()
