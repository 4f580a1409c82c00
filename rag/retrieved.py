"""What a retrieval answers: passages, each with the numbers that chose it or left it out.

Plain data, for prompts, pages and programs to read. Knows no index and no store.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from rag.evidence import Span


class Dropped(StrEnum):
    """Why a passage that was found is not handed on."""

    BELOW_THRESHOLD = "below_threshold"  # not probable enough to be cited
    DUPLICATE = "duplicate"  # the same text as a better passage
    JOINED = "joined"  # its text is part of a better passage of the same document
    BEYOND_K = "beyond_k"  # as many as were asked for came before it


@dataclass(frozen=True)
class Signal:
    """One number that speaks for or against a passage, in a logistic regression.

    It adds `contribution` to the log-odds that the passage answers: nothing where `value` is
    `neutral`, and `weight` for each unit above.
    """

    name: str
    value: float
    neutral: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.weight * (self.value - self.neutral)


@dataclass(frozen=True)
class RetrievedPassage:
    """`text` is the document's text from `start` to `end`.

    Attributes:
        score: what ranks: the cosine, the weighted share of BM25 and, in another script than the
            question's, an allowance.
        dense_score, lexical_score: the cosine, and the share of BM25 in [0, 1).
        dense_rank, lexical_rank: places in the two searches, from 1; None where that search did
            not put the passage forward.
        highlight: the sentence, within `text`, that shares most with the question.
        rank: its place by score among all that were found, from 1.
        probability: that it answers; this is what decides. It is the logistic function of the sum
            of the contributions of `signals`.
        rerank_score: of the cross-encoder, when there is one.
        joined: the ids of other passages whose text is now part of this one.
        dropped: why it is not handed on; None when it is.
    """

    passage_id: int
    document_id: str
    document: str
    page: int | None
    heading: tuple[str, ...]
    start: int
    end: int
    text: str
    score: float
    dense_score: float
    dense_rank: int | None
    lexical_score: float
    lexical_rank: int | None
    highlight: Span | None
    rank: int = 0
    probability: float = 0.0
    signals: tuple[Signal, ...] = ()
    rerank_score: float | None = None
    joined: tuple[int, ...] = ()
    dropped: Dropped | None = None


@dataclass(frozen=True)
class Retrieval:
    """`passages` may be cited, best first; `rejected` were looked at as well, best first.

    Attributes:
        relevant: whether there are passages.
        signals: of the best passage found: the value of each signal by its name.
        threshold: the least probability of a passage worth citing.
        considered: how many passages were searched.
    """

    passages: tuple[RetrievedPassage, ...]
    relevant: bool
    signals: dict[str, float]
    threshold: float
    seconds: float
    considered: int
    rejected: tuple[RetrievedPassage, ...] = field(default=())
