"""The replay of the fuzzers' corpus (tests/fuzz/driver.h) reports what it is there for: a target that crashes or breaks a promise."""
import os
import subprocess
import sys

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
TARGET = """
#include "driver.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PROMISE(!size || !memmem(data, size, "bad", 3));
    if (size && memmem(data, size, "worse", 5))
        *(volatile char *)8 = 1;
    return 0;
}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A build directory with one fuzzer in it."""
    path = tmp_path_factory.mktemp("build")
    (path / "tests/fuzz").mkdir(parents=True)
    (path / "fuzz_toy.c").write_text(TARGET)
    subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-I", f"{ROOT}/tests/fuzz", "-I", f"{ROOT}/lib/include", path / "fuzz_toy.c",
                    "-o", path / "tests/fuzz/fuzz_toy"], check=True)
    return path


def replay(build, tmp_path, text, *arguments):
    (tmp_path / "input").write_text(text)
    return subprocess.run([build / "tests/fuzz/fuzz_toy", *arguments, tmp_path / "input"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def test_good_input_passes(build, tmp_path):
    done = replay(build, tmp_path, "good")
    assert done.returncode == 0
    assert "1 files and 0 mutations: no fault" in done.stdout


def test_broken_promise_is_reported(build, tmp_path):
    done = replay(build, tmp_path, "it is bad")
    assert done.returncode != 0
    assert "broken promise" in done.stderr


def test_crash_is_reported(build, tmp_path):
    assert replay(build, tmp_path, "it is worse").returncode != 0


def test_mutations_are_tried(build, tmp_path):
    (tmp_path / "words").write_text('# a comment\n"b\\x61d"\n')
    assert replay(build, tmp_path, "good", "-runs=1000").returncode == 0
    assert replay(build, tmp_path, "good", "-runs=1000", f"-dict={tmp_path}/words").returncode != 0


def test_runner_counts_a_fault_as_a_failure(build):
    """tests/run gives a fuzzer its corpus; without one this fuzzer says how it is used and fails."""
    done = subprocess.run([sys.executable, f"{ROOT}/tests/run", "--build", build, "--bin", build, "--c-only"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "0 passed, 1 failed" in done.stdout
