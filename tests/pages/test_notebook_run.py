"""Notebooks that run, and a page that a browser opens: notebook-export with what a user has beside it. What each kind shows has tests of its
own, test_notebook_KIND.py; what the tool says and writes, tests/cli/test_notebook_export.py."""
import math
import os

import nbformat
import pytest

import chromium
import nblib
from weircli import trace, weir


def export(*args, **more):
    return weir("notebook-export", *args, **more)


@pytest.fixture
def at(tmp_path):
    """A directory with a dump in it."""
    trace("-q", "--layer", "6", "--site", "post,resid_post", "--dump", "mlp.h5", "Boulder is in the state of", "Two boys went", cwd=tmp_path).ok()
    return tmp_path


def until_open(nb):
    """The cells behind `open` are tests of the kind."""
    nb.cells = nb.cells[:[c.id for c in nb.cells].index("open") + 1]


def test_the_pair_can_be_moved(at):
    """The notebook beside its file runs where both are taken."""
    export("mlp.h5", cwd=at).ok()
    moved = at / "elsewhere"
    moved.mkdir()
    for name in ("mlp.h5", "mlp.ipynb"):
        (at / name).rename(moved / name)
    nb = nblib.run(moved / "mlp.ipynb", change=until_open)
    assert nb.variables["file"] == "mlp.h5" and nb.variables["n_rows"] == 15


def test_a_hostile_name_is_opened(at):
    name = b'b"\n\xff`<b>.h5'
    os.rename(at / "mlp.h5", os.fsencode(at) + b"/" + name)
    export(os.fsdecode(name), "-o", "x.ipynb", cwd=at).ok()
    nb = nblib.run(at / "x.ipynb", change=until_open)
    assert nb.variables["n_rows"] == 15


@chromium.needs_browser
def test_page_in_a_browser(at):
    export("mlp.h5", "--html", cwd=at).ok()
    with chromium.chromium() as b:
        b.open(at / "mlp.html")
        for scheme in ("light", "dark"):
            b.in_scheme(scheme)
            b.is_readable(100)
        assert b.nameless() == []
        b.resize(*chromium.PHONE, mobile=True)
        assert b.run("return document.documentElement.scrollWidth") <= chromium.PHONE[0]
        scales = "return [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
        assert min(b.run(scales)) > 0.99  # pushed aside, not shrunk
        b.quiet(at / "mlp.html")


def test_execute_with_jupyter(at):
    export("mlp.h5", "--execute", "-q", cwd=at).ok()
    nb = nblib.read(at / "mlp.ipynb")
    kinds = [o.output_type for c in nb.cells for o in c.get("outputs", [])]
    assert "error" not in kinds and any("image/png" in o.get("data", {}) for c in nb.cells for o in c.get("outputs", []))
    assert all(c.execution_count for c in nb.cells if c.cell_type == "code")
    export("mlp.h5", cwd=at).ok()  # it was only run


SLOW_ONCE = """import os, time
if not os.path.exists("slept"):
    open("slept", "w").close()
    time.sleep(600)
raise ImportError("no more")
"""


def test_execute_stops_a_cell_that_takes_too_long(at):
    (at / "shadow").mkdir()
    (at / "shadow" / "h5py.py").write_text(SLOW_ONCE)
    r = export("mlp.h5", "--execute", "-q", "--timeout", "1", cwd=at, env={"PYTHONPATH": str(at / "shadow")})
    r.fails(1, "mlp.ipynb: its cell open failed: KeyboardInterrupt", "--timeout gives a cell longer")
    assert any(o.output_type == "error" for c in nblib.read(at / "mlp.ipynb").cells for o in c.get("outputs", []))


def test_notebooks_do_not_see_each_other(tmp_path):
    new = nbformat.v4
    for i, source in enumerate(["import numpy as np\nx = np.arange(3) / 2\ny = {'k': [1, float('nan')]}\nz = np.float32(0.5)\nprint('hi')", "print(x)",
                                "import os\nhere = os.getcwd()\n1 / 0\nafter = 1"]):
        nbformat.write(new.new_notebook(cells=[new.new_code_cell(source, id="c")]), tmp_path / f"{i}.ipynb")
    one = nblib.run(tmp_path / "0.ipynb")
    assert one.variables["x"] == [0, 0.5, 1] and one.variables["z"] == 0.5 and math.isnan(one.variables["y"]["k"][1]) and one.text("c") == "hi\n"
    assert nblib.run(tmp_path / "1.ipynb", ok=False).errors == {"c": "NameError: name 'x' is not defined"}
    three = nblib.run(tmp_path / "2.ipynb", ok=False)
    assert three.errors == {"c": "ZeroDivisionError: division by zero"} and three.variables["here"] == str(tmp_path.resolve())
    with pytest.raises(AssertionError, match="ZeroDivision"):
        nblib.run(tmp_path / "2.ipynb")
