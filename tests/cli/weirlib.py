"""libweir.so through ctypes, for what no tool shows by itself."""
import ctypes as C
import os

from weircli import ROOT

lib = C.CDLL(str(ROOT / os.environ.get("WEIR_BUILD", "build/release") / "libweir.so.0"))
UNSUPPORTED, FORMAT, ARGUMENT = -3, -2, -6


class Err(C.Structure):
    _fields_ = [("code", C.c_int), ("offset", C.c_int64), ("msg", C.c_char * 512), ("file", C.c_char * 512), ("tensor", C.c_char * 160)]


class Refused(Exception):
    """code: weir_status; the message is the error's."""

    def __init__(self, err):
        super().__init__(err.msg.decode())
        self.code, self.file = err.code, err.file.decode()


def call(function, *args):
    """function(*args, &err); an error is raised."""
    err = Err()
    if function(*args, C.byref(err)):
        raise Refused(err)


class Str(C.Structure):
    _fields_ = [("p", C.c_void_p), ("n", C.c_size_t)]
