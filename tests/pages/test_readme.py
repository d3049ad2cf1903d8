"""Every command of README.md works as it is printed, and prints what stands there; so do those of other pages."""
import gzip
import os

import pytest

import pages
from weircli import BIN, BROOK, ROOT, brook_with, environment

SLOW = bool(os.environ.get("WEIR_SLOW"))

# Commands that take long run with WEIR_SLOW (make check-slow).
LONG = ("rome eval", "lens-fit")
# Not ours to run here: these tests themselves, and what test_packages.py runs.
NOT_HERE = ("make check", "make install", "make dist", "make bindist")
# What a reader brings along. Only commands that name such a model may need such a text: all others work in a fresh clone.
THEIRS = ("~/models/gpt2", "corpus.txt.gz")
DONE = "make deps && make -j4 && "  # CI has done this


def blocks():
    return [b for b in pages.blocks_of((ROOT / "README.md").read_text(encoding="utf-8")) if b.language in ("sh", "python")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What the reader has: a clone that is built, and (THEIRS) a model and a text of their own."""
    where = tmp_path_factory.mktemp("clone")
    pages.lay_out(ROOT, where)
    (where / "lib").unlink()
    (where / "lib").mkdir()
    for entry in (ROOT / "lib").iterdir():
        (where / "lib" / entry.name).symlink_to(entry)
    brook_with(100, where / "few")
    (where / "build").mkdir()
    (where / "build/bin").symlink_to(BIN)
    sentences = (BROOK / "sentences.txt").read_bytes()
    (where / "corpus.txt.gz").write_bytes(gzip.compress(sentences[:40000]))
    (where / "home/models").mkdir(parents=True)
    (where / "home/models/gpt2").symlink_to(BROOK)  # of GPT-2's class
    return where


def runs(command):
    return not any(word in command for word in NOT_HERE + (() if SLOW else LONG))


def model_for(block, clone):
    """Where no output stands on the page, and nothing has to be caught while it runs, a tenth of the sentences does."""
    brook = BROOK if SLOW or block.output is not None or "timeout" in block.text else clone / "few"
    (clone / "lib/brook").unlink(missing_ok=True)
    (clone / "lib/brook").symlink_to(brook)
    return environment(HOME=str(clone / "home"), WEIR_BROOK=str(brook))


@pytest.mark.parametrize("block", blocks(), ids=repr)
def test_the_commands_work_as_printed(clone, block):
    if block.language == "sh":
        block.text = "".join(f"{c}\n" for c in pages.commands_of(block.text.replace(DONE, "")) if runs(c))
    failed, printed = pages.run(block, clone, model_for(block, clone))
    assert failed is None, f"{failed}\n{printed[-3000:]}"
    if block.output is not None and block.text:
        assert (wrong := pages.difference(printed, block.output)) is None, wrong


def test_a_fresh_clone_has_all_that_the_other_commands_need():
    lines = [c for b in blocks() if b.language == "sh" for c in pages.commands_of(b.text)]
    model, text = THEIRS
    assert any(model in line for line in lines) and [line for line in lines if text in line and model not in line] == []


def test_what_is_left_out_is_on_the_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [word for word in (*LONG, *NOT_HERE) if word not in text] == []


# --- the checker itself

PAGE = """
```sh
one
two
```

```
out
...
end
```
text
```
not an output
```
```python
three
```
"""


def test_blocks_and_their_outputs_are_found():
    found = pages.blocks_of(PAGE)
    assert [(b.language, b.text, b.output) for b in found] == [
        ("sh", "one\ntwo\n", "out\n...\nend\n"), ("", "not an output\n", None), ("python", "three\n", None)]


def test_a_departure_is_noticed():
    same = lambda printed, page: pages.difference(printed, page) is None
    assert same("a\nb\n", "a\nb\n") and same("a\nx\ny\nb\n", "a\n...\nb\n") and same("a\nb\n", "a\n...\n")
    assert same("in 2.20 s: 13,481 tokens/s", "in 9.99 s: 1 tokens/s")
    assert not same("a\nb\n", "a\nc\n") and not same("a\nb\n", "a\n") and not same("a\n", "a\nb\n")
    assert not same("a\nx\nb\n", "a\nb\n") and not same("a\nx\n", "a\n...\nb\n") and not same("29,686 tokens", "29,687 tokens")


def test_a_command_that_fails_is_noticed(tmp_path):
    run = lambda language, text: pages.run(pages.Block(1, language, text), tmp_path)[0]
    assert run("sh", "true\n(exit 3)  # differs: exit 3\n") is None and run("python", "1\n") is None
    assert run("sh", "false\ntrue\n") and run("sh", "false | true\n") and run("sh", "(exit 3)\n") and run("python", "1/0\n")
