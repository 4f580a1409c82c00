"""`rag.indexes`: in step with the store, whoever changed it; the saved file is only a cache."""

import numpy as np
import pytest

from rag.indexes import Indexes
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put

EMBEDDER = FakeEmbedder()


@pytest.fixture
def store(tmp_path):
    store = DocumentStore(tmp_path / "data", EMBEDDER.identity, EMBEDDER.dimension)
    yield store
    store.close()


def opened_again(store: DocumentStore) -> DocumentStore:
    return DocumentStore(store.root, EMBEDDER.identity, EMBEDDER.dimension)


def check(indexes: Indexes, store: DocumentStore) -> None:
    """Both indexes hold exactly the store's passages, each under its own vector and words."""
    index = indexes.current()
    ids = store.passage_ids()
    held = np.sort(np.concatenate([part.ids for part in index.vectors.values()]))
    assert held.tolist() == index.words.ids.tolist() == ids.tolist()
    for passage in store.passages_by_id(ids):
        hits = index.nearest(EMBEDDER.embed_query(passage.text), 1)
        assert hits.ids.tolist() == [passage.id]
        assert passage.id in index.words.search(passage.text, len(ids)).ids


def test_they_follow_every_change(store):
    indexes = Indexes(store)
    check(indexes, store)
    first = put(store, EMBEDDER, "a", "tower one", "tower two")
    check(indexes, store)
    put(store, EMBEDDER, "b", "reef three")
    put(store, EMBEDDER, "a", "tower four")
    check(indexes, store)
    assert not store.remove(first.id)
    store.remove(store.documents()[0].id)
    check(indexes, store)


def test_they_follow_another_process(store):
    indexes = Indexes(store)
    put(store, EMBEDDER, "a", "tower one")
    check(indexes, store)
    other = opened_again(store)
    put(other, EMBEDDER, "b", "reef two", "reef three")
    other.remove(store.find(name="a").id)
    check(indexes, store)
    other.close()


def test_only_what_changed_is_read(store, monkeypatch):
    put(store, EMBEDDER, "a", *(f"tower {n}" for n in range(20)))
    indexes = Indexes(store)
    indexes.current()
    put(store, EMBEDDER, "b", "reef one")
    read = []
    vectors = store.vectors
    monkeypatch.setattr(store, "vectors", lambda ids: read.append(len(ids)) or vectors(ids))
    indexes.current()
    indexes.current()
    assert read == [1]


def test_a_removal_between_two_reads_is_caught_up_with(store, monkeypatch):
    doomed = put(store, EMBEDDER, "a", "tower one")
    put(store, EMBEDDER, "b", "reef two")
    vectors = store.vectors

    def removing(ids):
        store.remove(doomed.id)
        return vectors(ids)

    monkeypatch.setattr(store, "vectors", removing)
    check(Indexes(store), store)


def test_vectors_come_back_bit_for_bit(store):
    vectors = EMBEDDER.embed_passages(["tower one", "reef two"])
    put(store, EMBEDDER, "a", "tower one", "reef two")
    _, kept = store.vectors(store.passage_ids())
    assert kept.dtype == np.float32
    np.testing.assert_array_equal(kept, vectors)
