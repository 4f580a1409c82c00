"""`rag.reembedding`: another embedder's vectors, resumed after a stop, put in place at once."""

import numpy as np
import pytest

from rag.database import StoreError
from rag.reembedding import reembed
from rag.retriever import Retriever
from rag.store import DocumentStore, EmbedderChanged
from tests.fakes import FakeEmbedder, put

OLD, NEW = FakeEmbedder("old", 64), FakeEmbedder("new", 48)


@pytest.fixture
def data(tmp_path):
    store = DocumentStore(tmp_path, OLD.identity, OLD.dimension)
    for number in range(100):
        put(store, OLD, f"{number}.txt", f"the tower number {number}", f"the keeper {number}")
    store.close()
    return tmp_path


def test_all_vectors_are_of_the_new_embedder_afterwards(data):
    store = DocumentStore(data)
    texts = {d.name: [p.text for p in store.passages(d.id)] for d in store.documents()}
    assert reembed(store, NEW)
    store.close()
    with pytest.raises(EmbedderChanged):
        DocumentStore(data, OLD.identity, OLD.dimension)
    store = DocumentStore(data, NEW.identity, NEW.dimension)
    assert texts == {d.name: [p.text for p in store.passages(d.id)] for d in store.documents()}
    ids, vectors = store.vectors(store.passage_ids())
    for passage in store.passages_by_id(ids):
        place = ids.tolist().index(passage.id)
        np.testing.assert_array_equal(vectors[place], NEW.embed_query(passage.text))
    assert Retriever(store, NEW).retrieve("the tower number 7").passages[0].document == "7.txt"
    store.close()


def test_after_a_stop_it_goes_on_where_it_was(data):
    embedded = []

    class Counting(FakeEmbedder):
        def embed_passages(self, texts, progress=None, should_stop=None):
            if should_stop is not None and should_stop():
                from rag.embedding import EmbeddingStopped

                raise EmbeddingStopped
            embedded.extend(texts)
            return super().embed_passages(texts)

    embedder, store = Counting("new", 48), DocumentStore(data)
    assert not reembed(store, embedder, should_stop=lambda: len(embedded) > 100)
    before = len(embedded)
    assert 100 < before < 200
    old = DocumentStore(data, OLD.identity, OLD.dimension)  # still the old one's
    assert Retriever(old, OLD).retrieve("the tower number 7").passages[0].document == "7.txt"
    put(old, OLD, "late.txt", "added meanwhile")
    steps = []
    assert reembed(store, embedder, progress=lambda *step: steps.append(step))
    assert len(embedded) == 201
    assert steps[0] == ("embed", before, 201)
    with pytest.raises(EmbedderChanged):
        Retriever(old, OLD).retrieve("the tower number 7")
    with pytest.raises(EmbedderChanged):
        put(old, OLD, "later.txt", "with vectors of the old one")
    old.close()
    store.close()


def test_a_third_embedder_starts_anew(data):
    store = DocumentStore(data)
    stops = iter([False, False, True])

    class Stopping(FakeEmbedder):
        def embed_passages(self, texts, progress=None, should_stop=None):
            if next(stops):
                from rag.embedding import EmbeddingStopped

                raise EmbeddingStopped
            return super().embed_passages(texts)

    assert not reembed(store, Stopping("third", 48))
    assert reembed(store, NEW)
    again = DocumentStore(data, NEW.identity, NEW.dimension)
    ids, vectors = again.vectors(again.passage_ids())
    first = again.passages_by_id([int(ids[0])])[0]
    np.testing.assert_array_equal(vectors[0], NEW.embed_query(first.text))
    again.close()
    store.close()


def test_a_store_without_an_embedder_cannot_be_searched(data):
    store = DocumentStore(data)
    with pytest.raises(StoreError, match="without an embedder"):
        Retriever(store, OLD).retrieve("tower")
    store.close()
