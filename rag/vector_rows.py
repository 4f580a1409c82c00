"""A matrix of vectors under ids: in memory and growing, or mapped from files that never change.

Searched exactly by faiss, or through an index over the files (rag/approximate_index.py), whose
candidates are then scored with the full vectors. Not locked, and no caller's mistakes are caught:
that is rag/vector_index.py.
"""

from collections.abc import Iterable
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from rag.approximate_index import ApproximateIndex
from rag.hits import Hits, best_first, no_hits

_GATHERED = 4_000  # allowed rows up to which copying them is faster than skipping the others
_GATHERED_OF_MANY = 20_000  # the same where the others are not read at all
_SUMMED = 4_096  # rows added up in single precision: four times faster than in double
_IDS, _ROWS, _LISTS = "ids.npy", "rows.npy", "lists.faiss"


class Rows:
    """Vectors (N, D) under rising ids (N,), some of which may be gone. Not locked."""

    def __init__(
        self,
        ids: NDArray[np.int64],
        vectors: NDArray[np.float32],
        approximate: ApproximateIndex | None = None,
    ) -> None:
        self.ids, self.vectors, self.approximate = ids, vectors, approximate
        self.alive = np.ones(len(ids), bool)
        self.total = np.zeros(vectors.shape[1])  # (D,) of those alive, in double precision
        for at in range(0, len(vectors), _SUMMED):
            self.total += vectors[at : at + _SUMMED].sum(axis=0)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.alive))

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Where each of `ids` (n,) stands, in their order; -1 where it is not."""
        places = np.searchsorted(self.ids, ids)
        places[places == len(self.ids)] = 0
        if len(self.ids) == 0:
            return np.full(len(ids), -1)
        return np.where((self.ids[places] == ids) & self.alive[places], places, -1)

    @classmethod
    def load(cls, folder: Path, lists: int = 0) -> "Rows":
        """Map what `save_rows` wrote; it is for the caller to know that the files are that.

        `lists` is what `save_rows` returned. Raises OSError or ValueError.
        """
        ids = np.load(folder / _IDS)
        if len(ids) == 0:  # nothing cannot be mapped
            return cls(ids, np.load(folder / _ROWS))
        vectors = np.load(folder / _ROWS, mmap_mode="r").view(np.ndarray)  # (N, D)
        if not lists:
            return cls(ids, vectors)
        return cls(ids, vectors, ApproximateIndex.load(folder / _LISTS, lists, *vectors.shape))

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
        """The `k` best, with exact scores; `allowed` are places (n,), None is all."""
        gathered = _GATHERED if self.approximate is None else _GATHERED_OF_MANY
        places = allowed
        if self.approximate is not None and (allowed is None or len(allowed) > gathered):
            share = 1.0 if allowed is None else len(allowed) / len(self.ids)
            places = self.approximate.candidates(query, k, self.bits(allowed), share)
        if places is not None and len(places) <= gathered:
            return best_first(self.ids[places], self.vectors[places] @ query, k)
        return self._exact(query, k, allowed)

    def _exact(self, query: NDArray[np.float32], k: int, allowed: NDArray | None) -> Hits:
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


def save_rows(
    folder: Path,
    ids: NDArray[np.int64],
    dimension: int,
    batches: Iterable[NDArray[np.float32]],
    flat_limit: int,
) -> dict[str, float]:
    """Write vectors that come as `batches` (n, D) in the order of rising `ids` (N,).

    More than `flat_limit` get an approximate index. Returns what was measured of it: the `lists`
    that a search reads and its `recall`, both 0 without one. Raises OSError.
    """
    np.save(folder / _IDS, ids)
    shape = (len(ids), dimension)
    if len(ids) == 0:
        np.save(folder / _ROWS, np.empty(shape, np.float32))
        return {"lists": 0, "recall": 0}
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with (folder / _ROWS).open("wb") as file:  # not mapped: writing to a map ends the process
        np.lib.format.write_array_header_1_0(file, header)  # when the disk is full
        for batch in batches:
            file.write(np.ascontiguousarray(batch, "<f4").data)
    if len(ids) <= flat_limit:
        return {"lists": 0, "recall": 0}
    rows = np.load(folder / _ROWS, mmap_mode="r").view(np.ndarray)  # (N, D)
    approximate, recall = ApproximateIndex.build(rows)
    approximate.save(folder / _LISTS)
    return {"lists": approximate.lists, "recall": recall}


def _extended(array: NDArray, more: NDArray) -> NDArray:
    """`array` with `more` behind it, in the same memory while there is room in what it is of."""
    room = array.base if isinstance(array.base, np.ndarray) else array
    needed = len(array) + len(more)
    if len(room) < needed or not room.flags.owndata or not room.flags.writeable:
        room = np.empty((2 * needed, *array.shape[1:]), array.dtype)
        room[: len(array)] = array
    room[len(array) : needed] = more
    return room[:needed]
