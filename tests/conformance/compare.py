"""The bound of the conformance tests, in numpy alone (tests/golden uses it too).

A value of weir is right when its error against the float64 model is at most
    max(4 x the error of Hugging Face's own fp32 at that hook on that row, 8e-6 x the row's largest magnitude),
errors taken as the largest of the row. A row is everything one token has at one hook: all heads, all keys.
Masked scores are not numbers to compare: the masks must be the same.
"""

from dataclasses import dataclass

import numpy as np

FACTOR = 4.0
RELATIVE = 8e-6
MASKED = -1e30  # Hugging Face masks with the most negative finite number, weir with -inf: anything below this is masked


@dataclass
class Difference:
    hook: str
    what: str

    def __str__(self):
        return f"{self.hook}: {self.what}"


def rows(a):
    """[T, ...] as [T, n], in float64."""
    a = np.asarray(a, dtype=np.float64)
    return a.reshape(a.shape[0], -1)


def split_mask(a):
    """(values with 0 where masked, mask)."""
    a = rows(a)
    mask = a < MASKED
    return np.where(mask, 0.0, a), mask


def row_error(a, b):
    """Largest |a - b| of each row, masked entries left out; NaN counts as infinitely wrong."""
    a, _ = split_mask(a)
    b, _ = split_mask(b)
    with np.errstate(invalid="ignore"):
        d = np.abs(a - b)
    d[np.isnan(d)] = np.inf
    return d.max(axis=1)


def tolerance(ref64, *ref32):
    """What a row's error may be, [T]. Of several fp32 runs the larger error counts."""
    values, _ = split_mask(ref64)
    return np.maximum(FACTOR * np.max([row_error(r, ref64) for r in ref32], axis=0), RELATIVE * np.abs(values).max(axis=1))


def compare_hook(name, got, want, tol):
    """None, or the first thing that is wrong with one hook's values. Also returns the worst error as a part of what is allowed."""
    if tuple(got.shape) != tuple(want.shape):
        return Difference(name, f"shape {tuple(got.shape)}, expected {tuple(want.shape)}"), np.inf
    _, got_mask = split_mask(got)
    _, want_mask = split_mask(want)
    if not np.array_equal(got_mask, want_mask):
        t = int(np.argmax((got_mask != want_mask).any(axis=1)))
        return Difference(name, f"row {t}: masks differ"), np.inf
    error = row_error(got, want)
    # A row that must be exact (tolerance 0, as an all-zero row) is compared as such.
    part = np.divide(error, tol, out=np.where(error > 0, np.inf, 0.0), where=tol > 0)
    worst = int(np.argmax(part))
    if part[worst] > 1:
        return Difference(name, f"row {worst}: error {error[worst]:.3g}, allowed {tol[worst]:.3g}"), part[worst]
    return None, float(part[worst])


def compare(got, ref64, tol, names=None):
    """Compares two captures (dicts of hook name to [T, ...]). tol: name to [T]. Returns (differences, {name: part of the bound used})."""
    names = sorted(set(got) | set(ref64)) if names is None else names
    wrong, used = [], {}
    for name in names:
        if name not in got:
            wrong.append(Difference(name, "missing"))
        elif name not in ref64:
            wrong.append(Difference(name, "not expected"))
        else:
            d, used[name] = compare_hook(name, got[name], ref64[name], tol[name])
            if d is not None:
                wrong.append(d)
    return wrong, used


def tolerances(ref64, *ref32):
    return {name: tolerance(ref64[name], *[r[name] for r in ref32]) for name in ref64}
