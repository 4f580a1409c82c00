"""Vectors that Milvus has lost, or that were left behind there, made again from passages' text.

Does not decide whether to; the person is told first.
"""

import json
from collections.abc import Callable

import numpy as np

from rag.embedding import Embedder, EmbeddingStopped
from rag.records import read_passages
from rag.reembedding import BATCH
from rag.store import DocumentStore


def restore_lost(
    store: DocumentStore,
    embedder: Embedder,
    progress: Callable[[str, int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> int:
    """Embed again the passages that have no vector (any more); how many that were.

    Each batch is committed to SQLite, from where the index is filled: so it may be stopped or
    killed, and goes on where it was.
    """
    lost = (store.without_vector() if store.elsewhere is None else store.elsewhere.lost()).tolist()
    for at in range(0, len(lost), BATCH):
        if progress is not None:
            progress("embed", at, len(lost))
        with store.database.read() as db:
            where = "WHERE passages.id IN (SELECT value FROM json_each(?))"
            batch = read_passages(db, where, json.dumps(lost[at : at + BATCH]))
        try:
            rows = embedder.embed_passages([p.searchable for p in batch], None, should_stop)
        except EmbeddingStopped:
            return at
        with store.database.change() as db:
            db.executemany(
                "UPDATE passages SET vector = ? WHERE id = ?",
                [
                    (row.tobytes(), passage.id)
                    for passage, row in zip(batch, np.ascontiguousarray(rows, "<f4"), strict=True)
                ],
            )
    return len(lost)
