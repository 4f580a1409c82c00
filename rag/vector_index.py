"""Vectors on this machine: those of saved files, and those added since in memory.

It does not know what a passage is, nor when files are written.
"""

import threading

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag.hits import Hits, best_first, no_hits
from rag.vector_rows import Rows
from rag.vectors import VectorIndexError, checked_addition, checked_rows


class VectorIndex:
    """The `Vectors` of this machine: saved rows, if there are any, and those added since.

    One lock: a search takes a core to itself for milliseconds, so there is little to win by letting
    two run side by side.
    """

    def __init__(self, dimension: int, saved: Rows | None = None) -> None:
        if dimension < 1:
            raise VectorIndexError(f"dimension must be at least 1, not {dimension}")
        self.dimension = dimension
        none = np.empty(0, np.int64), np.empty((0, dimension), np.float32)
        self._saved = Rows(*none) if saved is None else saved
        self._added = Rows(*none)
        self._ids: NDArray[np.int64] | None = None  # None when they changed
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._parts))

    @property
    def _parts(self) -> tuple[Rows, Rows]:
        return self._saved, self._added

    @property
    def ids(self) -> NDArray[np.int64]:
        with self._lock:
            if self._ids is None:
                first, second = (part.ids[part.alive] for part in self._parts)
                self._ids = np.concatenate([first, second])
                if len(first) and len(second) and second[0] < first[-1]:
                    self._ids.sort()
            return self._ids

    def add(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        new_ids, rows = checked_addition(ids, vectors, self.dimension)  # (N,), (N, D)
        if len(new_ids) == 0:
            return
        order = np.argsort(new_ids, kind="stable")
        new_ids, rows = new_ids[order], rows[order]
        with self._lock:
            repeated = (new_ids[1:] == new_ids[:-1]).any()
            if repeated or any((p.places(new_ids) >= 0).any() for p in self._parts):
                raise VectorIndexError("an id may be added once; remove it before adding it again")
            self._added.append(new_ids, rows)
            self._ids = None

    def remove(self, ids: ArrayLike) -> int:
        wanted = np.unique(np.asarray(ids, np.int64))
        with self._lock:
            removed = sum(part.remove(wanted) for part in self._parts)
            if removed:
                self._ids = None
            return removed

    def search(self, query: ArrayLike, k: int, allowed: ArrayLike | None = None) -> Hits:
        row = checked_rows(np.asarray(query)[None, :], self.dimension)[0]  # (D,)
        if k < 1:
            return no_hits()
        wanted = None if allowed is None else np.unique(np.asarray(allowed, np.int64))
        found = []
        with self._lock:
            for part in self._parts:
                places = None if wanted is None else part.places(wanted)
                found.append(part.nearest(row, k, None if places is None else places[places >= 0]))
        ids = np.concatenate([hits.ids for hits in found])
        return best_first(ids, np.concatenate([hits.scores for hits in found]), k)

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.get(ids) @ query  # (n, D) @ (D,)

    def get(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        found = np.full((len(ids), self.dimension), np.nan, np.float32)
        with self._lock:
            for part in self._parts:
                places = part.places(ids)
                found[places >= 0] = part.vectors[places[places >= 0]]
        return found

    def mean(self) -> NDArray[np.float32]:
        with self._lock:
            total = self._saved.total + self._added.total  # (D,)
            count = sum(map(len, self._parts))
        return (total / max(1, count)).astype(np.float32)

    @property
    def unsaved(self) -> int:
        """How many of its rows no file has: they are read exactly by every search."""
        with self._lock:
            return len(self._added)

    @property
    def gone(self) -> int:
        """How many rows of the files are of vectors that are gone."""
        with self._lock:
            return len(self._saved.ids) - len(self._saved)

    @property
    def is_approximate(self) -> bool:
        return self._saved.approximate is not None
