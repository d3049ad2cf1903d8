"""The page of `make bench` is what its numbers make of it; a miss is said."""
import importlib.util

from weircli import ROOT

spec = importlib.util.spec_from_file_location("page", ROOT / "tests/bench/page.py")
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)

ROW = {"name": "decode", "ratio": 1.02, "floor": 1.05, "aim": 1.0, "at_most": True, "baseline": "without", "value": 3.25, "unit": "s"}
BENCH = {"machine": {"processor": "A CPU", "processors": 2}, "results": [ROW]}


def test_the_machine_and_every_row_stand_on_the_page():
    text = page.text(BENCH)
    assert "| processor | A CPU |" in text and "| decode | 1.020 | ≤ 1.05 | without | 3.25 s |" in text
    assert text.endswith("Every row is what it must be.\n")


def test_a_miss_is_said():
    for change in ({"ratio": 1.06}, {"at_most": False}):
        assert page.text({**BENCH, "results": [{**ROW, **change}]}).endswith("Missed in this run: decode.\n")


def test_what_was_not_measured_is_said():
    assert page.text({**BENCH, "missing": ["lens", "edit"]}).endswith("Every row is what it must be. Not measured in this run: lens, edit.\n")


def test_the_committed_page_is_made_by_this_program():
    committed = (ROOT / "tests/bench/README.md").read_text(encoding="utf-8").splitlines()
    made = page.text(BENCH).splitlines()
    assert committed[0] == made[0] and [line for line in made if line.startswith("| what")][0] in committed
    assert {"| processor |", "| weir |"} <= {line[:len(start)] for line in committed for start in ("| processor |", "| weir |")}
    assert sum(line.startswith("| ") for line in committed) > 30
