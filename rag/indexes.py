"""The two searchable indexes over a store's passages, kept in step with it.

Both are derived: the store's SQLite file is the truth, another process may have changed it, and
anything here can be rebuilt from it. Does not know how the two kinds of hits are weighed.
"""

import logging
import threading
from dataclasses import dataclass

from rag.database import StoreError
from rag.lexical_index import LexicalIndex
from rag.records import Contents
from rag.store import DocumentStore
from rag.vector_index import VectorIndex, VectorIndexError

CACHE_NAME = "vectors.faiss"
_BATCH = 4096  # passages read at a time
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Searchable:
    """Both indexes over the same passages. They change in place when the store does."""

    vectors: VectorIndex
    words: LexicalIndex


class Indexes:
    """The indexes of one store. Every method may be called by any thread."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._revision: str | None = None
        self._saved_revision: str | None = None
        self._vectors: VectorIndex | None = None
        self._words = LexicalIndex()

    def current(self) -> Searchable:
        """The indexes as the store is now. Only what changed since the last call is read.

        Raises EmbedderChanged when the store was embedded anew by another process meanwhile.
        """
        with self._lock:
            vectors = self._vectors
            if vectors is None or self._store.revision != self._revision:
                vectors = self._catch_up()
            return Searchable(vectors, self._words)

    def save(self) -> None:
        """Keep the vector index as a file for the next start; a failure is only logged."""
        with self._lock:
            if self._vectors is None or self._revision in (None, self._saved_revision):
                return
            try:
                sha256 = self._vectors.save(self._store.root / CACHE_NAME)
                self._store.record_cache(str(self._revision), sha256)
                self._saved_revision = self._revision
            except (OSError, StoreError) as error:
                log.warning("the vector index was not saved and will be rebuilt: %s", error)

    def _catch_up(self) -> VectorIndex:
        """Bring both indexes to one moment of the store; passages never change, they come and go.

        A passage that another process removes between two reads is missing from its batch; then
        the store has a newer revision, and the loop goes round again.
        """
        while True:
            contents = self._store.contents()
            vectors = self._vectors or self._load(contents)
            vectors.remove(vectors.ids - contents.passage_ids)
            self._words.remove(self._words.ids - contents.passage_ids)
            for batch in _batches(contents.passage_ids - vectors.ids):
                vectors.add(*self._store.vectors(batch))
            for batch in _batches(contents.passage_ids - self._words.ids):
                passages = self._store.passages_by_id(batch)
                self._words.add({p.id: p.searchable for p in passages})
            self._vectors = vectors
            if vectors.ids == self._words.ids == contents.passage_ids:
                self._revision = contents.revision
                return vectors

    def _load(self, contents: Contents) -> VectorIndex:
        """The saved index when it is of this very revision and its bytes are those saved."""
        assert self._store.dimension is not None  # contents() was read, so there is an embedder
        if contents.cached_sha256 is not None:
            try:
                loaded = VectorIndex.load(
                    self._store.root / CACHE_NAME,
                    sha256=contents.cached_sha256,
                    dimension=self._store.dimension,
                    count=len(contents.passage_ids),
                )
                self._saved_revision = contents.revision
                return loaded
            except (OSError, VectorIndexError) as error:
                log.warning("the saved vector index is not used but rebuilt: %s", error)
        return VectorIndex(self._store.dimension)


def _batches(ids: frozenset[int]) -> list[list[int]]:
    ordered = sorted(ids)
    return [ordered[at : at + _BATCH] for at in range(0, len(ordered), _BATCH)]
