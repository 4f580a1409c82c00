"""The tables of the documents' file, and how a file of an earlier format becomes one of this.

Knows what the tables hold; does not open anything: it is handed a transaction that is begun.
"""

import sqlite3

from rag.terms import scripts_of

VERSION = 2

# AUTOINCREMENT: a passage's id is never given again, so an index that is out of date can only
# name passages that are gone, never another passage's text. `revision` is random: unlike a
# counter it differs too when an older copy of the file was put back and went another way.
_STATE = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL,
    revision TEXT NOT NULL,
    embedder TEXT, dimension INTEGER,
    next_embedder TEXT,
    index_files TEXT,
    store_id TEXT, vectors_at TEXT
);
INSERT INTO state (one, generation, revision) VALUES (1, 0, lower(hex(randomblob(8))));
CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    media_type TEXT NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    sections TEXT NOT NULL,
    warnings TEXT NOT NULL,
    added_at TEXT NOT NULL
);
"""
# `vector` is NULL once Milvus has it (at `vectors_at`, in collections named after `store_id`).
# `removals` notes every passage that is gone, in the order of going, so that an index learns of
# them without reading the ids of all that are there.
_PASSAGES = """
CREATE TABLE passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    start INTEGER NOT NULL, end INTEGER NOT NULL,
    page INTEGER, heading TEXT NOT NULL,
    script TEXT NOT NULL CHECK (script IN ('han', 'other')),
    text TEXT NOT NULL,
    vector BLOB, next_vector BLOB
);
CREATE INDEX passages_of_document ON passages (document);
CREATE TABLE removals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    passage INTEGER NOT NULL
);
CREATE TRIGGER passage_removed AFTER DELETE ON passages BEGIN
    INSERT INTO removals (passage) VALUES (OLD.id);
END
"""


def create(db: sqlite3.Connection) -> None:
    _run(db, _STATE + _PASSAGES)


def upgrade(db: sqlite3.Connection, version: int) -> bool:
    """Bring a file of an earlier format to this one; False when that format is not known."""
    if version != 1:
        return False
    _run(
        db,
        """
        ALTER TABLE state ADD COLUMN index_files TEXT;
        ALTER TABLE state ADD COLUMN store_id TEXT;
        ALTER TABLE state ADD COLUMN vectors_at TEXT;
        ALTER TABLE state DROP COLUMN cached_revision;
        ALTER TABLE state DROP COLUMN cached_sha256;
        DROP INDEX passages_of_document;
        ALTER TABLE passages RENAME TO passages_1
        """,
    )
    _run(db, _PASSAGES)
    db.execute(
        "INSERT INTO passages SELECT id, document, start, end, page, heading, 'other',"
        " text, vector, next_vector FROM passages_1 ORDER BY id"
    )
    for (document,) in db.execute("SELECT id FROM documents").fetchall():
        rows = db.execute("SELECT id, text FROM passages WHERE document = ?", (document,))
        ids, texts = zip(*rows.fetchall(), strict=True)
        db.executemany(
            "UPDATE passages SET script = ? WHERE id = ?",
            zip(scripts_of(texts), ids, strict=True),
        )
    last = "(SELECT seq FROM sqlite_sequence WHERE name = 'passages_1')"  # of all ever given
    db.execute("DELETE FROM sqlite_sequence WHERE name = 'passages'")
    db.execute(f"INSERT INTO sqlite_sequence SELECT 'passages', {last} WHERE {last} IS NOT NULL")
    db.execute("DROP TABLE passages_1")
    return True


def _run(db: sqlite3.Connection, statements: str) -> None:
    """One by one: `executescript` would commit what was begun."""
    statement = ""
    for part in statements.split(";"):
        statement += part
        if sqlite3.complete_statement(statement + ";"):
            db.execute(statement)
            statement = ""
        else:
            statement += ";"  # inside a trigger
