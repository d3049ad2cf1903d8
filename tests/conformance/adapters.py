"""LoRA adapters that PEFT makes and saves, and Hugging Face's models with them: made once for each case."""
import copy
import functools
import warnings
from unittest import mock

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

import compare
import models
import reference

warnings.filterwarnings("ignore", module="peft")

N = 11  # tokens that are compared
VARIANTS = {
    "plain": dict(r=4, lora_alpha=6),
    "rslora": dict(r=5, lora_alpha=3, use_rslora=True),
    "patterns": dict(r=2, lora_alpha=4, rank_pattern={"{last}": 3}, alpha_pattern={"{last}": 9}, layers_to_transform=[0]),
    "turned": dict(r=3, lora_alpha=3, fan_in_fan_out=True),  # PEFT sets it right for the kind of module
}


def targets(model):
    """Last parts of the names of a block's matrices."""
    kinds = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    return sorted({n.rsplit(".", 1)[-1] for n, m in model.named_modules() if isinstance(m, kinds) and n.count(".") > 2})


def make(model, out, variant):
    """A random adapter of every matrix that PEFT has saved."""
    torch.manual_seed(len(variant))
    names = targets(model)
    config = {k: {p.format(last=names[-1]): x for p, x in v.items()} if isinstance(v, dict) else v
              for k, v in VARIANTS[variant].items()}
    peft = get_peft_model(copy.deepcopy(model), LoraConfig(target_modules=names, init_lora_weights=False, task_type="CAUSAL_LM", **config))
    with torch.no_grad():
        for name, p in peft.named_parameters():
            if "lora_" in name:
                p.copy_(0.1 * torch.randn_like(p))
    with mock.patch.object(PeftModel, "create_or_update_model_card"):  # a text for people takes longer than all the rest
        peft.save_pretrained(out)
    return out


def beside(model, adapter):
    """Hugging Face's model with an adapter beside its weights."""
    return PeftModel.from_pretrained(copy.deepcopy(model), adapter).eval()


def merged(model, adapter):
    """The same, part of its weights."""
    return beside(model, adapter).merge_and_unload().eval()


class Adapters:
    """Of one case."""

    def __init__(self, loaded, folder):
        self.loaded, self.folder = loaded, folder
        self.ids = models.ids_of(loaded.case, N)

    @functools.cache
    def path(self, variant):
        return make(self.loaded.model, self.folder / variant, variant)

    @functools.cache
    def merged64(self, variant):
        return merged(self.loaded.model64, self.path(variant)).double()

    @functools.cache
    def reference(self, variant):
        """(float64 values, tolerance) of the model with the adapter."""
        ref64 = reference.capture(self.merged64(variant), self.ids)
        return ref64, compare.tolerances(ref64, reference.capture(merged(self.loaded.model, self.path(variant)), self.ids))
