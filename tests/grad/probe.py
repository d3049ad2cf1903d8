"""Compiles grad_probe.c against the library and asks it. numpy alone."""
import os
import subprocess
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("WEIR_BUILD", "build/release")).resolve()
SOURCE = Path(__file__).with_name("grad_probe.c")


def build(directory):
    """The program's path; it is linked to the shared library, which lies beside the objects."""
    program = Path(directory) / "grad_probe"
    library = next(BUILD.glob("libweir.so.*"))
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O1", f"-I{ROOT}/lib/include", str(SOURCE), str(library),
                    f"-Wl,-rpath,{BUILD}", "-o", str(program)], check=True)
    return program


class Refused(Exception):
    """The library's error: one line."""


class Probe:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.program = build(directory)

    def file(self, name, x):
        path = self.directory / name
        np.ascontiguousarray(x, np.float32).tofile(path)
        return path

    def terms(self, terms):
        """Lines of terms (kind, row, token, weight, log q or None)."""
        for i, (kind, row, token, weight, log_q) in enumerate(terms):
            yield f"term {kind} {row} {token} {weight!r}" + (f" {self.file(f'q{i}', log_q)}" if log_q is not None else "")

    def ask(self, model, *lines, terms=(), **env):
        """{"loss": float, "values": [n], "value:POINT", "grad:POINT", "heard:POINT": [rows, width]}"""
        request = "\n".join([*map(str, lines), *self.terms(terms)]) + "\n"
        out = self.directory / "answer"
        p = subprocess.run([str(self.program), str(model), str(out)], input=request.encode(), stderr=subprocess.PIPE,
                           env={**os.environ, **env}, check=False)
        if p.returncode == 3:
            raise Refused(p.stderr.decode().split(" ", 1)[1].strip())
        assert p.returncode == 0, (p.returncode, p.stderr.decode(), request)
        return read(out)


def read(path):
    data, at, answer = Path(path).read_bytes(), 0, {}
    while at < len(data):
        end = data.index(b"\n", at)
        name, rows, width = data[at:end].decode().split()
        kind = np.float64 if name in ("loss", "values") else np.float32
        n = int(rows) * int(width)
        x = np.frombuffer(data, kind, n, end + 1)
        answer[name] = x if kind is np.float64 else x.reshape(int(rows), int(width))
        at = end + 1 + n * kind().itemsize
    answer["loss"] = float(answer["loss"][0])
    return answer
