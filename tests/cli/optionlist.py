"""What --help says of each tool's options, for the tests of the manual and of completion: the tables as a user reads them."""
import functools
import re

from weircli import commands, tools, weir

ALL = [(tool,) for tool in tools()] + [("rome", command) for command in commands("rome")]


@functools.cache
def help_of(tool):
    """With what weir would set, and start once more for."""
    return weir(*tool, "--help", env={"GOMP_SPINCOUNT": "2000"}).ok().out.decode()


class Option:
    """letter, name, alias (or None), arg (or None), text: the help, in one line."""

    def __init__(self, letter, name, arg, text):
        self.letter, self.name, self.arg, self.text = letter, name, arg, text
        found = re.search(r"; also --([a-z-]+)", text)
        self.alias = found and found[1]
        self.repeatable = text.endswith("(repeatable)")
        self.default = (re.search(r" \[([^\[\]]+)\]$", text) or [None, None])[1]

    @property
    def names(self):
        return [f"--{n}" for n in (self.name, self.alias) if n] + ([f"-{self.letter}"] if self.letter else [])

    @property
    def choices(self):
        """Words of a CHOICE: all that may stand between its signs."""
        return self.arg.split("|") if self.arg and "|" in self.arg and not re.search(r"[A-Z\[]", self.arg) else []


@functools.cache
def options_of(text):
    """Options of a help text, without --help itself."""
    found = []
    before = re.split(r"\n(?:Example|Built-in hooks|Machines[^\n]*)\n", text)[0]
    for line in before.splitlines():
        m = re.match(r"^  (?:-(\w),|   ) --([a-z0-9-]+)(?: (\S+))?(?:\s\s+(.*))?$", line)
        if m:
            found.append([m[1], m[2], m[3], m[4] or ""])
        elif found and line.startswith(" " * 26):
            found[-1][3] = f"{found[-1][3]} {line.strip()}".strip()
    return [Option(*f) for f in found if f[1] != "help"]
