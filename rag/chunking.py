"""A document to passages: exact spans of its text, sized in tokens, cut where a reader would.

Sizes are counted with the tokenizer that will embed the passages, which is handed in: a limit in
characters would cut Chinese and English at very different lengths, and a passage longer than
the embedder's limit loses its end silently. Knows nothing of embeddings or the index.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise

from rag.documents import Document, Section
from rag.sentences import Boundary, Strength, boundaries, cut_near

TokenSpans = Callable[[str], list[tuple[int, int]]]

# 250 tokens and the prefix fit in the smallest window of the embedders in use (256), and four
# such passages leave a small model room to answer. Text is shared out in equal parts of at most
# TARGET_SHARE of that, so passages end up between 100 and 250 tokens: large enough to hold a
# fact with its context, small enough that one vector can stand for it.
MAX_TOKENS = 250
TARGET_SHARE = 0.8
OVERLAP = 30  # tokens, in whole sentences: a sentence or two that say what "it" is
TINY_SHARE = 0.16  # a part under a heading smaller than this share of the maximum joins the next
_WINDOW = 50_000  # characters tokenized at a time

_WORTH = {  # how far from the ideal size, as a share of it, a better place to cut is worth
    Strength.HEADING: 0.5,
    Strength.PARAGRAPH: 0.3,
    Strength.SENTENCE: 0.1,
    Strength.LINE: 0.0,
    Strength.CLAUSE: -0.5,
    Strength.TOKEN: -1.0,
}


@dataclass(frozen=True)
class Passage:
    """A part of a document; `document.text[start:end] == text`.

    Attributes:
        page: the page on which it starts, if the format has pages.
        heading: of the section in which most of it lies, outermost heading first.
    """

    text: str
    start: int
    end: int
    page: int | None
    heading: tuple[str, ...]


def split(
    document: Document,
    token_spans: TokenSpans,
    max_tokens: int = MAX_TOKENS,
    overlap: int = OVERLAP,
) -> list[Passage]:
    """Passages in order; every character but white space is in at least one.

    Args:
        token_spans: the spans, in characters, of the tokens of a text.
        max_tokens: no passage has more, unless a single character has.
        overlap: at most this many tokens of whole sentences are repeated from the passage before.

    Time is linear in the length of the text, apart from `token_spans`, which sees it twice.
    """
    if not max_tokens > overlap >= 0:
        raise ValueError(f"overlap must be from 0 to below max_tokens, not {overlap}")
    pieces = _Pieces(document, token_spans, max_tokens)
    passages = []
    for first, last in _parts(pieces, document, round(TINY_SHARE * max_tokens)):
        for start, end in _share_out(pieces, first, last, max_tokens, overlap):
            for span in _enforced(document.text, start, end, token_spans, max_tokens):
                passages.append(_passage(document, *span))
    return passages


class _Pieces:
    """The text in pieces too small to cut further, with what a cut before each is worth.

    Piece i is `text[starts[i]:starts[i + 1]]`; `tokens_before[i]` tokens stand before it.
    """

    def __init__(self, document: Document, token_spans: TokenSpans, max_tokens: int) -> None:
        text = document.text
        token_starts = _token_starts(text, token_spans)
        target = max(1, round(TARGET_SHARE * max_tokens))
        self.starts: list[int] = [0]
        self.strengths: list[Strength] = [Strength.HEADING]
        self.tokens_before: list[int] = [0]
        self.target = target
        for boundary in [*_boundaries(document), Boundary(len(text), Strength.HEADING)]:
            self._add_long(text, token_starts, boundary, max(1, target // 8))

    def _add_long(
        self, text: str, token_starts: Sequence[int], boundary: Boundary, step: int
    ) -> None:
        """Add the piece that ends at `boundary`, in bits of `step` tokens if it is too long."""
        end_token = bisect_left(token_starts, boundary.position)
        token = self.tokens_before[-1]
        if end_token - token > self.target:
            for next_token in range(token + step, end_token - step // 2, step):
                place = token_starts[next_token]
                if place > self.starts[-1]:
                    cut = cut_near(text, place, self.starts[-1])
                    self._add(cut, bisect_left(token_starts, cut.position))
        self._add(boundary, end_token)

    def _add(self, boundary: Boundary, tokens: int) -> None:
        self.starts.append(boundary.position)
        self.strengths.append(boundary.strength)
        self.tokens_before.append(tokens)

    def tokens(self, first: int, last: int) -> int:
        """Tokens in the pieces from `first` up to, not including, `last`."""
        return self.tokens_before[last] - self.tokens_before[first]


def _token_starts(text: str, token_spans: TokenSpans) -> array[int]:
    """Where each token of the text starts, tokenized in windows cut at white space if possible."""
    starts = array("I")
    begin = 0
    while begin < len(text):
        end = min(len(text), begin + _WINDOW)
        if end < len(text):
            space = max(text.rfind("\n", begin, end), text.rfind(" ", begin, end))
            end = space if space > begin else end
        starts.extend(begin + start for start, _ in token_spans(text[begin:end]))
        begin = end
    return starts


def _boundaries(document: Document) -> Iterator[Boundary]:
    """Where the text may be cut: best before a heading, never right after one."""
    headings = [start for start, _ in _heading_changes(document)]
    marks = (Boundary(start, Strength.HEADING) for start in headings)
    starts = frozenset(headings)
    after_heading = 0 in starts
    for boundary in merge(boundaries(document.text), marks, key=lambda mark: mark.position):
        if boundary.position in starts:
            if not after_heading:
                yield Boundary(boundary.position, Strength.HEADING)
            after_heading = True
        elif after_heading:
            after_heading = False
        else:
            yield boundary


def _heading_changes(document: Document) -> Iterator[tuple[int, bool]]:
    """(start, whether a heading of the outer two levels changes) for each new heading."""
    before: tuple[str, ...] = ()
    for section in document.sections:
        if section.heading != before:
            yield section.start, section.heading[:2] != before[:2]
        before = section.heading


def _parts(pieces: _Pieces, document: Document, tiny: int) -> Iterator[tuple[int, int]]:
    """Ranges of pieces that no passage may leave: what stands under one heading of level 1 or 2.

    A part of less than `tiny` tokens joins the next one; the last joins the one before.
    """
    last = len(pieces.starts) - 1
    edges = [0]
    for start, is_outer in _heading_changes(document):
        edge = bisect_right(pieces.starts, start) - 1
        if is_outer and pieces.tokens(edges[-1], edge) >= tiny:
            edges.append(edge)
    if len(edges) > 1 and pieces.tokens(edges[-1], last) < tiny:
        edges.pop()
    yield from pairwise([*edges, last])


def _share_out(
    pieces: _Pieces, first: int, last: int, max_tokens: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Spans of about equal size over the pieces from `first` to `last`, cut at the best places."""
    begin = first
    while begin < last:
        repeated = _overlap_start(pieces, first, begin, overlap)
        room = max_tokens - pieces.tokens(repeated, begin)
        end = _best_end(pieces, begin, last, room)
        yield pieces.starts[repeated], pieces.starts[end]
        begin = end


