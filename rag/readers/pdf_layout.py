"""Lines at places on pages, joined to paragraphs and headings. Knows nothing of PDF files.

A paragraph goes on while lines keep their size and distance and are filled: where the next word
would have fitted, the line was ended on purpose. Larger letters than the text's are headings.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import inf
from statistics import median, quantiles

from rag.readers.blocks import Block
from rag.readers.pdf_lines import Line, width

_CHINESE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_CHINESE_JOINT = re.compile(f"(?<=[{_CHINESE}])\n(?=[{_CHINESE}])")
_HYPHENATED = re.compile(r"(\w+)([-\u2010\xad])\n([^\W\d_]+)")
_WORD = re.compile(r"\w+(?:[-\u2010]\w+)*")
_LIST_MARKER = re.compile(
    r"[•●▪◦‣■□◆◇○➢] ?|[-–*] |\(?\d{1,2}[.)] |\(?[a-z]\) |[（(]?[一二三四五六七八九十]{1,3}[）)、]"
)
_FINISHED = re.compile(r"[.。!！?？:：;；…”\"』」)）]$")
_CONTINUATION = re.compile(f"[a-z{_CHINESE}]")
_LONGEST_HEADING = 200  # characters
_HEADING_SIZE = 1.15  # times the size of the text
_MOST_LEVELS = 4


@dataclass(frozen=True)
class _Paragraph:
    separator: str  # what stands before it
    lines: tuple[Line, ...]


def layout(pages: Sequence[list[Line]]) -> Iterator[Block]:
    """The blocks of all pages in order; pages are numbered from 1, and empty ones give none."""
    levels = _heading_levels(list(chain.from_iterable(pages)))
    known = {word.lower() for page in pages for line in page for word in _WORD.findall(line.text)}
    last: Line | None = None
    for number, page in enumerate(pages, 1):
        for paragraph in _paragraphs(page, last):
            text = _joined([line.text for line in paragraph.lines], known)
            level = levels.get(_rounded(paragraph.lines[0].size), 0)
            is_heading = len(text) <= _LONGEST_HEADING and sum(map(str.isalpha, text)) >= 2
            separator = "\n\n" if level and is_heading else paragraph.separator
            yield Block(text, level * is_heading, page=number, separator=separator)
            last = paragraph.lines[-1]


def _heading_levels(lines: list[Line]) -> dict[float, int]:
    """Size of letters to level of heading; the text's size is the one with most characters."""
    characters: Counter[float] = Counter()
    for line in lines:
        characters[_rounded(line.size)] += len(line.text)
    if not characters:
        return {}
    usual = characters.most_common(1)[0][0]
    larger = sorted((size for size in characters if size > _HEADING_SIZE * usual), reverse=True)
    return {size: min(level, _MOST_LEVELS) for level, size in enumerate(larger, 1)}


def _rounded(size: float) -> float:
    return round(2 * size) / 2


def _paragraphs(page: list[Line], last: Line | None) -> Iterator[_Paragraph]:
    """The paragraphs of a page; `last` is the line before it, from which the first may go on."""
    margins = _margins(page)
    for run in _runs(page):
        elsewhere = last is not None and (run[0] is page[0] or run[0].y > last.y)
        separator = _bridge(last, run[0]) if last and elsewhere else "\n\n"
        margin = margins[_neighbourhood(run[0])]
        if len(run) > 1:
            margin = min(margin, _right_neighbour(run, page))
        start = 0
        for index, (line, following) in enumerate(pairwise(run), 1):
            if not _goes_on(line, following, margin):
                yield _Paragraph(separator, tuple(run[start:index]))
                start, separator = index, "\n"
        yield _Paragraph(separator, tuple(run[start:]))
        last = run[-1]


def _runs(page: list[Line]) -> Iterator[list[Line]]:
    """Lines that follow one another downwards, in one style and at about the usual distance."""
    gaps = [a.y - b.y for a, b in pairwise(page) if 0.5 * a.size < a.y - b.y < 4 * a.size]
    usual = median(gaps) if gaps else 0.0
    run: list[Line] = []
    for line in page:
        if run:
            gap = run[-1].y - line.y
            close = -0.5 * line.size <= gap <= max(1.3 * usual, 0.5 * line.size)
            if not (close and _same_style(run[-1], line)):
                yield run
                run = []
        run.append(line)
    if run:
        yield run


def _same_style(a: Line, b: Line) -> bool:
    return a.bold == b.bold and abs(a.size - b.size) <= 0.15 * max(a.size, b.size)


def _bridge(last: Line, first: Line) -> str:
    """What stands between the end of a column or page and the next: a sentence may go on."""
    if (
        not _same_style(last, first)
        or _FINISHED.search(last.text)
        or _LIST_MARKER.match(first.text)
        or not _CONTINUATION.match(first.text)
    ):
        return "\n\n"
    return "" if _CHINESE_JOINT.search(f"{last.text}\n{first.text}") else " "


def _margins(page: list[Line]) -> dict[tuple[float, int], float]:
    """How far lines reach that are of the same size and start in the same part of the page.

    The few that reach further, such as a title over two columns, do not count.
    """
    rights: dict[tuple[float, int], list[float]] = defaultdict(list)
    for line in page:
        rights[_neighbourhood(line)].append(line.right)
    return {
        key: quantiles(values, n=5)[-1] if len(values) > 3 else max(values)
        for key, values in rights.items()
    }


def _neighbourhood(line: Line) -> tuple[float, int]:
    return round(line.size), int(line.x // 100)


def _right_neighbour(run: list[Line], page: list[Line]) -> float:
    """Where the next column begins to the right of a run, if there is one."""
    top, bottom = run[0].y + run[0].size, run[-1].y - run[-1].size
    middle = median(line.right for line in run)
    return min((a.x for a in page if bottom <= a.y <= top and a.x > middle), default=inf)


def _goes_on(line: Line, following: Line, margin: float) -> bool:
    """Whether a paragraph goes on: the first word of the next line would not have fitted."""
    if line.y - following.y < 0.5 * line.size or _LIST_MARKER.match(following.text):
        return False
    word = following.text.split(maxsplit=1)[0]
    word = word[:1] if word[0] >= "\u2e80" else word
    missing = margin - line.right - width(word) * line.size
    return missing < 0.12 * (margin - line.x)


def _joined(lines: list[str], known: set[str]) -> str:
    """Lines as one text: no space between Chinese, words that a hyphen parted whole again."""

    def whole(match: re.Match[str]) -> str:
        """Without the hyphen, unless the word is only known with it, as "well-known"."""
        before, hyphen, after = match.groups()
        with_hyphen = f"{before}-{after}"
        if not after[0].islower() and hyphen != "\xad":
            return f"{before}{hyphen}{after}"
        if with_hyphen.lower() in known and (before + after).lower() not in known:
            return with_hyphen
        return before + after

    text = _HYPHENATED.sub(whole, "\n".join(lines))
    return _CHINESE_JOINT.sub("", text).replace("\n", " ")
