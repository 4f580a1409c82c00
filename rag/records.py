"""The rows of the documents' file as typed records, and the queries that read them.

Reads through a connection it is handed; never writes and never opens anything.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.documents import Document, Section
from rag.terms import SCRIPTS, Script


@dataclass(frozen=True)
class StoredDocument:
    id: str
    name: str
    media_type: str
    sha256: str
    characters: int
    passages: int
    added_at: str  # ISO 8601, UTC
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class StoredPassage:
    """`text` is the document's text from `start` to `end`, in characters."""

    id: int
    document_id: str
    document: str
    page: int | None
    heading: tuple[str, ...]
    start: int
    end: int
    text: str

    @property
    def searchable(self) -> str:
        return searchable_text(self.heading, self.text)


@dataclass(frozen=True)
class Position:
    """A moment of the store, as far as an index has followed it."""

    last_passage: int = 0  # the highest id seen
    last_removal: int = 0  # how many removals were seen


@dataclass(frozen=True, eq=False)
class Changes:
    """What came and went since a position. `revision` is another after every change."""

    revision: str
    position: Position  # the one after these changes
    added: dict[Script, NDArray[np.int64]]  # ids, rising
    removed: NDArray[np.int64]  # also such as came and went since


def searchable_text(heading: tuple[str, ...], text: str) -> str:
    """What is embedded and indexed for a passage: its text, under those of its headings that are
    not in it. A passage from the middle of a section says only there what it is about."""
    return "\n".join([*(title for title in heading if title not in text), text])


def read_documents(
    db: sqlite3.Connection, where: str = "", *values: object
) -> list[StoredDocument]:
    """In the order they were added. `where` is a clause of our own, `values` its arguments."""
    rows = db.execute(
        "SELECT id, name, media_type, sha256, length(text),"
        " (SELECT count(*) FROM passages WHERE document = documents.id), added_at, warnings"
        f" FROM documents {where} ORDER BY rowid",
        values,
    )
    return [
        StoredDocument(
            id=id_,
            name=name,
            media_type=media_type,
            sha256=sha256,
            characters=characters,
            passages=passages,
            added_at=added_at,
            warnings=tuple(json.loads(warnings)),
        )
        for id_, name, media_type, sha256, characters, passages, added_at, warnings in rows
    ]


def read_document(db: sqlite3.Connection, document_id: str) -> Document:
    """Raises KeyError when it is not there."""
    row = db.execute(
        "SELECT name, media_type, text, sections, warnings FROM documents WHERE id = ?",
        (document_id,),
    ).fetchone()
    if row is None:
        raise KeyError(document_id)
    name, media_type, text, sections, warnings = row
    spans = tuple(Section(s, e, page, tuple(h)) for s, e, page, h in json.loads(sections))
    return Document(name, media_type, text, spans, tuple(json.loads(warnings)))


def read_passages(db: sqlite3.Connection, where: str, *values: object) -> list[StoredPassage]:
    rows = db.execute(
        "SELECT passages.id, document, documents.name, page, heading, start, end, passages.text"
        f" FROM passages JOIN documents ON documents.id = document {where}",
        values,
    )
    return [
        StoredPassage(id_, document_id, name, page, tuple(json.loads(heading)), start, end, text)
        for id_, document_id, name, page, heading, start, end, text in rows
    ]


def read_changes(db: sqlite3.Connection, since: Position) -> Changes:
    """Reads only what changed, however much there is."""
    (revision,) = db.execute("SELECT revision FROM state").fetchone()
    rows = db.execute(
        "SELECT id, script FROM passages WHERE id > ? ORDER BY id", (since.last_passage,)
    ).fetchall()
    gone = db.execute(
        "SELECT number, passage FROM removals WHERE number > ?", (since.last_removal,)
    ).fetchall()
    position = Position(
        max([since.last_passage, *(id_ for id_, _ in rows[-1:])]),
        max([since.last_removal, *(number for number, _ in gone)]),
    )
    added: dict[Script, NDArray[np.int64]] = {
        script: np.array([id_ for id_, written in rows if written == script], np.int64)
        for script in SCRIPTS
    }
    return Changes(revision, position, added, np.array([id_ for _, id_ in gone], np.int64))


def read_vectors(
    db: sqlite3.Connection, ids: Iterable[int], dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Ids (N,) and vectors (N, D) of those of `ids` that are there and whose vector is too."""
    rows = db.execute(
        "SELECT id, vector FROM passages WHERE vector IS NOT NULL"
        " AND id IN (SELECT value FROM json_each(?))",
        (json.dumps([int(id_) for id_ in ids]),),
    ).fetchall()
    found = np.array([id_ for id_, _ in rows], np.int64)  # (N,)
    joined = np.frombuffer(b"".join(vector for _, vector in rows), "<f4")
    return found, joined.reshape(len(rows), dimension)  # (N, D)
