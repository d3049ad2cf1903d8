"""Runs exported notebooks headless, one kernel for all of a test file, and compares what they computed with a page.

    import nblib

    def test_norms(tmp_path):
        weir("notebook-export", "mlp.h5", "-o", "mlp.ipynb", cwd=tmp_path).ok()
        weir("notebook-export", "mlp.h5", "-o", "mlp.html", cwd=tmp_path).ok()
        nb = nblib.run(tmp_path / "mlp.ipynb")
        nblib.compare(nblib.page_numbers(tmp_path / "mlp.html"), nb.variables)
        numbers, page, nb = nblib.both(tmp_path, "mlp.h5")  # the same in a line

The kernel is started at the first `run` of a process, and its variables are removed before each notebook.
"""
import atexit
import base64
import json
import math
import os
import re
import sys

import nbformat
from nbclient import NotebookClient

from weircli import weir

# What a notebook's variables are, as JSON: numbers, texts, lists, dicts of them. Everything else is left out, and what is too large to be
# a number of a page.
COLLECT = r"""
def _weir_collect():
    import json, math
    import numpy as np
    def plain(x, depth=0):
        if isinstance(x, (bool, np.bool_)):
            return bool(x)
        if isinstance(x, (int, np.integer)):
            return int(x)
        if isinstance(x, (float, np.floating)):
            return float(x)
        if isinstance(x, str):
            return x
        if isinstance(x, bytes):
            return x.decode("latin-1")
        if isinstance(x, np.ndarray) and x.size > 100_000:
            raise TypeError
        if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
            return x.tolist()
        if isinstance(x, (list, tuple, np.ndarray)) and depth < 4 and len(x) <= 100_000:
            return [plain(y, depth + 1) for y in x]
        if isinstance(x, dict) and depth < 4:
            return {str(k): plain(v, depth + 1) for k, v in x.items()}
        raise TypeError
    found = {}
    for name, value in list(get_ipython().user_ns.items()):
        if name.startswith("_") or name in ("In", "Out", "exit", "quit"):
            continue
        try:
            found[name] = plain(value)
        except TypeError:
            pass
    print(json.dumps(found))  # with NaN and Infinity, as Python's json reads them
_weir_collect()
"""
# Once a kernel. What is imported here is not searched for garbage after each notebook, and figures are drawn small, and once: `tight`
# would draw each twice.
START = r"""
import gc
import h5py, matplotlib.pyplot, numpy
%config InlineBackend.print_figure_kwargs = {"bbox_inches": None}
%config InlineBackend.rc = {"figure.dpi": 40}
gc.collect()
gc.freeze()
"""
# Imports stay loaded; open files of the notebook before are closed (`reset` collects garbage).
RESET = r"""
import matplotlib.pyplot
matplotlib.pyplot.close("all")
get_ipython().run_line_magic("reset", "-f")
import os as _os
_os.chdir({cwd!r})
"""


class Notebook:
    """What a run came to: cells (with their outputs), variables, errors, texts and images by the cell's id."""

    def __init__(self, nb, variables):
        self.nb, self.variables = nb, variables
        self.cells = {c.id: c for c in nb.cells}

    def outputs(self, cell):
        return self.cells[cell].outputs

    @property
    def errors(self):
        return {i: f"{o.ename}: {o.evalue}" for i, c in self.cells.items() for o in c.get("outputs", []) if o.output_type == "error"}

    def text(self, cell):
        """What the cell printed, and the plain text of what it shows."""
        return "".join(o.text if o.output_type == "stream" else o.get("data", {}).get("text/plain", "") for o in self.outputs(cell))

    def html(self, cell):
        return "".join(o.get("data", {}).get("text/html", "") for o in self.outputs(cell))

    def images(self, cell):
        """The PNG figures of a cell, as bytes."""
        return [base64.b64decode(o.data["image/png"]) for o in self.outputs(cell) if "image/png" in o.get("data", {})]


