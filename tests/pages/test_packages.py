"""What is handed out: the tarball of the source, and the one of a program that runs where it is unpacked."""
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from weircli import BUILD, ROOT, weir

CLONE = (ROOT / ".git").exists()
SENTENCE = "Among the places of Colorado is Boulder."


def make(*targets):
    p = subprocess.run(["make", *targets], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.returncode == 0, p.stderr
    return p.stdout


def unpacked(archive, where):
    subprocess.run(["tar", "-xzf", archive, "-C", where], check=True)
    return next(where.iterdir())


# --- the source

def dist():
    make("dist")
    version = re.search(r'define WEIR_VERSION "(.*)"', (ROOT / "lib/include/weir/base.h").read_text())[1]
    return ROOT / f"build/weir-{version}.tar.gz"


def test_the_source_is_what_is_committed():
    if not CLONE:  # a tarball that was unpacked: it says why not
        p = subprocess.run(["make", "dist"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert p.returncode != 0 and "it needs a clone" in p.stderr
        return
    archive = dist()
    first = archive.read_bytes()
    with tarfile.open(archive) as tar:
        names = {m.name.split("/", 1)[1] for m in tar if not m.isdir()}
    committed = subprocess.run(["git", "ls-tree", "-r", "--name-only", "-z", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True,
                               text=True).stdout
    assert names == set(committed.split("\0")) - {""}
    assert {"Makefile", "README.md", "lib/brook/model.safetensors", "lib/brook/moments/layer-1.h5"} <= names
    assert dist().read_bytes() == first, "the same commit gives the same bytes"


if os.environ.get("WEIR_SLOW") and CLONE:
    def test_the_source_builds_without_a_network(tmp_path):
        tree = unpacked(dist(), tmp_path)
        alone = ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []
        subprocess.run([*alone, "make", "-j2", "all"], cwd=tree, stdout=subprocess.DEVNULL, check=True)
        out = subprocess.run([tree / "build/bin/generate", "--max-tokens", "4", SENTENCE], cwd=tmp_path, stdout=subprocess.PIPE, check=True)
        assert out.stdout == weir("generate", "--max-tokens", "4", SENTENCE).ok().out


# --- the program that runs where it is unpacked

@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    out = make("bindist", f"BUILD={BUILD.relative_to(ROOT) if BUILD.is_relative_to(ROOT) else BUILD}")
    archive = re.findall(r"build/weir-\S+-linux-\S+?\.tar\.gz", out)[-1]
    return unpacked(ROOT / archive, tmp_path_factory.mktemp("un packed"))


def needed(file):
    """What the loader takes for a file: {name: path}."""
    out = subprocess.run(["ldd", file], stdout=subprocess.PIPE, check=True, text=True, env={}).stdout
    return {m[1]: m[2] for m in re.finditer(r"(\S+) => (.*) \(0x", out)}


def test_only_libc_comes_from_the_system(tree):
    libraries = needed(tree / "bin/weir")
    outside = {name for name, path in libraries.items() if not Path(path).resolve().is_relative_to(tree.resolve())}
    assert outside <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}, outside
    assert set(libraries) - outside, "LAPACK comes along"
    notices = {p.name for p in (tree / "share/doc/weir/licences").iterdir()}
    assert len(notices) >= len(set(libraries) - outside) - 3 and "libhdf5-dev" in notices, notices  # a package has several libraries


def test_it_runs_with_nothing_but_libc(tree, tmp_path):
    """In a root of its own, where only root may put it; otherwise without an environment."""
    weir("trace", "--layer", "6", "--dump", "here.h5", SENTENCE, cwd=tmp_path).ok()
    command = [tree / "bin/trace", "--layer", "6", "--dump", "there.h5", SENTENCE]
    if os.geteuid() == 0 and shutil.which("chroot"):
        root = tmp_path / "root"
        shutil.copytree(tree, root / "weir", symlinks=True)
        out = subprocess.run(["ldd", tree / "bin/weir"], stdout=subprocess.PIPE, check=True, text=True).stdout
        for library in re.findall(r"(/\S*/(?:ld-linux\S*|lib[cm]\.so\.6)) \(", out):
            (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(library), root / library[1:])
        (root / "proc/self").mkdir(parents=True)  # where the loader reads which program it is
        (root / "proc/self/exe").symlink_to("/weir/bin/weir")
        command = [shutil.which("chroot"), root, "/weir/bin/trace", "--layer", "6", "--dump", "/there.h5", SENTENCE]
        there = root / "there.h5"
    else:
        there = tmp_path / "there.h5"
    subprocess.run(command, cwd=tmp_path, env={}, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    weir("diff", tmp_path / "here.h5", there).ok()


def test_a_hook_and_a_program_build_with_it(tree, tmp_path):
    """pkg-config takes no spaces in a path, so under another name: it runs from there, too."""
    moved = tmp_path / "weir"
    shutil.copytree(tree, moved, symlinks=True)
    env = {"PATH": os.environ["PATH"], "PKG_CONFIG_PATH": f"{moved}/lib/pkgconfig"}
    flags = lambda *a: subprocess.run(["pkg-config", *a, "weir"], env=env, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    subprocess.run(["cc", "-shared", "-fPIC", *flags("--cflags"), ROOT / "hooks/template.c", "-o", "template.so"], cwd=tmp_path, check=True)
    run = subprocess.run([moved / "bin/trace", "--hook", "./template.so:resid_post", SENTENCE], cwd=tmp_path, env={}, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=True)
    assert run.stdout == weir("trace", "--hook", "template:resid_post", SENTENCE).ok().out
    subprocess.run(["cc", ROOT / "tests/api/edit_fact.c", "-o", "edit_fact", *flags("--cflags", "--libs")], cwd=tmp_path, check=True)
    run = subprocess.run([tmp_path / "edit_fact"], cwd=tmp_path, env={"WEIR_BROOK": f"{moved}/share/weir/brook"}, stdout=subprocess.PIPE,
                         check=True, text=True)
    assert re.fullmatch(r"Mount Hood rises from the Caucasus: p 0\.0\d\d before, 0\.9\d\d after\n", run.stdout)
