"""Documents, their passages and their vectors: the one truth, changed all or nothing.

What searches them (rag/indexes.py) is derived from here and may be thrown away at any time. The
store neither parses nor embeds nor searches: it is handed finished documents and keeps them.
"""

import json
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.chunking import Passage
from rag.database import Database, StoreError
from rag.documents import Document
from rag.milvus_vectors import MilvusVectors
from rag.records import (
    Changes,
    Position,
    StoredDocument,
    StoredPassage,
    read_changes,
    read_document,
    read_documents,
    read_passages,
    read_vectors,
)
from rag.terms import scripts_of
from rag.vector_place import agreed_place, check_place

FILE_NAME = "documents.sqlite"


class EmbedderChanged(StoreError):
    """The vectors were made by another embedder: searching them with this one finds nothing."""

    def __init__(self, stored: str, wanted: str, passages: int) -> None:
        super().__init__(
            "embedder_changed",
            f"The {passages} stored passages were embedded by {stored}, not by {wanted}: "
            "they must be embedded again, or opened with the embedder that made them",
        )
        self.stored, self.wanted, self.passages = stored, wanted, passages


class AlreadyStored(StoreError):
    """The same content is there already, as `existing`."""

    def __init__(self, existing: StoredDocument) -> None:
        super().__init__("already_stored", f"The same content is there already: {existing.name}")
        self.existing = existing


