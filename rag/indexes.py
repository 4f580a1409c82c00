"""The two searchable indexes over a store's passages, kept in step with it.

Both are derived: the store's SQLite file is the truth, another process may have changed it, and
anything here can be rebuilt from it. Does not know how the two kinds of hits are weighed.
"""

import logging
import threading
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag.database import StoreError
from rag.lexical_index import LexicalIndex
from rag.records import Contents, StoredPassage
from rag.store import DocumentStore
from rag.terms import Script, script_of
from rag.vector_index import VectorIndex, VectorIndexError

CACHE_NAME = "vectors.faiss"
_BATCH = 4096  # passages read at a time
log = logging.getLogger(__name__)


class InScript(NamedTuple):
    """What the vectors of all passages in one script have in common."""

    mean: NDArray[np.float32]  # (D,)
    passages: int


@dataclass(frozen=True)
class Searchable:
    """Both indexes over the same passages. They change in place when the store does."""

    vectors: VectorIndex
    words: LexicalIndex
    han: frozenset[int]  # passages in Chinese or Japanese
    means: dict[Script, InScript]

    def script(self, passage_id: int) -> Script:
        return "han" if passage_id in self.han else "other"

    def by_script(self, allowed: Set[int] | None) -> list[Set[int] | None]:
        """`allowed` (None: all) parted by script, or as it is when there is only one."""
        if not self.han:
            return [allowed]
        ids = self.vectors.ids if allowed is None else allowed
        return [part for part in (ids & self.han, ids - self.han) if part]


class Indexes:
    """The indexes of one store. Every method may be called by any thread."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._revision: str | None = None
        self._saved_revision: str | None = None
        self._current: Searchable | None = None

    def current(self) -> Searchable:
        """The indexes as the store is now. Only what changed since the last call is read.

        Raises EmbedderChanged when the store was embedded anew by another process meanwhile.
        """
        with self._lock:
            first = self._current is None
            if self._current is None or self._store.revision != self._revision:
                self._current = self._catch_up()
            if first:
                self._save(self._current.vectors)
            return self._current

    def _save(self, vectors: VectorIndex) -> None:
        """Keep the vector index as a file for the next start; a failure is only logged.

        Once a start, if what was there was out of date: later changes cost the next start the
        rebuilding, which takes 40 ms of 10,000 passages, and save each change a large file.
        """
        if self._revision == self._saved_revision or not len(vectors):
            return
        try:
            sha256 = vectors.save(self._store.root / CACHE_NAME)
            self._store.record_cache(str(self._revision), sha256)
        except (OSError, StoreError) as error:
            log.warning("the vector index was not saved and will be rebuilt: %s", error)

    def _catch_up(self) -> Searchable:
        """Bring both indexes to one moment of the store; passages never change, they come and go.

        A passage that another process removes between two reads is missing from its batch; then
        the store has a newer revision, and the loop goes round again.
        """
        while True:
            contents = self._store.contents()
            old = self._current
            vectors = old.vectors if old else self._load(contents)
            words = old.words if old else LexicalIndex()
            han = set(old.han & contents.passage_ids) if old else set()
            vectors.remove(vectors.ids - contents.passage_ids)
            words.remove(words.ids - contents.passage_ids)
            for batch in _batches(contents.passage_ids - vectors.ids):
                vectors.add(*self._store.vectors(batch))
            for batch in _batches(contents.passage_ids - words.ids):
                passages = self._store.passages_by_id(batch)
                words.add({p.id: p.searchable for p in passages})
                han |= _in_han(passages)
            means: dict[Script, InScript] = {
                "han": InScript(vectors.mean(han), len(han)),
                "other": InScript(vectors.mean(vectors.ids - han), len(vectors.ids - han)),
            }
            self._current = Searchable(vectors, words, frozenset(han), means)
            if vectors.ids == words.ids == contents.passage_ids:
                self._revision = contents.revision
                return self._current

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


def _in_han(passages: Iterable[StoredPassage]) -> set[int]:
    """Passages in Han script, or of a document that is: its tables and references count as such.

    They stand under its headings, and their vectors lie near those of its other passages.
    """
    documents: dict[str, list[StoredPassage]] = {}
    for passage in passages:
        documents.setdefault(passage.document_id, []).append(passage)
    found = set()
    for parts in documents.values():
        all_of_it = script_of("\n".join(p.text for p in parts)) == "han"
        found |= {p.id for p in parts if all_of_it or script_of(p.text) == "han"}
    return found


def _batches(ids: frozenset[int]) -> list[list[int]]:
    ordered = sorted(ids)
    return [ordered[at : at + _BATCH] for at in range(0, len(ordered), _BATCH)]
