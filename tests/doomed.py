"""A process that dies, as by `kill -9`, at a named moment of a change to a store.

The moments are found from outside, by what is asked of SQLite and of the file system, so that the
product has no hooks for them. Run by tests/test_named_kills.py.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

from rag import index_building
from rag.approximate_index import ApproximateIndex
from rag.index_building import Building, Limits
from rag.index_files import IndexFiles
from rag.ingest import ingest
from rag.reembedding import reembed
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder

STATEMENTS = {
    "before the first row": "INSERT INTO documents",
    "between document and passages": "INSERT INTO passages",
    "before the change is counted": "UPDATE state SET generation",
    "before the commit": "COMMIT",
    "in the middle of a removal": "DELETE FROM documents",
    "before new vectors replace the old": "UPDATE passages SET vector = next_vector",
    "while new vectors are kept": "UPDATE passages SET next_vector = x",
    "before the saved index is recorded": "UPDATE state SET index_files",
}
CALLS = {
    "before a file gets its name": (os, "replace", False),
    "after a file got its name": (os, "replace", True),
    "before a file is on disk": (os, "fsync", False),
    "between two saved parts": (index_building, "save_rows", False),
    "before the approximate index is written": (ApproximateIndex, "save", False),
    "when old files may go": (IndexFiles, "clean", False),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def watch_statements(doomed: Callable[[str], bool]) -> None:
    """Die at the start of the first statement inside a change for which `doomed` is true."""
    connect = sqlite3.connect

    def watched(*args: object, **options: object) -> sqlite3.Connection:
        connection = connect(*args, **options)  # type: ignore[call-overload]
        changing = False

        def trace(statement: str) -> None:
            nonlocal changing
            if statement.startswith("BEGIN"):
                changing = statement == "BEGIN IMMEDIATE"
            if changing and doomed(" ".join(statement.split())):
                die()

        connection.set_trace_callback(trace)
        return connection

    sqlite3.connect = watched  # type: ignore[assignment]


def watch_call(module: object, name: str, after: bool) -> None:
    real = getattr(module, name)

    def doomed(*args: object, **options: object) -> object:
        if after:
            real(*args, **options)
        die()

    setattr(module, name, doomed)


def main(action: str, data: Path, file: Path, moment: str) -> None:
    begun = False
    watch_statements(lambda text: begun and text.startswith(STATEMENTS.get(moment, "never")))
    embedder = FakeEmbedder()
    store = DocumentStore(data, embedder.identity, embedder.dimension)
    begun = True
    if moment in CALLS:
        watch_call(*CALLS[moment])
    match action:
        case "add":
            ingest(store, embedder, file)  # type: ignore[arg-type]
        case "remove":
            store.remove(store.documents()[0].id)
        case "index":
            Building(store, Limits(flat=1, unsaved=0, unsaved_share=0.0)).run()
        case "embed again":
            reembed(store, FakeEmbedder(identity="other"))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
