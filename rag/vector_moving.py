"""Move the vectors of a store between its SQLite file and Milvus, while nothing is lost.

They are copied first, a batch a transaction, then counted and compared, and one last transaction
says where they are now: so a move that is stopped or killed goes on where it was, and until its end
everything is where it was. Knows nothing of embedders: vectors are moved as they are.
"""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.database import StoreError
from rag.milvus_address import SQLITE, MilvusAddress, parse_store
from rag.milvus_vectors import MilvusVectors, VectorsLost
from rag.store import DocumentStore
from rag.terms import SCRIPTS
from rag.vector_place import check_place, note_place, noted_place

_BATCH = 1000  # vectors copied between two commits
_COMPARED = 200  # vectors that are compared, spread over all of a script's
_TOLERANCE = 1e-6

Progress = Callable[[str, int, int], None]


class MoveFailed(StoreError):
    """The vectors were not moved; they are where they were."""


def move_vectors(
    root: Path,
    to: str,
    token: str | None = None,
    progress: Progress | None = None,
    *,
    abandon: bool = False,
) -> int:
    """Move the vectors of the store in `root` to `sqlite` or `milvus:URI`; how many there are.

    With `abandon` nothing is fetched from where they were, for when that is gone for good: the next
    start makes vectors from the passages' text. Raises StoreError, and they are where they were.
    """
    target = parse_store(to, token)
    with closing(DocumentStore(root)) as store:
        with store.database.read() as db:
            embedder, dimension = db.execute("SELECT embedder, dimension FROM state").fetchone()
            source = parse_store(noted_place(db), token)
        count = len(store.passage_ids())
        if count == 0 or abandon:
            with store.database.change() as db:
                note_place(db, target)
            return 0
        with ExitStack() as opened:

            def milvus(address: MilvusAddress) -> MilvusVectors:
                vectors = MilvusVectors(store.database, address, embedder, dimension)
                return opened.enter_context(closing(vectors))

            before = None if source is None else milvus(source)
            if before is not None and source != target:
                _bring_back(store, before, progress)
            after = before if source == target else None if target is None else milvus(target)
            if source != target:
                if after is not None:
                    _copy(after, progress)
                _switch(store, source, target)
            if after is not None:
                after.fill_all(progress)
            if before is not None and source != target:
                before.drop()
        return count


def _bring_back(store: DocumentStore, vectors: MilvusVectors, progress: Progress | None) -> None:
    """SQLite holds every vector when this returns; Milvus still has what it had."""
    for script in SCRIPTS:
        index = vectors.open(script)
        wanted = vectors.passages(script, "vector IS NULL")
        for at in range(0, len(wanted), _BATCH):
            if progress is not None:
                progress(f"Copying vectors from {vectors.address}", at, len(wanted))
            batch = wanted[at : at + _BATCH]
            rows = index.get(batch)  # (N, D)
            here = np.isfinite(rows).all(axis=1)
            if not here.all():
                raise VectorsLost(vectors.address, int((~here).sum()))
            with store.database.change() as db:
                db.executemany(
                    "UPDATE passages SET vector = ? WHERE id = ? AND vector IS NULL",
                    [
                        (row.astype("<f4").tobytes(), id_)
                        for row, id_ in zip(rows, batch.tolist(), strict=True)
                    ],
                )
        _compare(vectors, index.get, np.intersect1d(index.ids, vectors.passages(script)))


def _copy(vectors: MilvusVectors, progress: Progress | None) -> None:
    """Milvus has every vector that SQLite holds when this returns; SQLite still holds them all."""
    for script in SCRIPTS:
        index = vectors.open(script)
        wanted = vectors.passages(script)
        for at in range(0, len(wanted), _BATCH):
            if progress is not None:
                progress(f"Copying vectors to {vectors.address}", at, len(wanted))
            vectors.copy(index, wanted[at : at + _BATCH])
    vectors.close()  # and ask Milvus itself what it has now
    for script in SCRIPTS:
        index = vectors.open(script)
        missing = len(np.setdiff1d(vectors.passages(script), index.ids))
        if missing:
            raise MoveFailed("incomplete", f"{vectors.address} did not keep {missing} vectors")
        _compare(vectors, index.get, index.ids)


def _compare(
    vectors: MilvusVectors,
    get: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    ids: NDArray[np.int64],
) -> None:
    held, rows = vectors.held(ids[:: max(1, len(ids) // _COMPARED)])
    if not np.allclose(get(held), rows, rtol=0, atol=_TOLERANCE):
        raise MoveFailed(
            "different", f"{vectors.address} holds other vectors than the documents' file"
        )


def _switch(
    store: DocumentStore, source: MilvusAddress | None, target: MilvusAddress | None
) -> None:
    with store.database.change() as db:
        check_place(db, source)
        if db.execute("SELECT 1 FROM passages WHERE vector IS NULL LIMIT 1").fetchone():
            raise MoveFailed(
                "busy", f"Another program moved vectors out of {SQLITE} meanwhile: end it first"
            )
        note_place(db, target)
