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
    allowed: NDArray[np.int64] | None,
) -> dict[int, Scores]:
    """The numbers of every passage that either search put forward; `allowed` ids rise.

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
    allowance = relevance.allowance(
        script,
        threshold,
        mean_cosine=float(vector @ other.mean()),
        passages=len(other),
        answered=bool((plain[~foreign] >= threshold).any()),
    )
    extra = np.where(foreign, allowance, 0.0)  # (n,)
    return {
        id_: Scores(score, cosine, word, more, dense_ranks.get(id_), lexical_ranks.get(id_))
        for id_, score, cosine, word, more in zip(
            union.tolist(),
            (plain + extra).tolist(),
            cosines.tolist(),
            words.tolist(),
            extra.tolist(),
            strict=True,
        )
    }


def _ranks(scores: dict[int, float]) -> dict[int, int]:
    """Each id's place by score, from 1."""
    ordered = sorted(scores, key=lambda id_: (-scores[id_], id_))
    return {id_: rank for rank, id_ in enumerate(ordered, start=1)}
