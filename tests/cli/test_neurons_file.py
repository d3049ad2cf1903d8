"""Result files of neuron-top as others meet them: h5py reads what lib/search/README.md says, no more and no less; its example
runs; and a damaged file is one line that names what is wrong in it."""
import re
import shutil

import h5py
import numpy as np
import pytest

from weircli import BROOK, ROOT, weir

README = (ROOT / "lib" / "search" / "README.md").read_text(encoding="utf-8")
HOOK = "neurons/blocks.6.mlp.hook_post"
SEAL = 42


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = [line for line in (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines() if line]
    path.write_text("\n".join(lines[:40] + lines[:2]) + "\n", encoding="utf-8")
    return path


def search(text, out, *options):
    weir("neuron-top", "--layer", 6, "-k", 5, "--file", text, "--quiet", "-o", out, *options).ok()
    return out


@pytest.fixture(scope="module")
def plain(text, tmp_path_factory):
    """All neurons of a layer, lists alone."""
    return search(text, tmp_path_factory.mktemp("plain") / "neurons.h5")


@pytest.fixture(scope="module")
def full(text, tmp_path_factory):
    """Two named neurons, with all that there is."""
    return search(text, tmp_path_factory.mktemp("full") / "neurons.h5", "--neurons", "421,7", "--quantiles", 2, "--random", 4, "--weights", "yes")


def names(path):
    """Paths of all arrays, and the attributes of what they lie in."""
    arrays, attributes = [], set()
    with h5py.File(path) as f:
        attributes |= set(f.attrs)
        f.visititems(lambda name, o: (arrays.append(name) if isinstance(o, h5py.Dataset) else None, attributes.update(o.attrs))[1])
    return arrays, attributes


def described():
    """Patterns of the paths in the README's tables."""
    found = []
    for cell in re.findall(r"^\| ([/.]\S+) \| .+ \|", README, flags=re.M):
        cell = re.escape(cell).replace(r"\.\.\.", "/neurons/[^/]+").replace(r"\*", "[^/]+").replace("LIST", "(top|bottom|abs)")
        cell = re.sub("/J/", "/[0-9]+/", cell)
        found.append(re.sub(r"\\\{([^}]*)\\\}", lambda m: "(" + m[1].replace(",", "|") + ")", cell))
    return [re.compile(p + "$") for p in found]


def test_everything_in_the_file_is_described(full, plain):
    patterns = described()
    for path in (full, plain):
        arrays, attributes = names(path)
        assert len(arrays) > 20
        assert [name for name in arrays if not any(p.match("/" + name) for p in patterns)] == []
        assert [name for name in attributes if f"`{name}`" not in README] == []


def test_everything_described_is_in_the_file(full):
    arrays, _ = names(full)
    ours = ["/" + name for name in arrays]
    missing = [p.pattern for p in described() if not any(p.match(name) for name in ours)]
    assert missing == ["/neurons/HOOK$"]  # a group


def test_the_example_runs(plain, tmp_path, capsys):
    code = re.search(r"```python\n(.*?)```", README, flags=re.S)[1]
    exec(compile(code.replace("neurons.h5", str(plain)), "README", "exec"), {})
    lines = capsys.readouterr().out.rstrip("\n").split("\n")
    with h5py.File(plain) as f:
        assert [float(line.split()[0]) for line in lines] == pytest.approx(f[HOOK]["top_value"][421].tolist(), abs=1e-3)
    assert all(len(line.split(maxsplit=2)[2]) > 1 for line in lines)


def test_tokens_around_places_are_the_text(plain, text):
    lines = text.read_bytes().splitlines()
    with h5py.File(plain) as f:
        raw, offsets = f["vocab/bytes"][:].tobytes(), f["vocab/offsets"][:]
        piece = [raw[a:b] for a, b in zip(offsets, offsets[1:])]
        at = {(d, p): i for d, p, i in zip(f["tokens/doc"][:], f["tokens/pos"][:], f["tokens/id"][:])}
        for which in ("top", "bottom"):
            docs, pos = f[HOOK][f"{which}_doc"][:], f[HOOK][f"{which}_pos"][:]
            for d, p in {(d, p) for d, p in zip(docs.flat, pos.flat) if d >= 0}:
                around = b"".join(piece[at[d, q]] for q in range(max(1, p - 5), p + 1))  # position 0 is BOS
                assert around in lines[d] or around.lstrip() in lines[d], (d, p, around)


def test_numbers_hang_together(full):
    with h5py.File(full) as f:
        g, named = f[HOOK], f["named"]
        assert g["unit"][:].tolist() == [7, 421] and g.attrs["width"] > 421
        assert f.attrs["format"] == "weir-neurons" and f.attrs["format_version"] == 1 and f.attrs["complete"] == 1
        assert g["hist"][:].sum(axis=1).tolist() == g["count"][:].tolist()
        assert np.array_equal(g["density"][:], g["above"][:] / g["count"][:][:, None])
        assert f["hist/edges"].shape == (644,) and np.all(np.diff(f["hist/edges"][:]) > 0)
        first, edges = g["hist"].attrs["first_bin"], f["hist/edges"][:]
        for i in range(2):
            used = np.flatnonzero(g["hist"][i])
            assert edges[first + used[-1]] <= g["max"][i] <= edges[first + used[-1] + 1]
            assert edges[first + used[0]] <= g["min"][i] <= edges[first + used[0] + 1]
        # sums are numbers in two's complement, the lowest word first
        for i in range(2):
            total = sum(int(w) << 64 * j for j, w in enumerate(g["sums"][i, 0]))
            total -= 1 << 384 if total >> 383 else 0
            assert total / 2 ** 192 / int(g["count"][i]) == pytest.approx(g["mean"][i], rel=1e-12)
        assert sorted(int(g["unit"][j]) for j in named["neuron"][:]) == [7, 421]
        at = {(d, p): i for i, (d, p) in enumerate(zip(f["tokens/doc"][:], f["tokens/pos"][:]))}
        for j, i in enumerate(named["neuron"][:]):
            for value, d, p in zip(g["top_value"][i], g["top_doc"][i], g["top_pos"][i]):
                assert named["value"][j, at[d, p]] == value
            unit = g["unit"][i]
            r = named[f"{j}/r"][:]
            assert np.isnan(r[unit]) and np.nanmax(np.abs(r)) <= 1
        assert np.all(np.diff(f["tokens/doc"][:] * 2 ** 32 + f["tokens/pos"][:]) > 0)


def test_the_run_leaves_no_trace(full, text, tmp_path):
    """Another name, another number of threads: the same bytes."""
    again = search(text, tmp_path / "again.h5", "--neurons", "421,7", "--quantiles", 2, "--random", 4, "--weights", "yes", "--threads", 1)
    assert again.read_bytes() == full.read_bytes()
    other = search(text, tmp_path / "other.h5", "--neurons", "421,7", "--quantiles", 2, "--random", 5, "--weights", "yes")
    assert other.read_bytes() != full.read_bytes()


# --- damage

def put(name, index, value):
    def change(f):
        f[name][index] = value
    return change


def attribute(at, name, value):
    def change(f):
        f[at].attrs[name] = value
    return change


def remove(name):
    def change(f):
        del f[name]
    return change


def replace(name, make):
    def change(f):
        was = f[name][...]
        del f[name]
        f[name] = make(was)
    return change


def external(name):
    def change(f):
        del f[name]
        f[name] = h5py.ExternalLink("elsewhere.h5", "/x")
    return change


def huge(name):
    """Claims far more than the file holds."""
    def change(f):
        kind = f[name].dtype
        del f[name]
        f.create_dataset(name, shape=(1 << 40,), chunks=(1 << 20,), dtype=kind)
    return change


DAMAGE = {
    "a list out of order": (put(f"{HOOK}/top_value", (0, 4), 1e6), "top_value"),
    "a place beyond 2^32": (put(f"{HOOK}/top_doc", (0, 0), 1 << 40), "top_value"),
    "a hole in a list": (put(f"{HOOK}/bottom_doc", (1, 2), -1), "bottom_value"),
    "no number in a list": (put(f"{HOOK}/top_value", (0, 1), np.nan), "top_value"),
    "a text twice": (lambda f: f[f"{HOOK}/top_key"].__setitem__((0, 1), f[f"{HOOK}/top_key"][0, 0]), "top_value"),
    "a bin too full": (put(f"{HOOK}/hist", (0, 3), 1 << 50), "hist"),
    "a negative count": (put(f"{HOOK}/hist", (1, 0), -1), "hist"),
    "more nonfinite than rows": (put(f"{HOOK}/nonfinite", 0, 1 << 50), "nonfinite"),
    "more above than there are": (put(f"{HOOK}/above", (0, 0), 1 << 50), "above"),
    "units out of order": (put(f"{HOOK}/unit", 1, 3), "unit"),
    "a unit beyond the width": (attribute(HOOK, "width", 400), "unit"),
    "an unknown rank": (attribute("/", "rank", "middle"), "rank"),
    "k is not the lists'": (attribute("/", "k", 6), "top_value"),
    "a table's number twice": (attribute(HOOK, "table", 3), "table"),
    "bins that do not exist": (attribute(f"{HOOK}/hist", "first_bin", 640), "hist"),
    "samples that overlap": (put(f"{HOOK}/sample_offsets", 1, 1 << 40), "sample_offsets"),
    "a random place twice": (lambda f: (put(f"{HOOK}/random_doc", slice(None), 1)(f), put(f"{HOOK}/random_pos", slice(None), 1)(f)), "random_doc"),
    "tokens out of order": (put("tokens/doc", 3, 1 << 30), "tokens"),
    "a negative token": (put("tokens/id", 0, -5), "tokens"),
    "offsets that go back": (put("vocab/offsets", 5, 1 << 40), "vocab/offsets"),
    "a neuron that is not there": (put("named/neuron", 0, 9), "named/neuron"),
    "tokens of the sums out of order": (put("named/sums/token_id", 0, 1 << 20), "token"),
    "weights out of order": (put(f"{HOOK}/in_pos_score", (0, 0), -1e9), "weights"),
    "an array missing": (remove(f"{HOOK}/sums"), "sums"),
    "an array of another shape": (replace(f"{HOOK}/beyond", lambda a: a[:1]), "beyond"),
    "an array of another type": (replace(f"{HOOK}/min", lambda a: a.astype(np.int32)), "min"),
    "an array in another file": (external("tokens/id"), "tokens/id"),
    "more than a file can hold": (huge("tokens/doc"), "tokens/doc"),
    "a later version": (attribute("/", "format_version", 2), "format_version 2; this weir reads 1"),
    "another format": (attribute("/", "format", "weir-dump"), ""),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_one_line_that_names_it(full, tmp_path, what):
    change, words = DAMAGE[what]
    path = tmp_path / "neurons.h5"
    shutil.copy(full, path)
    with h5py.File(path, "r+") as f:
        change(f)
    weir("neuron-top", path).fails(1, words, "neurons.h5")


def flipped(path, data, bit):
    """The file with one bit wrong."""
    data = bytearray(data)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return path


def test_h5py_tells_of_each_array_that_is_damaged(full, tmp_path):
    data, chunks, told = full.read_bytes(), [], 0
    with h5py.File(full) as f:
        whole = {name: f[name][...] for name in names(full)[0]}
        for name, array in whole.items():
            d = f[name].id
            assert d.get_num_chunks() >= 1 or array.size == 0
            chunks += [(name, d.get_chunk_info(i)) for i in range(d.get_num_chunks())]
    for i, (name, chunk) in enumerate(chunks):
        bit = 8 * chunk.byte_offset + (i * 7919 + 20) % (8 * chunk.size)
        with h5py.File(flipped(tmp_path / "neurons.h5", data, bit)) as f:
            try:
                array = f[name][...]
            except OSError:
                told += 1
            else:  # a bit that fills up a byte of the deflate stream
                assert array.tobytes() == whole[name].tobytes(), name
    assert len(chunks) > 60 and told > 0.9 * len(chunks)


def test_a_wrong_bit_is_an_error_in_every_part(full, tmp_path):
    """In the superblock, in HDF5's structures, among the strings, in arrays, in the seal."""
    data = full.read_bytes()
    bits = [8 * at for at in (0, 30, 100, data.index(b"GCOL") + 18, data.index(b"brook"), len(data) // 2, len(data) - 2)]
    for bit in bits:
        path = flipped(tmp_path / "neurons.h5", data, bit + 3)
        for arguments in ((path,), ("--merge", path, full), (path, "-o", tmp_path / "new.h5")):
            weir("neuron-top", *arguments).fails(1, "neurons.h5: is damaged")
    assert not (tmp_path / "new.h5").exists()


def test_a_damaged_file_can_be_replaced(full, plain, tmp_path):
    data = full.read_bytes()
    path = flipped(tmp_path / "neurons.h5", data, 8 * data.index(b"GCOL") + 152)
    weir("neuron-top", plain, "-o", path, "--quiet").ok()
    assert path.read_bytes() == plain.read_bytes()


def test_the_check_in_the_readme(full, tmp_path):
    code = compile(re.search(r"```python\n(import zlib\n.*?)```", README, flags=re.S)[1], "README", "exec")
    run = lambda path: exec(code, {"open": lambda _, mode: open(path, mode)})
    run(full)
    with pytest.raises(AssertionError):
        run(flipped(tmp_path / "neurons.h5", full.read_bytes(), 12345))


def test_files_without_a_seal_are_read(full, tmp_path):
    path = tmp_path / "neurons.h5"
    path.write_bytes(full.read_bytes()[:-SEAL])
    shown = weir("neuron-top", path, "--quiet").ok().out
    again = tmp_path / "again.h5"
    weir("neuron-top", path, "-o", again, "--quiet").ok()
    assert again.read_bytes() == full.read_bytes()
    assert shown == weir("neuron-top", full, "--quiet").ok().out


def test_the_undamaged_file_is_shown(full, tmp_path):
    """What the tests above change is what they fail of."""
    path = tmp_path / "neurons.h5"
    shutil.copy(full, path)
    with h5py.File(path, "r+") as f:
        f.attrs["something of mine"] = 1
    assert weir("neuron-top", path, "--quiet").ok().out
