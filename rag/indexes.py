"""The two searchable indexes over a store's passages, kept in step with it.

Both are derived: the store's SQLite file is the truth, another process may have changed it, and
anything here can be rebuilt from it. Does not know how the two kinds of hits are weighed.
"""

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.hits import Hits, best_first
from rag.lexical_index import LexicalIndex
from rag.records import Changes, Position
from rag.store import DocumentStore
from rag.terms import SCRIPTS, Script
from rag.vector_index import VectorIndex
from rag.vectors import Vectors

_BATCH = 4096  # passages read at a time


@dataclass(frozen=True)
class Searchable:
    """Both indexes over the same passages. They change in place when the store does."""

    vectors: dict[Script, Vectors]  # by the passage's script
    words: LexicalIndex

    def count(self, allowed: NDArray[np.int64] | None = None) -> int:
        """How many passages are searched: all, or those of `allowed` (rising) that are there."""
        if allowed is None:
            return sum(len(part) for part in self.vectors.values())
        return sum(int(_among(allowed, part.ids).sum()) for part in self.vectors.values())

    def scripts(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of `ids` (n,) is written in Han characters."""
        return _among(ids, self.vectors["han"].ids)

    def nearest(
        self, vector: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None
    ) -> Hits:
        """The `k` best for `vector` (D,), whatever their script."""
        found = [part.search(vector, k, allowed) for part in self.vectors.values()]
        ids = np.concatenate([hits.ids for hits in found])
        return best_first(ids, np.concatenate([hits.scores for hits in found]), k)

    def cosines(self, vector: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Of `vector` (D,) with each of `ids` (n,), in their order; NaN for one that is gone."""
        return np.fmax(*(part.cosines(vector, ids) for part in self.vectors.values()))

    def get(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors (n, D) of `ids` (n,), in their order; NaN for one that is gone."""
        return np.fmax(*(part.get(ids) for part in self.vectors.values()))


class Indexes:
    """The indexes of one store. Every method may be called by any thread."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._revision: str | None = None
        self._position = Position()
        self._current: Searchable | None = None

    def current(self) -> Searchable:
        """The indexes as the store is now. Only what changed since the last call is read.

        Raises EmbedderChanged when the store was embedded anew by another process meanwhile.
        """
        with self._lock:
            revision = self._store.revision
            if self._current is None:
                self._current = self._opened()
            if revision != self._revision:
                changes = self._store.changes(self._position)
                self._follow(self._current, changes)
                self._position, self._revision = changes.position, changes.revision
            return self._current

    def _opened(self) -> Searchable:
        dimension, elsewhere = self._store.dimension, self._store.elsewhere
        vectors: dict[Script, Vectors]
        if elsewhere is not None:
            vectors = {script: elsewhere.open(script) for script in SCRIPTS}
        else:
            assert dimension is not None  # the store's revision was read: so there is an embedder
            vectors = {script: VectorIndex(dimension) for script in SCRIPTS}
        return Searchable(vectors, LexicalIndex())

    def _follow(self, index: Searchable, changes: Changes) -> None:
        """Passages never change, they come and go.

        One that goes while its text is read is missing from its batch; its removal is among the
        next changes. One that was read in part when reading failed is not read again.
        """
        for script, part in index.vectors.items():
            part.remove(changes.removed)
            if self._store.elsewhere is not None:
                self._store.elsewhere.fill(script, changes.added[script])
                continue
            for batch in _batches(changes.added[script], part.ids):
                part.add(*self._store.vectors(batch.tolist()))
        index.words.remove(changes.removed)
        for batch in _batches(
            np.sort(np.concatenate(list(changes.added.values()))), index.words.ids
        ):
            passages = self._store.passages_by_id(batch.tolist())
            index.words.add({p.id: p.searchable for p in passages})


def _batches(ids: NDArray[np.int64], known: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Those of `ids` that are not known yet, some thousands at a time."""
    new = ids[~_among(ids, known)]
    return [new[at : at + _BATCH] for at in range(0, len(new), _BATCH)]


def _among(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of `ids` (n,) are in `known` (N,), which rises: n binary searches."""
    if len(known) == 0:
        return np.zeros(len(ids), bool)
    return known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids
