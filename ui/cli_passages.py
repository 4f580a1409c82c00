"""How retrieved passages are printed for a person: numbered, each with its place and how it fits.

Needs no language model, so that `glassbox search` starts without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ui.plain_text import one_line
from ui.why_view import percent

if TYPE_CHECKING:
    from rag.retrieved import Retrieval, RetrievedPassage

EXCERPT = 300  # characters


def print_passages(passages: Sequence[RetrievedPassage]) -> None:
    """Each passage with its number, document, page and probability, and how its text begins."""
    for number, passage in enumerate(passages, 1):
        place = f", p. {passage.page}" if passage.page is not None else ""
        print(f"[{number}] {one_line(passage.document)}{place}  ({percent(passage.probability)})")
        print(f"    {one_line(passage.text, EXCERPT)}")


def print_scope(used: int, retrieval: Retrieval) -> None:
    """How many passages of how many were read."""
    print(f"{used} of {retrieval.considered:,} passages that were searched.")
