"""Lines at places on a page, joined to paragraphs. Knows nothing of PDF files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from rag.readers.blocks import Block

_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f"
_CJK_END = re.compile(f"[{_CJK}]$")
_CJK_START = re.compile(f"^[{_CJK}]")
_DIGITS = re.compile(r"\d+")
_EDGE_LINES = 3  # how many lines at the top and bottom of a page may be a header or footer


@dataclass(frozen=True)
class Line:
    """One line of text; x and y in points from the lower left, size of its letters in points."""

    text: str
    x: float
    y: float
    size: float


def without_repeated_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without the running headers and footers that most of them repeat.

    A repeated line is kept where it first occurs, so no text is lost; bare page numbers go.
    """
    if len(pages) < 3:
        return list(pages)
    counts = Counter(key for page in pages for key in {_key(line) for line in _edges(page)})
    repeated = {key for key, count in counts.items() if count > len(pages) / 2}
    shown: set[str] = set()
    kept_pages = []
    for page in pages:
        edges = set(map(id, _edges(page)))
        kept = []
        for line in page:
            key = _key(line)
            if id(line) in edges and key in repeated:
                if key in shown or not re.search(r"[^\W\d_]", key):
                    continue
                shown.add(key)
            kept.append(line)
        kept_pages.append(kept)
    return kept_pages


def _edges(page: list[Line]) -> list[Line]:
    by_height = sorted(page, key=lambda line: -line.y)
    return by_height[:_EDGE_LINES] + by_height[-_EDGE_LINES:]


def _key(line: Line) -> str:
    """The line with its numbers blanked, since page numbers change."""
    return _DIGITS.sub("", " ".join(line.text.split()))


def page_blocks(lines: list[Line], page: int) -> Iterator[Block]:
    """Paragraphs: lines go on as long as the letters keep their size and the gap its height."""
    gaps = [a.y - b.y for a, b in zip(lines, lines[1:], strict=False) if 0 < a.y - b.y < 5 * a.size]
    usual = median(gaps) if gaps else 0.0
    paragraph = ""
    previous: Line | None = None
    for line in lines:
        if previous is not None and _continues(previous, line, usual):
            paragraph = join(paragraph, line.text)
        else:
            if paragraph:
                yield Block(paragraph, page=page)
            paragraph = line.text
        previous = line
    if paragraph:
        yield Block(paragraph, page=page)


def _continues(previous: Line, line: Line, usual: float) -> bool:
    gap = previous.y - line.y
    same_size = abs(previous.size - line.size) < 0.1 * max(previous.size, line.size)
    return same_size and 0 <= gap <= 1.25 * usual + 0.5


def join(text: str, following: str) -> str:
    """Two lines as one text: no space between Chinese, a hyphen at the end taken out."""
    if _CJK_END.search(text) and _CJK_START.search(following):
        return text + following
    if re.search(r"[^\W\d_]-$", text) and following[:1].islower():
        return text[:-1] + following
    return f"{text} {following}"
