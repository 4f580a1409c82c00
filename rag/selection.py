"""Which of the passages that were found are handed on, and why the others are not.

Takes passages in order, each with its probability; knows how they are told apart and joined
(rag/neighbours.py), not how they were found.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rag.neighbours import join, touches
from rag.retrieved import Dropped, RetrievedPassage


class Selection(NamedTuple):
    """`kept` are at most k, in order; `dropped` say why, in order of rank."""

    kept: list[RetrievedPassage]
    dropped: list[RetrievedPassage]


def without_duplicates(
    passages: Sequence[RetrievedPassage], threshold: float
) -> tuple[list[RetrievedPassage], list[RetrievedPassage]]:
    """Those worth citing, and the others: below the threshold, or with the text of an earlier one.

    White space and case do not make a text another.
    """
    kept: list[RetrievedPassage] = []
    dropped: list[RetrievedPassage] = []
    seen: set[str] = set()
    for passage in passages:
        text = " ".join(passage.text.casefold().split())
        if passage.probability < threshold:
            dropped.append(replace(passage, dropped=Dropped.BELOW_THRESHOLD))
        elif text in seen:
            dropped.append(replace(passage, dropped=Dropped.DUPLICATE))
        else:
            seen.add(text)
            kept.append(passage)
    return kept, dropped


def select(
    passages: Sequence[RetrievedPassage], k: int, text_of: Callable[[str], str | None]
) -> Selection:
    """The first `k` of `passages`, where those that touch an earlier one become part of it.

    What is joined counts towards `k`, so that the texts together are no longer than k passages.

    `text_of` gives a document's text by its id, or None when the document is not there any more.
    """
    kept: list[RetrievedPassage] = []
    dropped: list[RetrievedPassage] = []
    for passage in passages:
        taken = sum(1 + len(other.joined) for other in kept)
        place = _touched(passage, kept, text_of) if taken < k else None
        if place is not None:
            text = text_of(passage.document_id) or ""
            kept[place] = join(kept[place], passage, text)
            dropped.append(replace(passage, dropped=Dropped.JOINED))
        elif taken < k:
            kept.append(passage)
        else:
            dropped.append(replace(passage, dropped=Dropped.BEYOND_K))
    return Selection(kept, dropped)


def _touched(
    passage: RetrievedPassage, kept: list[RetrievedPassage], text_of: Callable[[str], str | None]
) -> int | None:
    """The place among `kept` of the first that `passage` touches."""
    for place, other in enumerate(kept):
        if other.document_id == passage.document_id and other.heading == passage.heading:
            text = text_of(passage.document_id)
            if text is not None and touches(other, passage, text):
                return place
    return None
