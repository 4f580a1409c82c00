"""One SQLite file, opened so that a change is on disk before it is reported, whole or not at all.

Write-ahead log, so that reading goes on while something writes; `synchronous=FULL`, since a change
that was reported must outlive a power cut and one fsync a document is nothing beside embedding it.
Knows how SQLite fails; the tables are rag/schema.py's.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, LifoQueue

from rag import schema

BUSY_SECONDS = 15.0

_FAILURES = {
    sqlite3.SQLITE_FULL: ("disk_full", "The disk is full, so nothing was changed: free some space"),
    sqlite3.SQLITE_IOERR: (
        "disk_failed",
        "The disk did not take or give all bytes, so nothing was changed: it may be full",
    ),
    sqlite3.SQLITE_BUSY: ("busy", "Another program is writing to the documents: try again soon"),
    sqlite3.SQLITE_LOCKED: ("busy", "Another program is writing to the documents: try again soon"),
    sqlite3.SQLITE_READONLY: ("read_only", "The documents' folder cannot be written to"),
    sqlite3.SQLITE_CANTOPEN: ("unreadable", "The documents' file cannot be opened"),
    sqlite3.SQLITE_NOTADB: ("damaged", "The documents' file is not a Glassbox store"),
    sqlite3.SQLITE_CORRUPT: ("damaged", "The documents' file is damaged: restore a copy of it"),
}


class StoreError(RuntimeError):
    """The documents could not be read or changed; what was there is still there.

    `code` is one word for programs, the message is for people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Database:
    """Connections to one file, each used by one thread at a time and kept for the next."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._closed = False
        with self.change() as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                schema.create(db)
            elif version != schema.VERSION and not schema.upgrade(db, version):
                raise StoreError(
                    "other_version",
                    f"{path} was written by another version of Glassbox (format {version}, "
                    f"this one reads {schema.VERSION})",
                )
            db.execute(f"PRAGMA user_version = {schema.VERSION}")

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Everything read inside sees the same moment, whatever is written meanwhile."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Everything written inside is on disk when the block ends, or none of it is."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    def close(self) -> None:
        self._closed = True
        while not self._idle.empty():
            self._idle.get().close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            db = self._connection()
            try:
                db.execute(begin)
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                self._give_back(db)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except UnicodeEncodeError as error:
            raise StoreError("not_text", "The text holds characters that no text has") from error

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError("closed", "The documents were closed")
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._open()

    def _give_back(self, db: sqlite3.Connection) -> None:
        if self._closed:
            db.close()
        else:
            self._idle.put(db)

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _use_write_ahead_log(db)
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA secure_delete = ON")  # a removed document's text is overwritten
        except BaseException:
            db.close()
            raise
        return db

    def _explained(self, error: sqlite3.Error) -> StoreError:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        code, message = _FAILURES.get(primary, ("failed", "The documents could not be used"))
        return StoreError(code, f"{message} ({self._path.name}: {error})")


def _use_write_ahead_log(db: sqlite3.Connection) -> None:
    """Two programs that create the file at once: SQLite does not wait at this one step."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
