"""tests/run counts what it is shown: passed, failed, skipped, crashed and silent programs."""
import os
import subprocess

import pytest

from weircli import ROOT

CMOCKA = """[==========] tests: Running 3 test(s).
[ RUN      ] good
[       OK ] good
[ RUN      ] bad
[  ERROR   ] --- 1 != 2
[   LINE   ] --- x.c:3: error: Failure!
[  FAILED  ] bad
[ RUN      ] absent
the big model is not here
[  SKIPPED ] absent
[==========] tests: 3 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] tests: 1 test(s), listed below:
[  SKIPPED ] absent
[  FAILED  ] tests: 1 test(s), listed below:
[  FAILED  ] bad
"""


@pytest.fixture
def build(tmp_path):
    def program(folder, name, output, code=0):
        path = tmp_path / "tests" / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}END\nexit {code}\n")
        path.chmod(0o755)
    program.path = tmp_path
    return program


def run(build, shared="/nonexistent"):
    return subprocess.run([ROOT / "tests" / "run", "--build", build.path, "--bin", build.path, "--c-only"],
                          capture_output=True, text=True, env={**os.environ, "WEIR_SHARED": str(shared)})


def last(p):
    return p.stdout.splitlines()[-1]


def test_all_passed(build):
    build("unit", "test_a", "[ RUN      ] good\n[       OK ] good\n")
    build("api", "example", "output of its own\n")
    p = run(build)
    assert p.returncode == 0 and last(p) == "2 passed, 0 failed"


def test_failures_and_reasons_are_shown(build):
    build("unit", "test_a", CMOCKA, 1)
    p = run(build)
    assert p.returncode == 1 and last(p) == "1 passed, 1 failed, 1 skipped"
    assert "1 != 2" in p.stdout and "skipped absent: the big model is not here" in p.stdout


def test_a_skipped_test_fails_where_its_model_is(build, tmp_path):
    build("unit", "test_a", "[ RUN      ] absent\nno model\n[  SKIPPED ] absent\n")
    build("unit", "test_b", "[ RUN      ] good\n[       OK ] good\n")
    assert last(run(build)) == "1 passed, 0 failed, 1 skipped"
    p = run(build, shared=tmp_path)
    assert p.returncode == 1 and last(p) == "1 passed, 1 failed"


@pytest.mark.parametrize("output, code", [
    ("[ RUN      ] good\n[       OK ] good\n", 1),                        # fails after its tests, as leak checkers do
    ("[ RUN      ] good\n[       OK ] good\n[ RUN      ] dies\n", 139),   # crashes inside one
    ("nothing\n", 1),
])
def test_a_program_that_ends_badly_fails(build, output, code):
    build("unit", "test_a", output, code)
    p = run(build)
    assert p.returncode == 1 and last(p).endswith(" 1 failed")


def test_no_tests_is_a_failure(build):
    p = run(build)
    assert p.returncode == 1 and last(p) == "0 passed, 0 failed"
