"""Exact search over unit vectors by inner product. The only module that imports faiss.

Flat on purpose: exact, deletions included, and fast enough to some 200,000 passages. It does not
know what a passage is, and a saved file is a cache: the store's SQLite file is the truth.
"""

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag.hits import Hits, best_first, no_hits


class VectorIndexError(ValueError):
    """Vectors, ids or an index file that cannot be used; the message says what is wrong."""


class VectorIndex:
    """Vectors of one dimension under ids of the caller's. Every method may be called by any thread.

    One lock: a search takes the core to itself for milliseconds, so there is nothing to win by
    letting two run side by side, and faiss forbids searching while another thread adds.
    """

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise VectorIndexError(f"dimension must be at least 1, not {dimension}")
        self.dimension = dimension
        self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
        self._ids: set[int] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> frozenset[int]:
        with self._lock:
            return frozenset(self._ids)

    def add(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        """Add `vectors` (N, D) under `ids` (N,). All or none; an id that is there is refused."""
        new_ids = np.asarray(ids, np.int64).reshape(-1)
        rows = self._checked(vectors)  # (N, D)
        if len(new_ids) != len(rows):
            raise VectorIndexError(f"{len(new_ids)} ids for {len(rows)} vectors")
        if len(new_ids) == 0:
            return
        if new_ids.min() < 0:
            raise VectorIndexError("ids must not be negative: faiss uses -1 for 'nothing found'")
        unique = set(new_ids.tolist())
        with self._lock:
            if len(unique) < len(new_ids) or unique & self._ids:
                raise VectorIndexError("an id may be added once; remove it before adding it again")
            self._index.add_with_ids(rows, new_ids)
            self._ids |= unique

    def remove(self, ids: Iterable[int]) -> int:
        """Remove the ids that are there, leave the others' ids as they are; returns how many."""
        with self._lock:
            present = self._ids.intersection(ids)
            if present:
                self._index.remove_ids(_selector(present))
                self._ids -= present
            return len(present)

    def search(self, query: ArrayLike, k: int, allowed: Iterable[int] | None = None) -> Hits:
        """The `k` best of the index, or of `allowed`, for `query` (D,); fewer when it has fewer."""
        row = self._checked(np.asarray(query)[None, :])  # (1, D)
        with self._lock:
            permitted = None if allowed is None else self._ids.intersection(allowed)
            k = min(k, len(self._ids) if permitted is None else len(permitted))
            if k < 1:
                return no_hits()
            params = None
            if permitted is not None:
                params = faiss.SearchParameters()
                params.sel = _selector(permitted)
            scores, ids = self._index.search(row, k, params=params)  # (1, k) each
        return best_first(ids[0], scores[0])

    def mean(self, ids: Iterable[int]) -> NDArray[np.float32]:
        """The mean (D,) of the vectors of those of `ids` that are there; zeros for none."""
        with self._lock:
            present = self._ids.intersection(ids)
            if not present:
                return np.zeros(self.dimension, np.float32)
            rows = self._index.reconstruct_batch(np.fromiter(present, np.int64, len(present)))
        return rows.mean(axis=0)  # (N, D) -> (D,)

    def save(self, path: Path) -> str:
        """Write atomically; returns the SHA-256 that `load` must be given. Raises OSError."""
        with self._lock:
            data = faiss.serialize_index(self._index).tobytes()
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return hashlib.sha256(data).hexdigest()

    @classmethod
    def load(cls, path: Path, *, sha256: str, dimension: int, count: int) -> "VectorIndex":
        """Read what `save` wrote. Raises VectorIndexError unless it is the very same bytes.

        faiss trusts the sizes written in a file, so a foreign one can corrupt memory: the bytes
        are hashed first and those same bytes, not the file again, are handed to faiss.
        """
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            raise VectorIndexError(f"{path.name} is not the file that was saved (SHA-256 differs)")
        raw = faiss.deserialize_index(np.frombuffer(data, np.uint8))
        if not isinstance(raw, faiss.IndexIDMap2) or raw.d != dimension or raw.ntotal != count:
            raise VectorIndexError(
                f"{path.name} holds {raw.ntotal} vectors of dimension {raw.d}, "
                f"not {count} of {dimension}"
            )
        index = cls(dimension)
        index._index = raw
        index._ids = set(faiss.vector_to_array(raw.id_map).tolist())
        return index

    def _checked(self, vectors: ArrayLike) -> NDArray[np.float32]:
        rows = np.ascontiguousarray(vectors, np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise VectorIndexError(f"vectors of shape {rows.shape}, not (N, {self.dimension})")
        if not np.isfinite(rows).all():
            raise VectorIndexError("vectors hold NaN or infinity")
        return rows


def _selector(ids: set[int]) -> faiss.IDSelectorBatch:
    return faiss.IDSelectorBatch(np.fromiter(ids, np.int64, len(ids)))
