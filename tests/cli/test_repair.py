"""weir repair, a run that h5py follows, and what a killed or filled-up run leaves. HDF5's own tools and h5py judge."""
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from dumps import differences, not_a_beginning
from weircli import BIN, ROOT, environment, trace, weir

TEXT = "The river bends below the town, and the road follows it.\nA heron stands in the shallows.\n" * 700
ARGS = ("--layer", "1", "--ctx", "64", "--batch", "128", "--threads", "1", "--quiet")


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    so = tmp_path_factory.mktemp("shim") / "killat.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", so, ROOT / "tests/support/killat.c", "-ldl"], check=True)
    return so


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    d = tmp_path_factory.mktemp("whole")
    (d / "text.txt").write_text(TEXT)
    trace(*ARGS, "--dump", "whole.h5", "--file", "text.txt", cwd=d).ok()
    return d / "whole.h5"


def rows_of(f):
    """What /progress says is whole of all that has rows."""
    return min(int(n) for name, n in zip(f["progress/group"], f["progress/rows_complete"]) if name != b"docs")


def killed(shim, tmp_path, whole, **env):
    """A run that ends at a write of its dump, by the shim."""
    shutil.copy(whole.parent / "text.txt", tmp_path)
    return trace(*ARGS, "--dump", "x.h5", "--file", "text.txt", cwd=tmp_path,
                 env={"LD_PRELOAD": str(shim), **{k: str(v) for k, v in env.items()}})


def test_a_killed_run_is_repaired(shim, whole, tmp_path):
    assert killed(shim, tmp_path, whole, WEIR_KILL_AFTER=400).code == -signal.SIGKILL
    part = tmp_path / "x.h5.part"
    with pytest.raises(OSError):
        h5py.File(part)
    r = weir("repair", part.name, cwd=tmp_path).ok()
    assert r.err == "" and r.out.decode().startswith("x.h5.part: repaired; ")
    with h5py.File(part) as a, h5py.File(whole) as b:
        assert a.attrs["complete"] == 0
        rows = rows_of(a)
        assert rows >= 1024 and rows % 1024 == 0
        assert not_a_beginning(a, b) == []
        assert a["docs/start"][-1] + a["docs/count"][-1] == len(a["tokens/id"])
    before = part.read_bytes()
    report = weir("repair", "--json", part.name, cwd=tmp_path).ok().json["x.h5.part"]
    assert report["was_open"] is False and report["complete"] is False and report["datasets_cut"] == 0
    assert report["rows"] == rows and report["documents"] > 0
    assert part.read_bytes() == before
    trace(*ARGS, "--dump", "x.h5", "--file", "text.txt", "--resume", cwd=tmp_path).ok()
    assert differences(tmp_path / "x.h5", whole) == []
    assert not part.exists()


def test_the_comparison_can_fail(whole, tmp_path):
    shutil.copy(whole, tmp_path / "other.h5")
    with h5py.File(tmp_path / "other.h5", "r+") as f:
        f["tokens/id"][7] += 1
    assert differences(tmp_path / "other.h5", whole) == ["tokens/id: other bytes"]


def test_a_full_disk_is_one_line_and_loses_nothing(shim, whole, tmp_path):
    r = killed(shim, tmp_path, whole, WEIR_FAIL_FROM=400)
    r.fails(1, "No space left on device", "x.h5.part", "repair")  # not even the repair could be written
    weir("repair", "x.h5.part", cwd=tmp_path).ok()
    with h5py.File(tmp_path / "x.h5.part") as a, h5py.File(whole) as b:
        assert rows_of(a) >= 1024
        assert not_a_beginning(a, b) == []
    trace(*ARGS, "--dump", "x.h5", "--file", "text.txt", "--resume", cwd=tmp_path).ok()
    assert differences(tmp_path / "x.h5", whole) == []


def test_a_limit_on_the_size_is_a_full_disk(whole, tmp_path):
    shutil.copy(whole.parent / "text.txt", tmp_path)
    limit = os.path.getsize(whole) // 2 // 1024
    words = " ".join(ARGS)
    p = subprocess.run(["bash", "-c", f"trap '' XFSZ; ulimit -f {limit}; weir trace {words} --dump x.h5 --file text.txt"],
                       cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    assert p.returncode == 1
    assert len(p.stderr.splitlines()) == 1
    assert "File too large" in p.stderr and "are safe in x.h5.part" in p.stderr and "--resume" in p.stderr
    with h5py.File(tmp_path / "x.h5.part") as a, h5py.File(whole) as b:  # opens as it is
        assert rows_of(a) >= 1024
        assert not_a_beginning(a, b) == []
    trace(*ARGS, "--dump", "x.h5", "--file", "text.txt", "--resume", cwd=tmp_path).ok()
    assert differences(tmp_path / "x.h5", whole) == []


def may_mount(tmp_path):
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path]
    return shutil.which("unshare") is not None and subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("part", [3, 5, 8])
