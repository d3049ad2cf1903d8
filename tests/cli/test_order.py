"""`trace --order layer`: all documents through one layer before the next. Every dataset equals the ordinary run's, whatever is
recorded, changed or cut into windows; a run that is killed goes on in the layer, and at the window, where it was."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from dumps import differences
from weircli import BROOK, environment, trace

SEED = 11
KILLS = int(os.environ.get("WEIR_KILLS", "4"))  # make check-slow: 200
BY_LAYER = ("--order", "layer")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Sentences, among them a document of many windows and one of a single character."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = (BROOK / "sentences.txt").read_text().splitlines()
    path.write_text("\n".join([*lines[:8], " ".join(lines[20:32]), "a", *lines[45:53]]) + "\n")
    return path


def both(tmp_path, *options):
    """The dumps of both orders."""
    trace(*options, "--dump", tmp_path / "batch.h5").ok()
    trace(*options, *BY_LAYER, "--dump", tmp_path / "layer.h5").ok()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["batch.h5", "layer.h5"]
    return tmp_path / "batch.h5", tmp_path / "layer.h5"


EVERY = "*,blocks.*.attn.hook_{attn_scores,pattern,result}"
KINDS = {
    "default": (),
    "everything": ("--hooks", EVERY, "--ctx", "40", "--logprob", "--max-tokens", "300"),
    "windows": ("--ctx", "48", "--stride", "25", "--batch", "64", "--logprob", "--layer", "2-4"),
    "windows in pieces": ("--ctx", "90", "--stride", "30", "--batch", "17", "--logprob", "--site", "z,resid_post"),
    "maps in pieces": ("--ctx", "50", "--batch", "17", "--layer", "2-3", "--site", "pattern", "--max-tokens", "700"),
    "one row at a time": ("--batch", "1", "--max-tokens", "90", "--logprob", "--site", "resid_post"),
    "last": ("--positions", "last", "--site", "resid_pre,resid_post", "--logprob"),
    "from the end, in pieces": ("--positions", "-4:", "--ctx", "64", "--batch", "10", "--site", "post", "--logprob"),
    "no bos": ("--bos", "no", "--site", "q,k,v"),
    "the embedding alone": ("--hooks", "hook_embed"),
    "the beginning of a layer": ("--hooks", "blocks.0.hook_resid_pre"),
    "the end alone": ("--hooks", "ln_final.*,unembed.*"),
    "an early layer and the end": ("--hooks", "blocks.0.attn.hook_z,ln_final.hook_normalized"),
    "only log-probabilities behind a layer": ("--layer", "1", "--logprob"),
    "units": ("--hooks", "blocks.{1,5}.mlp.hook_post[:,7+100:120]"),
    "ablation": ("--hook", "ablate:blocks.2.mlp.hook_post[:,5:60]", "--hook", "ablate:resid_pre[-1]", "--site", "resid_post", "--logprob"),
    "ablation before what is recorded": ("--hook", "ablate:L0H1", "--layer", "7", "--positions", "last"),
    "written rows": ("--compress", "0", "--mantissa", "7", "--site", "post"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_equal(tmp_path, text, kind):
    assert not differences(*both(tmp_path, "--file", text, *KINDS[kind]))


def test_the_comparison_can_fail(tmp_path, text):
    trace("--file", text, "--layer", "2", "--dump", tmp_path / "a.h5").ok()
    trace("--file", text, "--layer", "2", "--hook", "ablate:L0N3", *BY_LAYER, "--dump", tmp_path / "b.h5").ok()
    assert any("blocks.2.hook_resid_post: other bytes" in line for line in differences(tmp_path / "a.h5", tmp_path / "b.h5"))


def test_jsonl_fields_and_ids(tmp_path):
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"text": "The river bends.", "n": 1, "who": "a"}\n{"text": "", "n": 2}\n{"text": "A weir.", "n": 3, "who": "b"}\n')
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    assert not differences(*both(dumps, "--file", docs, "--layer", "0", "--logprob"))
    for p in dumps.iterdir():
        p.unlink()
    assert not differences(*both(dumps, "--ids", "5 6 7 8", "9 3", "--layer", "1"))


def test_other_hooks_say_the_same(text):
    options = ("--file", text, "--hook", "stats:blocks.*.mlp.hook_post", "--batch", "100")
    batch, layer = trace(*options).ok(), trace(*options, *BY_LAYER).ok()
    assert batch.out and batch.out == layer.out


def test_datasets_of_hooks(tmp_path, text):
    assert not differences(*both(tmp_path, "--file", text, "--layer", "3", "--hook", "topk:blocks.*.mlp.hook_post,k=3"))


def test_hooks_that_need_whole_passes_are_refused_by_name(tmp_path, text):
    trace("--file", text, "--hook", "log:resid_post", *BY_LAYER).fails(2, "--hook log", "--order batch")
    trace("--file", text, "--hook", f"record:{tmp_path / 'r.h5'}=resid_post", *BY_LAYER).fails(2, "record", "--order batch")
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_where_nothing_was_to_do(tmp_path, text):
    trace("--positions", "90000", "--layer", "0", "--file", text, *BY_LAYER, "--dump", tmp_path / "a.h5").fails(1, "--positions")
    (tmp_path / "empty.txt").write_text("\n\n")
    trace("--layer", "0", "--file", tmp_path / "empty.txt", *BY_LAYER, "--dump", tmp_path / "a.h5").fails(1, "no document")
    assert [p.name for p in tmp_path.iterdir()] == ["empty.txt"]


# --- killed, and gone on with

@pytest.fixture(scope="module")
def long_text(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "text.txt"
    lines = (BROOK / "sentences.txt").read_text().splitlines()
    path.write_text("\n".join([" ".join(lines[i:i + 9]) for i in range(0, 126, 9)]) + "\n")
    return path


LONG = ("--site", "resid_post,post", "--layer", "1-5", "--ctx", "120", "--stride", "100", "--batch", "50")


class Case:
    def __init__(self, where, text):
        self.options = ("--file", text, *LONG, *BY_LAYER)
        self.whole, self.dump = where / "whole.h5", where / "a.h5"
        self.part, self.stream = where / "a.h5.part", where / "a.h5.part.stream"
        trace("--file", text, *LONG, "--dump", self.whole).ok()
        start = time.monotonic()
        trace(*self.options, "--dump", self.dump).ok()
        self.seconds = time.monotonic() - start
        assert not differences(self.dump, self.whole)

    def stop(self, after, number=signal.SIGKILL, resume="--force"):
        self.dump.unlink(missing_ok=True)
        p = subprocess.Popen(["weir", "trace", *map(str, self.options), "--dump", self.dump, resume], env=environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        time.sleep(after)
        p.send_signal(number)
        _, err = p.communicate(timeout=60)
        return p.returncode, err.decode()

    def go_on(self):
        r = trace(*self.options, "--dump", self.dump, "--resume").ok()
        assert not differences(self.dump, self.whole)
        assert not self.part.exists() and not self.stream.exists()
        return r.err


@pytest.fixture(scope="module")
def case(tmp_path_factory, long_text):
    return Case(tmp_path_factory.mktemp("killed"), long_text)


def part_of(err):
    m = re.search(r"going on in part (\d+) of (\d+)", err)
    return int(m[1]) if m else 0


def test_killed_runs_go_on_where_they_were(case):
    random.seed(SEED)
    parts = []
    for i in range(3 * KILLS):  # some come too early, or too late
        if len(parts) == KILLS:
            break
        code, err = case.stop(case.seconds * (0.2 + 0.7 * random.random()))
        if code == 0:
            continue  # it was through
        assert code == -signal.SIGKILL, err
        if not case.part.exists():
            continue
        if i % 3 == 2:  # and killed once more
            case.stop(case.seconds * 0.3, resume="--resume")
        if case.part.exists():
            parts.append(part_of(case.go_on()))
    assert len(parts) == KILLS
    assert max(parts) >= 3 and len(set(parts)) > 1, parts


def test_a_signal_ends_it_between_two_batches(case):
    code, err = case.stop(case.seconds * 0.6, signal.SIGINT)
    if code == 0:
        pytest.skip("it was through before the signal")
    assert code == 1 and "stopped by signal 2" in err and "--resume" in err
    assert case.stream.is_dir()
    assert part_of(case.go_on()) > 0


def test_the_order_may_change(case):
    code, _ = case.stop(case.seconds * 0.5)
    assert code == -signal.SIGKILL
    plain = [o for o in case.options if o not in BY_LAYER]
    trace(*plain, "--dump", case.dump, "--resume").ok()
    assert not differences(case.dump, case.whole)
    shutil.rmtree(case.stream, ignore_errors=True)


def stopped_late(case):
    for share in (0.6, 0.5, 0.4):
        if case.stop(case.seconds * share)[0] == -signal.SIGKILL and (case.stream / "odd").exists():
            return
    raise AssertionError("no run was killed late enough")


def test_without_the_stream_it_begins_with_the_first_layer(case):
    stopped_late(case)
    shutil.rmtree(case.stream)
    assert part_of(case.go_on()) == 0


def test_a_broken_stream_is_not_used(case):
    for name in ("even", "odd"):
        stopped_late(case)
        with open(case.stream / name, "r+b") as f:
            f.truncate(1000)
        case.go_on()


def test_the_stream_of_another_dump_is_not_used(case, tmp_path):
    stopped_late(case)
    shutil.copytree(case.stream, tmp_path / "foreign")
    case.stop(case.seconds * 0.35)
    shutil.rmtree(case.stream, ignore_errors=True)
    if not case.part.exists():
        pytest.skip("killed before anything was recorded")
    shutil.copytree(tmp_path / "foreign", case.stream)
    assert part_of(case.go_on()) == 0


def test_the_stream_of_a_run_that_was_killed_behind_its_end_goes_too(tmp_path, text):
    options = ("--file", text, "--layer", "1-2", *BY_LAYER, "--dump", tmp_path / "a.h5")
    trace(*options).ok()
    stream = tmp_path / "a.h5.part.stream"
    stream.mkdir()
    (stream / "even").write_bytes(b"rows")
    assert "is complete" in trace(*options, "--resume").ok().err
    assert not stream.exists()


# --- the disk

SHIM = """
#include <sys/statvfs.h>
int statvfs(const char *path, struct statvfs *v)
{
    (void)path;
    v->f_bavail = 3;
    v->f_frsize = 4096;
    return 0;
}
"""


def test_a_disk_without_room_is_found_out_before_the_first_layer(tmp_path, text):
    (tmp_path / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c"], check=True)
    out = tmp_path / "out"
    out.mkdir()
    env = {"LD_PRELOAD": str(tmp_path / "shim.so")}
    r = trace("--layer", "3", "--file", text, *BY_LAYER, "--dump", out / "a.h5", env=env)
    assert r.code == 1 and re.search(r"takes \d+ bytes, but the disk has 12288", r.err) and "--order batch" in r.err, r.err
    trace("--hooks", "hook_embed", "--file", text, *BY_LAYER, "--dump", out / "b.h5", env=env).ok()  # which needs none


def test_a_stream_that_cannot_be_written_is_one_line(tmp_path, text):
    (tmp_path / "a.h5.part.stream").write_text("in the way")
    trace("--layer", "3", "--file", text, *BY_LAYER, "--dump", tmp_path / "a.h5").fails(1, "a.h5.part.stream")
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5.part.stream"]
