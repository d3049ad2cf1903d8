"""A vocabulary of tokens that try to be markup, or are no text at all, for the tests of pages and pictures."""
import json

# Tokens that are markup, control characters, halves of characters, marks that turn text around, no characters of XML.
HOSTILE = [b"</script><script>hacked=1</script>", b"<img src=x onerror=hacked=2>", b" \xf0\x9f", b"\x98\x80", b"\xff\xfe", b"\n", b"\t", b"\0",
           b"\x1b[31m", b"\xe2\x80\xaeabc", b"&lt;b&gt;", b"\\n", b"\"'`", b"<!--", b"]]>", b"\xe2\x82", b"\xac!", b"\xef\xbb\xbf",
           b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xed\xa0\x80", b" ", b"{}"]


def byte_letters():
    """The letters that byte-level vocabularies write for bytes (GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def hostile_tokenizer(path):
    letters = byte_letters()
    words = ["".join(letters[b] for b in w) for w in HOSTILE]
    special = {"id": len(words), "content": "</script><script>hacked=3</script>", "special": True, "single_word": False, "lstrip": False,
               "rstrip": False, "normalized": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [special], "pre_tokenizer": level, "decoder": level, "normalizer": None,
                                "post_processor": None, "model": {"type": "BPE", "vocab": {w: i for i, w in enumerate(words)},
                                                                  "merges": []}}))
    return path
