"""The page of `make bench`: what was measured, on which machine.    page.py bench.json > README.md"""
import json
import sys

HEAD = """# What was measured

Made by `make bench` (about 40 minutes). Every row is a ratio of two measurements taken in turn, so that what else the machine does weighs on
both; *measured* is weir's own side. Seconds are this machine's, ratios should be near on others.

| | |
|---|---|
{machine}

| what | ratio | must be | against | measured |
|---|--:|--:|---|--:|
{rows}

{verdict}{missing}
"""


def row(r):
    sign = "≤" if r["at_most"] else "≥"
    return (f"| {r['name']} | {r['ratio']:.3f} | {sign} {r['floor']:g} | {r['baseline']} | {r.get('value', 0):.4g} {r.get('unit', '')} |")


def short(r):
    """Does a row miss what it must be?"""
    return r["ratio"] > r["floor"] if r["at_most"] else r["ratio"] < r["floor"]


def text(bench):
    missed = [r["name"] for r in bench["results"] if short(r)]
    missing = bench.get("missing", [])  # steps of `make bench`
    return HEAD.format(
        missing=f" Not measured in this run: {', '.join(missing)}." if missing else "",
        machine="\n".join(f"| {name} | {value} |" for name, value in bench["machine"].items()),
        rows="\n".join(map(row, bench["results"])),
        verdict="Every row is what it must be." if not missed else "Missed in this run: " + "; ".join(missed) + ".")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        sys.stdout.write(text(json.load(f)))
