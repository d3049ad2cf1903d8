"""What the tests share. They run in two processes (run.sh: pytest-xdist), torch in one thread in each: the models are tiny, and threads only
get in each other's way. All tests of a case run in one process, which makes its models and captures once."""
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # of weir too: threads that spin would starve the other process
sys.path.insert(0, str(Path(__file__).resolve().parent))

import pytest
import torch
import transformers

import compare
import models
import reference
import weirdump

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SUMMARY = []


def pytest_configure(config):
    config.addinivalue_line("markers", "wants(only): a predicate that tells the cases that the test is about")
    if not hasattr(config, "workerinput"):  # once, before there are processes that read them
        models.make_tiny()


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        wants = metafunc.definition.get_closest_marker("wants")  # which cases a test is about: a test that cannot be is not skipped
        cases = [c for c in models.all_cases().values() if not wants or wants.kwargs["only"](c)]
        metafunc.parametrize("case", cases, ids=[c.name for c in cases], scope="session")


def group_of(item):
    """What must run in one process: the tests of a case, of SmolLM2, or else of a file, whose fixtures they share."""
    case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
    return case.name if case else "smollm2" if "smollm2" in item.fixturenames else item.path.name


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))


class Loaded:
    """A case with its reference models and captures, each made once."""

    def __init__(self, case):
        self.case = case
        self.model = models.load(case)
        self.model64 = reference.in_float64(self.model)
        self.captures = {}
        self.dumps = {}

    def reference(self, n):
        """(ids, float64 values, tolerance) of the case's sequence of n tokens."""
        if n not in self.captures:
            ids = models.ids_of(self.case, n)
            ref64 = reference.capture(self.model64, ids)
            reference.check_float64(ref64)
            self.captures[n] = ids, ref64, compare.tolerances(ref64, reference.capture(self.model, ids))
        return self.captures[n]

    def weir(self, path, n, out):
        """weir's values for the same ids, from one of the case's files."""
        if (path, n) not in self.dumps:
            self.dumps[path, n] = weirdump.capture(path, models.ids_of(self.case, n), out, extra=("--ctx", max(n, 2)))
        return self.dumps[path, n]


@pytest.fixture(scope="session")
def loaded(case):
    return Loaded(case)


@pytest.fixture(scope="session")
def adapters(loaded, tmp_path_factory):
    from adapters import Adapters  # imports peft, which only some tests need
    return Adapters(loaded, tmp_path_factory.mktemp("adapters"))


@pytest.fixture(scope="session")
def smollm2():
    if not models.SMOLLM2.exists():
        pytest.skip(f"{models.SMOLLM2.name} is not beside the repository")
    return models.smollm2_case()


@pytest.fixture(scope="session")
def smollm2_model(smollm2):
    return models.load(smollm2)


@pytest.fixture(scope="session")
def smollm2_model64(smollm2_model):
    return reference.in_float64(smollm2_model)


def pytest_terminal_summary(terminalreporter):
    used = {}
    for test in terminalreporter.stats.get("passed", []):  # from whichever process
        for kind, part in dict(test.user_properties).get("used", {}).items():
            used[kind] = max(used.get(kind, 0.0), part)
    if used:
        worst = sorted(used.items(), key=lambda x: -x[1])[:5]
        terminalreporter.write_line("largest part of the bound used: " + ", ".join(f"{k} {v:.2f}" for k, v in worst))
    count = {k: len(terminalreporter.stats.get(k, [])) for k in ("passed", "failed", "error", "skipped")}
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    SUMMARY.append(f"{count['passed']} passed, {count['failed'] + count['error']} failed{skipped}")


def pytest_unconfigure():
    """The last line of the run."""
    for line in SUMMARY:
        print(f"conformance: {line}")
