"""Runs that are killed while they record: by SIGKILL after the n-th write to the file, for random n (tests/support/killat.c).

Afterwards `weir repair` opens the file, a fresh h5py process finds in it every row that had been flushed, all of them the
unbroken run's, and `trace --resume` makes of it what the unbroken run made. WEIR_KILLS says how many are tried in all (make
check-slow: 200)."""
import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from dumps import differences
from weircli import BROOK, ROOT, environment, trace, weir

KILLS = int(os.environ.get("WEIR_KILLS", "10"))
SEED = int(os.environ.get("WEIR_SEED", "4"))
SENTENCES = 110

# What a fresh process finds in FILE: every row of every dataset is read, and compared with the unbroken run's.
READ = """
import h5py, sys
sys.path.insert(0, sys.argv[3])
from dumps import not_a_beginning
with h5py.File(sys.argv[1]) as part, h5py.File(sys.argv[2]) as whole:
    for line in not_a_beginning(part, whole):
        print(line)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    so = tmp_path_factory.mktemp("shim") / "killat.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", so, ROOT / "tests" / "support" / "killat.c", "-ldl"], check=True)
    return so


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    lines = (BROOK / "sentences.txt").read_text().splitlines()[:SENTENCES]
    path.write_text("\n".join(lines) + "\n")
    return path


class Case:
    """One way to run, its unbroken result, and what that run wrote when."""

    def __init__(self, where, shim, text, name, *options):
        self.where, self.shim = where, shim
        self.options = ("--layer", "0-1", "--site", "resid_post,post", "--file", text, "--batch", "256", *options)
        self.name = name
        self.whole = where / f"{name}-whole.h5"
        trace(*self.options, "--dump", self.whole).ok()
        with h5py.File(self.whole) as f:
            self.at = f["progress/rows_complete"].id.get_offset()
            self.groups = [g.decode() for g in f["progress/group"][:]]
        self.dump = where / f"{name}.h5"
        self.part = where / f"{name}.h5.part"
        log = self.run_logged(0)
        assert not differences(self.dump, self.whole)
        self.writes = len(log)
        self.first_flush = next(n for n, rows in self.flushes(log) if max(rows) > 0)

    def run_logged(self, kill_after, **more):
        log = self.where / "log"
        log.unlink(missing_ok=True)
        self.dump.unlink(missing_ok=True)
        env = {"LD_PRELOAD": str(self.shim), "WEIR_WRITE_LOG": str(log), "WEIR_KILL_AFTER": str(kill_after), **more}
        p = subprocess.run(["weir", "trace", *self.options, "--dump", self.dump, "--force", "--quiet"],
                           env=environment(**env), capture_output=True, timeout=300)
        assert p.returncode == (-9 if kill_after else 0), p.stderr
        return [line.split(" ") for line in log.read_text().splitlines()]

    def flushes(self, log):
        """(number of the write, rows_complete) whenever the file was told that rows are whole."""
        size = 8 * len(self.groups)
        for n, at, length, data in log:
            first = self.at - int(at)
            if 0 <= first and first + size <= int(length) and data:
                yield int(n), struct.unpack(f"<{len(self.groups)}q", bytes.fromhex(data)[first:first + size])


@pytest.fixture(scope="module")
def cases(tmp_path_factory, shim, text):
    where = tmp_path_factory.mktemp("killed")
    return [Case(where, shim, text, "batches", "--logprob"),
            Case(where, shim, text, "layers", "--order", "layer")]


def killed(case, n):
    """Kills after write n, repairs, reads, resumes. Returns whether something had been flushed."""
    log = case.run_logged(n)
    assert len(log) == n
    flushed = [rows for _, rows in case.flushes(log)]
    last = flushed[-1] if flushed else [0] * len(case.groups)
    if not case.part.exists():
        assert max(last) == 0
        return False
    copy = case.where / "copy.h5.part"
    shutil.copy(case.part, copy)
    repaired = weir("repair", copy)  # documents without a whole row are cut off, too
    if max(last) > 0 or repaired.code == 0:
        repaired.ok()
        with h5py.File(copy) as f:
            have = dict(zip((g.decode() for g in f["progress/group"][:]), f["progress/rows_complete"][:]))
            assert f.attrs["complete"] == 0
            assert len(f["docs/start"]) > max(f["tokens/doc"][:], default=-1)
        lost = {g: (rows, have[g]) for g, rows in zip(case.groups, last) if have[g] < rows and g != "docs"}
        assert not lost, f"killed after write {n}: flushed and lost: {lost}"
        found = subprocess.run([sys.executable, "-c", READ, copy, case.whole, Path(__file__).parent], capture_output=True,
                               text=True)
        assert found.returncode == 0 and not found.stdout, (n, found.stdout, found.stderr)
    resumed = trace(*case.options, "--dump", case.dump, "--resume", "--quiet")
    if max(last) == 0 and resumed.code:
        trace(*case.options, "--dump", case.dump, "--force", "--quiet").ok()  # killed before the file was a file
    else:
        resumed.ok()
    assert not differences(case.dump, case.whole), n
    assert not case.part.exists()
    return max(last) > 0


def test_killed_runs_lose_nothing_and_go_on(cases):
    random.seed(SEED)
    after = 0
    for i in range(KILLS):
        case = cases[i % 3 == 2]  # one in three goes layer by layer
        late = i % 10 < 9
        n = random.randint(case.first_flush, case.writes - 1) if late else random.randint(1, case.first_flush)
        after += killed(case, n)
    assert after >= KILLS * 4 / 5 or KILLS < 5


def test_the_comparison_sees_a_changed_row(cases, tmp_path):
    other = tmp_path / "other.h5"
    shutil.copy(cases[0].whole, other)
    with h5py.File(other, "r+") as f:
        f["activations"]["blocks.1.mlp.hook_post"][700, 3] += 1
    assert differences(other, cases[0].whole)
    found = subprocess.run([sys.executable, "-c", READ, other, cases[0].whole, Path(__file__).parent], capture_output=True,
                           text=True)
    assert found.returncode == 0 and "blocks.1.mlp.hook_post" in found.stdout
