"""What a hostile or unlucky user does to recordings, hooks and merges: one line that says what to do, and nothing of theirs is lost.

The signals, kills, limits and full disks of single tools are in test_hostile.py, test_kill.py, test_repair.py, test_order.py and
test_shards.py."""
import os
import random
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from dumps import differences, not_a_beginning
from weircli import BIN, BROOK, ROOT, environment, trace, weir

ARGS = ("--layer", "0-1", "--site", "resid_post,post", "--threads", "1")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    path.write_text("\n".join((BROOK / "sentences.txt").read_text().splitlines()[:120]) + "\n")
    return path


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    so = tmp_path_factory.mktemp("shim") / "killat.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", so, ROOT / "tests/support/killat.c", "-ldl"], check=True)
    return so


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "whole.h5"
    trace(*ARGS, "--file", text, "--dump", path).ok()
    return path


@pytest.fixture(scope="module")
def unfinished(shim, text, whole, tmp_path_factory):
    """What a run leaves that finds the disk full in the middle: closed, with some rows."""
    path = tmp_path_factory.mktemp("part") / "x.h5"
    limit = os.path.getsize(whole) * 3 // 4 // 1024
    subprocess.run(["bash", "-c", f"ulimit -f {limit}; exec weir trace {' '.join(ARGS)} --file '{text}' --dump '{path}' --quiet"],
                   env=environment(), stderr=subprocess.DEVNULL)
    part = path.with_name("x.h5.part")
    with h5py.File(part) as f:
        assert 0 < min(f["progress/rows_complete"][:]) < len(h5py.File(whole)["tokens/id"])
    return part


# --- going on with something else

@pytest.mark.parametrize("options, words", [
    (("--layer", "2", "--site", "resid_post,post"), "without blocks.2.mlp.hook_post"),
    (("--layer", "0-1", "--site", "resid_post"), "which is not asked for now"),
    (("--layer", "0-1", "--site", "resid_post,post", "--hook", "topk:post"), "without hook topk"),
    (("--layer", "0-1", "--site", "resid_post,post", "--logprob"), "without log-probabilities"),
    (("--layer", "0-1", "--site", "resid_post,post", "--shard", "0/2"), "not shard 0/2"),
    (("--layer", "0-1", "--site", "resid_post,post", "--ctx", "64"), "ctx 256"),
    (("--layer", "0-1", "--site", "resid_post,post", "--mantissa", "7"), "storage"),
    (("--layer", "0-1", "--site", "resid_post,post", "--ablate", "L0N3"), "interventions"),
])
def test_another_run_is_not_gone_on_with(unfinished, text, options, words, tmp_path):
    part = tmp_path / "x.h5.part"
    shutil.copy(unfinished, part)
    trace(*options, "--file", text, "--dump", tmp_path / "x.h5", "--resume").fails(1, "x.h5.part", words, "--force begins again")
    assert part.read_bytes() == unfinished.read_bytes()


@pytest.mark.parametrize("content", [b"my notes, which are not HDF5\n" * 20, None])
def test_a_part_of_somebody_else_stays(text, content, tmp_path):
    part = tmp_path / "x.h5.part"
    if content:
        part.write_bytes(content)
    else:
        with h5py.File(part, "w") as f:
            f["mine"] = np.arange(5)
    before = part.read_bytes()
    trace(*ARGS, "--file", text, "--dump", tmp_path / "x.h5", "--resume").fails(1, "x.h5.part", "not a")
    assert part.read_bytes() == before


