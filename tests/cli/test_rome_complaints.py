"""What users of other editors have complained of (numbers: reference/rome.md, section 7), each as a test of `rome`. Those that are not here stand
where their neighbours are; the list says where, and a test sees that it stays true."""
import re

import h5py
import numpy as np
import pytest

import checkpoints
from romelib import CHEAP, edit, files, made, update
from weircli import BROOK, ROOT, tokens, trace, weir

LIST = {
    1: ["test_rome.py::test_the_answer_changes_and_the_base_does_not"],  # the returned model is rolled back
    2: ["test_edits.py::test_values_are_those_of_the_merged_model", "test_edits.py::test_diff_finds_the_edit"],  # the changed part alone, on a fresh base
    3: ["test_rome_eval.py::test_a_record_is_edited_from_the_model_as_it_is"],  # edits pile up, measured against an edited base
    4: ["test_c4_the_target_is_its_tokens_behind_the_prompt"],  # the target loses its space, or gains BOS
    5: ["test_rome.py::test_both_spellings_of_a_target_are_one"],  # " Paris" becomes two spaces
    6: ["test_c6_rows_of_other_lengths_do_not_matter"],  # padding sides
    7: ["../conformance/test_rome.py::test_families", "../unit/test_rome_pass.c::seen_is_what_hooks_see"],  # every architecture's edit point
    8: ["test_rome.py::test_what_cannot_be_done_is_one_line_and_writes_nothing"],  # the subject is missing from the prompt
    9: ["test_rome.py::test_other_texts_are_data_and_not_formats", "test_rome.py::test_braces_and_percent_signs_fuzz"],  # braces, percent signs
    10: ["test_c10_stored_types_give_one_edit"],  # half precision and quantised bases
    11: ["test_c11_what_is_not_finite_writes_nothing", "test_rome.py::test_what_cannot_be_done_is_one_line_and_writes_nothing"],  # NaN losses
    12: ["test_rome.py::test_moments_of_another_layer_are_refused", "test_c12_too_few_keys_are_told",  # statistics of another model; singular ones;
         "test_rome_eval.py::test_published_statistics_are_taken_over"],  # downloads that were cut
    13: ["test_rome.py::test_threads_and_kernels_give_the_same_bytes", "test_rome_eval.py::test_memory_is_no_fault_of_a_record"],  # out of memory
    14: ["test_c14_what_the_covariance_is_worth"],  # the covariance costs most: what for?
    15: ["test_rome_eval.py::test_sequential_names_the_edit_that_broke_the_model"],  # after thousands of edits every one fails
    16: ["test_rome.py::test_a_batch_is_one_edit_of_all_requests", "test_rome_eval.py::test_sequential_edits_pile_up_and_the_first_is_pristine"],
    17: ["test_rome.py::test_force_writes_what_did_not_converge", "test_c17_texts_of_any_script"],  # stuck at the clamp; Chinese prompts
    18: ["test_rome.py::test_auto_tries_every_layer_and_takes_the_best"],  # another model's layer
    19: ["test_c19_a_missing_tensor_is_named"],  # other layouts
    20: ["test_rome.py::test_token_0_subjects_do_not_explode"],  # the asymmetric key
    21: ["test_rome.py::test_what_cannot_be_done_is_one_line_and_writes_nothing", "test_c14_what_the_covariance_is_worth"],  # C = 1 unasked
}


def test_the_list_is_true():
    assert sorted(LIST) == list(range(1, 22))
    for name in (name for names in LIST.values() for name in names):
        file, _, test = name.rpartition("::")
        assert re.search(rf"\b{test}\(", (ROOT / "tests/cli" / (file or "test_rome_complaints.py")).read_text()), name


def test_c4_the_target_is_its_tokens_behind_the_prompt(tmp_path):
    """The search's first pass has the log-probabilities that `trace` gives the whole text, BOS or not."""
    for bos in ("yes", "no"):
        edit(tmp_path / "e", "--bos", bos, "--steps", 2, "--rounds", 1, "--force", how=("--layer", 4, "--identity", "--no-prefixes")).ok()
        r = made(tmp_path / "e")["reports"][0]
        prompt, whole = (d["ids"] for d in tokens("Mount Hood rises from the", "Mount Hood rises from the Caucasus"))
        n = len(whole) - len(prompt)
        assert whole[:-n] == prompt and r["target_tokens"] == n > 1
        dump = tmp_path / f"{bos}.h5"
        trace("--bos", bos, "--layer", 0, "--site", "resid_pre", "--logprob", "--dump", dump, "-q", "Mount Hood rises from the Caucasus").ok()
        with h5py.File(dump) as f:
            assert r["trace"][0]["nll"] == pytest.approx(-f["tokens/logprob"][-n:].mean(), rel=1e-5)


