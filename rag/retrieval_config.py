"""How to look for passages: one frozen record of options, checked when it is made.

The page, the command line and the HTTP API take their controls from its fields. Does not know how
any of it is done: that is rag/retriever.py, and for `follow_up` rag/follow_up.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

MOST_PASSAGES = 50
MOST_NEIGHBOURS = 5


class FollowUp(StrEnum):
    """How a follow-up question is completed before it is searched for."""

    OFF = "off"  # it is searched for as it was asked
    CARRY = "carry"  # with the question that it follows put before it
    MODEL = "model"  # rewritten by the model; as with CARRY where what it wrote is no use


@dataclass(frozen=True)
class RetrievalConfig:
    """Raises ValueError, naming the field, for what makes no sense."""

    passages: int = 4  # so many at most
    document_ids: tuple[str, ...] | None = None  # look only in these; None is all, () is nowhere
    diversity: float = 0.0  # 0 ranks by relevance alone, 1 by difference from those before (MMR)
    neighbours: int = 0  # passages before and after each one that are joined to it
    # benchmarks/follow_up.py chose the default: recall@3 of English follow-ups is .65 as asked, .85
    # when qwen-0.5b says what they are about, and .95 with the question before.
    follow_up: FollowUp = FollowUp.CARRY  # complete a follow-up question from the chat

    def __post_init__(self) -> None:
        _check_whole("passages", self.passages, 1, MOST_PASSAGES)
        _check_whole("neighbours", self.neighbours, 0, MOST_NEIGHBOURS)
        number = isinstance(self.diversity, int | float) and not isinstance(self.diversity, bool)
        if not number or not math.isfinite(self.diversity) or not 0 <= self.diversity <= 1:
            raise ValueError(f"diversity must be a number from 0 to 1, not {self.diversity!r}")
        if self.follow_up not in tuple(FollowUp):
            names = ", ".join(FollowUp)
            raise ValueError(f"follow_up must be one of {names}, not {self.follow_up!r}")
        object.__setattr__(self, "follow_up", FollowUp(self.follow_up))
        ids = self.document_ids
        if ids is not None:
            if not isinstance(ids, list | tuple) or not all(isinstance(id_, str) for id_ in ids):
                raise ValueError(f"document_ids must be a list of ids, not {ids!r}")
            object.__setattr__(self, "document_ids", tuple(ids))


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}")
