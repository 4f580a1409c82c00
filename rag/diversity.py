"""Maximal marginal relevance: an order in which each passage adds to those before it.

Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents and
producing summaries" (SIGIR 1998). Works on vectors and scores; knows no passages.
"""

import numpy as np
from numpy.typing import NDArray


def marginal_relevance_order(
    scores: NDArray[np.floating], vectors: NDArray[np.floating], diversity: float
) -> list[int]:
    """Places (N,) of all candidates, each the best by relevance and difference from those before.

    Takes next the one with the largest `(1 - diversity) * score - diversity * c`, where `c` is the
    largest cosine with one already taken, 0 for the first. Equals go in their order.

    Args:
        scores: (N,) relevance, on the scale of a cosine.
        vectors: (N, D) of length 1.
        diversity: from 0, by score alone, to 1, by difference alone after the first.

    Raises ValueError when `diversity` is no number from 0 to 1.
    """
    if not 0 <= diversity <= 1:
        raise ValueError(f"diversity must be a number from 0 to 1, not {diversity!r}")
    order: list[int] = []
    nearest = np.full(len(scores), -np.inf)  # (N,) largest cosine with one that was taken
    left = np.ones(len(scores), bool)
    for _ in range(len(scores)):
        if order:
            gain = (1 - diversity) * scores - diversity * nearest
        else:
            gain = np.asarray(scores, float)  # the first is the most relevant, whatever diversity
        best = int(np.argmax(np.where(left, gain, -np.inf)))
        order.append(best)
        left[best] = False
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return order
