"""The usual way to read a column of a dump: h5py. What bench_column compares with.

    column_h5py.py read FILE HOOK J ROWS     seconds for ds[:ROWS, J], and the CRC-32 of the bytes, on one line
    column_h5py.py rows FILE HOOK ROWS OUT   the first ROWS rows again, in chunks of 256 whole rows, shuffle and gzip 1
"""
import sys
import time
import zlib

import h5py


def read(path, hook, column, rows):
    with h5py.File(path) as f:
        data = f["activations"][hook]
        start = time.perf_counter()
        x = data[:int(rows), int(column)]
        print(time.perf_counter() - start, zlib.crc32(x.tobytes()))


def by_rows(path, hook, rows, out):
    with h5py.File(path) as f, h5py.File(out, "w") as g:
        data, n = f["activations"][hook], int(rows)
        to = g.create_group("activations").create_dataset(hook, (n, data.shape[1]), "f4", chunks=(256, data.shape[1]), shuffle=True,
                                                          compression="gzip", compression_opts=1)
        for row in range(0, n, 1024):
            to[row:row + 1024] = data[row:min(row + 1024, n)]


if __name__ == "__main__":
    {"read": read, "rows": by_rows}[sys.argv[1]](*sys.argv[2:])