def _overlap_start(pieces: _Pieces, first: int, begin: int, overlap: int) -> int:
    """The earliest sentence before `begin` from which at most `overlap` tokens are repeated."""
    start = begin
    if pieces.strengths[begin] >= Strength.HEADING:
        return begin
    for index in range(begin - 1, first - 1, -1):
        if pieces.tokens(index, begin) > overlap:
            break
        if pieces.strengths[index] >= Strength.LINE:
            start = index
    return start


def _best_end(pieces: _Pieces, begin: int, last: int, room: int) -> int:
    """Where the passage that begins here should end: near an equal share, at a good place."""
    remaining = pieces.tokens(begin, last)
    if remaining <= room:
        return last
    goal = remaining / -(-remaining // pieces.target)
    best, best_cost = begin + 1, float("inf")
    for end in range(begin + 1, last + 1):
        tokens = pieces.tokens(begin, end)
        if tokens > room:
            break
        cost = abs(tokens - goal) / goal - _WORTH[pieces.strengths[end]]
        if cost <= best_cost:
            best, best_cost = end, cost
    return best


def _enforced(
    text: str, start: int, end: int, token_spans: TokenSpans, max_tokens: int
) -> Iterator[tuple[int, int]]:
    """The span without outer white space, halved until it really has at most `max_tokens`.

    Tokens counted in the whole text and in a part of it can differ by a few at the ends.
    """
    body = text[start:end]
    start += len(body) - len(body.lstrip())
    end -= len(body) - len(body.rstrip())
    if start >= end:
        return
    spans = token_spans(text[start:end])
    if len(spans) <= max_tokens or end - start == 1:
        yield start, end
        return
    middle = max(start + 1, min(end - 1, start + spans[len(spans) // 2][0]))
    cut = cut_near(text, middle, start).position
    yield from _enforced(text, start, cut, token_spans, max_tokens)
    yield from _enforced(text, cut, end, token_spans, max_tokens)


def _passage(document: Document, start: int, end: int) -> Passage:
    sections: Sequence[Section] = document.sections
    first = bisect_right(sections, start, key=lambda section: section.start) - 1
    last = bisect_left(sections, end, key=lambda section: section.start)
    inside = sections[max(0, first) : last]
    most = max(inside, key=lambda s: min(end, s.end) - max(start, s.start), default=None)
    return Passage(
        document.text[start:end],
        start,
        end,
        inside[0].page if inside else None,
        most.heading if most else (),
    )
