"""The page hooks/python.md: its program runs as printed, sees what `trace` records, and its structs are those of the headers."""
import ctypes
import os
import re
import runpy
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

from weircli import BROOK, ROOT, environment, trace

LIBRARY = (ROOT / os.environ.get("WEIR_BUILD", "build/release") / "libweir.so.0").resolve()
TEXT = "Among the places of Colorado is"
STRUCTS = {"Point": "weir_point", "Rows": "weir_rows", "Value": "weir_value", "HookClass": "weir_hook_class", "Seq": "weir_seq"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    page = (ROOT / "hooks" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) == 1
    path = tmp_path_factory.mktemp("python") / "norms.py"
    path.write_text(blocks[0])
    return path


@pytest.fixture(scope="module")
def page(program):
    """The program's names, with the library loaded, and brook."""
    os.environ["WEIR_LIB"] = str(LIBRARY)
    names = runpy.run_path(str(program))
    model = ctypes.c_void_p()
    names["check"](names["lib"].weir_model_open(ctypes.byref(model), os.fsencode(BROOK), None, names["err"]))
    names["model"] = model
    yield names
    names["lib"].weir_model_free(model)


def printed(program, **env):
    p = subprocess.run([sys.executable, program], env=environment(**env), stdout=subprocess.PIPE, check=True, text=True)
    lines = [line.split() for line in p.stdout.splitlines()]
    return [(int(words[2]), [float(w) for w in words[4:]]) for words in lines]


def recorded(tmp_path, *options):
    trace("--site", "resid_post", "--dump", tmp_path / "d.h5", *options, TEXT).ok()
    with h5py.File(tmp_path / "d.h5") as f:
        return [np.linalg.norm(f[f"activations/blocks.{layer}.hook_resid_post"][-1]) for layer in range(len(f["activations"]))]


def test_the_page_prints_what_trace_records(program, tmp_path):
    (plain, norms), (off, changed) = printed(program, WEIR_LIB=str(LIBRARY))
    close = lambda a, b: np.allclose(a, b, rtol=1e-5, atol=0)
    assert close(norms, recorded(tmp_path))
    assert close(changed, recorded(tmp_path, "--hook", "ablate:blocks.2.hook_mlp_out"))
    assert norms[:2] == changed[:2] and not close(norms[2:], changed[2:])
    assert plain >= 0 and off >= 0


def test_the_page_works_from_an_installation(program, tmp_path):
    subprocess.run(["make", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr/local"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    copy = tmp_path / "norms.py"
    shutil.copy(program, copy)
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    env["LD_LIBRARY_PATH"] = f"{tmp_path}/usr/local/lib"
    subprocess.run([sys.executable, copy], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, check=True)


def layout_in_c(tmp_path, structs):
    """{struct: (size, {field: offset})} as the compiler has it."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <weir/weir.h>", "int main(void) {"]
    for struct, fields in structs.items():
        lines.append(f'printf("{struct} %zu", sizeof({struct}));')
        lines += [f'printf(" {name} %zu", offsetof({struct}, {name}));' for name in fields]
        lines.append('printf("\\n");')
    (tmp_path / "layout.c").write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["cc", "-I", ROOT / "lib/include", "layout.c", "-o", "layout"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "layout"], stdout=subprocess.PIPE, check=True, text=True).stdout
    found = {}
    for words in map(str.split, out.splitlines()):
        found[words[0]] = int(words[1]), {k: int(v) for k, v in zip(words[2::2], words[3::2])}
    return found


def members(struct):
    """Names of a struct's members in the headers, in order."""
    header = "".join((ROOT / "lib/include/weir" / h).read_text() for h in ("hook.h", "run.h"))
    body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (struct, struct), header, re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    names = []
    for member in body.split(";"):
        called = re.search(r"\(\*(\w+)\)", member)
        names += [called[1]] if called else re.findall(r"(\w+)\s*(?:,|$)", member.strip())
    return names


def test_structs_are_those_of_the_headers(page, tmp_path):
    structs = {c: [name for name, _ in page[python]._fields_] for python, c in STRUCTS.items()}
    for python, c in STRUCTS.items():
        assert structs[c] == members(c)
    found = layout_in_c(tmp_path, structs)
    for python, c in STRUCTS.items():
        size, offsets = found[c]
        assert ctypes.sizeof(page[python]) == size
        assert {name: getattr(page[python], name).offset for name in structs[c]} == offsets
    header = (ROOT / "lib/include/weir/hook.h").read_text()
    assert page["HOOK_ABI"] == int(re.search(r"WEIR_HOOK_ABI = (\d+)", header)[1])
    size = layout_in_c(tmp_path, {"weir_err": ["code"]})["weir_err"][0]
    assert len(page["err"]) >= size


def test_views_are_not_copies_and_carry_the_rows(page):
    seen = []

    def look(point, x, rows):
        assert x.shape == (rows.n, 1, point.size) and x.dtype == np.float32 and not x.flags.owndata
        seen.append((point.layer, rows.id[0], [rows.pos[t] for t in range(rows.n)], x[:, 0, 0].copy()))

    def add(point, x, rows):
        x[1:, :, 0] += 1

    wants = lambda p: page["READ"] if p.name.endswith(b"hook_resid_pre") and p.layer == 0 else page["NONE"]
    writes = lambda p: page["WRITE"] if wants(p) else page["NONE"]
    reader, writer = page["hook"]("look", wants, look), page["hook"]("add", writes, add)
    page["forward"](page["model"], [5, 6, 7], reader, writer, reader)
    (_, first, positions, before), (_, _, _, after) = seen
    assert first == 5 and positions == [0, 1, 2]
    assert after[0] == before[0] and (after[1:] == before[1:] + 1).all()


def test_an_exception_ends_the_run(page):
    def wrong(point, x, rows):
        raise ValueError("no such thing")

    wants = lambda p: page["READ"] if p.name == b"hook_embed" else page["NONE"]
    with pytest.raises(RuntimeError, match="no such thing"):
        page["forward"](page["model"], [5, 6, 7], page["hook"]("wrong", wants, wrong))
    with pytest.raises(RuntimeError, match="hook idle wants no point"):
        page["forward"](page["model"], [5], page["hook"]("idle", lambda p: page["NONE"], wrong))
