"""Markers such as [1] in an answer to the passages that were shown, and only those.

`link_citations` reads the markers that the model wrote. `support` finds what stands behind a
sentence without one, by shared words. Neither says that a sentence is true, only where to look.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

# A fence that is still open runs to the end: while the answer is written, it may yet be closed.
_CODE = re.compile(r"(?ms)^[ >]*(```|~~~).*?(?:^[ >]*\1|\Z)|``[^\n]+?``|`[^`\n]+`")
_MARKER = re.compile(r"[\[［【]\s*\d{1,4}(?:\s*[,，、;；]\s*\d{1,4})*\s*[\]］】]")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Segment:
    """A stretch of the answer; `citation` is the number of a passage, counted from 1, or None."""

    text: str
    citation: int | None = None


def link_citations(answer: str, count: int) -> list[Segment]:
    """Cut `answer` into plain text and citations of passages 1 to `count`.

    The segments' texts joined are the answer. `[1, 2]` becomes two segments; a number that no
    passage has is no citation, and neither is anything inside code.
    """
    segments: list[Segment] = []
    plain = 0
    for start, end in _markers(answer):
        cited = [
            number
            for number in _NUMBER.finditer(answer, start, end)
            if 1 <= int(number[0]) <= count
        ]
        if not cited:
            continue
        if plain < start:
            segments.append(Segment(answer[plain:start]))
        cuts = [start, *(number.start() for number in cited[1:]), end]
        for number, (left, right) in zip(cited, pairwise(cuts), strict=True):
            segments.append(Segment(answer[left:right], int(number[0])))
        plain = end
    if plain < len(answer):
        segments.append(Segment(answer[plain:]))
    return segments


def _markers(answer: str) -> list[tuple[int, int]]:
    """Spans of what looks like a marker, outside code."""
    code = [match.span() for match in _CODE.finditer(answer)]
    return [
        match.span()
        for match in _MARKER.finditer(answer)
        if not any(start <= match.start() < end for start, end in code)
    ]
