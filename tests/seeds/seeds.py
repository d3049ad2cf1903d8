"""The claims of the course texts that weir was made after, and how each is checked: claims.tsv, a line a claim.

    id          of the claim
    claim       in few words
    command     a command line, run where the project's root is; -: none can show it
    expected    what its output must hold, ` ; ` between several (below)
    tolerance   exact; a number: relative; text: `expected` are words of the output
    note        what is off or conditional about the claim; without a command: why

A row with several commands has ` ;; ` between them, and between what is expected of each.

A place in the output is a JSON pointer: /a/b/0. A line of TSV or NDJSON is an element of a list; negative numbers count from the
end; name=value picks the element of a list that has it, #name=value counts those that have it. Comparisons: = < >.

    python3 tests/seeds/seeds.py page > tests/seeds/README.md      # make seeds-page
"""
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLE = HERE / "claims.tsv"
COLUMNS = ["id", "claim", "command", "expected", "tolerance", "note"]
TEXTS = {"000": "MLP, RMSNorm and residual connections", "001": "Inside the block", "003": "Why transformers need the MLP",
         "004": "Norm, attention, MLP, residual"}


def read(path=TABLE):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == COLUMNS
    rows = []
    for line in lines[1:]:
        cells = line.split("\t")
        assert len(cells) == len(COLUMNS), line
        rows.append(dict(zip(COLUMNS, cells)))
    return rows


# --- outputs

def parsed(text):
    """One JSON value; or a list: of the lines of NDJSON, of the rows of TSV."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    lines = text.splitlines()
    if lines and lines[0].startswith("{"):
        return [json.loads(line) for line in lines]
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"))) for line in lines[1:]]


def same(value, text):
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value] == text
    return str(value) == text


def number(value):
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def chosen(items, word):
    name, value = word.split("=", 1)
    return [x for x in items if name in x and (same(x[name], value) or number(x[name]) is not None and number(x[name]) == number(value))]


def find(value, pointer):
    """What lies at a place; KeyError or IndexError where nothing does."""
    if "#" in pointer:
        before, word = pointer.split("#", 1)
        return len(chosen(find(value, before), word))
    for word in pointer.split("/")[1:]:
        if isinstance(value, dict):
            value = value[word]
        elif "=" in word:
            value = chosen(value, word)[0]
        else:
            value = value[int(word)]
    return value


def holds(found, sign, wanted, tolerance):
    x, y = number(found), number(wanted)
    if sign in "<>":
        return x is not None and (x < y if sign == "<" else x > y)
    if x is None or y is None:
        return same(found, wanted)
    return x == y if tolerance == "exact" else abs(x - y) <= float(tolerance) * max(abs(x), abs(y))


def steps(row):
    """Pairs of a command line and what its output must hold."""
    commands, expected = row["command"].split(" ;; "), row["expected"].split(" ;; ")
    assert len(commands) == len(expected), row["id"]
    return [] if row["command"] == "-" else [(c, e.split(" ; ")) for c, e in zip(commands, expected)]


def complaints(row, parts, output):
    """What an output lacks of these expectations of a row, one line each."""
    bad = []
    if row["tolerance"] == "text":
        return [f"{row['id']}: no {part!r} in the output" for part in parts if part not in output]
    try:
        value = parsed(output)
    except (ValueError, IndexError):
        return [f"{row['id']}: the output is no JSON, NDJSON or TSV"]
    for part in parts:
        pointer, sign, wanted = re.fullmatch(r"(/.*?)(?: ([=<>]) (.*))?", part).groups()
        try:
            found = find(value, pointer)
        except (KeyError, IndexError, TypeError, ValueError):
            bad.append(f"{row['id']}: there is nothing at {pointer}")
            continue
        if sign and not holds(found, sign, wanted, row["tolerance"]):
            bad.append(f"{row['id']}: {pointer} is {found}, not {sign} {wanted} ({row['tolerance']})")
        if not sign:
            bad.append(f"{row['id']}: {part}: nothing is compared")
    return bad


# --- commands

def run(command, bin_dir):
    """The standard output of a command line, or None and what it said."""
    words = shlex.split(command)
    env = {k: v for k, v in os.environ.items() if k not in ("WEIR_MODEL", "WEIR_KERNEL")}
    p = subprocess.run([str(Path(bin_dir) / words[0]), *words[1:]], cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    return (p.stdout, "") if p.returncode == 0 else (None, p.stderr.strip()[-300:])


def check(rows, bin_dir, workers=2):
    """All that does not hold. Each command line is run once, whatever the number of its rows."""
    commands = list(dict.fromkeys(c for r in rows for c, _ in steps(r)))
    with ThreadPoolExecutor(workers) as pool:
        outputs = dict(zip(commands, pool.map(lambda c: run(c, bin_dir), commands)))
    bad = []
    for row in rows:
        for command, parts in steps(row):
            output, said = outputs[command]
            bad += complaints(row, parts, output) if output is not None else [f"{row['id']}: {command}: {said}"]
    return bad


# --- the page

def cell(text):
    return text.replace("|", "\\|")


def shown_columns(row):
    """The command lines, and what is expected of each."""
    return [c for c, _ in steps(row)], [" ; ".join(parts) for _, parts in steps(row)]


def page(rows):
    shown = [r for r in rows if r["command"] != "-"]
    out = ["# The claims, and the commands that show them", "",
           f"Made by `make seeds-page` from [claims.tsv](claims.tsv): {len(rows)} claims of four texts on transformer blocks; "
           f"{len(shown)} have a command whose output `make check` compares with what is expected. "
           "[seeds.py](seeds.py) says how to read `expected`.", ""]
    for text, title in TEXTS.items():
        out += [f"## {text}: {title}", "", "| id | claim | command | expected | note |", "|---|---|---|---|---|"]
        for r in rows:
            if r["id"].startswith(text):
                near = "" if r["tolerance"] in ("-", "exact", "text") else f" within {r['tolerance']}"
                command, expected = ("<br>".join(f"`{cell(x)}`" for x in column) for column in shown_columns(r))
                expected += near
                out.append(f"| <a id=\"{r['id']}\"></a>{r['id']} | {cell(r['claim'])} | {command} | {expected} | {cell(r['note'])} |")
        out.append("")
    return "\n".join(out)


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        print(page(read()), end="")
    elif len(sys.argv) == 3 and sys.argv[1] == "check":
        problems = check(read(), sys.argv[2])
        print("\n".join(problems) or "all hold")
        sys.exit(bool(problems))
    else:
        sys.exit(__doc__)
