"""Dumps compared, for the tests of this directory: every dataset byte for byte."""
import h5py
import numpy as np

# What may differ between two runs with one result.
OWN = {"time_utc", "command_line", "kernel", "threads"}


def datasets(f):
    found = {}
    f.visititems(lambda name, o: found.__setitem__(name, o) if isinstance(o, h5py.Dataset) else None)
    return found


def raw(d, n=None):
    return np.ascontiguousarray(d[:n] if n is not None else d[...]).tobytes()


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def attributes(o):
    return {k: plain(v) for k, v in o.attrs.items() if k not in OWN and k not in ("DIMENSION_LIST", "REFERENCE_LIST")}


def differences(a, b, ignore=()):
    """Lines that say where files a and b differ: names, types, shapes, bytes, attributes. ignore: root attributes."""
    lines = []
    with h5py.File(a) as fa, h5py.File(b) as fb:
        da, db = datasets(fa), datasets(fb)
        lines += [f"{name}: only in {a if name in da else b}" for name in sorted(da.keys() ^ db.keys())]
        for name in sorted(da.keys() & db.keys()):
            x, y = da[name], db[name]
            if x.dtype != y.dtype or x.shape != y.shape:
                lines.append(f"{name}: {x.dtype} {x.shape}, {y.dtype} {y.shape}")
            elif raw(x) != raw(y):
                lines.append(f"{name}: other bytes")
            if attributes(x) != attributes(y):
                lines.append(f"{name}: other attributes")
        roots = [{k: v for k, v in attributes(f).items() if k not in ignore} for f in (fa, fb)]
        lines += [f"attribute {k}: {roots[0].get(k)!r}, {roots[1].get(k)!r}" for k in sorted(roots[0].keys() | roots[1].keys())
                  if roots[0].get(k) != roots[1].get(k)]
    return lines


def not_a_beginning(part, whole):
    """Lines that say where the open file `part` is not what `whole` begins with. Documents may be unfinished: their last
    count is."""
    lines = []
    mine, theirs = datasets(part), datasets(whole)
    lines += [f"{name}: only in one" for name in sorted(mine.keys() ^ theirs.keys())]
    for name in sorted(mine.keys() & theirs.keys()):
        if name.startswith("progress/"):
            continue
        x, y = mine[name], theirs[name]
        n = len(x)
        a, b = x[...], y[:n]
        if name == "docs/count" and n:
            a, b = a[:-1], b[:-1]
        if n > len(y) or np.ascontiguousarray(a).tobytes() != np.ascontiguousarray(b).tobytes():
            lines.append(f"{name}: {n} rows are not the first of {len(y)}")
    return lines
