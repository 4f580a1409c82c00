"""The two searchable indexes over a store's passages, kept in step with it.

Both are derived: the store's SQLite file is the truth, another process may have changed it, and
anything here can be rebuilt from it. Does not know how the two kinds of hits are weighed.
"""

import logging
import sys
import threading
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag.database import StoreError
from rag.hits import Hits, best_first
from rag.index_building import Building, Limits, batches, start_building
from rag.index_files import IndexFiles, Manifest
from rag.lexical_index import LexicalIndex
from rag.lexical_segment import Segment
from rag.records import Position
from rag.store import DocumentStore
from rag.terms import SCRIPTS, Script
from rag.vector_index import VectorIndex
from rag.vector_rows import Rows
from rag.vectors import Vectors

log = logging.getLogger(__name__)


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

    def is_due(self, limits: Limits) -> bool:
        """Whether so much has changed since the files were written that new ones are due."""
        words = self.words
        due = limits.due(len(words) - words.unsaved + words.gone, words.unsaved, words.gone)
        for part in self.vectors.values():
            if isinstance(part, VectorIndex):
                saved = len(part) - part.unsaved + part.gone
                due |= limits.due(saved, part.unsaved, part.gone, not part.is_approximate)
        return due

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
    """The indexes of one store. Every method may be called by any thread.

    What is saved is mapped from files (rag/index_files.py) and what came since is held in memory.
    When that has become much, new files are written by another process, and these indexes serve
    until then.
    """

    def __init__(self, store: DocumentStore, limits: Limits | None = None) -> None:
        self._store = store
        self._limits = Limits() if limits is None else limits
        self._lock = threading.Lock()
        self._state: _State | None = None
        self._builder: threading.Thread | None = None
        self._failed = False

    def current(self) -> Searchable:
        """The indexes as the store is now. Only what changed since the last call is read.

        Raises EmbedderChanged when the store was embedded anew by another process meanwhile.
        """
        with self._lock:
            revision = self._store.revision
            if self._state is None:
                self._state = self._opened()
            if revision != self._state.revision:
                self._follow(self._state)
                self._build_if_due(self._state)
            return self._state.index

    def wait(self) -> None:
        """Until files that are being written are in use; returns at once when none are."""
        builder = self._builder
        if builder is not None:
            builder.join()

    def _opened(self) -> "_State":
        """What is saved. Much that is not is saved first: all of it must be read anyway."""
        state = self._load()
        ahead = self._store.changes(state.position)
        if sum(map(len, ahead.added.values())) > max(
            self._limits.unsaved, self._limits.unsaved_share * state.index.count()
        ):
            try:
                Building(self._store, replace(self._limits, flat=sys.maxsize)).run()
                state = self._load()
            except (OSError, StoreError) as error:
                self._failed = True
                log.warning("the indexes were not saved and will be made anew: %s", error)
        return state

    def _load(self) -> "_State":
        dimension, elsewhere = self._store.dimension, self._store.elsewhere
        assert dimension is not None  # the store's revision was read: so there is an embedder
        files = IndexFiles(self._store.root)
        manifest = Manifest.from_json(self._store.index_files())
        files.clean(manifest)
        kinds = ["words", *(SCRIPTS if elsewhere is None else ())]
        try:
            segments = [Segment.load(files.verified(part)) for part in manifest.of("words")]
            rows = {
                part.kind: Rows.load(files.verified(part), int(part.facts["lists"]))
                for part in manifest.of(*kinds[1:])
            }
        except (OSError, ValueError) as error:
            log.warning("the saved indexes are not used but made anew: %s", error)
            manifest, segments, rows = Manifest(), [], {}
        vectors: dict[Script, Vectors]
        if elsewhere is not None:
            elsewhere.fill_all()  # also what came before the saved words and never got there
            vectors = {script: elsewhere.open(script) for script in SCRIPTS}
        else:
            vectors = {script: VectorIndex(dimension, rows.get(script)) for script in SCRIPTS}
        index = Searchable(vectors, LexicalIndex(segments))
        return _State(index, manifest.position(*kinds))

    def _follow(self, state: "_State") -> None:
        """Passages never change, they come and go.

        One that goes while its text is read is missing from its batch; its removal is among the
        next changes. After a failure all is asked for again, and what is there already skipped.
        """
        changes, index = self._store.changes(state.position), state.index
        for script, part in index.vectors.items():
            part.remove(changes.removed)
            if self._store.elsewhere is not None:
                self._store.elsewhere.fill(script, changes.added[script])
                continue
            for batch in batches(_missing(changes.added[script], part.ids)):
                part.add(*self._store.vectors(batch.tolist()))
        index.words.remove(changes.removed)
        added = np.sort(np.concatenate(list(changes.added.values())))
        for batch in batches(index.words.missing(added)):
            passages = self._store.passages_by_id(batch.tolist())
            index.words.add({p.id: p.searchable for p in passages})
        state.position, state.revision = changes.position, changes.revision

    def _build_if_due(self, state: "_State") -> None:
        idle = self._builder is None or not self._builder.is_alive()
        if not self._failed and idle and state.index.is_due(self._limits):
            self._builder = threading.Thread(target=self._build, daemon=True)
            self._builder.start()

    def _build(self) -> None:
        """Have files written, map them, catch up with the store, and only then put them to use."""
        try:
            with start_building(self._store, self._limits) as child:
                if child.wait() != 0:
                    raise OSError(f"its process ended with {child.returncode}")
            state = self._load()
            self._follow(state)
            with self._lock:
                self._follow(state)
                self._state = state
        except (OSError, StoreError) as error:
            self._failed = True
            log.warning("the indexes were not saved; what is in memory serves on: %s", error)


@dataclass
class _State:
    """Indexes and the moment of the store that they have followed; no revision: none yet."""

    index: Searchable
    position: Position
    revision: str | None = None


def _missing(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    return ids[~_among(ids, known)]


def _among(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of `ids` (n,) are in `known` (N,), which rises: n binary searches."""
    if len(known) == 0:
        return np.zeros(len(ids), bool)
    return known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids
