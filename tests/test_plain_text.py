"""Text printed on a terminal cannot move the cursor, reorder or hide anything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.plain_text import json_text, one_line, printable, typed


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x07", "\x9b31m", "a\u202etxt.exe", "\u2066x\u2069", "\ud800", "\r"]
)
def test_dangerous_characters_are_written_out(text):
    assert not set(printable(text)) & set("\x1b\x07\x9b\u202e\u2066\u2069\ud800\r")


def test_ordinary_text_is_left_alone():
    text = "Zürich 词元 👩‍👩‍👧 a\tb\nc"
    assert printable(text) == text


def test_one_line_has_no_line_breaks_and_an_ellipsis_when_cut():
    assert one_line("a\r\n b\tc") == "a  b c"
    assert one_line("abcdef", 4) == "abc…"


@given(st.text(alphabet=st.characters(codec=None)))
def test_json_text_is_printable_and_loses_nothing(text):
    shown = json_text({"text": text})
    assert printable(shown) == shown
    assert json.loads(shown)["text"] == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  How long?\n", "How long?"),
        ("Why \ud83d", "Why \ufffd"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        (None, ""),
    ],
)
def test_what_was_typed_can_be_sent_on(text, kept):
    assert typed(text) == kept
    typed(text).encode()
