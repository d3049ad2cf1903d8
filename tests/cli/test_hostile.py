"""Files that change under a run, limits, links, signals: one line, exit 1 or 2, nothing half-written under the final name."""
import os
import resource
import shutil
import signal
import subprocess
import time

import h5py
import pytest

from weircli import BIN, BROOK, environment, trace

WORDS = b"some words of text that run on\n"


def start(*args, **more):
    """A run that reads a pipe: it lives until the pipe is closed."""
    return subprocess.Popen([BIN / "weir", "trace", "--layer", "1", *args], env=environment(), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def feed(process, path, text=WORDS * 200):
    """Gives the run something, and waits until its .part is there."""
    process.stdin.write(text)
    process.stdin.flush()
    part = path.with_name(path.name + ".part")
    deadline = time.monotonic() + 60
    while not part.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert part.exists()
    time.sleep(0.3)
    return part


def end(process):
    _, err = process.communicate(timeout=120)
    return process.returncode, err.decode()


def names(directory):
    return sorted(p.name for p in directory.iterdir())


@pytest.mark.parametrize("limit", [0, 100, 4096, 100_000])
def test_a_file_that_may_not_grow(tmp_path, limit):
    code, err = end(start("--dump", tmp_path / "x.h5", "one text",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
    assert code == 1 and "File too large" in err and err.count("\n") == 1
    assert names(tmp_path) == []


@pytest.mark.parametrize("make", [lambda p, v: p.symlink_to(v), lambda p, v: p.mkdir(), lambda p, v: os.mkfifo(p)])
def test_force_removes_only_a_file(tmp_path, make):
    path, victim = tmp_path / "x.h5", tmp_path / "precious"
    victim.write_text("precious")
    make(tmp_path / "x.h5.part", victim)
    trace("--layer", "1", "--dump", path, "--force", "a").fails(1, "x.h5.part is not a file")
    assert victim.read_text() == "precious" and names(tmp_path) == ["precious", "x.h5.part"]


def test_force_does_not_destroy_a_run_that_lives(tmp_path):
    path = tmp_path / "x.h5"
    first = start("--dump", path, "--quiet")
    feed(first, path)
    trace("--layer", "1", "--dump", path, "a").fails(1, "x.h5.part", "--force")
    trace("--layer", "1", "--dump", path, "--force", "a").fails(1, "is being written by another run")
    assert end(first) == (0, "") and names(tmp_path) == ["x.h5"]
    with h5py.File(path) as f:
        assert f.attrs["complete"] == 1 and f["docs/count"].shape == (200,)


def test_a_part_that_was_replaced_is_not_published(tmp_path):
    path = tmp_path / "x.h5"
    first = start("--dump", path)
    part = feed(first, path)
    part.unlink()
    part.write_text("of somebody else")
    code, err = end(first)
    assert code == 1 and "was removed or replaced" in err and names(tmp_path) == ["x.h5.part"]
    assert part.read_text() == "of somebody else"


def test_a_name_that_was_taken_meanwhile_loses_no_rows(tmp_path):
    path = tmp_path / "x.h5"
    first = start("--dump", path)
    part = feed(first, path)
    path.write_text("my notes")
    code, err = end(first)
    assert code == 1 and "is not a file of weir's" in err
    assert f"the rows are in {part}" in err and path.read_text() == "my notes"
    with h5py.File(part) as f:
        assert f.attrs["complete"] == 1 and f["docs/count"].shape == (200,)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_ends_the_wait_for_text(tmp_path, number):
    path = tmp_path / "x.h5"
    p = start("--dump", path)
    part = feed(p, path, WORDS * 2000)
    time.sleep(1)
    p.send_signal(number)
    try:
        assert p.wait(timeout=20) == 1
    finally:
        p.kill()
    err = p.stderr.read().decode()
    assert err == f"trace: stopped by signal {int(number)}; the rows so far are in {part}: --resume goes on with them\n"
    with h5py.File(part) as f:
        assert f.attrs["complete"] == 0


def test_an_ignored_signal_stays_ignored(tmp_path):
    path = tmp_path / "x.h5"
    p = start("--dump", path, "--quiet", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    feed(p, path)
    p.send_signal(signal.SIGHUP)
    assert end(p) == (0, "") and names(tmp_path) == ["x.h5"]


def test_a_pipe_that_does_not_block_is_waited_for(tmp_path):
    read, write = os.pipe()
    os.set_blocking(read, False)
    p = subprocess.Popen([BIN / "weir", "trace", "--layer", "1", "--quiet", "--dump", tmp_path / "x.h5"],
                         env=environment(), stdin=read, stderr=subprocess.PIPE)
    for _ in range(3):
        os.write(write, WORDS)
        time.sleep(0.4)
    os.close(write)
    os.close(read)
    assert end(p) == (0, "")
    with h5py.File(tmp_path / "x.h5") as f:
        assert f["docs/count"].shape == (3,)


def test_a_model_that_is_cut_short_while_it_is_read(tmp_path):
    model, path = tmp_path / "model", tmp_path / "x.h5"
    shutil.copytree(BROOK, model, ignore=shutil.ignore_patterns("recipe"))
    p = start("--model", model, "--dump", path)
    time.sleep(1)  # it is open and waits for text
    os.truncate(model / "model.safetensors", 10000)
    p.stdin.write(WORDS)
    code, err = end(p)
    assert code == 1 and err.count("\n") == 1 and "cut short" in err
    assert not path.exists()


def test_an_hdf5_file_is_no_text(tmp_path):
    path = tmp_path / "x.h5"
    trace("--layer", "1", "--dump", path, "a").ok()
    before = path.read_bytes()
    trace("--layer", "1", "--dump", path, "--file", path).fails(2, "x.h5", "HDF5")
    trace("--layer", "1", "--dump", path, path).fails(2, "x.h5", "HDF5")
    assert path.read_bytes() == before


def test_a_file_that_hides_its_size(tmp_path):
    trace("--layer", "1", "--dump", tmp_path / "x.h5", "--file", "/proc/self/status").ok()


def test_a_dump_needs_a_file(tmp_path):
    trace("--layer", "1", "--dump", "-", "a", cwd=tmp_path).fails(2, "--dump -")
    assert names(tmp_path) == []
