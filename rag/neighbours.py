"""Neighbouring passages of one document as one: those found that touch, and those around each.

Passages are exact spans of their document's text, and so is what is made of them. Knows no scores
and no store.
"""

from collections.abc import Sequence
from dataclasses import replace

from rag.records import StoredPassage
from rag.retrieved import RetrievedPassage


def touches(first: RetrievedPassage, second: RetrievedPassage, text: str) -> bool:
    """Whether two passages of one document, under one heading, overlap or have only white space
    between them. `text` is the document's."""
    if first.document_id != second.document_id or first.heading != second.heading:
        return False
    start, end = min(first.end, second.end), max(first.start, second.start)
    return not text[start:end].strip()


def join(best: RetrievedPassage, other: RetrievedPassage, text: str) -> RetrievedPassage:
    """`best`, now with the text of `other`, which it touches; its numbers and highlight stay."""
    ids = (*best.joined, other.passage_id, *other.joined)
    return _stretched(best, min(best.start, other.start), max(best.end, other.end), text, ids)


def widen(
    passage: RetrievedPassage, in_document: Sequence[StoredPassage], count: int, text: str
) -> RetrievedPassage:
    """`passage` with up to `count` passages before and after it under the same heading.

    `in_document` are all of its document in reading order. Unchanged when it is not among them: its
    document was replaced meanwhile.
    """
    own = {passage.passage_id, *passage.joined}
    places = [place for place, p in enumerate(in_document) if p.id in own]
    if not places:
        return passage
    first, last = places[0], places[-1]
    while first > max(0, places[0] - count) and in_document[first - 1].heading == passage.heading:
        first -= 1
    end = min(len(in_document) - 1, places[-1] + count)
    while last < end and in_document[last + 1].heading == passage.heading:
        last += 1
    added = in_document[first : last + 1]
    start = min(passage.start, *(p.start for p in added))
    stop = max(passage.end, *(p.end for p in added))
    ids = tuple(p.id for p in added if p.id != passage.passage_id)
    return _stretched(passage, start, stop, text, ids)


def _stretched(
    passage: RetrievedPassage, start: int, end: int, text: str, joined: tuple[int, ...]
) -> RetrievedPassage:
    highlight = passage.highlight
    if highlight is not None:
        shift = passage.start - start
        highlight = (highlight[0] + shift, highlight[1] + shift)
    return replace(
        passage, start=start, end=end, text=text[start:end], highlight=highlight, joined=joined
    )
