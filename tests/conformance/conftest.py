import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import pytest
import torch
import transformers

import compare
import models
import reference
import weirdump

torch.set_num_threads(os.cpu_count() or 1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

CASES = {}
SUMMARY = []


def all_cases():
    """Made once, when the tests are collected: each case is a test of its own."""
    if not CASES:
        for c in models.make_tiny() + [models.brook_case()]:
            CASES[c.name] = c
    return CASES


def pytest_configure(config):
    config.addinivalue_line("markers", "wants(only): a predicate that tells the cases that the test is about")


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        wants = metafunc.definition.get_closest_marker("wants")  # which cases a test is about: a test that cannot be is not skipped
        cases = [c for c in all_cases().values() if not wants or wants.kwargs["only"](c)]
        metafunc.parametrize("case", cases, ids=[c.name for c in cases], scope="session")


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
def smollm2():
    if not models.SMOLLM2.exists():
        pytest.skip(f"{models.SMOLLM2.name} is not beside the repository")
    return models.smollm2_case()


@pytest.fixture(scope="session")
def smollm2_model(smollm2):
    return models.load(smollm2)


def pytest_terminal_summary(terminalreporter):
    report = getattr(sys.modules.get("test_values"), "REPORT", {})
    if report:
        worst = sorted(report.items(), key=lambda x: -x[1])[:5]
        terminalreporter.write_line("largest part of the bound used: " + ", ".join(f"{k} {v:.2f}" for k, v in worst))
    count = {k: len(terminalreporter.stats.get(k, [])) for k in ("passed", "failed", "error", "skipped")}
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    SUMMARY.append(f"{count['passed']} passed, {count['failed'] + count['error']} failed{skipped}")


def pytest_unconfigure():
    """The last line of the run."""
    for line in SUMMARY:
        print(f"conformance: {line}")
