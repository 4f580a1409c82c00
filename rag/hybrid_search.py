"""Both searches at once: by meaning and by words, each passage that either finds scored by both.

Works on ids alone; does not know what becomes of the best of them.
"""

from collections.abc import Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag import relevance
from rag.indexes import Searchable
from rag.terms import script_of

POOL = 50  # passages that each search puts forward; on XQuAD 10 would do


class Scores(NamedTuple):
    """Of one passage: `score` is the sum of the cosine, the weighted words and the allowance."""

    score: float
    cosine: float
    words: float
    allowance: float
    dense_rank: int | None
    lexical_rank: int | None


def search(
    query: str,
    vector: NDArray[np.float32],
    threshold: float,
    index: Searchable,
    allowed: Set[int] | None,
) -> dict[int, Scores]:
    """The numbers of every passage that either search put forward.

    By meaning, each script is searched for itself: E5 ranks a page of any passages in the
    question's language before those in another that have the answer.
    """
    dense: dict[int, float] = {}
    for ids in index.by_script(allowed):
        dense |= index.vectors.search(vector, POOL, ids).by_id()
    lexical = index.words.search(query, POOL, allowed).by_id()
    union = dense.keys() | lexical.keys()
    cosines = index.vectors.search(vector, len(union), union).by_id()
    words = index.words.search(query, len(union), union).by_id()
    dense_ranks, lexical_ranks = _ranks(dense), _ranks(lexical)

    script = script_of(query)
    plain = {
        id_: cosine + relevance.LEXICAL_WEIGHT * words.get(id_, 0.0)
        for id_, cosine in cosines.items()
    }
    foreign = {id_ for id_ in plain if index.script(id_) != script}
    mean, passages = index.means["other" if script == "han" else "han"]
    allowance = relevance.allowance(
        script,
        threshold,
        mean_cosine=float(vector @ mean),
        passages=passages,
        answered=any(plain[id_] >= threshold for id_ in plain.keys() - foreign),
    )

    def scores(id_: int) -> Scores:
        extra = allowance if id_ in foreign else 0.0
        return Scores(
            score=plain[id_] + extra,
            cosine=cosines[id_],
            words=words.get(id_, 0.0),
            allowance=extra,
            dense_rank=dense_ranks.get(id_),
            lexical_rank=lexical_ranks.get(id_),
        )

    return {id_: scores(id_) for id_ in plain}


def _ranks(scores: dict[int, float]) -> dict[int, int]:
    """Each id's place by score, from 1."""
    ordered = sorted(scores, key=lambda id_: (-scores[id_], id_))
    return {id_: rank for rank, id_ in enumerate(ordered, start=1)}
