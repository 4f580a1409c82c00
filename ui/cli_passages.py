"""How retrieved passages are printed: numbered for a person, or as records for JSON.

Needs no language model, so that `glassbox search` starts without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ui.plain_text import one_line

if TYPE_CHECKING:
    from rag.retriever import Retrieval, RetrievedPassage

EXCERPT = 300  # characters


def print_passages(passages: Sequence[RetrievedPassage]) -> None:
    """Each passage with its number, document, page and score, and the beginning of its text."""
    for number, passage in enumerate(passages, 1):
        place = f", p. {passage.page}" if passage.page is not None else ""
        print(f"[{number}] {one_line(passage.document)}{place}  ({passage.score:.3f})")
        print(f"    {one_line(passage.text, EXCERPT)}")


def passage_record(passage: RetrievedPassage) -> dict[str, Any]:
    """A passage as plain data; `start` and `end` count characters of the document's text."""
    return {
        "document": passage.document,
        "page": passage.page,
        "start": passage.start,
        "end": passage.end,
        "score": passage.score,
        "text": passage.text,
    }


def retrieval_record(retrieval: Retrieval) -> dict[str, Any]:
    """What was found; `rejected` are the closest passages when none was relevant enough."""
    return {
        "relevant": retrieval.relevant,
        "passages": [passage_record(passage) for passage in retrieval.passages],
        "rejected": [passage_record(passage) for passage in retrieval.rejected],
    }
