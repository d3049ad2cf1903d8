#!/usr/bin/env python3
"""Writes tiny/NN.json, random small tokenizer.json files, and tiny/NN.jsonl, texts with the ids of Hugging Face.

    python3 make_tiny.py [SEED]   (needs the package `tokenizers`; the committed files are of version 0.23.3, seed 20)

Every combination of what weir reads has its turn: byte-level and SentencePiece style, each known pattern, Digits, NFC,
both forms of the U+2581 rule, byte fallback, unknown tokens, ignore_merges, both spellings of merges, and added tokens
with every flag.
Texts lean on the characters and added tokens of the vocabulary, so that the rules meet.
"""
import json
import os
import random
import sys

from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT, TEXTS = 24, 24
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
POOL = list("aabbccdeé  \n\t'stSTlL019½٣!.,-_<>\u0301\u0308\u1100\u1161\u11a8가각\u00a0\u3000ſ▁👍\u200d"
            "\U000105d2\u0307\r\u2028Å\u212b\u0344\u0958你好\u0085\U00011de0")
CONTENTS = ["<s>", "<sp", "<a>", "  ", "e\u0301x", "<|x|>", "ab", "a b", "▁", "\u212b", "tt", "s", "<s><s>",
            "\n", "é"]


def alphabet():
    same = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in same]
    return {**{b: chr(b) for b in same}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


ALPHABET = alphabet()


def model(dice, byte_level):
    units = ["a", "b", "c", "d", "e", " ", "\n", "'", "s", "t", "1", "0", "!", "é", "l", "<", "▁", "\u0301", "가",
             "½", "\t"]
    if byte_level:
        units = [ALPHABET[b] for unit in units for b in unit.encode()]
        units += ALPHABET.values() if dice.random() < .5 else dice.sample(list(ALPHABET.values()), 60)
    else:
        units = dice.sample(["▁" if unit == " " else unit for unit in units], dice.randrange(8, len(units))) + ["▁"]
    vocab = list(dict.fromkeys(units))
    candidates, merges = vocab[:20], []
    for _ in range(dice.randrange(20, 80)):
        a, b = dice.choice(candidates), dice.choice(candidates)
        if len(a + b) > 9 or (a, b) in merges or "<0x" in a + b:
            continue
        merges.append((a, b))
        candidates += [a + b] * 2
        if a + b not in vocab:
            vocab.append(a + b)
    fallback = not byte_level and dice.random() < .6
    if fallback:
        vocab += ["<0x%02X>" % b for b in range(256)]
    unknown = "<unk>" if dice.random() < .4 else None
    vocab += [unknown] if unknown else []
    if dice.random() < .3:
        dice.shuffle(vocab)
    if dice.random() < .3:
        dice.shuffle(merges)  # ranks that do not rise from the parts to the whole
    pairs = dice.random() < .5 or any(" " in a + b for a, b in merges)
    return {"type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": dice.random() < .5, "byte_fallback": fallback,
            "ignore_merges": dice.random() < .2, "vocab": {token: i for i, token in enumerate(vocab)},
            "merges": [list(m) if pairs else " ".join(m) for m in merges]}


def sequence(parts, kind, name):
    return None if not parts else parts[0] if len(parts) == 1 else {"type": kind, name: parts}


def byte_level_steps(dice):
    steps = [{"type": "Digits", "individual_digits": dice.random() < .5}] if dice.random() < .3 else []
    prefix = not steps and dice.random() < .3
    whole = dice.random() < .4
    if not whole and dice.random() < .9:
        gaps = dice.random() < .2
        steps.append({"type": "Split", "pattern": {"Regex": dice.choice([GPT2, LLAMA3, QWEN2])},
                      "behavior": "Removed" if gaps else "Isolated", "invert": gaps})
    steps.append({"type": "ByteLevel", "add_prefix_space": prefix and not steps, "trim_offsets": True,
                  "use_regex": whole})
    return sequence(steps, "Sequence", "pretokenizers")


def meta_steps(dice, normalizer):
    if dice.random() < .5:
        if dice.random() < .7:
            normalizer.append({"type": "Prepend", "prepend": "▁"})
        normalizer.append({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
        return {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False} \
            if dice.random() < .3 else None
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": dice.choice(["always", "first", "never"]),
            "split": dice.random() < .5}


def added_tokens(dice, vocab):
    tokens, next_id = [], len(vocab)
    for content in dice.sample(CONTENTS, dice.randrange(0, 5)):
        token_id = vocab.get(content, next_id)
        next_id += token_id == next_id
        flags = {flag: dice.random() < odds for flag, odds in
                 (("single_word", .3), ("lstrip", .3), ("rstrip", .3), ("normalized", .4), ("special", .5))}
        tokens.append({"id": token_id, "content": content, **flags})
    return tokens


def tokenizer(dice, byte_level):
    bpe = model(dice, byte_level)
    normalizer = [{"type": "NFC"}] if dice.random() < .4 else []
    byte_decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    steps = byte_level_steps(dice) if byte_level else meta_steps(dice, normalizer)
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens(dice, bpe["vocab"]),
            "normalizer": sequence(normalizer, "Sequence", "normalizers"), "pre_tokenizer": steps,
            "post_processor": None,
            "decoder": byte_decoder if byte_level else None,
            "model": bpe}


def text(dice, contents):
    out = []
    for _ in range(dice.randrange(1, 30)):
        chance = dice.random()
        if chance < .15 and contents:
            out.append(dice.choice(contents))
        elif chance < .9:
            out.append(dice.choice(POOL))
        else:
            point = dice.randrange(0x110000 if dice.random() < .3 else 0x3000)
            out.append(chr(point) if not 0xD800 <= point < 0xE000 else "?")
    return "".join(out)


def main(seed):
    dice = random.Random(seed)
    for number in range(COUNT):
        made = tokenizer(dice, number % 2 == 0)
        official = Tokenizer.from_str(json.dumps(made))
        base = os.path.join(HERE, "tiny", "%02d" % number)
        with open(base + ".json", "w", encoding="ascii") as file:
            json.dump(made, file)
        with open(base + ".jsonl", "w", encoding="ascii") as file:
            for _ in range(TEXTS):
                sample = text(dice, [token["content"] for token in made["added_tokens"]])
                try:
                    ids = official.encode(sample, add_special_tokens=False).ids
                except BaseException:  # it panics where two added tokens claim the same white space
                    continue
                print(json.dumps({"text": sample, "ids": ids}), file=file)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