def test_a_small_disk(whole, tmp_path, part):
    """A file system of part/10 of what the dump needs. Where none can be mounted, the limit above has to do."""
    if not may_mount(tmp_path):
        return
    shutil.copy(whole.parent / "text.txt", tmp_path)
    (tmp_path / "disk").mkdir()
    size = os.path.getsize(whole) * part // 10 // 4096 * 4
    script = (f"mount -t tmpfs -o size={size}k none disk && weir trace {' '.join(ARGS)} --dump disk/x.h5 --file text.txt; "
              "echo $? > code; cp disk/x.h5.part .")
    p = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE,
                       text=True)
    assert (tmp_path / "code").read_text() == "1\n"
    assert len(p.stderr.splitlines()) == 1, p.stderr
    assert "No space left on device" in p.stderr and "are safe in disk/x.h5.part" in p.stderr
    with h5py.File(tmp_path / "x.h5.part") as a, h5py.File(whole) as b:
        assert rows_of(a) >= 1024
        assert not_a_beginning(a, b) == []
    trace(*ARGS, "--dump", "x.h5", "--file", "text.txt", "--resume", cwd=tmp_path).ok()
    assert differences(tmp_path / "x.h5", whole) == []


def test_h5py_follows_a_run(whole, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT * 4)
    p = subprocess.Popen([BIN / "weir", "trace", *ARGS, "--dump", "x.h5", "--file", "text.txt"], cwd=tmp_path,
                         env=environment(), stderr=subprocess.PIPE)
    seen, f = [], None
    with h5py.File(whole) as b:
        ids, values = b["tokens/id"][:], b["activations/blocks.1.hook_resid_post"][:]
    while p.poll() is None:
        if f is None:
            try:
                f = h5py.File(tmp_path / "x.h5.part", "r", libver="latest", swmr=True)
                progress, id_now = f["progress/rows_complete"], f["tokens/id"]
                value = f["activations/blocks.1.hook_resid_post"]
            except (OSError, KeyError):
                f = None
                time.sleep(0.01)
                continue
        progress.refresh()
        rows = rows_of(f)
        if rows and rows not in seen:
            id_now.refresh()
            value.refresh()
            n = min(rows, len(ids))
            assert (id_now[:n] == ids[:n]).all()
            assert value[n - 1].tobytes() == values[n - 1].tobytes()
            seen.append(rows)
        time.sleep(0.005)
    assert p.returncode == 0, p.stderr.read()
    p.stderr.close()
    assert len(seen) >= 2 and seen == sorted(seen)
    if f:
        f.close()


def test_what_cannot_be_repaired_is_refused(whole, tmp_path):
    weir("repair").fails(2, "name the files")
    weir("repair", tmp_path / "nothing.h5.part").fails(1, "No such file")
    weir("repair", tmp_path).fails(1, "directory")
    text = tmp_path / "text.h5.part"
    text.write_bytes(b"The river bends." * 10)
    weir("repair", text).fails(1, "text.h5.part", "not an HDF5 file")
    empty = tmp_path / "empty.h5.part"
    empty.touch()
    weir("repair", empty).fails(1, "not an HDF5 file")
    half = tmp_path / "half.h5.part"
    half.write_bytes(whole.read_bytes()[:200000])
    weir("repair", half).fails(1, "is cut off", "200000 bytes")


def test_files_of_others_stay_as_they_are(tmp_path):
    other = tmp_path / "other.h5"
    with h5py.File(other, "w", libver="latest") as f:
        f["x"] = np.arange(10)
        f.swmr_mode = True
        f.flush()
        left = other.read_bytes()  # as a killed writer leaves it
    other.write_bytes(left)
    weir("repair", other).fails(1, "other.h5", "not a dump of weir's")
    assert other.read_bytes()[:len(left)] == left


def test_complete_files_need_no_repair(whole):
    before = whole.read_bytes()
    assert b"complete: nothing to repair" in weir("repair", whole).ok().out
    assert weir("repair", whole, "--quiet").ok().out == b""
    assert whole.read_bytes() == before


def test_one_bad_file_does_not_stop_the_others(whole, tmp_path):
    r = weir("repair", "--json", tmp_path / "no", whole)
    assert r.code == 1 and "No such file" in r.err
    assert r.json[str(whole)]["complete"] is True


def test_resuming_what_is_complete_does_nothing_and_another_run_is_refused(tmp_path):
    args = ["--layer", "0", "--dump", "x.h5", "The river bends."]
    trace(*args, "--quiet", cwd=tmp_path).ok()
    before = (tmp_path / "x.h5").read_bytes()
    again = trace(*args, "--resume", "--json", cwd=tmp_path).ok()
    assert again.json == {"dump": "x.h5", "finished_before": True} and "is complete: nothing is left to do" in again.err
    for other, words in ((["--logprob"], "has no log-probabilities"), (["--compress", "5"], 'its compress is "1", not "5"'),
                         (["--dtype", "f16"], "its storage is"), (["--ctx", "8"], "its ctx is"),
                         (["--layer", "1"], "does not hold blocks.1"), (["--ablate", "L0N3"], "its interventions")):
        trace(*args, "--resume", *other, cwd=tmp_path).fails(2, "x.h5 is complete, but", words)
    trace(*args[:-1], "--resume", "The river runs.", cwd=tmp_path).fails(2, "x.h5 is complete, but", "its run_options")
    assert (tmp_path / "x.h5").read_bytes() == before
