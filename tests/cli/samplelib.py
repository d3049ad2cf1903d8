"""weir/sample.h through ctypes."""
import ctypes as C

import numpy as np

from weirlib import call, lib


class Sampling(C.Structure):
    _fields_ = [("temperature", C.c_float), ("top_k", C.c_int64), ("top_p", C.c_float), ("min_p", C.c_float),
                ("repetition_penalty", C.c_float), ("seed", C.c_uint64)]


class Sampler:
    def __init__(self, v, **options):
        o = Sampling()
        lib.weir_sampling_init(C.byref(o))
        for name, value in options.items():
            setattr(o, name, value)
        self.v, self.s = v, C.c_void_p()
        call(lib.weir_sampler_new, C.byref(self.s), C.c_int64(v), C.byref(o))

    def arguments(self, logits, ids):
        logits = np.ascontiguousarray(logits, "f4")
        ids = np.ascontiguousarray(ids, "i4")
        assert logits.shape == (self.v,)
        self.kept = logits, ids
        return self.s, logits.ctypes.data_as(C.c_void_p), ids.ctypes.data_as(C.c_void_p), C.c_int64(len(ids))

    def scores(self, logits, ids=()):
        out = np.empty(self.v, "f4")
        call(lib.weir_sampler_scores, *self.arguments(logits, ids), out.ctypes.data_as(C.c_void_p))
        return out

    def next(self, logits, ids=(), stream=0, step=0):
        out = C.c_int32()
        call(lib.weir_sampler_next, *self.arguments(logits, ids), C.c_uint64(stream), C.c_uint64(step), C.byref(out))
        return out.value

    def __del__(self):
        lib.weir_sampler_free(self.s)