def test_c6_rows_of_other_lengths_do_not_matter(tmp_path):
    """Rows are packed, not padded: the order of a short prefix and a long one changes the order of sums and no more."""
    short, long_ = ("--prefix", "Then"), ("--prefix", "In the old days before the great river changed its course")
    for name, prefixes in (("a", (*short, *long_)), ("b", (*long_, *short))):
        edit(tmp_path / name, how=(*CHEAP[:3], *prefixes)).ok()
    a, b = update(tmp_path / "a"), update(tmp_path / "b")
    assert 0 < np.linalg.norm(a - b) < 1e-4 * np.linalg.norm(a) or np.array_equal(a, b)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """An edit of brook, whose weights are in half precision."""
    edit(tmp_path_factory.mktemp("base") / "e").ok()
    return next(tmp_path_factory.getbasetemp().glob("base*/e"))


@pytest.mark.parametrize("kind, bound, p", [("F32", 1e-5, 1e-5), ("BF16", 0.25, 0.15), ("Q8_0", 0.1, 0.05)])
def test_c10_stored_types_give_one_edit(kind, bound, p, base, tmp_path):
    """The same numbers in another type: the same edit; rounded ones: one near it."""
    model = checkpoints.gguf(BROOK, tmp_path / "m.gguf") if kind == "Q8_0" else checkpoints.retyped(BROOK, tmp_path / "m", kind)
    edit(tmp_path / "e", "-m", model).ok()
    ours, theirs = update(tmp_path / "e"), update(base)
    assert np.linalg.norm(ours - theirs) < bound * np.linalg.norm(theirs)
    assert (ours * theirs).sum() > 0.995 * np.linalg.norm(ours) * np.linalg.norm(theirs)
    r, s = (made(d)["reports"][0] for d in (tmp_path / "e", base))
    assert r["converged"] and r["after"]["p"] == pytest.approx(s["after"]["p"], abs=p) and r["before"]["p"] == pytest.approx(s["before"]["p"], rel=0.1)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_c11_what_is_not_finite_writes_nothing(number, tmp_path):
    model = checkpoints.copy_with(BROOK, tmp_path / "m", "h.5.mlp.c_proj.weight", (3, 5), number)
    edit(tmp_path / "e", "-m", model, "--force").fails(1, "finite")
    assert [f.name for f in tmp_path.iterdir()] == ["m"]


def test_c12_too_few_keys_are_told(tmp_path):
    weir("rome", "stats", "--layer", 4, "--max-tokens", 9, "-o", tmp_path / "m.h5", "-q").ok()
    edit(tmp_path / "e", "--ridge", 0, how=("--layer", 4, "--moments", tmp_path / "m.h5", "--no-prefixes")).fails(1, "m.h5", "keys", "ridge")
    assert [f.name for f in tmp_path.iterdir()] == ["m.h5"]


def test_c14_what_the_covariance_is_worth(tmp_path):
    """Without an option the moments that lie with the model are taken; --identity is the comparison."""
    for name, how in (("usual", ("--no-prefixes",)), ("layer", ("--layer", 1, "--no-prefixes")), ("one", ("--layer", 1, "--no-prefixes", "--identity"))):
        edit(tmp_path / name, how=how).ok()
    usual, layer, one = (made(tmp_path / n) for n in ("usual", "layer", "one"))
    assert files(tmp_path / "usual") == files(tmp_path / "layer") and usual["statistics"][0]["kind"] == "moments" and layer["statistics"][0]["layer"] == 1
    assert one["statistics"] == [{"layer": 1, "kind": "identity"}]
    a, b = (update(tmp_path / n).ravel() for n in ("usual", "one"))
    assert 0.05 < a @ b / np.linalg.norm(a) / np.linalg.norm(b) < 0.95  # two directions


def test_c17_texts_of_any_script(tmp_path):
    edit(tmp_path / "e", "--steps", 2, "--rounds", 1, "--force", fact=("--subject", "東京", "--prompt", "{}は日本の", "--target", "首都")).ok()
    r = made(tmp_path / "e")["reports"][0]
    (text,) = tokens("東京は日本の")
    assert r["subject_at"] == 1 + next(i for i, (_, end) in enumerate(text["offsets"]) if end >= len("東京".encode()))  # behind BOS
    assert r["target_tokens"] == len(tokens("東京は日本の 首都")[0]["ids"]) - len(text["ids"]) > 1


def test_c19_a_missing_tensor_is_named(tmp_path):
    model = checkpoints.retyped(ROOT / "tests/golden/models/gpt2", tmp_path / "m", "F32", without="transformer.h.1.mlp.c_proj.weight")
    edit(tmp_path / "e", "-m", model).fails(1, "h.1.mlp.c_proj.weight")
