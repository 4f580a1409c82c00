"""The exact prompt: trusted and untrusted parts told apart, and every cut said."""

import re
from dataclasses import replace
from html import unescape

from tests.ui_fakes import passage, turn
from ui.i18n import h
from ui.prompt_view import prompt_view

PROMPT = turn().update.prompt


def spans(html: str, kind: str) -> str:
    return unescape("".join(re.findall(rf'<span class="{kind}">(.*?)</span>', html, re.S)))


def test_every_part_of_every_message_is_there_and_marked_with_who_wrote_it():
    html = prompt_view(PROMPT, "en").split("translate=")[1]
    parts = [part for message in PROMPT.messages for part in message["content"]]
    assert spans(html, "ours") == "".join(p["text"] for p in parts if p["trusted"])
    assert spans(html, "theirs") == "".join(p["text"] for p in parts if not p["trusted"])


def test_untrusted_text_is_shown_as_text():
    prompt = replace(PROMPT, messages=[{"role": "user", "content": "<script>alert(1)</script>"}])
    assert "<script" not in prompt_view(prompt, "en")


def test_what_was_cut_is_said():
    assert h("en", "prompt.cut_nothing") in prompt_view(PROMPT, "en")
    cut = replace(PROMPT, dropped=(passage(2, document="rules.md"),), history_dropped=6)
    html = prompt_view(cut, "en")
    assert "rules.md p. 4" in html
    assert h("en", "prompt.cut_history", count=6) in html
    assert h("en", "prompt.cut_nothing") not in html


def test_the_size_is_the_prompts_own():
    assert h("en", "prompt.tokens", tokens="1,234") in prompt_view(
        replace(PROMPT, tokens=1234), "en"
    )
