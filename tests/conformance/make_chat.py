#!/usr/bin/env python3
"""Writes tests/data/chat/expected.json: what transformers makes of the chat templates there.

    build/venv/bin/python tests/conformance/make_chat.py
"""
import json
from pathlib import Path

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

DATA = Path(__file__).resolve().parents[1] / "data" / "chat"
TOKEN = "<|endoftext|>"


def say(template, messages, generation):
    """The text; or, of a template that refuses, {"raises": its words}."""
    try:
        return _compile_jinja_template(template).render(messages=messages, tools=None, documents=None, add_generation_prompt=generation,
                                                        bos_token=TOKEN, eos_token=TOKEN)
    except jinja2.exceptions.TemplateError as e:
        return {"raises": str(e)}


def expected():
    conversations = json.loads((DATA / "conversations.json").read_text())
    templates = {p.stem: p.read_text() for p in sorted(DATA.glob("*.jinja"))}
    pieces = json.loads((DATA / "pieces.json").read_text())
    return {"templates": {name: [[say(t, c, g) for g in (False, True)] for c in conversations] for name, t in templates.items()},
            "pieces": [say(p, conversations[2], True) for p in pieces]}


if __name__ == "__main__":
    (DATA / "expected.json").write_text(json.dumps(expected(), indent=1) + "\n")
