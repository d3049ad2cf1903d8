"""The rules of the house, checked: headers stand alone, only weir_ symbols leave the library, each dependency has one door, rooms depend
one way, files stay readable, and what is installed works from where it was installed."""
import glob
import os
import re
import subprocess

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("WEIR_BUILD", "build/release"))


def sources(*patterns):
    return sorted(f for p in patterns for f in glob.glob(os.path.join(ROOT, p), recursive=True))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def short(path):
    return os.path.relpath(path, ROOT)


@pytest.mark.parametrize("header", [short(h) for h in sources("lib/include/weir/*.h")])
def test_header_stands_alone_in_c_and_cpp(header):
    for language, standard, compiler in (("c", "c11", "gcc"), ("c++", "c++17", "g++")):
        flags = [compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                 "-Ilib/include", header]
        subprocess.run(flags, cwd=ROOT, check=True)


def foreign_symbols(command):
    names = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")
    found = [line.split()[-1] for line in names if len(line.split()) == 3 and line.split()[1] in "TDBRVWC"]
    assert found, "no symbols read: the check would pass on anything"
    return [s for s in found if not s.startswith("weir_")]


def test_only_weir_symbols_leave_the_libraries():
    assert foreign_symbols(["nm", "-g", "--defined-only", f"{BUILD}/libweir.a"]) == []
    assert foreign_symbols(["nm", "-D", "--defined-only", f"{BUILD}/libweir.so.0"]) == []


def test_symbol_check_can_fail():
    assert foreign_symbols(["nm", "-g", "--defined-only", f"{BUILD}/tools/weir.o"]) == ["main"]


def test_internal_functions_are_not_exported():
    out = subprocess.run(["nm", "-D", "--defined-only", f"{BUILD}/libweir.so.0"], stdout=subprocess.PIPE, check=True, text=True).stdout
    exported = {line.split()[-1] for line in out.splitlines()}
    declared = set(re.findall(r"\b(weir_\w+)\(", "".join(read(h) for h in sources("lib/include/weir/*.h"))))
    assert exported - declared == set()
    assert "weir_model_open" in exported


def users_of(pattern, *where):
    return sorted(short(f) for f in sources(*where) if re.search(pattern, read(f)))


TOOLS = ("tools/**/*.c", "tools/**/*.h", "notebooks_export/**/*.c", "notebooks_export/**/*.h")
C = ("lib/**/*.c", "lib/**/*.h", "hooks/*.c", *TOOLS)


def test_one_door_to_each_dependency():
    assert users_of(r"#pragma omp|#include <omp\.h>", *C) == ["lib/base/parallel.c"]
    assert all(f.startswith("lib/record/") for f in users_of(r"#include <hdf5", *C))
    assert users_of(r"#include <lapacke", *C) == ["lib/linalg/lapack.c"]
    allocators = users_of(r"(?<![\w.>])(malloc|calloc|realloc|posix_memalign|aligned_alloc)\(", "lib/**/*.c")
    assert allocators == ["lib/base/mem.c"]


def test_tools_and_hooks_use_public_headers_only():
    for f in sources("hooks/*.c"):
        assert not [i for i in re.findall(r'#include "([^"]+)"', read(f))], short(f)
    seen = set()
    for f in sources(*TOOLS):
        # What the notebooks' room has is no part of the tools.
        rooms = ("tools", "notebooks_export") if short(f).startswith("notebooks_export/") else ("tools",)
        places = (os.path.dirname(f), *(os.path.join(ROOT, room) for room in rooms))
        for include in re.findall(r'#include "([^"]+)"', read(f)):
            assert any(os.path.exists(os.path.join(place, include)) for place in places), f"{short(f)} includes {include}"
        seen.add(short(f).split("/")[0])
    assert seen == {"tools", "notebooks_export"}


ORDER = ["base", "linalg", "io", "count", "tokenizer", "kernels", "model", "run", "hooks", "grad", "lens", "record", "edit", "survey", "search"]
ALLOWED = {
    "base": {"base"}, "linalg": {"base", "linalg"}, "io": {"base", "io"}, "count": {"base", "io", "count"}, "tokenizer": {"base", "io", "tokenizer"}, "kernels": {"base", "io", "kernels"},
    "model": {"base", "io", "kernels", "model"}, "run": {"base", "kernels", "model", "run"},
    "hooks": {"base", "model", "run", "hooks"}, "grad": {"base", "kernels", "model", "run", "hooks", "grad"}, "lens": {"base", "io", "kernels", "model", "run", "lens"}, "record": {"base", "io", "kernels", "hooks", "record"},
    "edit": {"base", "io", "kernels", "model", "run", "record", "edit"}, "survey": {"base", "kernels", "model", "record", "survey"}, "search": {"base", "io", "kernels", "model", "record", "search"},
}


def test_rooms_depend_one_way():
    seen = 0
    for room in ORDER:
        for f in sources(f"lib/{room}/**/*.c", f"lib/{room}/**/*.h"):
            for include in re.findall(r'#include "([^"]+)"', read(f)):
                target = os.path.normpath(os.path.join(os.path.dirname(f), include))
                if not os.path.exists(target):
                    target = os.path.join(ROOT, "lib", include)
                used = os.path.relpath(target, os.path.join(ROOT, "lib")).split(os.sep)[0]
                assert used in ALLOWED[room], f"{short(f)} includes {include}"
                seen += 1
    assert seen > 50


def test_no_family_is_named_outside_its_room():
    names = r"gpt_neox|gptneox|gemma2|qwen|\"llama\"|\"gpt2\""
    assert users_of(names, "lib/run/*", "lib/hooks/*.c", "lib/kernels/*.c", "lib/record/*.c", "hooks/*.c", "tools/**/*.c",
                    "notebooks_export/**/*.[ch]", "notebooks_export/templates/*") == []


def test_files_stay_readable():
    for f in sources(*C, "tests/**/*.c", "tests/**/*.py", "Makefile"):
        if "/brook/" in f or "unicode" in f and "_table" in f:
            continue
        assert len(read(f).splitlines()) <= 800, short(f)


def test_installed_program_and_library_work(tmp_path):
    """Installed under DESTDIR, which is not where PREFIX says: everything is found from where it lies."""
    quiet = dict(stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["make", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr/local"], cwd=ROOT, **quiet)
    prefix = tmp_path / "usr/local"
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    env.update(PATH=f"{prefix}/bin:{env['PATH']}", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig", PKG_CONFIG_SYSROOT_DIR=str(tmp_path),
               LD_LIBRARY_PATH=f"{prefix}/lib")
    subprocess.run(["trace", "--layer", "6", "--dump", "mlp.h5", "Among the places of Colorado is Boulder."], cwd=tmp_path, env=env,
                   stderr=subprocess.DEVNULL, **quiet)
    pkg_config = lambda *a: subprocess.run(["pkg-config", *a, "weir"], env=env, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    shared = pkg_config("--cflags", "--libs")
    static = [f"{prefix}/lib/libweir.a" if f == "-lweir" else f.replace(f"-L{tmp_path}/usr/lib", "-L/usr/lib")
              for f in pkg_config("--static", "--cflags", "--libs")]
    for program in sources("tests/api/*.c"):
        for flags, more in ((shared, {}), (static, {"WEIR_BROOK": f"{prefix}/share/weir/brook"})):
            subprocess.run(["gcc", "-std=c11", "-Wall", "-Werror", program, "-o", "program", *flags], cwd=tmp_path, check=True)
            subprocess.run([tmp_path / "program"], cwd=tmp_path, env={**env, **more}, **quiet)
