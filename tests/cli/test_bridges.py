"""notebooks_export/bridges.md, as far as Debian's packages go: the recipes run as printed, print what the page says, and their values are
those of the dump. What needs torch is in tests/conformance/test_bridges.py."""
import json
import re

import h5py
import numpy as np
import pytest

import pages
from pages import BRIDGES
from weircli import ROOT, weir


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return pages.Page(tmp_path_factory.mktemp("bridges"))


@pytest.fixture(scope="module")
def dump(page):
    with h5py.File(page.where / "stream.h5") as f:
        yield f


TESTS = ("tests/cli/test_bridges.py", "tests/conformance/test_bridges.py", "tests/conformance/bridge_saelens.py")


def test_every_section_is_run_by_a_test():
    """Each names it in a call of `page.run`."""
    run = [name for file in TESTS for name in re.findall(r'(?:page|\))\.run\("(\w+)"\)', (ROOT / file).read_text())]
    text = BRIDGES.read_text()
    assert sorted(run) == sorted(name for name, blocks in pages.sections(text).items() if name and blocks)
    fences = sum(2 if b.output is None else 4 for b in pages.blocks_of(text))
    assert fences == len(re.findall("^ *```", text, re.M))  # and no block is overlooked


def test_a_page_that_lies_fails(tmp_path):
    honest = "```python\nprint(1)\n```\n\n```\n1\n```\n"
    assert pages.Page(tmp_path, page=honest).run("") is not None
    for lie in (honest.replace("\n1\n", "\n2\n"), honest.replace("```\n\n```\n1\n", ""), "```sh\nfalse\n```\n", "```\n1\n```\n"):
        with pytest.raises(AssertionError):
            pages.Page(tmp_path, page=lie)


def test_readme(tmp_path):
    """The page beside it: what it says of notebook-export is what that prints."""
    readme = pages.Page(tmp_path, page=BRIDGES.with_name("README.md"))
    readme.run("Bridges")
    assert [name for name, blocks in pages.sections(readme.text).items() if blocks] == ["", "Bridges"]
    assert {p.name for p in tmp_path.iterdir()} == {"lib", "mlp.h5", "mlp.ipynb", "mlp.html", "n421.html"}
    kinds = {line.split()[0] for line in weir("notebook-export", "--list").ok().out.decode().splitlines()}
    assert kinds == set(re.findall(r"^\| `([a-z-]+)` \|", readme.text, re.M))


def test_xarray(page, dump):
    names = page.run("xarray")
    data, place = names["dump"], slice(dump["docs/start"][3], dump["docs/start"][3] + dump["docs/count"][3])
    assert set(data.data_vars) == set(dump["activations"]) and not data["blocks.7.mlp.hook_post"].variable._in_memory
    assert names["stream"].values.tobytes() == b"".join(dump[f"activations/{name}"][place].tobytes() for name in names["stream"].layer.values)
    assert [str(n) for n in names["stream"].layer.values] == [f"blocks.{i}.hook_resid_post" for i in range(8)]
    for name, column in dump["tokens"].items():
        np.testing.assert_array_equal(data[name].values, column[:])
    column, tokens = dump["activations/blocks.6.mlp.hook_post"][:, 421], data.token.values
    for token in (" the", "<|endoftext|>", " th"):
        assert float(names["mean"].sel(token=token)) == pytest.approx(column[tokens == token].mean(dtype=float), rel=1e-5)


def test_pandas(page, dump):
    names = page.run("pandas")
    frame, bos = names["frame"], dump["tokens/flags"][:] & 1 == 1
    assert bos.sum() == len(dump["docs/start"]) and len(frame) == len(bos) - bos.sum()
    text, at = dump["vocab/bytes"][:].tobytes(), dump["vocab/offsets"][:]
    tokens = [text[at[i]:at[i + 1]].decode(errors="backslashreplace") for i in dump["tokens/id"][:][~bos]]
    assert frame.token.tolist() == tokens and " \\xc3" in tokens
    np.testing.assert_array_equal(frame.n421.values, dump["activations/blocks.6.mlp.hook_post"][:, 421][~bos])
    np.testing.assert_array_equal(frame.logprob.values, dump["tokens/logprob"][:][~bos])
    records = [json.loads(line) for line in (ROOT / "lib/brook/ioi.jsonl").read_text().splitlines()]
    assert names["docs"].to_dict("records") == [{k: r[k] for k in names["docs"].columns} for r in records]
    assert set(names["docs"].columns) == {"corrupted", "answer", "distractor"} and list(names["answer"]) == [r["answer"] for r in records]


def test_numpy(page, dump):
    page.run("NumPy")
    with np.load(page.where / "layer6.npz") as file:
        assert sorted(file) == ["blocks.6.hook_resid_post", "blocks.6.mlp.hook_post"]
        assert all(file[name].tobytes() == dump["activations"][name][:].tobytes() for name in file)
    mapped = np.load(page.where / "post6.npy", mmap_mode="r")
    assert mapped.dtype == np.float32 and mapped.tobytes() == dump["activations/blocks.6.mlp.hook_post"][:].tobytes()
    away = np.load(page.where / "away.npy").astype(float)
    with h5py.File(page.where / "without.h5") as f:
        left = f["activations/blocks.6.hook_resid_post"][:] @ away / np.linalg.norm(away)
        assert np.abs(left).max() < 1e-4 * np.linalg.norm(away)
