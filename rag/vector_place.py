"""Where a store keeps its vectors: noted in its SQLite file, and agreed on when it is opened.

Works inside a transaction it is handed. What is noted never holds a secret.
"""

import sqlite3

from rag.database import StoreError
from rag.milvus_address import SQLITE, MilvusAddress, parse_store


class VectorsElsewhere(StoreError):
    """The vectors are not where they were looked for."""


def noted_place(db: sqlite3.Connection) -> str:
    """`sqlite`, or `milvus:` and a URI."""
    return db.execute("SELECT vectors_at FROM state").fetchone()[0] or SQLITE


def note_place(db: sqlite3.Connection, address: MilvusAddress | None) -> None:
    db.execute("UPDATE state SET vectors_at = ?", (None if address is None else str(address),))


def agreed_place(
    db: sqlite3.Connection, asked: str | None, token: str | None
) -> MilvusAddress | None:
    """Where the vectors are (None: in the SQLite file); an empty store goes where it is asked to.

    `asked` is None for wherever they are. Raises StoreError for a place that cannot be read, and
    VectorsElsewhere when there are vectors in another one.
    """
    noted = noted_place(db)
    address = parse_store(noted if asked is None else asked, token)
    wanted = SQLITE if address is None else str(address)
    if wanted != noted:
        if db.execute("SELECT 1 FROM passages LIMIT 1").fetchone() is not None:
            raise VectorsElsewhere(
                "other_place",
                f"The vectors are kept in {noted}; to move them: glassbox move-vectors {wanted}",
            )
        note_place(db, address)
    return address


def check_place(db: sqlite3.Connection, address: MilvusAddress | None) -> None:
    """Raises VectorsElsewhere when another process moved the vectors meanwhile."""
    noted = noted_place(db)
    if noted != (SQLITE if address is None else str(address)):
        raise VectorsElsewhere(
            "moved", f"The vectors were moved to {noted} meanwhile: start Glassbox again"
        )
