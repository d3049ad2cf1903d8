"""What others send: second moments, records and outputs that cannot be right are one line, and nothing is written."""
import numpy as np
import pytest

from romelib import CHEAP, edit, record, write_records
from weircli import weir

F = 6


def imported(path, *more):
    return weir("rome", "stats", "--import", path, "--layer", 1, "-o", path.parent / "m.h5", "-q", *more)


def save(path, count, sums, **more):
    np.savez(path, **{"mom2.count": count, "mom2.mom2": sums, **more})
    return path


def test_what_is_symmetric_but_for_rounding_is_taken(tmp_path):
    rng = np.random.default_rng(2)
    k = rng.standard_normal((50, F)).astype("f4")
    sums = k.T @ k
    sums[1, 2] = np.nextafter(sums[1, 2], np.float32(9e9))
    imported(save(tmp_path / "a.npz", 50, sums, sample_size=3)).ok()


@pytest.mark.parametrize("at, value, words", [
    ((4, 2), 7, ("mom2.mom2[2,4] is 0, and its mirror image 7",)), ((3, 5), np.nan, ("[3,5] is nan",)), ((5, 3), np.nan, ("mirror image nan",)),
    ((2, 2), -1, ("[2,2] is -1",))])
def test_what_is_no_sum_is_refused(at, value, words, tmp_path):
    sums = np.eye(F)
    sums[at] = value
    imported(save(tmp_path / "a.npz", 50, sums)).fails(1, "a.npz", *words)
    assert [f.name for f in tmp_path.iterdir()] == ["a.npz"]


def test_archives_that_are_cut_or_flipped(tmp_path):
    whole = save(tmp_path / "a.npz", 50, np.eye(F)).read_bytes()
    for n in (0, 3, 30, len(whole) // 2, len(whole) - 1):
        (tmp_path / "a.npz").write_bytes(whole[:n])
        imported(tmp_path / "a.npz").fails(1, "a.npz")
    rng = np.random.default_rng(3)
    directory = whole.index(b"PK\1\2")
    for _ in range(12):
        bad = bytearray(whole)
        bad[rng.integers(directory, len(bad))] ^= 1 << rng.integers(8)
        (tmp_path / "a.npz").write_bytes(bad)
        r = imported(tmp_path / "a.npz", "--force")
        assert r.code in (0, 1) and len(r.err.splitlines()) == r.code, r.err


def test_a_text_beside_an_import_is_not_passed_over(tmp_path):
    imported(save(tmp_path / "a.npz", 50, np.eye(F)), "--file", tmp_path / "t").fails(2, "--import and --file exclude")


@pytest.mark.parametrize("bad", [record("{} {} is", "Hood", "Rome"), record("{} is", "a\0b", "Rome"), record("{} is", "Hood", "  "),
                                 record("{} is", "Hood", "word " * 1000), record("{} is", "", "Rome"), record("{} is", 5, "Rome")])
def test_records_that_cannot_be_edited_write_nothing(bad, tmp_path):
    file = write_records(tmp_path / "r.jsonl", record("{} is in", "Hood", "Oregon"), bad)
    edit(tmp_path / "new", "--batch", file, "--method", "memit", "--force", fact=(), how=CHEAP).fails(1)
    assert [f.name for f in tmp_path.iterdir()] == ["r.jsonl"]
