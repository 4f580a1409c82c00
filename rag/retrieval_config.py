"""How to look for passages: one frozen record of options, checked when it is made.

The page, the command line and the HTTP API take their controls from its fields. Does not know how
any of it is done: that is rag/retriever.py, and for `rewrite` whoever has a model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_PASSAGES = 50
MOST_NEIGHBOURS = 5


@dataclass(frozen=True)
class RetrievalConfig:
    """Raises ValueError, naming the field, for what makes no sense."""

    passages: int = 4  # so many at most
    document_ids: tuple[str, ...] | None = None  # look only in these; None is all, () is nowhere
    diversity: float = 0.0  # 0 ranks by relevance alone, 1 by difference from those before (MMR)
    neighbours: int = 0  # passages before and after each one that are joined to it
    rewrite: bool = True  # complete a follow-up question from the conversation before searching
    rerank: bool = False  # let a cross-encoder put the best in order, when one is loaded

    def __post_init__(self) -> None:
        _check_whole("passages", self.passages, 1, MOST_PASSAGES)
        _check_whole("neighbours", self.neighbours, 0, MOST_NEIGHBOURS)
        number = isinstance(self.diversity, int | float) and not isinstance(self.diversity, bool)
        if not number or not math.isfinite(self.diversity) or not 0 <= self.diversity <= 1:
            raise ValueError(f"diversity must be a number from 0 to 1, not {self.diversity!r}")
        for name in ("rewrite", "rerank"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, not {getattr(self, name)!r}")
        ids = self.document_ids
        if ids is not None:
            if isinstance(ids, str) or not all(isinstance(id_, str) for id_ in ids):
                raise ValueError(f"document_ids must be a list of ids, not {ids!r}")
            object.__setattr__(self, "document_ids", tuple(ids))


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}")
