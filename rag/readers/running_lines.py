"""Headers, footers and page numbers: lines that most pages of a document repeat.

They are kept where they first occur, so that no text is lost, and dropped from the other pages,
where they would drown the text. Bare page numbers, and what the text says anyway, go everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise
from statistics import median

from rag.readers.pdf_lines import Line

_EDGE_LINES = 4  # at most, at the top and at the bottom of a page
_FEWEST_PAGES = 3
_NUMBER = re.compile(r"(?<!\d)\d{1,5}(?!\d)")
_PAGE_NUMBER = re.compile(
    r"[\s\-–—.|·]*(page|p\.|第)?\s*\d{1,5}\s*(页|頁)?[\s,，]*((of|/|共)\s*\d{1,5}\s*(页|頁)?)?[\s\-–—.|·]*",
    re.IGNORECASE,
)


def is_page_number(text: str) -> bool:
    """Whether a line says nothing but which page this is: "- 3 -", "Page 3 of 9", "第3页"."""
    return len(text) < 40 and bool(_PAGE_NUMBER.fullmatch(text))


def without_running_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages with their running lines kept once.

    A line runs if more than half of the pages, or all the left or all the right pages, have it
    at the same height, parted from the text by a gap, and with a number in it that counts the
    pages or none. A page that would be left empty stays as it is.
    """
    if len(pages) < _FEWEST_PAGES:
        return list(pages)
    running = _running(pages)
    marked = [
        [(line, running.intersection(edge_keys.get(id(line), ()))) for line in page]
        for page, edge_keys in zip(pages, map(_edge_keys, pages, count(1)), strict=True)
    ]
    elsewhere = {line.text for page in marked for line, keys in page if not keys}
    shown: set[str] = set()
    result = []
    for page in marked:
        kept = []
        for line, keys in page:
            if keys:
                if is_page_number(line.text) or line.text in elsewhere or shown & keys:
                    continue
                shown |= keys
            kept.append(line)
        result.append(kept or [line for line, _ in page])
    return result


def _running(pages: Sequence[list[Line]]) -> set[str]:
    """The keys of the lines that run."""
    counts: list[Counter[str]] = [Counter(), Counter()]  # even pages, odd pages
    for number, page in enumerate(pages, 1):
        counts[number % 2].update(set(chain.from_iterable(_edge_keys(page, number).values())))
    both = counts[0] + counts[1]
    running = {key for key, times in both.items() if times > len(pages) / 2}
    for parity, of_parity in enumerate(counts):
        total = len(pages[1 - parity :: 2])
        if total >= _FEWEST_PAGES:
            running |= {key for key, times in of_parity.items() if times == total}
    return running


def _edge_keys(page: list[Line], number: int) -> dict[int, set[str]]:
    """The keys of each line at the edges of a page, by its id."""
    return {id(line): set(_keys(line, number)) for line in _edges(page)}


def _edges(page: list[Line]) -> list[Line]:
    """The lines at the top and bottom of a page that a gap parts from its text."""
    lines = sorted(page, key=lambda line: -line.y)
    gaps = [above.y - below.y for above, below in pairwise(lines)]
    steps = [gap for line, gap in zip(lines, gaps, strict=False) if gap > 0.5 * line.size]
    if not steps:
        return []
    wide = 1.5 * median(steps)
    top, bottom = _before_gap(gaps, wide), _before_gap(gaps[::-1], wide)
    return lines[:top] + lines[len(lines) - bottom :]


def _before_gap(gaps: list[float], wide: float) -> int:
    """How many lines come before the first wide gap; 0 if too many for a header or footer."""
    lines = next((index for index, gap in enumerate(gaps, 1) if gap > wide), 0)
    return lines if lines <= _EDGE_LINES else 0


def _keys(line: Line, page: int) -> Iterator[str]:
    """The line and its height, with its first or last number as its distance from the page's."""
    text = " ".join(line.text.split())
    place = f"@{line.y:.0f}"
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        yield text + place
    for match in numbers[:1] + numbers[1:][-1:]:
        distance = int(match[0]) - page
        yield f"{text[: match.start()]}#{distance:+d}{text[match.end() :]}{place}"
