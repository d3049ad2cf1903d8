"""Chat templates: rendered as transformers renders them (tests/data/chat/README.md), refused by name where they cannot be."""
import json

import pytest

from chatlib import DATA, Chat, render, tokenizer
from weirlib import ARGUMENT, FORMAT, UNSUPPORTED, Refused

CONVERSATIONS = json.loads((DATA / "conversations.json").read_text())
EXPECTED = json.loads((DATA / "expected.json").read_text())
PIECES = json.loads((DATA / "pieces.json").read_text())
USER = CONVERSATIONS[0]


def outcome(template, messages, generation):
    try:
        return render(template, messages, generation, tokenizer())
    except Refused as e:
        assert e.code == ARGUMENT, e
        return {"raises": str(e).split("the template says: ")[1]}


@pytest.mark.parametrize("name", sorted(EXPECTED["templates"]))
def test_templates_of_the_families(name):
    template = (DATA / f"{name}.jinja").read_text()
    got = [[outcome(template, c, g) for g in (False, True)] for c in CONVERSATIONS]
    assert got == EXPECTED["templates"][name]
    assert any(isinstance(x[1], str) for x in got)


def test_every_rule_of_the_subset():
    for piece, want in zip(PIECES, EXPECTED["pieces"], strict=True):
        assert outcome(piece, CONVERSATIONS[2], True) == want, piece


def test_the_comparison_can_fail():
    changed = (DATA / "chatml.jinja").read_text().replace("im_end", "im_End")
    assert outcome(changed, USER, True) != EXPECTED["templates"]["chatml"][0][1]


def refused(template, code, *words):
    with pytest.raises(Refused) as e:
        render(template, USER)
    assert e.value.code == code, e.value
    assert e.value.file == "template"
    for word in words:
        assert word in str(e.value), str(e.value)


LONG = "{% set s = 'aaaaaaaaaa' %}" + "{% set s = s + s %}" * 13


@pytest.mark.parametrize("template, words", [
    ("\n{% macro f() %}{% endmacro %}", ("line 2", "{% macro %}")),
    ("{% include 'x' %}", ("line 1", "{% include %}")),
    ("{% raw %}{% endraw %}", ("{% raw %}",)),
    ("{% set x %}a{% endset %}", ("of \"set\"",)),
    ("{% for x in messages recursive %}{% endfor %}", ("recursive",)),
    ("\n\n{{ messages | map(attribute='role') }}", ("line 3", 'the filter "map"')),
    ("{{ 'x' | nonsense }}", ('the filter "nonsense"', "a string")),
    ("{{ 'x' is nonsense }}", ('the test "nonsense"',)),
    ("{{ 'x'.nonsense() }}", ('the method "nonsense"',)),
    ("{{ strftime_now('%Y') }}", ('the function "strftime_now"',)),
    ("{{ range(3) }}", ('the function "range"',)),
    ("{{ messages }}", ("a list as a text",)),
    ("{{ {'a': 1} }}", ("a mapping as a text",)),
    ("{{ 1.5 }}", ("numbers other than small whole ones",)),
    ("{{ 7 / 2 }}", ('"/" of a number and a number',)),
    ("{{ 'a' + 1 }}", ('"+" of a string and a number',)),
    ("{{ 'a' < 1 }}", ("a comparison",)),
    ("{{ '\\q' }}", ("the escape \\q",)),
    ("{{ 'ä' | upper }}", ('the filter "upper"',)),
    ("{% for c in 'abc' %}{% endfor %}", ("a loop over the parts of a string",)),
    ("{{ f(*messages) }}", ("unpacked arguments",)),
    ("{{ " + "(" * 200 + "1" + ")" * 200 + " }}", ("nested too deeply",)),
    ("{{ " + "-" * 5000 + "1 }}", ("nested too deeply",)),
    ("{% if 1 %}" + "{% elif 1 %}" * 500 + "{% endif %}", ("nested too deeply",)),
    ("{{ 1" + " + 1" * 5000 + " }}", ("nested too deeply",)),
    ("{% set s = 'aaaaaaaaaa' %}" + "{% set s = s + s %}" * 40, ("steps",)),
    ("{% set l = [1,1,1,1,1,1,1,1,1,1] %}" + "{% for a in l %}" * 9 + "{{ 1 + 1 }}" + "{% endfor %}" * 9, ("steps",)),
    # values that hold each other many times over
    (LONG + "{{ s | replace('a', s) }}", ("steps",)),
    (LONG + "{% set l = [s,s,s,s,s,s,s,s] %}" + "{% set l = l + l %}" * 9 + "{{ l | join | length }}", ("steps",)),
    ("{% set a = [1] %}" + "{% set a = [a,a,a,a,a,a,a,a,a,a] %}" * 8 + "{{ a | tojson }}", ("steps",)),
    ("{% set a = [1] %}{% set b = [1] %}" + "{% set a = [a,a] %}{% set b = [b,b] %}" * 40 + "{{ a == b }}", ("steps",)),
    ("{% set a = [1] %}{% set b = [1] %}" + "{% set a = [a,a] %}{% set b = [b,b] %}" * 40 + "{{ a in [b] }}", ("steps",)),
])
def test_what_is_outside_the_subset_is_named(template, words):
    refused(template, UNSUPPORTED, *words)


@pytest.mark.parametrize("template, words", [
    ("a\n{{ 1 +", ("line 2", "a tag does not end")),
    ("{{ 'abc }}", ("a string does not end",)),
    ("{# abc", ("a comment does not end",)),
    ("{% if 1 %}", ("{% endif %} was expected",)),
    ("{% endif %}", ("the end of the template was expected",)),
    ("{% for x of messages %}{% endfor %}", ('"in" was expected, not "of"',)),
    ("{{ 1 2 }}", ('}} was expected, not "2"',)),
    ("{{ }}", ("an expression was expected",)),
    ("{{ a ? b }}", ("a sign that is none of Jinja's",)),
    ("{{ x.y }}", ("x is not defined",)),
    ("{{ messages[0].nothing.more }}", ("nothing is not defined",)),
    ("{{ 'x'() }}", ("a string cannot be called",)),
    ("{% break %}", ("outside of a loop",)),
])
def test_mistakes_have_their_line(template, words):
    refused(template, FORMAT, *words)


def test_what_is_not_reached_is_no_error():
    assert render("{% if tools %}{{ tools | map(attribute='x') }}{{ strftime_now('%d') }}{% endif %}ok", USER) == "ok"


def test_a_template_is_used_again():
    chat = Chat((DATA / "smollm2.jinja").read_text())
    first = [chat.render(c) for c in CONVERSATIONS]
    assert [chat.render(c) for c in CONVERSATIONS] == first


def test_the_date_is_not_asked_for():
    t = "{% if strftime_now is defined %}{{ strftime_now('%d') }}{% else %}fixed{% endif %}"
    assert render(t, USER) == "fixed"
