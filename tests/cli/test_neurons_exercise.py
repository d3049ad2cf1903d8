"""The field's own exercise: the hidden units of layer 6 over brook's 1,000 sentences, and what their 20 highest places have in common.
For brook, and (make check-slow) for SmolLM2 where ../shared is. The README shows brook's."""
import json
import os
import re

import pytest

from weircli import BROOK, SHARED, weir

SMOLLM2 = SHARED / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def word(place):
    """The whole word that the firing token stands in."""
    text, (begin, end) = place["context"]["text"].encode(), place["context"]["at"]
    before = re.search(rb"[\w\x80-\xff]*$", text[:begin]).group() if not place["token"].startswith(" ") else b""
    after = re.match(rb"[\w\x80-\xff]*", text[end:]).group()
    return (before + text[begin:end] + after).decode().strip()


PROPERTIES = {
    "a name": lambda p: re.fullmatch(r"[A-Z][a-zé]+", word(p)),
    "a sign of code or punctuation": lambda p: re.fullmatch(r"\s?[^\w\s]+|\s?_", p["token"]),
    "before ' to'": lambda p: p["next"] == " to",
    "before a comma": lambda p: p["next"] == ",",
    "a closing mark": lambda p: re.fullmatch(r"""[.?!:">]+""", p["token"]),
    "a digit": lambda p: re.fullmatch(r"\s?\d", p["token"]),
    "a sea": lambda p: p["token"].strip() in ("Sea", "Ocean"),
    "capitals": lambda p: re.fullmatch(r"\s?[A-Z]+", p["token"]),
    "code": lambda p: re.search(r"[;{}\[\]()&=]|</?p>", p["context"]["text"]),
    "an arrow or comparison": lambda p: p["token"].strip() in ("->", "<", "==", "gt"),
}


def layer_6(*options):
    """{unit: its object}, of all units of the layer."""
    out = weir("neuron-top", "--layer", 6, "--neurons", "all", "-k", 20, "--sign", "+", "--weights", "no", "--file", BROOK / "sentences.txt",
               "--format", "ndjson", *options).ok().out
    return {o["unit"]: o for o in map(json.loads, out.splitlines()[1:])}


def share(neuron, name):
    return sum(bool(PROPERTIES[name](p)) for p in neuron["lists"]["top"])


def check(neurons, named, others):
    for unit, (name, least) in named.items():
        assert len(neurons[unit]["lists"]["top"]) == 20
        assert share(neurons[unit], name) >= least, (unit, name, share(neurons[unit], name))
    for unit in others:
        tokens = {p["token"].strip() for p in neurons[unit]["lists"]["top"]}
        assert len(tokens) >= 17 and neurons[unit]["clusters"]["effective"] > 15, unit
        assert max(share(neurons[unit], name) for name in PROPERTIES) <= 10, unit


BROOKS = {548: ("a name", 17), 544: ("a sign of code or punctuation", 20), 598: ("before ' to'", 20), 320: ("before a comma", 19),
          97: ("a closing mark", 20)}


@pytest.fixture(scope="module")
def brook():
    return layer_6()


def test_five_neurons_of_brook_can_be_named_and_three_cannot(brook):
    check(brook, BROOKS, [730, 257, 589])


def test_the_exercise_can_fail(brook):
    with pytest.raises(AssertionError):
        check(brook, {548: ("a digit", 17)}, [])
    with pytest.raises(AssertionError):
        check(brook, {}, [544])


if os.environ.get("WEIR_SLOW"):
    @pytest.mark.skipif(not SMOLLM2.exists(), reason="../shared/models is not here")
    def test_the_same_for_smollm2():
        check(layer_6("--model", SMOLLM2), {471: ("a digit", 20), 1157: ("a sea", 16), 783: ("capitals", 15), 504: ("code", 18),
                                            1314: ("an arrow or comparison", 16)}, [484, 870, 9])
