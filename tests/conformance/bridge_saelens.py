"""Run by the Python that has sae-lens: bridge_saelens.py DIR BIN. The page's section on SAELens, as printed, in DIR; a line of JSON says what
SAELens then reads and what its training did."""
import json
import sys
from pathlib import Path

import h5py
import numpy as np
import torch
from datasets import load_from_disk
from sae_lens import ActivationsStore, LanguageModelSAERunnerConfig, LoggingConfig, StandardTrainingSAE, StandardTrainingSAEConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

import pages

HOOK = "blocks.6.hook_resid_post"


def store(context, path):
    """By the options that the page names: with a configuration of a whole training, and the tokens as its text."""
    config = LanguageModelSAERunnerConfig(
        sae=StandardTrainingSAEConfig(d_in=192, d_sae=64), hook_name=HOOK, context_size=context, store_batch_size_prompts=5,
        n_batches_in_buffer=16, train_batch_size_tokens=64, training_tokens=1000, use_cached_activations=True, cached_activations_path=str(path),
        dataset_path="tokens", logger=LoggingConfig(log_to_wandb=False))
    tokens = load_from_disk(path).select_columns("token_ids").rename_column("token_ids", "tokens")
    return ActivationsStore.from_config(torch.nn.Module(), config, override_dataset=tokens)


def rows(path, context):
    """Whether SAELens reads the dump's values and ids, and how many, in an epoch."""
    with h5py.File(path.parent / "resid.h5") as dump:
        values, ids = dump["activations"][HOOK][:], dump["tokens/id"][:]
    same, at, batches = True, 0, store(context, path)
    for _ in range(len(ids) // context // 5):
        x, t = batches.get_raw_llm_batch(raise_on_epoch_end=True)
        same = same and np.array_equal(x, values[at:at + len(x)]) and np.array_equal(t, ids[at:at + len(x)])
        at += len(x)
    return dict(same=bool(same), rows=at, of=len(ids), records=len(load_from_disk(path)))


def unexplained(sae, x):
    with torch.no_grad():
        return float(((sae(x) - x) ** 2).sum() / ((x - x.mean(0)) ** 2).sum())


def refused(path):
    """A context that is not the one in the directory."""
    try:
        store(32, path)
    except ValueError as error:
        return str(error)


torch.set_num_threads(1)
where = Path(sys.argv[1])
names = pages.Page(where, sys.argv[2]).run("SAELens")
x = next(names["store"])
torch.manual_seed(0)
new = StandardTrainingSAE(names["sae"].cfg)
print(json.dumps(dict(rows(where / "acts", 64), steps=names["trainer"].n_training_steps, trained=unexplained(names["sae"], x),
                      new=unexplained(new, x), left=[p.name for p in where.glob("tmp*")], refused=refused(where / "acts"))))
