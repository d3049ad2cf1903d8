"""Runs weir as a user would, for the tests of this directory. Python's standard library, numpy and h5py only."""
import json
import os
import signal
import subprocess
from pathlib import Path

# A job in the background of a script is born with SIGINT ignored (and with SIGHUP under nohup), and hands that on: weir
# rightly goes on ignoring them, but tests of these signals need a program that does not.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parents[2]
BIN = (ROOT / os.environ.get("WEIR_BIN", "build/bin")).resolve()
BUILD = (ROOT / os.environ.get("WEIR_BUILD", "build/release")).resolve()  # objects and libraries
BROOK = ROOT / "lib" / "brook"
SHARED = Path(os.environ.get("WEIR_SHARED") or ROOT.parent / "shared")  # big models, where they are


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if k not in ("WEIR_MODEL", "WEIR_KERNEL")}
    env["PATH"] = f"{BIN}:{env['PATH']}"
    env.update(changes)
    return env


def brook_with(sentences, path):
    """The model that comes with weir, in a directory, with only so many of its sentences: what reads all of them is quick."""
    path.mkdir()
    for file in BROOK.iterdir():
        if file.name != "sentences.txt":
            (path / file.name).symlink_to(file)
    (path / "sentences.txt").write_bytes(b"".join((BROOK / "sentences.txt").read_bytes().splitlines(True)[:sentences]))
    return path


class Run:
    """What a run came to: code, out (bytes), err (text)."""

    def __init__(self, *args, stdin=b"", cwd=None, env=None, program="weir", **more):
        source = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        p = subprocess.run([str(BIN / program), *map(str, args)], cwd=cwd, env=environment(**(env or {})),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **source, **more)
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr.decode()
        self.args = args

    @property
    def json(self):
        return json.loads(self.out)

    def ok(self):
        assert self.code == 0, f"{self.args}: exit {self.code}\n{self.err}"
        return self

    def fails(self, code, *words):
        """Exit code, one line on stderr with these words, nothing on stdout."""
        assert self.code == code, f"{self.args}: exit {self.code}, not {code}\n{self.err}"
        errors = self.err.splitlines()
        assert len(errors) == 1, errors
        for word in words:
            assert word in errors[0], (word, errors[0])
        assert self.out == b""
        return self


def weir(*args, **more):
    return Run(*args, **more)


def trace(*args, **more):
    return Run("trace", *args, **more)


def built(source, to):
    """Compiles tests/support/SOURCE with the library and what it needs of the tools' own objects; the program's path."""
    tools, program = to / "tools.a", to / Path(source).stem
    made = sorted([*BUILD.glob("tools/*/*.o"), *BUILD.glob("notebooks_export/export/*.o")])
    objects = [o for o in made if (ROOT / o.relative_to(BUILD)).with_suffix(".c").exists()]  # no old ones
    subprocess.run(["ar", "qcT", tools, *objects], check=True)
    flags = subprocess.run(["pkg-config", "--libs", "hdf5", "libdeflate"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-Ilib/include", "-Itools", "-Inotebooks_export",
                    f"tests/support/{source}", tools, BUILD / "libweir.a", *flags, "-llapacke", "-llapack", "-lz", "-lm", "-ldl",
                    "-lpthread", "-fopenmp", "-o", program], cwd=ROOT, check=True)
    return program


def tools():
    lines = weir().ok().out.decode().split("\nTools\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines]


def commands(tool):
    lines = weir(tool, "--help").ok().out.decode().split("\nCommands\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if line[2] != " "]


def tokens(*args, **more):
    """`weir tokenize --json`: one object a document."""
    return [json.loads(line) for line in weir("tokenize", "--json", *args, **more).ok().out.splitlines()]
