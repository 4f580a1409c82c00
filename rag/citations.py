"""Markers such as [1] in an answer to the passages that were shown, and only those.

`link_citations` reads the markers that the model wrote. `support` finds what stands behind a
sentence without one, by shared words. Neither says that a sentence is true, only where to look.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.evidence import Span, best_sentence, sentences
from rag.terms import content_terms, tokenize

# A fence that is still open runs to the end: while the answer is written, it may yet be closed.
_CODE = re.compile(r"(?ms)^[ >]*(```|~~~).*?(?:^[ >]*\1|\Z)|``[^\n]+?``|`[^`\n]+`")
_MARKER = re.compile(r"[\[［【]\s*\d{1,4}(?:\s*[,，、;；]\s*\d{1,4})*\s*[\]］】]")
_NUMBER = re.compile(r"\d+")
_LIST_MARK = re.compile(r"(?m)^\s*(?:\d{1,3}[.)、]|[-*+•])\s*")

# Share of a sentence's terms that must stand in one sentence of a passage. On XQuAD, with the
# best three passages: of answers found there all are aligned, 95 % with the very sentence (English
# and Chinese); of sentences from other articles none is.
SUPPORTED = 0.6


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


@dataclass(frozen=True)
class Support:
    """Sentence `start` to `end` of the answer shares most of its words with `span` of a passage.

    `citation` counts passages from 1, as the markers do.
    """

    start: int
    end: int
    citation: int
    span: Span


def support(answer: str, passages: Sequence[str]) -> list[Support]:
    """What stands behind the sentences of `answer` that carry no marker of their own.

    Rather none than a wrong one: a sentence of which too little, or a number of which, is not in
    the passage's sentence is left out, and so is all code.
    """
    found = []
    hidden = [match.span() for match in _CODE.finditer(answer)]
    marked = [start for start, _ in _markers(answer)]
    for start, end in sentences(answer):
        if any(left < end and start < right for left, right in hidden):
            continue
        if any(start <= at < end for at in marked):
            continue
        wanted = content_terms(_LIST_MARK.sub(" ", answer[start:end]))
        best = best_sentence(passages, wanted)
        if best is None or best.share < SUPPORTED:
            continue
        evidence = passages[best.text][slice(*best.span)]
        if {t for t in wanted if _NUMBER.search(t)} <= set(tokenize(evidence)):
            found.append(Support(start, end, best.text + 1, best.span))
    return found
