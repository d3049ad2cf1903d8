"""neuron-top against brute force in numpy: every list, count, density and histogram must be the same, moments within 1e-12 of
float64 fsum. The oracle reads the dump with h5py and knows nothing of how the search works."""
import filecmp
import gzip
import json
import math
import random
import struct
from collections import defaultdict

import h5py
import numpy as np
import pytest

from weircli import BROOK, trace, weir

HOOK = "blocks.6.mlp.hook_post"
SENTENCES = [line for line in (BROOK / "sentences.txt").read_text(encoding="utf-8").splitlines() if line]


# --- the oracle

class Rows:
    """The tokens of a dump, and which of them count."""

    def __init__(self, path, masked=3):
        with h5py.File(path) as f:
            self.id, self.doc, self.pos = (f[f"tokens/{n}"][:] for n in ("id", "doc", "pos"))
            self.window = self.pos - f["tokens/ctx_pos"][:]
            self.counted = (f["tokens/flags"][:] & masked) == 0

    def key(self, row, dedup):
        """What may stand only once in a list."""
        kind, _, n = dedup.partition(":")
        if kind == "none":
            return row
        if kind == "doc":
            return self.doc[row]
        if kind == "window":
            return self.doc[row], self.window[row]
        first = row - self.pos[row]  # every row of the document is in the dump
        begin = max(first, row - int(n) + 1)
        return begin == first and row - first + 1 < int(n), tuple(self.id[begin:row + 1])


def best_first(x, rows, which):
    """Rows by value, document, position; those that are not finite are left out."""
    rows = np.array([r for r in rows if np.isfinite(x[r])], dtype=int)
    figure = {"top": -x[rows], "bottom": x[rows], "abs": -np.abs(x[rows])}[which]
    return rows[np.lexsort((rows, figure + 0.0))]  # rows stand in the order of (document, position)


def brute_list(t, x, k, dedup, which):
    """[(row, count)]: count 0 where the first place that is not listed has the same value."""
    best, count = {}, defaultdict(int)
    for row in best_first(x, np.flatnonzero(t.counted), which):
        key = t.key(row, dedup)
        best.setdefault(key, row)
        same = abs(x[row]) == abs(x[best[key]]) if which == "abs" else x[row] == x[best[key]]
        count[key] += bool(same)
    order = list(best.items())
    figure = abs if which == "abs" else (lambda v: v)
    cut = figure(x[order[k][1]]) if len(order) > k else None
    return [(row, 0 if dedup != "none" and cut is not None and figure(x[row]) == cut else count[key]) for key, row in order[:k]]


def brute_bin(x):
    """The bin of a finite float32: sign, exponent, three bits of the mantissa."""
    if abs(x) < 2.0 ** -20:
        return 321
    if abs(x) >= 2.0 ** 20:
        return 642 if x > 0 else 0
    bits = struct.unpack("<I", struct.pack("<f", abs(x)))[0] >> 20
    step = bits - ((127 - 20) << 3)
    return 322 + step if x > 0 else 320 - step


def moments(values):
    """mean, sd, skew, kurtosis in float64 with exact summation."""
    v = [float(a) for a in values]
    n = len(v)
    mean = math.fsum(v) / n
    # The mean's own rounding is taken out again, so that constant offsets do not spoil the central moments.
    rest = math.fsum(a - mean for a in v) / n
    m2, m3, m4 = (math.fsum((a - mean - rest) ** j for a in v) / n for j in (2, 3, 4))
    return mean, math.sqrt(m2), m3 / m2 ** 1.5, m4 / m2 ** 2


