"""Pages whose commands run as printed: what a reader pastes must work, and must say what stands there.

A block ```sh holds commands; a block without a language right behind it is all that they print (standard output and
standard error, as at a terminal). A line `...` there stands for any lines. What the clock decides is not compared
(`still`). Blocks ```python run too, with what they print behind them. All blocks of a page run in one directory, one
after the other: `run` for a block alone, `Page` for sections whose Python goes on with the names of what came before."""
import contextlib
import io
import os
import re
import subprocess

from weircli import BIN, ROOT, environment

FENCE = re.compile(r"^(```+)(\w*)\s*$")


class Block:
    def __init__(self, line, language, text, section=""):
        self.line, self.language, self.text, self.section = line, language, text, section
        self.output = None  # what the page says comes out, or None

    def __repr__(self):
        return f"line {self.line}: {self.text.splitlines()[0][:60]}"


def blocks_of(page):
    """Blocks of a Markdown text in its order; outputs lie with their commands."""
    found, fence, behind, section = [], None, None, ""
    for number, line in enumerate(page.splitlines(), 1):
        m = FENCE.match(line)
        if fence is None and m:
            fence, start, body = m, number, []
        elif fence is None:
            behind = None if line.strip() else behind
            section = line[3:].strip() if line.startswith("## ") else section
        elif m and m[1] == fence[1] and not m[2]:
            text = "\n".join(body) + "\n"
            if fence[2] or behind is None:
                found.append(Block(start, fence[2], text, section))
            else:
                behind.output = text
            behind = found[-1] if fence[2] in ("sh", "python") else None
            fence = None
        else:
            body.append(line)
    assert fence is None, f"line {start}: the block does not end"
    return found


CLOCK = (
    (re.compile(r"\b[\d.,]+( s\b| ms\b| tokens/s| a second| rows/s)"), r"#\1"),
    (re.compile(r"(peak memory ).*"), r"\1#"),
)


def still(line):
    """The line without what the clock and the machine decide."""
    for pattern, by in CLOCK:
        line = pattern.sub(by, line)
    return line.rstrip()


def difference(printed, page):
    """Where what was printed departs from what the page says, in a line or two; None: nowhere."""
    printed = [still(line) for line in printed.splitlines()]
    at, skip = 0, False
    for line in page.splitlines():
        if line.strip() == "...":
            skip = True
            continue
        want = still(line)
        found = at
        while skip and found < len(printed) and printed[found] != want:
            found += 1
        if found >= len(printed):
            return f"not printed: {line}\nprinted: " + (printed[at] if at < len(printed) else "nothing more")
        if printed[found] != want:
            return f"page:    {line}\nprinted: {printed[found]}"
        at, skip = found + 1, False
    return None if skip or at == len(printed) else f"not on the page: {printed[at]}"


def lay_out(root, where):
    """A clone's top level, its entries being those of root."""
    for entry in ("Makefile", "LICENSE", "README.md", "lib", "tools", "hooks", "tests", "notebooks_export"):
        (where / entry).symlink_to(root / entry)


def commands_of(text):
    """Lines of a block, those that end with a backslash joined with the next."""
    return [c for c in re.sub(r"\\\n\s*", "", text).splitlines() if c.strip()]


def run(block, where, env=None):
    """(what failed, or None; what was printed). A command may end with 3 where its comment says so: `# ... exit 3`."""
    commands = commands_of(block.text) if block.language == "sh" else [block.text]
    # line by line, as a terminal has it, so that both streams come in their order
    shell = ["stdbuf", "-oL", "bash", "-o", "pipefail", "-c"] if block.language == "sh" else ["/usr/bin/python3", "-c"]
    printed = b""
    for command in commands:
        p = subprocess.run([*shell, command], cwd=where, env=env or environment(HOME=str(where / "home")),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3600)
        printed += p.stdout
        if p.returncode != 0 and not (p.returncode == 3 and "exit 3" in command.partition("#")[2]):
            return f"exit {p.returncode}: {command}", printed.decode()
    return None, printed.decode()


BRIDGES = ROOT / "notebooks_export" / "bridges.md"


class Page:
    """Runs sections of a page (a file, or its text) in a directory, which sees the model that comes with weir at lib/brook
    as a clone does. What stands before the first heading, section "", runs at once; its names are there in every section."""

    def __init__(self, where, bin_dir=BIN, env=None, page=BRIDGES):
        self.where = where
        self.text = page if isinstance(page, str) else page.read_text(encoding="utf-8")
        self.env = environment(**(env or {}), PATH=f"{bin_dir}:{os.environ['PATH']}")
        if not (where / "lib").exists():
            (where / "lib").symlink_to(ROOT / "lib")
        self.names = {}
        self.names = self.run("")

    def python(self, block, names):
        out = io.StringIO()
        with contextlib.chdir(self.where), contextlib.redirect_stdout(out):
            exec(compile(block.text, "page", "exec"), names)  # noqa: S102
        return out.getvalue()

    def run(self, section):
        """Every block of it; the names that Python has then. Python prints what stands behind its block, or nothing."""
        names = {"__name__": "page", **self.names}
        for block in sections(self.text)[section]:
            assert block.language in ("sh", "python"), f"{block}: a block of {block.language or 'no language'} that follows none"
            if block.language == "python":
                printed, says = self.python(block, names), block.output or ""
            else:
                failed, printed = run(block, self.where, self.env)
                assert failed is None, f"{failed}\n{printed[-3000:]}"
                says = block.output
            assert says is None or (wrong := difference(printed, says)) is None, f"{block}: {wrong}"
        return names


def sections(page):
    """{heading: its blocks}; what stands before the first heading is under ""."""
    found = {"": [], **{name: [] for name in re.findall(r"^## (.*?) *$", page, re.M)}}
    for block in blocks_of(page):
        found[block.section].append(block)
    return found
