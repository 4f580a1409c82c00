"""The vectors of one store in Milvus: a collection for each script, filled from the SQLite file.

SQLite holds a new document's vectors until Milvus has them, and only then lets go of them: so there
is no moment at which a kill leaves a passage without its vector, and adding needs no server. What
Milvus has lost all the same (a file deleted, a server put back to an old copy) is noticed by its
id and made again from the passages' text, not searched without.
"""

import hashlib
import json
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rag.database import Database, StoreError
from rag.milvus_address import MilvusAddress
from rag.milvus_connection import CALL_SECONDS, MilvusConnection
from rag.milvus_index import MilvusIndex
from rag.records import read_vectors
from rag.terms import SCRIPTS, Script

_BATCH = 4096  # vectors handed over between two commits

Progress = Callable[[str, int, int], None]


class VectorsLost(StoreError):
    """Milvus lacks vectors that it was given."""

    def __init__(self, address: MilvusAddress, missing: int) -> None:
        super().__init__(
            "vectors_lost",
            f"{address} has lost the vectors of {missing} passage(s): start Glassbox again, "
            "and it makes them anew from the passages' text",
        )
        self.missing = missing


class MilvusVectors:
    """Connects when it is first asked for an index. Every method may be called by any thread."""

    def __init__(
        self, database: Database, address: MilvusAddress, embedder_identity: str, dimension: int
    ) -> None:
        self.address = address
        self._database, self._dimension = database, dimension
        # The address too, so that one server under two names is never moved onto itself.
        self._family = f"glassbox_{_store_id(database)}_{_short_hash(address.uri)}_"
        embedder = _short_hash(embedder_identity)
        self._names = {script: f"{self._family}{embedder}_{script}" for script in SCRIPTS}
        self._lock = threading.Lock()
        self._connection: MilvusConnection | None = None
        self._indexes: dict[Script, MilvusIndex] = {}

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._indexes = {}

    def open(self, script: Script) -> MilvusIndex:
        """The index of one script, without what belongs to no passage (any more).

        Raises MilvusError. Milvus is listed before SQLite is read: an id comes to Milvus after its
        passage is committed, so what is then not in SQLite is gone, and not just added.
        """
        with self._lock:
            if script not in self._indexes:
                if self._connection is None:
                    self._connection = MilvusConnection(self.address)
                    self._drop_others(self._connection)
                index = MilvusIndex(self._connection, self._names[script], self._dimension)
                orphans = np.setdiff1d(index.ids, self.passages(script))
                if len(orphans):
                    self._retire(int(orphans[-1]))
                    index.remove(orphans)
                self._indexes[script] = index
            return self._indexes[script]

    def fill(
        self, script: Script, ids: NDArray[np.int64], progress: Progress | None = None
    ) -> None:
        """Make the index of `script` hold the vectors of its passages `ids`; SQLite lets them go.

        Raises VectorsLost when neither Milvus nor SQLite has the vector of one that is there.
        """
        index = self.open(script)
        if len(ids) > _BATCH:  # at a start: nearly all are where they belong
            held = self.passages(script, "vector IS NOT NULL")
            ids = np.union1d(np.intersect1d(ids, held), np.setdiff1d(ids, index.ids))
        for at in range(0, len(ids), _BATCH):
            if progress is not None:
                progress(f"Handing vectors over to {self.address}", at, len(ids))
            batch = ids[at : at + _BATCH]
            self.copy(index, batch)
            missing = np.setdiff1d(batch, index.ids)
            if len(missing):  # another process handed them over, or removed them, or they are lost
                index.adopt(missing)
                if len(self._without_vector(np.setdiff1d(missing, index.ids))):
                    raise VectorsLost(self.address, len(self.lost()))
            self.let_go(np.intersect1d(batch, index.ids))

    def fill_all(self, progress: Progress | None = None) -> None:
        """Make both indexes hold all that they should. Raises VectorsLost."""
        for script in SCRIPTS:
            self.fill(script, self.passages(script), progress)

    def copy(self, index: MilvusIndex, ids: NDArray[np.int64]) -> None:
        """Give Milvus those of the vectors of `ids` that SQLite holds and it lacks."""
        found, rows = self.held(np.setdiff1d(ids, index.ids))
        index.add(found, rows)

    def let_go(self, ids: NDArray[np.int64]) -> None:
        """Forget in SQLite the vectors of `ids`, which Milvus has."""
        with self._database.change() as db:
            db.execute(
                "UPDATE passages SET vector = NULL WHERE vector IS NOT NULL"
                " AND id IN (SELECT value FROM json_each(?))",
                (json.dumps(ids.tolist()),),
            )

    def lost(self) -> NDArray[np.int64]:
        """Ids (N,) of the passages whose vector is neither here nor there."""
        missing = [
            np.setdiff1d(self.passages(script, "vector IS NULL"), self.open(script).ids)
            for script in SCRIPTS
        ]
        return np.concatenate(missing)

    def drop(self) -> None:
        """Delete all collections of this store."""
        for script in SCRIPTS:
            self.open(script).drop()
        self.close()

    def _drop_others(self, connection: MilvusConnection) -> None:
        """Collections of this store that another embedder's vectors are in."""
        with connection.explained() as client, connection.writing:
            for name in client.list_collections(timeout=CALL_SECONDS):
                if name.startswith(self._family) and name not in self._names.values():
                    client.drop_collection(name, timeout=CALL_SECONDS)

    def _retire(self, last: int) -> None:
        """Never give an id up to `last` again: the SQLite file may be an older copy, put back.

        Then a newer copy, put back later, would name passages by ids that others had meanwhile.
        """
        with self._database.change() as db:
            db.execute(
                "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'passages'", (last,)
            )

    def passages(self, script: Script, where: str = "1") -> NDArray[np.int64]:
        """Ids (N,) of the passages in one script, rising. `where` is a clause of our own."""
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT id FROM passages WHERE script = ? AND {where} ORDER BY id", (script,)
            ).fetchall()
        return np.array(rows, np.int64).reshape(-1)

    def held(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Ids (N,) and vectors (N, D) of those that SQLite holds."""
        with self._database.read() as db:
            return read_vectors(db, ids.tolist(), self._dimension)

    def _without_vector(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        with self._database.read() as db:
            rows = db.execute(
                "SELECT id FROM passages WHERE vector IS NULL"
                " AND id IN (SELECT value FROM json_each(?))",
                (json.dumps(ids.tolist()),),
            ).fetchall()
        return np.array(rows, np.int64).reshape(-1)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _store_id(database: Database) -> str:
    """A random name of this store, given once, so that two never share a collection."""
    with database.change() as db:
        db.execute("UPDATE state SET store_id = lower(hex(randomblob(8))) WHERE store_id IS NULL")
        return db.execute("SELECT store_id FROM state").fetchone()[0]
