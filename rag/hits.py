"""What a search in either index answers: passage ids and their scores, best first.

Knows nothing of vectors, words or passages' texts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Hits:
    """`ids` (n,) int64 and `scores` (n,) float32, best first; equal scores by rising id."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    def by_id(self) -> dict[int, float]:
        return dict(zip(self.ids.tolist(), self.scores.tolist(), strict=True))


def best_first(ids: NDArray[np.int64], scores: NDArray[np.float32], k: int | None = None) -> Hits:
    """The `k` best, sorted so that the order never depends on how an index walked its entries."""
    if k is not None and 0 < k < len(ids):  # all that score as the last of the k, so ties are fair
        least = np.partition(scores, len(ids) - k)[len(ids) - k]
        ids, scores = ids[scores >= least], scores[scores >= least]
    order = np.lexsort((ids, -scores))[:k]
    return Hits(ids[order], scores[order])


def no_hits() -> Hits:
    return Hits(np.empty(0, np.int64), np.empty(0, np.float32))
