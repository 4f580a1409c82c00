"""Both searches at once: by meaning and by words, each passage that either finds scored by both.

Works on ids alone; does not know what becomes of the best of them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag import relevance
from rag.indexes import Searchable
from rag.terms import script_of

POOL = 50  # passages that each search puts forward; on XQuAD 10 would do


class Scores(NamedTuple):
    """Of one passage: `score` is the sum of the cosine, the weighted words and the allowance.

    `usual` is the question's usual cosine with passages in this one's script, None for its own.
    """

    score: float
    cosine: float
    words: float
    allowance: float
    usual: float | None
    dense_rank: int | None
    lexical_rank: int | None


def search(
    query: str,
    vector: NDArray[np.float32],
    least: float,
    index: Searchable,
    allowed: NDArray[np.int64] | None,
) -> dict[int, Scores]:
    """The numbers of every passage that either search put forward; `allowed` ids rise.

    `least` is the score that chance matches rarely reach (rag/relevance.py).

    By meaning, each script is searched for itself: E5 ranks a page of any passages in the
    question's language before those in another that have the answer.
    """
    dense: dict[int, float] = {}
    for part in index.vectors.values():
        dense |= part.search(vector, POOL, allowed).by_id()
    lexical = index.words.search(query, POOL, allowed).by_id()
    union = np.array(sorted(dense.keys() | lexical.keys()), np.int64)  # (n,)
    cosines = index.cosines(vector, union)  # (n,)
    there = ~np.isnan(cosines)  # another thread may have removed one since
    union, cosines = union[there], cosines[there]
    words = index.words.scores(query, union)  # (n,)
    dense_ranks, lexical_ranks = _ranks(dense), _ranks(lexical)

    script = script_of(query)
    plain = cosines.astype(float) + relevance.LEXICAL_WEIGHT * words.astype(float)  # (n,)
    foreign = index.scripts(union) != (script == "han")  # (n,)
    other = index.vectors["other" if script == "han" else "han"]
    usual = relevance.usual_cosine(script, float(vector @ other.mean()), len(other))
    answered = bool((plain[~foreign] >= least).any())
    allowance = relevance.allowance(least, usual, answered=answered)
    return {
        id_: Scores(
            score=score,
            cosine=cosine,
            words=word,
            allowance=allowance if is_foreign else 0.0,
            usual=usual if is_foreign else None,
            dense_rank=dense_ranks.get(id_),
            lexical_rank=lexical_ranks.get(id_),
        )
        for id_, score, cosine, word, is_foreign in zip(
            union.tolist(),
            (plain + allowance * foreign).tolist(),
            cosines.tolist(),
            words.tolist(),
            foreign.tolist(),
            strict=True,
        )
    }


def _ranks(scores: dict[int, float]) -> dict[int, int]:
    """Each id's place by score, from 1."""
    ordered = sorted(scores, key=lambda id_: (-scores[id_], id_))
    return {id_: rank for rank, id_ in enumerate(ordered, start=1)}
