"""Give every passage of a store a vector of another embedder, while the store stays in use.

New vectors are kept beside the old ones, a batch a transaction, and one last transaction puts them
in the place of the old: so it may be stopped or killed and goes on where it was, and until the end
everything else works as before. Does not decide whether to do so; the person is told first.
"""

from collections.abc import Callable

import numpy as np

from rag.embedding import Embedder, EmbeddingStopped
from rag.records import read_passages
from rag.store import DocumentStore, record_change

BATCH = 64  # passages embedded between two commits: a few seconds' work is the most to lose


def reembed(
    store: DocumentStore,
    embedder: Embedder,
    progress: Callable[[str, int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> bool:
    """True when all is done: the store must then be opened with this embedder's identity.

    `store` is best opened without an identity, or with the old one. False when `should_stop` said
    so; what was embedded until then is kept for the next call with the same embedder.
    """
    database = store.database
    with database.change() as db:
        (begun_with,) = db.execute("SELECT next_embedder FROM state").fetchone()
        if begun_with != embedder.identity:
            db.execute("UPDATE passages SET next_vector = NULL")
            db.execute("UPDATE state SET next_embedder = ?", (embedder.identity,))
    while True:
        with database.change() as db:
            total, done = db.execute("SELECT count(*), count(next_vector) FROM passages").fetchone()
            if done == total:
                db.execute("UPDATE passages SET vector = next_vector, next_vector = NULL")
                db.execute(
                    "UPDATE state SET embedder = ?, dimension = ?, next_embedder = NULL,"
                    " index_files = NULL",
                    (embedder.identity, embedder.dimension),
                )
                record_change(db)
                return True
            batch = read_passages(
                db, "WHERE next_vector IS NULL ORDER BY passages.id LIMIT ?", BATCH
            )
        if progress is not None:
            progress("embed", done, total)
        try:
            vectors = embedder.embed_passages([p.searchable for p in batch], None, should_stop)
        except EmbeddingStopped:
            return False
        rows = np.ascontiguousarray(vectors, "<f4")  # (N, D)
        with database.change() as db:
            db.executemany(
                "UPDATE passages SET next_vector = ? WHERE id = ?"
                " AND (SELECT next_embedder FROM state) = ?",
                [
                    (row.tobytes(), passage.id, embedder.identity)
                    for passage, row in zip(batch, rows, strict=True)
                ],
            )
