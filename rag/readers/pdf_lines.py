"""The lines of one PDF page, with their places and with characters that can be searched.

pypdf gives text in fragments, in the order in which the page draws them; here they are put
together to lines. How lines become paragraphs is `rag.readers.pdf_layout`'s affair.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pypdf import PageObject

from rag.readers.blocks import clean

_BOLD = re.compile("bold|black|heavy|cmbx|semibold", re.IGNORECASE)
_GLYPH_NAMES = re.compile(r"\(cid:\d+\)|/(?:g|G|cid|glyph|index)[0-9A-F]{1,5}\b")
_LEADERS = re.compile(r"(?: ?\.){5,}|…{3,}")  # from a heading to its page in a table of contents

# Radicals that fonts give for whole characters and that Unicode's compatibility forms leave out.
_RADICALS = dict(
    zip(
        "⺟⺠⺩⺪⺬⺶⺻⻁⻂⻄⻅⻆⻉⻊⻋⻑⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻬⻮⻰⻳",
        "母民王疋示羊聿虎衤西见角贝足车長长门青韦页风飞食马骨鬼鱼鸟卤麦黄齐齿龙龟",
        strict=True,
    )
)


@dataclass(frozen=True)
class Line:
    """One line of text; x, right (estimated) and y in points from the lower left of the page."""

    text: str
    x: float
    right: float
    y: float
    size: float  # of its letters, in points
    bold: bool


@dataclass(frozen=True)
class _Fragment:
    text: str
    x: float
    y: float
    size: float
    bold: bool


def page_lines(page: PageObject) -> tuple[list[Line], int]:
    """The lines in the order of the page's content, and how many characters are junk.

    Junk is what stands for a glyph whose character is unknown: (cid:7), /g7, U+FFFD, characters
    of private use, and everything in fonts that number their glyphs without saying what they are.
    """
    lines: list[Line] = []
    fragments: list[_Fragment] = []
    junk = 0

    def visit(
        text: str, cm: list[float], tm: list[float], font: Mapping[str, Any] | None, size: float
    ) -> None:
        nonlocal junk
        junk += len(text.strip()) if _is_opaque(font) else _count_junk(text)
        for index, piece in enumerate(text.split("\n")):
            if index:
                _end_line(fragments, lines)
            if piece:
                fragments.append(_fragment(piece, cm, tm, font, size))

    page.extract_text(visitor_text=visit)
    _end_line(fragments, lines)
    return lines, junk


def _fragment(
    text: str, cm: list[float], tm: list[float], font: Mapping[str, Any] | None, size: float
) -> _Fragment:
    """Place a fragment by the product of its text matrix and the page's matrix."""
    x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
    y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
    height = math.hypot(tm[2] * cm[0] + tm[3] * cm[2], tm[2] * cm[1] + tm[3] * cm[3])
    bold = font is not None and bool(_BOLD.search(str(font.get("/BaseFont", ""))))
    return _Fragment(text, x, y, abs(size) * height, bold)


def _end_line(fragments: list[_Fragment], lines: list[Line]) -> None:
    """Add a line of the fragments so far; its size and height are those of the longest."""
    written = [fragment for fragment in fragments if fragment.text.strip()]
    text = searchable("".join(fragment.text for fragment in fragments)).strip()
    fragments.clear()
    if text and written:
        most = max(written, key=lambda fragment: len(fragment.text.strip()))
        last = written[-1]
        right = last.x + width(last.text) * last.size
        lines.append(Line(text, written[0].x, right, most.y, most.size, most.bold))


def _is_opaque(font: Mapping[str, Any] | None) -> bool:
    """Whether a font gives numbers of glyphs and no way to characters."""
    if font is None or "/ToUnicode" in font:
        return False
    return str(font.get("/Encoding")) in ("/Identity-H", "/Identity-V")


def _count_junk(text: str) -> int:
    unknown = sum(c == "\ufffd" or "\ue000" <= c <= "\uf8ff" for c in text)
    return unknown + sum(map(len, _GLYPH_NAMES.findall(text)))


def width(text: str) -> float:
    """The width of a text in ems, roughly: what fonts have in common."""
    narrow = sum(map(text.count, "iljtfrI.,;:'|!()[] "))
    wide = sum(map(text.count, "mwMW@%"))
    chinese = sum(c >= "\u2e80" for c in text)
    return 0.5 * len(text) - 0.2 * narrow + 0.3 * wide + 0.5 * chinese


def searchable(text: str) -> str:
    """Ligatures and radicals as the letters and characters that a person would type."""
    text = clean(text.translate(_plain_characters()))
    return _LEADERS.sub(" …", text)


@cache
def _plain_characters() -> dict[int, str]:
    """Kangxi radicals, compatibility ideographs and Latin ligatures to ordinary characters."""
    ranges = (range(0x2E80, 0x2FE0), range(0xF900, 0xFB00), range(0xFB00, 0xFB07))
    codes = [code for codes in ranges for code in codes]
    plain = {code: unicodedata.normalize("NFKC", chr(code)) for code in codes}
    plain |= {ord(radical): character for radical, character in _RADICALS.items()}
    return plain | {0x7F: "•", 0xA0: " "}  # PDF's own encodings show unused codes as bullets
