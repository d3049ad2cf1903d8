"""tests/seeds/claims.tsv: every claim once, every expectation holds, and one that does not is caught."""
import re
import sys

import pytest

from weircli import BIN, ROOT, SHARED

sys.path.insert(0, str(ROOT / "tests" / "seeds"))
import seeds  # noqa: E402

ROWS = seeds.read()
COUNTS = {"000": 23, "001": 40, "003": 59, "004": 9}


def test_every_claim_is_there_once():
    wanted = [f"{text}-{i}" for text, n in COUNTS.items() for i in range(1, n + 1)]
    assert [r["id"] for r in ROWS] == wanted
    inventory = SHARED / "reference" / "seed-systems.md"
    if inventory.exists():
        assert re.findall(r"^\| (\d{3}-\d+) \|", inventory.read_text(), re.M) == wanted


def test_a_row_has_an_expectation_or_a_reason():
    for r in ROWS:
        assert r["claim"]
        if r["command"] == "-":
            assert r["expected"] == r["tolerance"] == "-" and r["note"], r["id"]
        else:
            assert all(c.startswith("weir ") and e != [""] and "-" not in e for c, e in seeds.steps(r)), r["id"]
            assert r["tolerance"] in ("exact", "text") or 0 < float(r["tolerance"]) < 0.01, r["id"]


def test_all_claims_hold():
    assert seeds.check(ROWS, BIN) == []


@pytest.mark.parametrize("expected, tolerance, words", [
    ("/functions/0/lowest/y = -0.28", "1e-6", "/functions/0/lowest/y is -0.278"),
    ("/functions/0/lowest/y > 0", "exact", "not > 0"),
    ("/functions/0/lowest/z = 1", "exact", "nothing at /functions/0/lowest/z"),
    ("/functions/7/lowest/y = 1", "exact", "nothing at /functions/7"),
    ("/functions/0/runs = false", "exact", "/functions/0/runs is True"),
    ("/functions#name=silu = 2", "exact", "is 1, not = 2"),
    ("/functions/0/name", "exact", "nothing is compared"),
    ("squashed", "text", "no 'squashed'"),
])
def test_a_wrong_expectation_is_caught(expected, tolerance, words):
    row = {"id": "x", "claim": "", "command": "weir act silu -j --at 1", "expected": expected, "tolerance": tolerance, "note": ""}
    bad = seeds.check([row], BIN)
    assert len(bad) == 1 and words in bad[0], bad


def test_a_command_that_fails_is_caught():
    row = {"id": "x", "claim": "", "command": "weir act nothing", "expected": "/a = 1", "tolerance": "exact", "note": ""}
    assert "no activation" in seeds.check([row], BIN)[0]


def test_the_page_is_of_this_table():
    assert (ROOT / "tests" / "seeds" / "README.md").read_text() == seeds.page(ROWS), "make seeds-page"