class Kernel:
    """An IPython kernel of this interpreter, whichever kernels the machine has."""

    def __init__(self):
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # figures are PNG outputs
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # no talk about debuggers
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # another job of tests has the other processor
        self.client = NotebookClient(nbformat.v4.new_notebook(), timeout=120, allow_errors=True)
        self.client.create_kernel_manager()
        self.client.km.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
                                           "--HistoryManager.enabled=False"]
        self.client.start_new_kernel()
        self.client.start_new_kernel_client()
        self.cell(START)

    def cell(self, source):
        """Runs a cell that is in no notebook; what it printed."""
        cell = nbformat.v4.new_code_cell(source)
        self.client.nb = nbformat.v4.new_notebook(cells=[cell])
        self.client.execute_cell(cell, 0, store_history=False)
        failed = [o for o in cell.outputs if o.output_type == "error"]
        assert not failed, failed
        return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")

    def run(self, nb, cwd, until_error):
        self.cell(RESET.format(cwd=str(cwd)))
        self.client.nb = nb
        for i, cell in enumerate(nb.cells):
            if cell.cell_type == "code":
                self.client.execute_cell(cell, i, store_history=False)
            if until_error and any(o.output_type == "error" for o in cell.get("outputs", [])):
                break
        return Notebook(nb, json.loads(self.cell(COLLECT)))

    def stop(self):
        self.client.km.provisioner.process.kill()  # at exit there is no event loop any more
        self.client.km.provisioner.process.wait()
        self.client.km.cleanup_connection_file()


_kernel = None


def kernel():
    global _kernel
    if _kernel is None:
        _kernel = Kernel()
        atexit.register(_kernel.stop)
    return _kernel


def read(path):
    nb = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(nb)
    return nb


def run(path, ok=True, change=None):
    """Executes the notebook in its own directory. ok: a cell that fails is a failure of the test; otherwise all cells run
    and `errors` says what failed. change: a function that changes the notebook before."""
    nb = read(path)
    if change:
        change(nb)
    made = kernel().run(nb, path.resolve().parent, ok)
    if ok:
        assert made.errors == {}, made.errors
    return made


def _unique(pairs):
    names = [k for k, _ in pairs]
    assert len(names) == len(set(names)), f"a number is written twice: {[n for n in names if names.count(n) > 1]}"
    return dict(pairs)


def page_numbers(html):
    """The numbers of a page (its path, text or bytes), by the names of the notebook's variables."""
    if hasattr(html, "read_bytes"):
        html = html.read_bytes()
    text = html.decode() if isinstance(html, bytes) else html
    found = re.findall(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S)
    assert len(found) == 1, f"{len(found)} elements of numbers"
    return json.loads(found[0], object_pairs_hook=_unique)


def both(path, name, *options):
    """Page and notebook of a file in this directory: the page's numbers, its text, and the notebook, executed."""
    for made in ("nb.html", "nb.ipynb"):
        weir("notebook-export", name, *options, "--force", "-o", made, cwd=path).ok()
    page = (path / "nb.html").read_text()
    return page_numbers(page), page, run(path / "nb.ipynb")


WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _same(name, page, own, relative):
    if isinstance(page, list) or isinstance(own, list):
        assert isinstance(page, list) and isinstance(own, list), f"{name}: page {page!r:.80}, notebook {own!r:.80}"
        assert len(page) == len(own), f"{name}: {len(page)} on the page, {len(own)} in the notebook"
        for i, (a, b) in enumerate(zip(page, own)):
            _same(f"{name}[{i}]", a, b, relative)
        return
    if isinstance(page, dict):
        assert isinstance(own, dict) and page.keys() == own.keys(), f"{name}: page {page!r:.80}, notebook {own!r:.80}"
        for k in page:
            _same(f"{name}[{k!r}]", page[k], own[k], relative)
        return
    if isinstance(own, float) and isinstance(page, str):
        page = WORDS.get(page, page)
    if isinstance(page, (int, float)) and isinstance(own, (int, float)) and not isinstance(page, bool) and not isinstance(own, bool):
        same = page == own or (math.isnan(page) and math.isnan(own)) or math.isclose(page, own, rel_tol=relative)
        assert same, f"{name}: page {page!r}, notebook {own!r}"
        return
    assert type(page) is type(own) and page == own, f"{name}: page {page!r:.80}, notebook {own!r:.80}"


def compare(numbers, variables, relative=1e-9):
    """Each of the page's numbers is a variable of the notebook and has its value."""
    assert numbers, "the page has no numbers: the comparison would pass on anything"
    missing = sorted(set(numbers) - set(variables))
    assert not missing, f"the notebook has no variables {missing}"
    for name, value in numbers.items():
        _same(name, value, variables[name], relative)
