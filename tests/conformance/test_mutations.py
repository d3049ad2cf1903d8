"""Each mistake of mutations.py, switched on alone in the reference, must be caught by the comparison with weir."""

import re
import sys

import pytest

import compare
import make_golden
import models
import mutations
import reference
import tiny


def test_each_mistake_is_caught(loaded, tmp_path):
    ids, ref64, tol = loaded.reference(13)
    got = loaded.weir(loaded.case.paths[0], 13, tmp_path / "x.h5")
    assert not compare.compare(got, ref64, tol)[0], "weir must agree with the true reference first"
    missed = []
    for name, mistake in mutations.mutations_of(loaded.model64).items():
        with mistake:
            wrong_ref = reference.capture(loaded.model64, ids)
        if not compare.compare(got, wrong_ref, tol)[0]:
            missed.append(name)
    after = reference.capture(loaded.model64, ids)
    assert all((after[k] == ref64[k]).all() for k in ref64), "a mistake was not undone"
    assert not missed, f"not caught: {', '.join(missed)}"


@pytest.mark.parametrize("name", make_golden.TINY)
def test_golden_files_catch_each_mistake(name):
    """The samples under tests/golden agree with today's reference, and are enough to notice every mistake."""
    sys.path.insert(0, str(make_golden.GOLDEN))
    import test_golden
    entry = test_golden.entries(name)[0]
    dtype = tiny.CHECKPOINTS[name][3].get("dtype", "F32")
    index = dict(name=name, family=entry["family"], hf=name, gguf=None, dtype=dtype, vocab=0, ctx=0, same_bits=False)
    model = reference.in_float64(models.load(models.tiny_case(make_golden.GOLDEN / "models", index)))
    assert not test_golden.differences(entry, reference.capture(model, entry["ids"]))
    missed = []
    for mistake, context in mutations.mutations_of(model).items():
        with context:
            if not test_golden.differences(entry, reference.capture(model, entry["ids"])):
                missed.append(mistake)
    assert not missed, f"not caught: {', '.join(missed)}"


def test_no_mistake_goes_untried():
    """Every mistake of the list is possible on some model, biases of every kind too."""
    seen = {name for case in models.all_cases().values() for name in mutations.mutations_of(models.load(case))}
    untried = [f.__name__ for f in mutations.ALL if f.__name__ not in seen]
    assert not untried, untried
    kinds = {re.split(r"[.:]", name)[-1] for name in seen if name.startswith("bias_left_out:")}
    assert {"c_attn", "c_proj", "c_fc", "ln_1", "ln_f", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
            "query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h", "input_layernorm"} <= kinds