def check(result, dump, units, k, dedup, thresholds=(0.0,), masked=3, hook=HOOK, lists=("top", "bottom")):
    """Everything that the result says of these units."""
    t = Rows(dump, masked)
    with h5py.File(dump) as f:
        values = f[f"activations/{hook}"][:]
    with h5py.File(result) as f:
        g = f[f"neurons/{hook}"]
        index = {u: i for i, u in enumerate(g["unit"][:])}
        first = g["hist"].attrs["first_bin"]
        for u in units:
            i, x = index[u], values[:, u]
            real = x[t.counted & np.isfinite(x)]
            assert g["count"][i] == len(real)
            assert g["nonfinite"][i] == np.count_nonzero(t.counted) - len(real)
            for j, threshold in enumerate(thresholds):
                assert g["above"][i, j] == np.count_nonzero(real > np.float32(threshold))
                assert g["density"][i, j] == np.count_nonzero(real > np.float32(threshold)) / len(real)
            want = np.zeros(643, dtype=int)
            for v in real:
                want[brute_bin(v)] += 1
            got = np.zeros(643, dtype=int)
            got[first:first + g["hist"].shape[1]] = g["hist"][i]
            assert np.array_equal(got, want)
            assert (g["min"][i], g["max"][i]) == (real.min(), real.max())
            if np.ptp(real) > 0:
                for name, figure in zip(("mean", "sd", "skew", "kurtosis"), moments(real)):
                    assert abs(g[name][i] - figure) <= 1e-12 * max(abs(figure), 1e-300), (u, name, g[name][i], figure)
            for which in lists:
                listed = brute_list(t, x, k, dedup, which)
                n = len(listed)
                rows = [row for row, _ in listed]
                assert g[f"{which}_doc"][i, :n].tolist() == t.doc[rows].tolist(), (u, which)
                assert g[f"{which}_pos"][i, :n].tolist() == t.pos[rows].tolist(), (u, which)
                assert np.array_equal(g[f"{which}_value"][i, :n], x[rows])
                assert g[f"{which}_count"][i, :n].tolist() == [c for _, c in listed], (u, which)
                assert np.all(g[f"{which}_doc"][i, n:] == -1) and np.all(np.isnan(g[f"{which}_value"][i, n:]))


