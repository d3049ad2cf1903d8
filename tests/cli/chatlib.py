"""weir/chat.h through ctypes: a template's text and a conversation to the text that a model is given."""
import ctypes as C

from weircli import BROOK, ROOT
from weirlib import Str, call, lib

DATA = ROOT / "tests" / "data" / "chat"


class Turn(C.Structure):
    _fields_ = [("role", C.c_char_p), ("p", C.c_char_p), ("n", C.c_size_t)]


def tokenizer():
    """brook's: its bos_token and eos_token are <|endoftext|>."""
    tok = C.c_void_p()
    call(lib.weir_tokenizer_open, C.byref(tok), str(BROOK).encode(), None)
    return tok


class Chat:
    def __init__(self, template, tok=None):
        text = template.encode()
        self.chat = C.c_void_p()
        call(lib.weir_chat_new, C.byref(self.chat), text, C.c_size_t(len(text)), b"template", tok)

    def render(self, messages, generation=True):
        turns = (Turn * len(messages))()
        for t, m in zip(turns, messages):
            content = m["content"].encode()
            t.role, t.p, t.n = m["role"].encode(), content, len(content)
        out = Str()
        call(lib.weir_chat_render, self.chat, turns, C.c_int64(len(messages)), C.c_bool(generation), C.byref(out))
        return C.string_at(out.p, out.n).decode()

    def __del__(self):
        lib.weir_chat_free(self.chat)


def render(template, messages, generation=True, tok=None):
    return Chat(template, tok).render(messages, generation)
