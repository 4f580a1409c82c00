"""Writes a store's indexes as files, so that they are mapped at the next start and not made anew.

Which parts are due is decided here; everything is read from the store. It runs in a process of its
own while the store is searched: tokenizing would hold up every other thread for minutes.
"""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.index_files import DamagedPart, IndexFiles, Manifest, Part, with_parts
from rag.lexical_segment import Segment
from rag.records import Position
from rag.store import DocumentStore
from rag.terms import SCRIPTS, tokenize
from rag.vector_rows import save_rows

BATCH = 4096  # passages read at a time
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """When files are written. The defaults are for people; tests use small numbers."""

    flat: int = 100_000  # vectors of each script that are searched exactly, so 200,000 in all
    unsaved: int = 5_000  # passages that are in no file, before files are written
    unsaved_share: float = 0.05  # or this share of those that are, whichever is more
    gone_share: float = 0.2  # passages of a file that are gone, before it is written anew
    segment: int = 250_000  # passages of one segment of words: 3 KB of memory each to build

    def due(self, saved: int, unsaved: int, gone: int, flat: bool = False) -> bool:
        """Whether files of `saved` passages, of which some are `gone`, are to be written anew.

        `flat`: they are vectors without an approximate index.
        """
        too_many = unsaved > max(self.unsaved, self.unsaved_share * saved)
        too_old = gone > max(self.unsaved, self.gone_share * saved)
        return too_many or too_old or (flat and saved + unsaved - gone > self.flat)


@dataclass(frozen=True)
class _Saved:
    part: Part
    ids: NDArray[np.int64]  # rising, gone or not


class Building:
    """One run over a store: every part that is due is written, then all are recorded at once."""

    def __init__(self, store: DocumentStore, limits: Limits) -> None:
        self._store, self._limits = store, limits
        self._files = IndexFiles(store.root)
        self._now = store.changes(Position())  # everything there is

    def run(self) -> bool:
        """False when nothing was due. Raises OSError or StoreError; what was recorded then holds.

        A part that is damaged is written anew.
        """
        old = Manifest.from_json(self._store.index_files())
        kinds: list[str] = ["words", *(SCRIPTS if self._store.elsewhere is None else ())]
        saved = {kind: self._read(old, kind) for kind in kinds}
        due = [kind for kind in kinds if self._is_due(kind, saved[kind])]
        if not due:
            return False
        new = old
        for kind in kinds:
            if kind in due or not saved[kind]:  # with one that is due, those that have no file yet
                write = self._words if kind == "words" else self._vectors
                new = with_parts(new, kind, write(kind, saved[kind]))
        self._store.record_index_files(new.to_json())
        self._files.clean(new)
        return True

    def _read(self, manifest: Manifest, kind: str) -> list[_Saved]:
        found = []
        for part in manifest.of(kind):
            try:
                found.append(_Saved(part, np.load(self._files.verified(part) / "ids.npy")))
            except (OSError, DamagedPart) as error:
                log.warning("a saved index is made anew: %s", error)
        return found

    def _present(self, kind: str) -> NDArray[np.int64]:
        added = self._now.added.items()
        return np.sort(np.concatenate([ids for script, ids in added if kind in ("words", script)]))

    def _missing(self, kind: str, saved: list[_Saved]) -> NDArray[np.int64]:
        none = np.empty(0, np.int64)
        return np.setdiff1d(self._present(kind), np.concatenate([none, *(s.ids for s in saved)]))

    def _is_due(self, kind: str, saved: list[_Saved]) -> bool:
        held = sum(len(s.ids) for s in saved)
        missing = len(self._missing(kind, saved))
        gone = held - (len(self._present(kind)) - missing)
        flat = kind != "words" and not any(s.part.facts["lists"] for s in saved)
        return self._limits.due(held, missing, gone, flat)

    def _words(self, kind: str, saved: list[_Saved]) -> list[Part]:
        """Large segments stay; what is in none goes into new ones, with the small ones' passages.

        A segment stays if more is in it than is written anew so far, or if it is nearly full: so a
        passage is written some times as the collection grows, not every time.
        """
        present, rest, parts = self._present(kind), self._missing(kind, saved), []
        for segment in sorted(saved, key=lambda s: -len(s.ids)):
            alive = np.intersect1d(segment.ids, present)
            whole = len(alive) > (1 - self._limits.gone_share) * len(segment.ids)
            if whole and len(alive) >= min(len(rest), self._limits.segment // 2):
                parts.append(segment.part)
            else:
                rest = np.union1d(rest, alive)
        for at in range(0, len(rest), self._limits.segment):
            tokens = {}
            for batch in batches(rest[at : at + self._limits.segment]):
                for passage in self._store.passages_by_id(batch.tolist()):
                    tokens[passage.id] = tokenize(passage.searchable)
            with self._files.writing(kind, self._now.position) as (folder, _, made):
                Segment.of(tokens).save(folder)
            parts += made
        return parts

    def _vectors(self, kind: str, saved: list[_Saved]) -> list[Part]:
        ids, dimension = self._present(kind), self._store.dimension
        assert dimension is not None  # changes() was read, so there is an embedder

        def rows() -> Iterator[NDArray[np.float32]]:
            for batch in batches(ids):
                found, vectors = self._store.vectors(batch.tolist())
                whole = np.zeros((len(batch), dimension), np.float32)  # (n, D)
                whole[np.searchsorted(batch, found)] = vectors  # others: removed since, so masked
                yield whole

        with self._files.writing(kind, self._now.position) as (folder, facts, made):
            facts |= save_rows(folder, ids, dimension, rows(), self._limits.flat)
        return made


def start_building(store: DocumentStore, limits: Limits) -> subprocess.Popen[bytes]:
    """`Building.run` in a process of its own, which ends with this one."""
    given = [str(store.root), store.embedder_identity, store.dimension, asdict(limits)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "rag.index_building", json.dumps(given)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"},
    )


def batches(ids: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for at in range(0, len(ids), BATCH):
        yield ids[at : at + BATCH]


def _end_with_parent() -> None:
    """Standard input ends when the process that has its other end does."""
    os.read(0, 1)
    os._exit(1)


def main(argument: str) -> None:
    root, identity, dimension, limits = json.loads(argument)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(10)  # answers come first
    store = DocumentStore(Path(root), identity, dimension)
    try:
        Building(store, Limits(**limits)).run()
    finally:
        store.close()


if __name__ == "__main__":
    main(sys.argv[1])