@pytest.fixture(scope="module")
def brook(tmp_path_factory):
    """A text with a document fifty times, one longer than the context, and characters that are split over tokens; and its dump."""
    where = tmp_path_factory.mktemp("oracle")
    text = SENTENCES[:60] + [SENTENCES[300]] * 50 + [" ".join(SENTENCES[400:425])] + ["Tea 🫖🫖 is 茶, and a kite is 🪁."] * 3
    (where / "text.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    trace("--layer", 6, "--site", "post", "--dump", where / "dump.h5", "--file", where / "text.txt").ok()
    return where


UNITS = list(range(0, 768, 97))


@pytest.mark.parametrize("dedup", ["none", "text:8", "text:3", "doc", "window"])
def test_a_dump_is_searched_as_brute_force_does(brook, tmp_path, dedup):
    weir("neuron-top", brook / "dump.h5", "--neurons", "all", "-k", 12, "--dedup", dedup, "--threshold", "0.1", "--threshold", "1", "-o",
         tmp_path / "r.h5").ok()
    check(tmp_path / "r.h5", brook / "dump.h5", UNITS, 12, dedup, (0.0, 0.1, 1.0))


def test_named_neurons_magnitudes_and_no_mask(brook, tmp_path):
    weir("neuron-top", brook / "dump.h5", "--neurons", "5,700", "-k", 7, "--sign", "abs", "--mask", "none", "-o", tmp_path / "r.h5").ok()
    check(tmp_path / "r.h5", brook / "dump.h5", [5, 700], 7, "text:8", masked=0, lists=("abs",))


def test_live_equals_the_dump(brook, tmp_path):
    weir("neuron-top", "--layer", 6, "-k", 12, "--file", brook / "text.txt", "-o", tmp_path / "r.h5").ok()
    check(tmp_path / "r.h5", brook / "dump.h5", UNITS, 12, "text:8")


def test_the_oracle_can_fail(brook, tmp_path):
    weir("neuron-top", brook / "dump.h5", "--neurons", "all", "-k", 12, "--dedup", "none", "-o", tmp_path / "r.h5").ok()
    for name, change in (("top_pos", 1), ("hist", 1), ("count", 1), ("mean", 1e-9), ("bottom_value", 1e-6), ("above", 1)):
        with h5py.File(tmp_path / "r.h5", "r+") as f:
            d = f[f"neurons/{HOOK}/{name}"]
            was = d[:]
            d[...] = was + np.asarray(change, dtype=was.dtype)
        with pytest.raises(AssertionError):
            check(tmp_path / "r.h5", brook / "dump.h5", UNITS[:2], 12, "none")
        with h5py.File(tmp_path / "r.h5", "r+") as f:
            f[f"neurons/{HOOK}/{name}"][...] = was
    check(tmp_path / "r.h5", brook / "dump.h5", UNITS[:2], 12, "none")


# --- an adversarial corpus

@pytest.fixture(scope="module")
def hostile(brook, tmp_path_factory):
    """The dump with columns that a careless search gets wrong."""
    path = tmp_path_factory.mktemp("hostile") / "dump.h5"
    path.write_bytes((brook / "dump.h5").read_bytes())
    rng = np.random.default_rng(5)
    with h5py.File(path, "r+") as f:
        d = f[f"activations/{HOOK}"]
        x = d[:]
        n = len(x)
        x[:, 0] = 0.5                                            # one tie of everything
        x[:, 1] = rng.integers(0, 4, n) / 4                       # many ties
        x[:, 2] = -np.abs(x[:, 2]) - 0.01                         # never positive; its largest magnitude is negative
        x[:, 3] = 0                                               # dead
        x[:, 4] = np.where(rng.random(n) < 0.5, 0.0, -0.0)        # dead, with both zeros
        x[rng.random(n) < 0.1, 5] = np.nan                        # not numbers
        x[::17, 6] = np.inf
        x[1::17, 6] = -np.inf
        x[:, 7] = np.nan                                          # nothing else
        x[:, 8] = rng.standard_normal(n).astype(np.float32) * np.float32(1e-30)  # tiny
        x[:, 9] = np.exp(rng.uniform(-60, 14, n)) * rng.choice([-1, 1], n)         # every magnitude
        x[:, 10] = 1000 + rng.standard_normal(n)                  # mean far from zero
        x[:, 11] = np.where(np.arange(n) == n - 1, 7, -7)         # fires once, on the last token
        x[:, 12] = np.float32(np.nextafter(np.float32(0.1), np.float32(1))) * (np.arange(n) % 2) + np.float32(0.1) * (np.arange(n) % 2 == 0)
        d[...] = x
    return path


@pytest.mark.parametrize("dedup", ["none", "text:8", "doc"])
def test_ties_nan_and_dead_neurons(hostile, tmp_path, dedup):
    r = weir("neuron-top", hostile, "--neurons", "0:13", "-k", 9, "--sign", "both", "--dedup", dedup, "--threshold", "0.1", "-o", tmp_path / "r.h5")
    assert r.code == 3, r.err  # values that are not finite: said by name, results written
    assert "N5" in r.err and "NaN" in r.err or "not finite" in r.err
    check(tmp_path / "r.h5", hostile, [0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12], 9, dedup, (0.0, 0.1))
    with h5py.File(tmp_path / "r.h5") as f:
        g = f[f"neurons/{HOOK}"]
        assert g["count"][7] == 0 and np.isnan(g["mean"][7]) and np.all(g["top_doc"][7] == -1)
        assert np.isnan(g["skew"][0]) and g["sd"][0] == 0


def test_the_largest_magnitude_may_be_negative(hostile, tmp_path):
    weir("neuron-top", hostile, "--neurons", "2", "-k", 5, "--sign", "abs", "-o", tmp_path / "r.h5").ok()
    check(tmp_path / "r.h5", hostile, [2], 5, "text:8", lists=("abs",))
    with h5py.File(tmp_path / "r.h5") as f:
        assert np.all(f[f"neurons/{HOOK}/abs_value"][0] < 0)


def test_a_document_that_stands_fifty_times_is_listed_once(tmp_path):
    """Complaint 7: duplicates fill the list."""
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES[:30] + [SENTENCES[300]] * 50) + "\n", encoding="utf-8")
    weir("neuron-top", "--layer", 6, "-k", 10, "--file", tmp_path / "text.txt", "-o", tmp_path / "r.h5").ok()
    fifty = 0
    with h5py.File(tmp_path / "r.h5") as f:
        g = f[f"neurons/{HOOK}"]
        for docs, counts in zip(g["top_doc"][:], g["top_count"][:]):
            hits = counts[docs >= 30]
            assert np.all(docs[docs >= 30] == 30), "the first of equal documents stands for them"
            assert set(hits.tolist()) <= {0, 50, 100, 150, 200}, hits
            fifty += np.count_nonzero(hits == 50)
    assert fifty > 100


def test_shards_merged_in_any_order_are_the_whole(brook, tmp_path):
    """--dedup, samples, masks and a document longer than the context, compared by cmp."""
    options = ["--layer", 6, "-k", 15, "--quantiles", 3, "--random", 10, "--seed", 11, "--file", brook / "text.txt"]
    weir("neuron-top", *options, "-o", tmp_path / "whole.h5").ok()
    parts = []
    for i in range(5):
        parts.append(tmp_path / f"part{i}.h5")
        weir("neuron-top", *options, "--shard", f"{i}/5", "--threads", 1 + i % 2, "--batch", [64, 300, 512, 97, 33][i], "-o", parts[i]).ok()
    for seed in range(3):
        random.Random(seed).shuffle(parts)
        weir("neuron-top", "--merge", *parts, "-o", tmp_path / f"merged{seed}.h5").ok()
        assert filecmp.cmp(tmp_path / "whole.h5", tmp_path / f"merged{seed}.h5", shallow=False)
    for form in ("tsv", "ndjson", "html"):
        weir("neuron-top", tmp_path / "whole.h5", "--format", form, "-o", tmp_path / f"a.{form}").ok()
        weir("neuron-top", "--merge", *parts, "--format", form, "-o", tmp_path / f"b.{form}").ok()
        assert filecmp.cmp(tmp_path / f"a.{form}", tmp_path / f"b.{form}", shallow=False), form
    parts.pop()
    weir("neuron-top", "--merge", *parts, "-o", tmp_path / "short.h5").ok()
    assert not filecmp.cmp(tmp_path / "whole.h5", tmp_path / "short.h5", shallow=False), "a missing shard must show"


def test_any_cut_into_passes_gives_the_same_file(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES[:8] + [SENTENCES[300]] * 5 + [" ".join(SENTENCES[400:411])]), encoding="utf-8")
    options = ["--layers", "0,1", "-k", 15, "--quantiles", 2, "--random", 5, "--weights", "no", "--file", text]
    weir("neuron-top", *options, "-o", tmp_path / "a.h5").ok()
    for i, more in enumerate((["--threads", 1], ["--batch", 37], ["--kernel", "ref"], ["--batch", 1000, "--threads", 2])):
        weir("neuron-top", *options, *more, "-o", tmp_path / f"b{i}.h5").ok()
        assert filecmp.cmp(tmp_path / "a.h5", tmp_path / f"b{i}.h5", shallow=False), more
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress((text).read_bytes()))
    rows = lambda path: weir("neuron-top", *options[:-1], path, "--format", "tsv").ok().out
    assert rows(text) == rows(tmp_path / "text.txt.gz")
    weir("neuron-top", "--layers", "0,1", "-k", 15, "--quantiles", 2, "--random", 5, "--seed", 1, "--weights", "no", "--file", text, "-o",
         tmp_path / "c.h5").ok()
    assert not filecmp.cmp(tmp_path / "a.h5", tmp_path / "c.h5", shallow=False), "another seed draws other places"


# --- bands and random places

def test_samples_come_from_their_bands(brook, tmp_path):
    weir("neuron-top", brook / "dump.h5", "--neurons", "all", "-k", 3, "--quantiles", 4, "--random", 6, "-o", tmp_path / "r.h5").ok()
    t = Rows(brook / "dump.h5")
    with h5py.File(brook / "dump.h5") as f:
        values = f[f"activations/{HOOK}"][:]
    edges = (0, .5, .9, .99, .999, 1)
    row_of = {(d, p): r for r, (d, p) in enumerate(zip(t.doc.tolist(), t.pos.tolist()))}
    objects = [json.loads(line) for line in weir("neuron-top", tmp_path / "r.h5", "--format", "ndjson").ok().out.splitlines()[1:]]
    drawn = set()
    for o in objects[::37]:
        x = values[:, o["unit"]]
        bins = np.array([brute_bin(v) for v in x[t.counted]])
        share = np.cumsum(np.bincount(bins, minlength=643)) / len(bins)
        for band in range(5):
            places = o["lists"][f"band{band}"]
            for p in places:
                row = row_of[p["doc"], p["pos"]]
                assert t.counted[row] and x[row] == np.float32(p["value"])
                at = share[brute_bin(x[row])]
                assert edges[band] < at <= edges[band + 1] or band == 0 and at <= edges[1], (band, at)
            inside = [b for b in bins if edges[band] < share[b] <= edges[band + 1]]
            assert len(places) == min(4, len(inside))
        places = [(p["doc"], p["pos"]) for p in o["lists"]["random"]]
        assert len(places) == 6 and places == sorted(places)
        drawn.add(tuple(places))
    assert len(drawn) == 1, "random places are the same for every neuron"
