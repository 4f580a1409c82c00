"""Where a text may be cut: after paragraphs, sentences and lines, in English and in Chinese.

Knows nothing of tokens or passages. One pass, linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple


class Strength(IntEnum):
    """How good a place to cut is; the higher the better."""

    TOKEN = 0  # within a word, or within Chinese without punctuation
    CLAUSE = 1  # at a space or after a comma
    LINE = 2
    SENTENCE = 3
    PARAGRAPH = 4
    HEADING = 5


class Boundary(NamedTuple):
    """A place to cut: what follows starts at `position`."""

    position: int
    strength: Strength


_STOPS = "。！？｡．.!?…"
_CLOSERS = "”’\"'」』）)\\]》】〉］｝}»*_"
_BREAK = re.compile(
    rf"(?P<stop>[{_STOPS}]+)(?P<close>[{_CLOSERS}]*)(?P<space>[ \t\u3000]*)"
    r"|(?P<paragraph>\n[ \t]*\n\s*|\n(?=\u3000))"
    r"|(?P<line>\n[ \t]*)"
)
_NEVER_FIRST = frozenset("。！？｡．，、；：…”’」』）》】〉］｝％·,.!?;:)]}%")
_AFTER_CLAUSE = frozenset("，、；：,;: \t\n\u3000）)」』”》】—")
_WORD_BEFORE = re.compile(r"[^\s(（\[]{1,20}$")
_ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof sr jr st vs e.g i.e cf fig figs eq eqs no nos vol ch sec pp p al approx
    dept est inc ltd co corp gen col sgt capt rev hon jan feb mar apr jun jul aug sep sept oct nov
    dec a.m p.m u.s u.k ph.d""".split()  # noqa: SIM905
)


def boundaries(text: str) -> Iterator[Boundary]:
    """Every place where a paragraph, line or sentence ends, in order.

    Stops and the quotes and brackets that close after them belong to the sentence before, so
    none of them is ever first after a cut. "e.g." and "3.5" do not end a sentence.
    """
    sentence_end = -1
    for match in _BREAK.finditer(text):
        position = match.end()
        if match["stop"]:
            if not _ends_sentence(text, match):
                continue
            sentence_end = position
            strength = Strength.SENTENCE
            if position < len(text) and text[position] == "\n":
                continue  # the line break that follows is the boundary
        elif match["paragraph"]:
            strength = Strength.PARAGRAPH
        else:
            strength = Strength.SENTENCE if match.start() == sentence_end else Strength.LINE
        if 0 < position < len(text) and text[position] not in _NEVER_FIRST:
            yield Boundary(position, strength)


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Whether a run of stops ends a sentence, or is part of a number, a name, an address."""
    stop, after = match["stop"], text[match.end() : match.end() + 1]
    if any(mark in "。！？｡" for mark in stop):
        return True
    spaced = not after or bool(match["space"]) or after == "\n"
    if stop[-1] in "…．":
        return spaced or bool(match["close"])
    if not spaced:
        before = text[match.start() - 1 : match.start()]
        return is_chinese(after) and (is_chinese(before) or stop[0] in "!?")
    if stop != ".":
        return not after.islower()
    if after.islower():
        return False
    found = _WORD_BEFORE.search(text, max(0, match.start() - 20), match.start())
    word = found[0] if found else ""
    if word.lower() in _ABBREVIATIONS:
        return False
    if word.isdigit():  # "1." that begins an item is no sentence
        indent = text[max(0, match.start() - len(word) - 8) : match.start() - len(word)]
        return indent.rstrip(" \t")[-1:] not in ("", "\n")
    is_initial = len(word) == 1 and word.isupper()
    return not is_initial


def is_chinese(character: str) -> bool:
    """Whether a character is a Chinese one (or Japanese kana), or their punctuation."""
    return any(
        first <= character <= last
        for first, last in (
            ("\u2e80", "\u9fff"),
            ("\uf900", "\ufaff"),
            ("\uff00", "\uffef"),
            ("\U00020000", "\U0003ffff"),
        )
    )


def cut_near(text: str, position: int, lowest: int) -> Boundary:
    """The best place at or a little before `position` to cut inside a sentence.

    Args:
        lowest: the result is higher than this.
    """
    nearest = max(lowest + 1, position - 24)
    for place in range(position, nearest - 1, -1):
        if text[place - 1] in _AFTER_CLAUSE and _may_start(text, place):
            return Boundary(place, Strength.CLAUSE)
    for place in range(position, nearest - 1, -1):
        if _may_start(text, place):
            return Boundary(place, Strength.TOKEN)
    return Boundary(position, Strength.TOKEN)


def _may_start(text: str, place: int) -> bool:
    """Whether text may start here: not with a stop, nor in the middle of what is seen as one."""
    first = text[place]
    if first in _NEVER_FIRST or first in "\u200d\ufe0f" or text[place - 1] == "\u200d":
        return False
    return not unicodedata.combining(first)