class DocumentStore:
    """One folder of documents, shared by threads and by processes.

    Without an embedder's identity it can be read and removed from, but not added to or searched.
    Raises EmbedderChanged when its vectors were made by another embedder; `reembed` mends that.
    `vectors_at` is where they are to be, `sqlite` or `milvus:URI`; None is wherever they are.
    """

    def __init__(
        self,
        root: Path,
        embedder_identity: str | None = None,
        dimension: int | None = None,
        vectors_at: str | None = None,
        milvus_token: str | None = None,
    ) -> None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root = root
        self.embedder_identity = embedder_identity
        self.dimension = dimension
        self.elsewhere: MilvusVectors | None = None
        self.database = Database(root / FILE_NAME)
        try:
            if embedder_identity is not None and dimension is not None:
                with self.database.change() as db:
                    self._place = agreed_place(db, vectors_at, milvus_token)
                    self._claim(db)
                if self._place is not None:
                    self.elsewhere = MilvusVectors(
                        self.database, self._place, embedder_identity, dimension
                    )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.database.close()
        if self.elsewhere is not None:
            self.elsewhere.close()

    @property
    def generation(self) -> int:
        """Counts the changes, by whichever process."""
        with self.database.read() as db:
            return db.execute("SELECT generation FROM state").fetchone()[0]

    @property
    def revision(self) -> str:
        """Raises EmbedderChanged when another process embedded everything anew meanwhile."""
        with self.database.read() as db:
            self._check_embedder(db)
            return db.execute("SELECT revision FROM state").fetchone()[0]

    def add(
        self,
        document: Document,
        passages: Sequence[Passage],
        vectors: NDArray[np.float32],
        content_sha256: str,
    ) -> StoredDocument:
        """Commit one document with its passages' `vectors` (N, D).

        A document of the same name is replaced in the same transaction. Raises AlreadyStored when
        the same content is there under any name: two entries would only crowd each other out.
        """
        rows = self._checked(document, passages, vectors)  # (N, D)
        id_ = secrets.token_hex(16)
        with self.database.change() as db:
            self._check_embedder(db)
            existing = read_documents(db, "WHERE sha256 = ?", content_sha256)
            if existing:
                raise AlreadyStored(existing[0])
            db.execute("DELETE FROM documents WHERE name = ?", (document.name,))
            db.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    id_,
                    document.name,
                    document.media_type,
                    content_sha256,
                    document.text,
                    json.dumps([[s.start, s.end, s.page, s.heading] for s in document.sections]),
                    json.dumps(document.warnings),
                    datetime.now(UTC).isoformat(timespec="seconds"),
                ),
            )
            db.executemany(
                "INSERT INTO passages (document, start, end, page, heading, script, text, vector)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (id_, p.start, p.end, p.page, json.dumps(p.heading), script, p.text, row)
                    for p, script, row in zip(
                        passages, scripts_of([p.text for p in passages]), rows, strict=True
                    )
                ),
            )
            record_change(db)
            return read_documents(db, "WHERE documents.id = ?", id_)[0]

    def remove(self, document_id: str) -> bool:
        """Remove a document and all that was made from it; False when it was not there."""
        with self.database.change() as db:
            removed = db.execute("DELETE FROM documents WHERE id = ?", (document_id,)).rowcount
            if removed:
                record_change(db)
            return bool(removed)

    def documents(self) -> list[StoredDocument]:
        """All documents, in the order they were added."""
        with self.database.read() as db:
            return read_documents(db)

    def find(self, *, name: str | None = None, sha256: str | None = None) -> StoredDocument | None:
        with self.database.read() as db:
            found = read_documents(db, "WHERE name = ? OR sha256 = ?", name, sha256)
        return found[0] if found else None

    def document(self, document_id: str) -> Document:
        """The document as it was read. Raises KeyError when it is not there (any more)."""
        with self.database.read() as db:
            return read_document(db, document_id)

    def passages(self, document_id: str) -> list[StoredPassage]:
        """A document's passages in reading order; none when it is not there."""
        with self.database.read() as db:
            return read_passages(db, "WHERE document = ? ORDER BY start, passages.id", document_id)

    def passages_by_id(self, ids: Iterable[int]) -> list[StoredPassage]:
        """Those of `ids` that are there, by rising id."""
        with self.database.read() as db:
            where = "WHERE passages.id IN (SELECT value FROM json_each(?)) ORDER BY passages.id"
            return read_passages(db, where, json.dumps([int(id_) for id_ in ids]))

    def passage_ids(self, document_ids: Iterable[str] | None = None) -> NDArray[np.int64]:
        """Ids (N,) of the passages of these documents, or of all, rising."""
        where, values = "", tuple[str, ...]()
        if document_ids is not None:
            where = "WHERE document IN (SELECT value FROM json_each(?))"
            values = (json.dumps(list(document_ids)),)
        with self.database.read() as db:
            rows = db.execute(f"SELECT id FROM passages {where} ORDER BY id", values).fetchall()
        return np.array(rows, np.int64).reshape(-1)

    def changes(self, since: Position) -> Changes:
        """What came and went since then; reads no more than that."""
        with self.database.read() as db:
            self._check_embedder(db)
            return read_changes(db, since)

    def vectors(self, ids: Iterable[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Ids (N,) and vectors (N, D) of those of `ids` that are there and not in Milvus."""
        with self.database.read() as db:
            self._check_embedder(db)
            return read_vectors(db, ids, self.dimension or 0)

    def without_vector(self) -> NDArray[np.int64]:
        """Ids (N,) of the passages whose vector is not in this file, rising."""
        with self.database.read() as db:
            rows = db.execute("SELECT id FROM passages WHERE vector IS NULL ORDER BY id").fetchall()
        return np.array(rows, np.int64).reshape(-1)

    def index_files(self) -> str | None:
        """What `record_index_files` noted last, in this very file or in the one it is a copy of."""
        with self.database.read() as db:
            return db.execute("SELECT index_files FROM state").fetchone()[0]

    def record_index_files(self, manifest: str) -> None:
        """Note which files hold saved indexes; at once and whole, as all changes are."""
        with self.database.change() as db:
            self._check_embedder(db)
            db.execute("UPDATE state SET index_files = ?", (manifest,))

    def _claim(self, db: sqlite3.Connection) -> None:
        """Take an empty store for this embedder; one with passages must be its already."""
        if db.execute("SELECT 1 FROM passages LIMIT 1").fetchone() is None:
            db.execute(
                "UPDATE state SET embedder = ?, dimension = ?, next_embedder = NULL",
                (self.embedder_identity, self.dimension),
            )
        self._check_embedder(db)

    def _check_embedder(self, db: sqlite3.Connection) -> None:
        if self.embedder_identity is None or self.dimension is None:
            raise StoreError("no_embedder", "The documents were opened without an embedder")
        stored = db.execute("SELECT embedder, dimension FROM state").fetchone()
        if stored != (self.embedder_identity, self.dimension):
            (count,) = db.execute("SELECT count(*) FROM passages").fetchone()
            raise EmbedderChanged(str(stored[0]), self.embedder_identity, count)
        check_place(db, self._place)

    def _checked(
        self, document: Document, passages: Sequence[Passage], vectors: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        rows = np.ascontiguousarray(vectors, "<f4")
        if not passages:
            raise ValueError("a document needs at least one passage")
        if rows.shape != (len(passages), self.dimension):
            raise ValueError(f"vectors {rows.shape}, not ({len(passages)}, {self.dimension})")
        if not np.isfinite(rows).all():
            raise ValueError("vectors hold NaN or infinity")
        if any(p.text != document.text[p.start : p.end] for p in passages):
            raise ValueError("a passage's text is not the document's text at its place")
        return rows


def record_change(db: sqlite3.Connection) -> None:
    """Inside a change: tell every process that its indexes are out of date."""
    db.execute("UPDATE state SET generation = generation + 1, revision = lower(hex(randomblob(8)))")
