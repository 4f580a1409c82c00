"""Vectors on this machine: all of them in one matrix, searched exactly or through an index.

Exact search reads every row: 4 ms of one core for 100,000 vectors of 384 numbers. Where there is an
approximate index over the saved rows (rag/approximate_index.py), its candidates are scored again
with the full vectors, and rows added since are read exactly. It does not know what a passage is.
"""

import threading

import faiss
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag.hits import Hits, best_first, no_hits

_GATHERED = 2_000  # allowed rows up to which copying them is faster than skipping the others


class VectorIndexError(ValueError):
    """Vectors, ids or an index file that cannot be used; the message says what is wrong."""


class Rows:
    """Vectors (N, D) under rising ids (N,), some of which may be gone. Not locked."""

    def __init__(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        self.ids, self.vectors = ids, vectors
        self.alive = np.ones(len(ids), bool)
        self.total = vectors.sum(axis=0, dtype=np.float64)  # (D,) of those alive

    def __len__(self) -> int:
        return int(np.count_nonzero(self.alive))

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Where each of `ids` (n,) stands, in their order; -1 where it is not."""
        places = np.searchsorted(self.ids, ids)
        places[places == len(self.ids)] = 0
        if len(self.ids) == 0:
            return np.full(len(ids), -1)
        return np.where((self.ids[places] == ids) & self.alive[places], places, -1)

    def append(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add rows of rising ids that are not there; copies only now and then, as a list does."""
        before = len(self.ids)
        last = int(self.ids[-1]) if before else -1
        self.ids = _extended(self.ids, ids)
        self.vectors = _extended(self.vectors, vectors)
        self.alive = _extended(self.alive, np.ones(len(ids), bool))
        self.total += vectors.sum(axis=0, dtype=np.float64)
        if ids[0] <= last:  # never so for a store's passages, whose ids only rise
            kept = np.flatnonzero(self.alive)
            kept = kept[np.argsort(self.ids[kept])]
            self.ids, self.vectors, self.alive = (
                self.ids[kept],
                self.vectors[kept],
                self.alive[kept],
            )

    def remove(self, ids: NDArray[np.int64]) -> int:
        places = self.places(ids)
        places = places[places >= 0]
        self.alive[places] = False
        self.total -= self.vectors[places].sum(axis=0, dtype=np.float64)
        return len(places)

    def nearest(self, query: NDArray[np.float32], k: int, allowed: NDArray | None) -> Hits:
        """The exact `k` best; `allowed` are places (n,), None is all."""
        if allowed is not None and len(allowed) <= max(_GATHERED, len(self.ids) // 16):
            scores = self.vectors[allowed] @ query  # (n,)
            return best_first(self.ids[allowed], scores, k)
        k = min(k, len(self) if allowed is None else len(allowed))
        if k < 1:
            return no_hits()
        scores, places = np.empty(k, np.float32), np.empty(k, np.int64)
        bits = self.bits(allowed)
        faiss.knn_inner_product(
            faiss.swig_ptr(query),
            faiss.swig_ptr(self.vectors),
            len(query),
            1,
            len(self.ids),
            k,
            faiss.swig_ptr(scores),
            faiss.swig_ptr(places),
            None if bits is None else faiss.IDSelectorBitmap(len(self.ids), faiss.swig_ptr(bits)),
        )
        return best_first(self.ids[places], scores)

    def bits(self, allowed: NDArray | None) -> NDArray[np.uint8] | None:
        """One bit a row, set where it may be found, as faiss wants them; None when all may."""
        if allowed is None:
            return None if self.alive.all() else np.packbits(self.alive, bitorder="little")
        mask = np.zeros(len(self.ids), bool)
        mask[allowed] = True
        return np.packbits(mask, bitorder="little")


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
                self._ids = np.sort(np.concatenate([p.ids[p.alive] for p in self._parts]))
            return self._ids

    def add(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        new_ids = np.asarray(ids, np.int64).reshape(-1)
        rows = self._checked(vectors)  # (N, D)
        if len(new_ids) != len(rows):
            raise VectorIndexError(f"{len(new_ids)} ids for {len(rows)} vectors")
        if len(new_ids) == 0:
            return
        if new_ids.min() < 0:
            raise VectorIndexError("ids must not be negative: faiss uses -1 for 'nothing found'")
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
        row = self._checked(np.asarray(query)[None, :])[0]  # (D,)
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

    def _checked(self, vectors: ArrayLike) -> NDArray[np.float32]:
        rows = np.ascontiguousarray(vectors, np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise VectorIndexError(f"vectors of shape {rows.shape}, not (N, {self.dimension})")
        if not np.isfinite(rows).all():
            raise VectorIndexError("vectors hold NaN or infinity")
        return rows


def _extended(array: NDArray, more: NDArray) -> NDArray:
    """`array` with `more` behind it, in the same memory while there is room in what it is of."""
    room = array.base if isinstance(array.base, np.ndarray) else array
    needed = len(array) + len(more)
    if len(room) < needed or not room.flags.owndata or not room.flags.writeable:
        room = np.empty((2 * needed, *array.shape[1:]), array.dtype)
        room[: len(array)] = array
    room[len(array) : needed] = more
    return room[:needed]