def test_two_that_go_on_at_once(unfinished, text, whole, tmp_path):
    shutil.copy(unfinished, tmp_path / "x.h5.part")
    both = [subprocess.Popen([BIN / "weir", "trace", *ARGS, "--file", text, "--dump", "x.h5", "--resume", "--batch", "64", "--quiet"],
                             cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = sorted((p.communicate(timeout=300)[1], p.returncode) for p in both)
    assert ends[0] == ("", 0)
    # the other came in between, or when all was done
    assert ends[1] == ("", 0) or (ends[1][1] == 1 and len(ends[1][0].splitlines()) == 1), ends
    assert not differences(tmp_path / "x.h5", whole)


# --- signals at any moment

def test_any_signals_at_any_moment(text, whole, tmp_path):
    """Runs are stopped and gone on with until one is through: by signals that ask, that do not, and by two of them."""
    random.seed(int(os.environ.get("WEIR_SEED", "4")))
    begun = time.monotonic()
    trace(*ARGS, "--file", text, "--dump", tmp_path / "time.h5").ok()
    takes = time.monotonic() - begun
    for order in ("batch", "layer"):
        path, part = tmp_path / f"{order}.h5", tmp_path / f"{order}.h5.part"
        for _ in range(6):
            p = subprocess.Popen([BIN / "weir", "trace", *ARGS, "--order", order, "--batch", str(random.choice((64, 256))), "--file", text,
                                  "--dump", path, "--resume", "--quiet"], env=environment(), stderr=subprocess.PIPE, text=True)
            time.sleep(random.random() * takes)
            kill = random.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
            p.send_signal(kill)
            twice = kill != signal.SIGKILL and random.random() < 0.3
            if twice:
                p.send_signal(random.choice((signal.SIGINT, signal.SIGTERM)))
            err = p.communicate(timeout=300)[1]
            assert p.returncode in (0, 1, -kill) or twice, (p.returncode, err)
            assert len(err.splitlines()) <= 1, err
            if p.returncode == 0:
                break
            if p.returncode == 1 and part.exists():
                with h5py.File(part) as a, h5py.File(whole) as b:
                    assert not_a_beginning(a, b) == []
        trace(*ARGS, "--order", order, "--file", text, "--dump", path, "--resume", "--quiet").ok()
        assert not differences(path, whole)
        assert not list(tmp_path.glob(f"{order}.h5.part*"))


# --- writes that fail, and kills of what comes after a kill

@pytest.mark.parametrize("how", ["KILL_AFTER", "FAIL_FROM"])
def test_what_goes_on_is_struck_again(shim, unfinished, text, whole, how, tmp_path):
    """The repair and the resumed run are killed, or find no room, at their n-th write, several in a row; no row is lost."""
    for n in (1, 9, 40):
        path = tmp_path / f"x{n}.h5"
        part = path.with_name(path.name + ".part")
        shutil.copy(unfinished, part)
        for k in range(3):
            env = {"LD_PRELOAD": str(shim), f"WEIR_{how}": str(n + k)}
            struck = (weir("repair", part, env=env) if k == 1
                      else trace(*ARGS, "--file", text, "--dump", path, "--resume", "--quiet", env=env))
            assert struck.code in (0, 1, -signal.SIGKILL) and len(struck.err.splitlines()) <= 1, struck.err
            if struck.code == 1:
                assert "No space left" in struck.err
        trace(*ARGS, "--file", text, "--dump", path, "--resume", "--quiet").ok()
        assert not differences(path, whole), (how, n)


# --- files of another kind, and parts of another file

def test_statistics_do_not_replace_a_recording(whole, tmp_path):
    dump, stats = tmp_path / "w.h5", tmp_path / "s.h5"
    shutil.copy(whole, dump)
    trace("--hook", f"stats:{dump}=post", "Hi").fails(2, "w.h5", "not a file of weir's of this kind (weir-stats)")
    assert dump.read_bytes() == whole.read_bytes()
    trace("--hook", f"stats:{stats}=post", "Hi").ok()
    trace("--hook", f"stats:{stats}=post", "Hello").ok()  # its own kind it does replace
    before = stats.read_bytes()
    trace(*ARGS, "--dump", stats, "Hi").fails(1, "s.h5", "not a file of weir's of this kind (weir-dump)")
    assert stats.read_bytes() == before


def test_a_part_of_a_virtual_merge_that_became_longer(text, whole, tmp_path):
    for i in range(2):
        trace(*ARGS, "--file", text, "--shard", f"{i}/2", "--dump", tmp_path / f"{i}.h5").ok()
    weir("merge", "--virtual", tmp_path / "v.h5", tmp_path / "0.h5", tmp_path / "1.h5").ok()
    assert weir("diff", tmp_path / "v.h5", whole).code == 0
    shutil.copy(whole, tmp_path / "1.h5")
    weir("diff", tmp_path / "v.h5", whole).fails(1, "1.h5", "has changed", "merge the shards again")


def test_layers_begun_are_not_gone_on_with(text, tmp_path):
    r = trace(*ARGS, "--file", text, "--dump", tmp_path / "x.h5", "--order", "layer", "--resume").ok()
    assert "going on" not in r.err


# --- output that cannot be written

@pytest.mark.parametrize("hook", ["topk:post", "lens", "stats", "log:post"])
def test_results_that_cannot_be_written_are_one_error(hook):
    with open("/dev/full", "w") as full:
        p = subprocess.run([BIN / "weir", "trace", "--quiet", "--hook", hook, "Hi"], env=environment(), stdout=full, stderr=subprocess.PIPE,
                           text=True, stdin=subprocess.DEVNULL)
    assert p.returncode == 1 and len(p.stderr.splitlines()) == 1 and "written" in p.stderr.replace("cannot write", "written")


# --- hooks of one's own

def test_hooks_that_are_no_shared_objects(tmp_path):
    os.mkfifo(tmp_path / "pipe.so")
    trace("--hook", tmp_path / "pipe.so", "Hi").fails(2, "pipe.so", "not a regular file")
    (tmp_path / "directory.so").mkdir()
    trace("--hook", tmp_path / "directory.so", "Hi").fails(2, "directory.so", "not a regular file")
    (tmp_path / "text.so").write_text("The river bends.\n" * 20)
    trace("--hook", tmp_path / "text.so", "Hi").fails(2, "text.so", "cannot be loaded")


STRANGE = r"""
#include <weir/hook.h>

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    *self = NULL;
    return WEIR_OK;
}

static weir_want wants(void *self, const weir_point *p)
{
    return p->site == WEIR_SITE_RESID_POST ? WEIR_READ : WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    return (weir_status)77;
}

extern const weir_hook_class weir_hook_strange;
const weir_hook_class weir_hook_strange = {
    .struct_size = sizeof(weir_hook_class), .abi = WEIR_HOOK_ABI, .name = "strange", .help = "fails without a word", .args = "",
    .create = create, .wants = wants, .on_value = on_value,
};
"""


def test_a_hook_that_fails_without_a_word_is_named(tmp_path):
    (tmp_path / "strange.c").write_text(STRANGE)
    subprocess.run(["cc", "-shared", "-fPIC", "-I", ROOT / "lib/include", tmp_path / "strange.c", "-o", tmp_path / "strange.so"], check=True)
    trace(*ARGS, "--hook", tmp_path / "strange.so", "--dump", tmp_path / "x.h5", "Hi").fails(1, "hook strange failed at blocks.0.hook_resid_post")
    assert not list(tmp_path.glob("x.h5*"))
