"""Streamed text: no half characters, no stall, nothing lost, stop strings cut."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.step import FinishReason
from generation.streaming import (
    StopMatcher,
    TextStream,
    cut_at_stop,
    possible_stop_prefix,
    stream_text,
)
from tests.tiny import tiny_lm

LM = tiny_lm()  # every token is one byte: the hardest case

ODD_TEXTS = [
    "Plain words, with  two spaces and a\nnewline. ",
    "一次只写一个词元。",
    "家庭 👨‍👩‍👧‍👦 and a flag 🇨🇳",
    "a real replacement \ufffd character, two \ufffd\ufffd, many " + "\ufffd" * 9,
    "e\u0301 combining, \u202eright to left\u202c, ذَلِكَ, नमस्ते",
    "\ufffd",
    "",
]


@dataclass
class FakeStep:
    token_id: int
    finish_reason: FinishReason | None = None


def steps_of(token_ids, reason=FinishReason.LENGTH):
    steps = [FakeStep(i) for i in token_ids]
    if steps:
        steps[-1].finish_reason = reason
    return steps


def pieces_of(token_ids, stop=()):
    return [text for _, text in stream_text(LM, steps_of(token_ids), stop)]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_pieces_joined_equal_the_text(text):
    assert "".join(pieces_of(LM.encode(text))) == text


@given(st.text(max_size=30))
def test_any_text_survives(text):
    ids = LM.encode(text)
    assert "".join(pieces_of(ids)) == LM.decode(ids)


@settings(max_examples=300)
@given(st.lists(st.integers(0, 255), max_size=40))
def test_any_bytes_give_what_decoding_them_at_once_gives(token_ids):
    assert "".join(pieces_of(token_ids)) == LM.decode(token_ids)


@pytest.mark.parametrize("text", ODD_TEXTS[:3])
def test_no_piece_holds_half_a_character(text):
    assert not any("\ufffd" in piece for piece in pieces_of(LM.encode(text)))


def test_a_character_appears_with_its_last_byte():
    stream = TextStream(LM)
    assert [stream.push(i) for i in LM.encode("中a")] == ["", "", "中", "a"]


def test_real_replacement_characters_do_not_stall_the_stream():
    pieces = pieces_of(LM.encode("\ufffd" * 50))
    longest_silence = max(len(run) for run in "".join("x" if p else "." for p in pieces).split("x"))
    assert longest_silence <= 4


def test_the_end_token_has_no_text():
    ids = [*LM.encode("yes"), 258]
    assert "".join(t for _, t in stream_text(LM, steps_of(ids, FinishReason.EOS))) == "yes"


def test_a_text_that_breaks_off_inside_a_character_shows_it_as_unreadable():
    ids = LM.encode("好中")[:-1]
    assert "".join(pieces_of(ids)) == "好\ufffd"


@pytest.mark.parametrize("stop", [("END",), ("zzz", "D of"), ("E",)])
def test_a_stop_string_and_all_after_it_is_cut(stop):
    text = "before END of text"
    ids = LM.encode(text)
    matcher = StopMatcher(LM, stop)
    last = next(n for n, i in enumerate(ids) if matcher.push(i))
    shown = "".join(
        t for _, t in stream_text(LM, steps_of(ids[: last + 1], FinishReason.STOP_STRING), stop)
    )
    assert shown == text[: min(text.find(s) for s in stop if s in text)]


def test_what_could_begin_a_stop_string_waits_and_then_appears():
    pieces = pieces_of(LM.encode("an Enemy"), stop=("END",))
    assert "".join(pieces) == "an Enemy"
    assert pieces[3] == ""  # the E waits
    assert pieces[4] == "En"


def test_stop_helpers():
    assert cut_at_stop("abcd", ("cd", "b")) == ("a", True)
    assert cut_at_stop("abcd", ("x",)) == ("abcd", False)
    assert possible_stop_prefix("xxab", ("abc", "b!")) == 2
    assert possible_stop_prefix("xx", ("abc",)) == 0
