"""What the search by meaning needs of a collection of vectors, wherever they are kept.

`rag/vector_index.py` keeps them on this machine; anything else with these methods will do. There is
one collection for each script, so that searching in one script needs no filter.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag.hits import Hits


class VectorIndexError(ValueError):
    """Vectors, ids or an index file that cannot be used; the message says what is wrong."""


class Vectors(Protocol):
    """Unit vectors of one dimension D under ids of the caller's; every thread may call anything.

    Ids are never negative, and arrays of them are sorted, without repetition, unless said.
    """

    @property
    def dimension(self) -> int: ...

    def __len__(self) -> int: ...

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids (N,), rising. The array is shared: it must not be changed."""

    def add(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        """Add `vectors` (N, D) under `ids` (N,), in any order; an id that is there is refused."""

    def remove(self, ids: ArrayLike) -> int:
        """Remove those of `ids` that are there; returns how many."""

    def search(
        self, query: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> Hits:
        """The `k` best of all, or of those of `allowed` that are there, for `query` (D,).

        Scores are exact; among very many vectors a few of the best may be missing.
        """

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The exact products (n,) of `query` (D,) with the vectors of `ids` (n,), in their order.

        NaN where an id is not there: another thread may just have removed it.
        """

    def get(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors (n, D) of `ids` (n,), in their order; NaN where an id is not there."""

    def mean(self) -> NDArray[np.float32]:
        """The mean (D,) of all vectors; zeros when there are none."""


def checked_rows(vectors: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """`vectors` as rows (N, D). Raises VectorIndexError for another shape, NaN and infinity."""
    rows = np.ascontiguousarray(vectors, np.float32)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise VectorIndexError(f"vectors of shape {rows.shape}, not (N, {dimension})")
    if not np.isfinite(rows).all():
        raise VectorIndexError("vectors hold NaN or infinity")
    return rows


def checked_addition(
    ids: ArrayLike, vectors: ArrayLike, dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """What `add` was given, as ids (N,) and rows (N, D). Raises VectorIndexError."""
    new_ids = np.asarray(ids, np.int64).reshape(-1)
    rows = checked_rows(vectors, dimension)
    if len(new_ids) != len(rows):
        raise VectorIndexError(f"{len(new_ids)} ids for {len(rows)} vectors")
    if (new_ids < 0).any():
        raise VectorIndexError("ids must not be negative")
    return new_ids, rows
