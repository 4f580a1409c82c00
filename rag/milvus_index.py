"""Vectors in Milvus behind the same interface as those on this machine: one collection, one index.

In a file of Milvus Lite the search is exact; on a server it goes through HNSW, whose candidates
come back with exact scores. Which ids there are is kept here too, so that a filter names only those
and a count needs no server. It does not know what a passage is, nor which collection is whose.
"""

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag.hits import Hits, best_first, no_hits
from rag.milvus_connection import CALL_SECONDS, MilvusConnection, MilvusError
from rag.vectors import VectorIndexError, checked_addition, checked_rows

_ROWS = 1000  # vectors in one message: 1.5 MB at 384 numbers, and Milvus takes 64
_GATHERED = 500  # allowed vectors up to which fetching them is faster than searching among them
_FILTERED = 8000  # ids in one filter
_MOST = 16_384  # hits that Milvus gives at once
_SAMPLE = 10_000  # vectors whose mean stands for that of all
_BREADTH = 128  # candidates that HNSW follows, or twice as many as are wanted
_HNSW = {"M": 32, "efConstruction": 200}


class MilvusIndex:
    """The `Vectors` of one collection, which is made if it is not there.

    Whose vectors they are, of which store and which embedder, is in its `name`. Raises MilvusError
    when Milvus cannot be used or that collection is not of this `dimension`.
    """

    def __init__(self, connection: MilvusConnection, name: str, dimension: int) -> None:
        if dimension < 1:
            raise VectorIndexError(f"dimension must be at least 1, not {dimension}")
        self.name, self.dimension = name, dimension
        self._connection = connection
        self._lock = threading.Lock()
        self._mean: NDArray[np.float64] | None = None  # (D,) once it was asked for
        with connection.explained() as client, connection.writing:
            if client.has_collection(name, timeout=CALL_SECONDS):
                self._check(client.describe_collection(name, timeout=CALL_SECONDS))
            else:
                self._create()
            client.load_collection(name, timeout=CALL_SECONDS)
            if connection.address.is_file:  # what is only in its log is searched 50 times slower
                client.flush(name, timeout=CALL_SECONDS)
        self._ids = self._listed()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> NDArray[np.int64]:
        """Rising (N,); as Milvus had them when this was opened, and as changed from here since."""
        return self._ids

    def add(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        """Add `vectors` (N, D) under new `ids` (N,). They are kept when this returns.

        What Milvus has under one of these ids already is replaced: it is what is left of an
        addition that was killed, or the same vector, written by another process.
        """
        new_ids, rows = checked_addition(ids, vectors, self.dimension)  # (N,), (N, D)
        if len(new_ids) == 0:
            return
        with self._lock:
            together = np.union1d(self._ids, new_ids)
            if len(together) < len(self._ids) + len(new_ids):
                raise VectorIndexError("an id may be added once; remove it before adding it again")
            with self._connection.explained() as client, self._connection.writing:
                for at in range(0, len(new_ids), _ROWS):
                    batch = zip(
                        new_ids[at : at + _ROWS].tolist(), rows[at : at + _ROWS], strict=True
                    )
                    client.upsert(
                        self.name,
                        [{"id": id_, "vector": row} for id_, row in batch],
                        timeout=CALL_SECONDS,
                    )
                if self._connection.address.is_file:
                    client.flush(self.name, timeout=CALL_SECONDS)
            if self._mean is not None:
                total = self._mean * len(self._ids) + rows.sum(axis=0, dtype=np.float64)
                self._mean = total / len(together)
            self._ids = together

    def adopt(self, ids: NDArray[np.int64]) -> None:
        """Take note of those of `ids` that another process has added meanwhile."""
        with self._lock, self._connection.explained() as client:
            for at in range(0, len(ids), _FILTERED):
                rows = client.query(
                    self.name,
                    filter=f"id in {ids[at : at + _FILTERED].tolist()}",
                    output_fields=["id"],
                    consistency_level="Strong",
                    timeout=CALL_SECONDS,
                )
                found = np.array([row["id"] for row in rows], np.int64)
                self._ids, self._mean = np.union1d(self._ids, found), None

    def remove(self, ids: ArrayLike) -> int:
        with self._lock:
            present = np.intersect1d(np.asarray(ids, np.int64), self._ids)
            if len(present) == 0:
                return 0
            kept = np.setdiff1d(self._ids, present, assume_unique=True)
            if self._mean is not None and len(kept):
                gone = self._there(present).sum(axis=0, dtype=np.float64)
                self._mean = (self._mean * len(self._ids) - gone) / len(kept)
            with self._connection.explained() as client, self._connection.writing:
                for at in range(0, len(present), _FILTERED):
                    batch = present[at : at + _FILTERED].tolist()
                    client.delete(self.name, ids=batch, timeout=CALL_SECONDS)
            self._ids = kept
            return len(present)

    def search(self, query: ArrayLike, k: int, allowed: ArrayLike | None = None) -> Hits:
        row = checked_rows(np.asarray(query)[None, :], self.dimension)  # (1, D)
        known = self._ids
        parts: list[NDArray[np.int64] | None] = [None]
        if allowed is not None:
            wanted = np.intersect1d(np.asarray(allowed, np.int64), known)
            if len(wanted) <= _GATHERED:
                scores = self.cosines(row[0], wanted)
                there = np.isfinite(scores)
                return best_first(wanted[there], scores[there], k) if k > 0 else no_hits()
            parts = [wanted[at : at + _FILTERED] for at in range(0, len(wanted), _FILTERED)]
        k = min(k, len(known), _MOST)
        if k < 1 or not parts:
            return no_hits()
        found = [self._nearest(row, k, part) for part in parts]
        ids = np.concatenate([ids for ids, _ in found])
        return best_first(ids, np.concatenate([scores for _, scores in found]), k)

    def cosines(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.get(ids) @ query  # (n, D) @ (D,)

    def get(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors (n, D) in the order of `ids`; NaN for an id that is not there."""
        found = np.full((len(ids), self.dimension), np.nan, np.float32)
        places: dict[int, list[int]] = {}
        for place, id_ in enumerate(np.asarray(ids, np.int64).tolist()):
            places.setdefault(id_, []).append(place)
        wanted = list(places)
        with self._connection.explained() as client:
            for at in range(0, len(wanted), _ROWS):
                rows = client.get(
                    self.name,
                    ids=wanted[at : at + _ROWS],
                    output_fields=["id", "vector"],
                    timeout=CALL_SECONDS,
                )
                for row in rows:
                    found[places[row["id"]]] = row["vector"]
        return found

    def mean(self) -> NDArray[np.float32]:
        """Of all, or where there are more than 10,000, of so many spread evenly over the ids."""
        with self._lock:
            if self._mean is None:
                step = max(1, -(-len(self._ids) // _SAMPLE))
                rows = self._there(self._ids[::step])
                self._mean = rows.mean(axis=0, dtype=np.float64) if len(rows) else None
            if self._mean is None or len(self._ids) == 0:
                return np.zeros(self.dimension, np.float32)
            return self._mean.astype(np.float32)

    def drop(self) -> None:
        """Delete the collection; this index cannot be used any more."""
        with self._connection.explained() as client, self._connection.writing:
            client.drop_collection(self.name, timeout=CALL_SECONDS)

    def _there(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """As `get`, without those that another process removed meanwhile."""
        rows = self.get(ids)
        return rows[np.isfinite(rows).all(axis=1)]

    def _nearest(
        self, row: NDArray[np.float32], k: int, among: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        with self._connection.explained() as client:
            (hits,) = client.search(
                self.name,
                data=row,
                limit=k,
                filter="" if among is None else f"id in {among.tolist()}",
                output_fields=["id"],
                search_params={"params": {"ef": max(_BREADTH, 2 * k)}},
                consistency_level="Strong",  # what was added or removed before counts
                timeout=CALL_SECONDS,
            )
        ids = np.array([hit["id"] for hit in hits], np.int64)
        return ids, np.array([hit["distance"] for hit in hits], np.float32)

    def _create(self) -> None:
        """Called inside `explained`."""
        from pymilvus import DataType

        client, lite = self._connection.client, self._connection.address.is_file
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self.dimension)
        index = client.prepare_index_params()
        if lite:
            index.add_index("vector", index_type="FLAT", metric_type="IP")
        else:
            index.add_index("vector", index_type="HNSW", metric_type="IP", params=_HNSW)
        client.create_collection(
            self.name,
            schema=schema,
            index_params=index,
            consistency_level="Strong",
            timeout=CALL_SECONDS,
        )

    def _check(self, described: dict) -> None:
        where = f"{self._connection.address} has a collection {self.name}"
        fields = {field["name"]: field.get("params", {}) for field in described["fields"]}
        if set(fields) != {"id", "vector"}:
            raise MilvusError("foreign", f"{where} that is not of Glassbox")
        dimension = int(fields["vector"].get("dim", 0))
        if dimension != self.dimension:
            raise MilvusError(
                "other_dimension",
                f"{where} with vectors of {dimension} numbers, not {self.dimension}",
            )

    def _listed(self) -> NDArray[np.int64]:
        ids = [id_ for batch in self._batches() for id_ in batch]
        return np.unique(np.array(ids, np.int64))

    def _batches(self) -> Iterator[list[int]]:
        with self._connection.explained() as client:
            walk = client.query_iterator(
                self.name,
                batch_size=_MOST,
                filter="id >= 0",
                output_fields=["id"],
                consistency_level="Strong",
                timeout=CALL_SECONDS,
            )
            try:
                while rows := walk.next():
                    yield [row["id"] for row in rows]
            finally:
                walk.close()
