"""Chat templates against transformers: what the repository's tests expect is what transformers says today; on SmolLM2 the same tokens as
apply_chat_template gives."""
import json
import sys
from pathlib import Path

import gguf
import pytest
import tokenizers
import transformers

import make_chat
import models
import weirdump

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from chatlib import Chat, tokenizer  # noqa: E402

CONVERSATIONS = json.loads((make_chat.DATA / "conversations.json").read_text())


def test_expected_texts_are_those_of_transformers():
    assert json.loads((make_chat.DATA / "expected.json").read_text()) == make_chat.expected()


def test_more_conversations():
    """Long and odd messages through every template."""
    words = ["", " ", "\n", "é\u00a0", "日本語", "{{ x }}", "<|im_start|>", "a" * 5000, "\u3000x\u2028", "'\"\\", "\t{% if %}\r\n"]
    for path in sorted(make_chat.DATA.glob("*.jinja")):
        chat = Chat(path.read_text(), tokenizer())
        for i in range(40):
            roles = (["system"] if i % 4 == 0 else []) + ["user", "assistant"] * (i % 3) + ["user"]
            messages = [{"role": r, "content": words[(7 * i + 3 * k) % len(words)] + words[(i + k) % len(words)]} for k, r in enumerate(roles)]
            want = make_chat.say(path.read_text(), messages, i % 2 == 0)
            if isinstance(want, str):
                assert chat.render(messages, i % 2 == 0) == want, (path.stem, messages)


def test_smollm2_has_the_tokens_of_apply_chat_template(tmp_path):
    if not models.SMOLLM2.exists():
        pytest.skip(f"{models.SMOLLM2.name} is not beside the repository")
    reader = gguf.GGUFReader(models.SMOLLM2)
    tok = transformers.AutoTokenizer.from_pretrained(models.SMOLLM2.parent, gguf_file=models.SMOLLM2.name)
    tok.chat_template = reader.fields["tokenizer.chat_template"].contents()
    # the GGUF loader leaves out the splitting of digits: shared/models/README.md
    plain = tok.backend_tokenizer.pre_tokenizer
    tok.backend_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.Digits(True), plain])
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"messages": c}) + "\n" for c in CONVERSATIONS))
    out = weirdump.run("weir", "tokenize", "--model", models.SMOLLM2, "--chat", "--ids", "--file", tmp_path / "c.jsonl")
    got = [list(map(int, line.split())) for line in out.splitlines()]
    want = [tok.apply_chat_template(c, add_generation_prompt=True, tokenize=True, return_dict=False) for c in CONVERSATIONS]
    assert got == want
