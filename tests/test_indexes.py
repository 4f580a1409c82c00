"""`rag.indexes`: in step with the store, whoever changed it; the saved file is only a cache."""

import shutil

import numpy as np
import pytest

from rag.indexes import CACHE_NAME, Indexes
from rag.store import DocumentStore
from rag.vector_index import VectorIndex
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
    ids = store.contents().passage_ids
    assert index.vectors.ids == index.words.ids == ids
    for passage in store.passages_by_id(ids):
        hits = index.vectors.search(EMBEDDER.embed_query(passage.text), 1)
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


def test_a_saved_index_is_loaded_and_not_rebuilt(store, monkeypatch):
    put(store, EMBEDDER, "a", "tower one", "reef two")
    Indexes(store).current()
    monkeypatch.setattr(store, "vectors", lambda ids: pytest.fail("was rebuilt"))
    second = Indexes(store)
    assert second.current().vectors.ids == store.contents().passage_ids


def test_a_saved_index_of_another_moment_is_not_used(store, monkeypatch):
    put(store, EMBEDDER, "a", "tower one")
    indexes = Indexes(store)
    indexes.current()
    put(store, EMBEDDER, "a", "reef two")
    monkeypatch.setattr(VectorIndex, "load", lambda *_, **__: pytest.fail("was loaded"))
    check(Indexes(store), store)


def test_an_index_saved_after_a_copy_was_put_back_is_not_used(store, tmp_path):
    """The counters agree, the contents do not: another document's text would be returned."""
    put(store, EMBEDDER, "a", "tower one")
    store.close()
    shutil.copytree(store.root, tmp_path / "copy")
    later = opened_again(store)
    put(later, EMBEDDER, "b", "reef two")
    indexes = Indexes(later)
    indexes.current()
    generation = later.generation
    later.close()
    shutil.copy(store.root / CACHE_NAME, tmp_path / "copy")
    back = DocumentStore(tmp_path / "copy", EMBEDDER.identity, EMBEDDER.dimension)
    put(back, EMBEDDER, "c", "keeper three")
    assert back.generation == generation
    check(Indexes(back), back)
    back.close()


@pytest.mark.parametrize("spoil", ["flip a byte", "truncate", "empty", "remove"])
def test_a_spoiled_file_is_rebuilt_from_the_store(store, spoil):
    put(store, EMBEDDER, "a", "tower one", "reef two")
    indexes = Indexes(store)
    indexes.current()
    path = store.root / CACHE_NAME
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    match spoil:
        case "flip a byte":
            path.write_bytes(data)
        case "truncate":
            path.write_bytes(data[:-10])
        case "empty":
            path.write_bytes(b"")
        case "remove":
            path.unlink()
    check(Indexes(store), store)


def test_a_folder_that_cannot_be_written_costs_only_the_cache(store, monkeypatch, caplog):
    put(store, EMBEDDER, "a", "tower one")

    def full(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(VectorIndex, "save", full)
    check(Indexes(store), store)
    assert "rebuilt" in caplog.text


def test_it_is_saved_once_a_start_and_only_if_it_was_out_of_date(store, monkeypatch):
    Indexes(store).current()
    assert not (store.root / CACHE_NAME).exists()  # there is nothing to keep
    put(store, EMBEDDER, "a", "tower one")
    indexes = Indexes(store)
    indexes.current()
    assert (store.root / CACHE_NAME).exists()
    monkeypatch.setattr(VectorIndex, "save", lambda *_: pytest.fail("saved again"))
    Indexes(store).current()
    put(store, EMBEDDER, "b", "reef two")
    check(indexes, store)


def test_vectors_come_back_bit_for_bit(store):
    vectors = EMBEDDER.embed_passages(["tower one", "reef two"])
    put(store, EMBEDDER, "a", "tower one", "reef two")
    _, kept = store.vectors(store.contents().passage_ids)
    assert kept.dtype == np.float32
    np.testing.assert_array_equal(kept, vectors)
