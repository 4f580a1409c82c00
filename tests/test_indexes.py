"""`rag.indexes`: in step with the store, whoever changed it; the saved file is only a cache."""

import os
import random
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest

from rag.index_building import Limits, start_building
from rag.index_files import Manifest
from rag.indexes import Indexes
from rag.reembedding import reembed
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


KILLS = int(os.environ.get("GLASSBOX_KILLS", "40")) // 10  # a few seconds each
LIMITS = Limits(flat=30, unsaved=10, unsaved_share=0.0, segment=40)


def many(store: DocumentStore, name: str, count: int) -> None:
    """Passages of which every third is Chinese."""
    texts = [f"{name} number {n}" if n % 3 else f"{name} 灯塔第{n}号" for n in range(count)]
    put(store, EMBEDDER, name, *texts)


def parts(store: DocumentStore, kind: str) -> list[str]:
    return [part.name for part in Manifest.from_json(store.index_files()).of(kind)]


def test_few_passages_are_not_saved(store):
    many(store, "few", 10)
    indexes = Indexes(store, LIMITS)
    check(indexes, store)
    indexes.wait()
    assert store.index_files() is None


def test_what_is_saved_is_mapped_and_not_read_again(store, monkeypatch):
    many(store, "tower", 90)
    many(store, "gone", 20)
    first = Indexes(store, LIMITS)
    before = first.current()
    store.remove(store.find(name="gone").id)
    put(store, EMBEDDER, "late", "a late addition")
    read = []
    by_id, vectors = store.passages_by_id, store.vectors
    monkeypatch.setattr(store, "passages_by_id", lambda ids: read.append(len(ids)) or by_id(ids))
    monkeypatch.setattr(store, "vectors", lambda ids: read.append(len(ids)) or vectors(ids))
    second = Indexes(store, LIMITS).current()
    assert read == [1, 1]
    assert second.count() == 91
    assert len(before.vectors["han"]) + len(before.vectors["other"]) == 110
    monkeypatch.undo()
    check(Indexes(store, LIMITS), store)


def test_many_vectors_get_an_approximate_index_while_the_exact_one_serves(store):
    many(store, "tower", 100)
    indexes = Indexes(store, LIMITS)
    assert not indexes.current().vectors["other"].is_approximate
    indexes.wait()
    assert indexes.current().vectors["other"].is_approximate
    check(indexes, store)
    (part,) = Manifest.from_json(store.index_files()).of("other")
    assert part.facts["recall"] >= 0.97 and part.facts["lists"] > 0


def test_what_comes_and_goes_after_that_is_found_and_not_found_at_once(store):
    many(store, "tower", 100)
    many(store, "gone", 5)
    indexes = Indexes(store, LIMITS)
    indexes.current()
    indexes.wait()
    store.remove(store.find(name="gone").id)
    put(store, EMBEDDER, "late", "a late addition")
    check(indexes, store)
    assert indexes.current().vectors["other"].is_approximate


def test_files_are_written_anew_when_much_has_changed(store):
    many(store, "tower", 60)
    indexes = Indexes(store, LIMITS)
    check(indexes, store)
    before = parts(store, "words"), parts(store, "other")
    for name in ("reef", "keeper"):
        many(store, name, 30)
    check(indexes, store)
    indexes.wait()
    assert parts(store, "other") != before[1]
    assert indexes.current().words.unsaved == 0
    check(indexes, store)


def test_a_large_segment_of_words_is_kept_when_others_are_written(store):
    many(store, "tower", 39)
    Indexes(store, LIMITS).current()
    (large,) = parts(store, "words")
    many(store, "reef", 12)
    Indexes(store, LIMITS).current()
    assert large in parts(store, "words") and len(parts(store, "words")) == 2
    check(Indexes(store, LIMITS), store)


def test_files_of_which_much_is_gone_are_written_anew(store):
    many(store, "tower", 40)
    many(store, "gone", 30)
    indexes = Indexes(store, LIMITS)
    indexes.current()
    before = parts(store, "words")
    store.remove(store.find(name="gone").id)
    indexes.current()
    indexes.wait()
    assert len(before) == 2 and len(parts(store, "words")) == 1
    assert parts(store, "words")[0] in before and indexes.current().words.gone == 0
    check(indexes, store)


def test_files_made_after_a_copy_was_put_back_are_not_used(store, tmp_path):
    """Ids agree, contents do not: another document's text would be returned."""
    put(store, EMBEDDER, "a", "tower one")
    store.close()
    shutil.copytree(store.root, tmp_path / "copy")
    later = opened_again(store)
    many(later, "b", 30)
    Indexes(later, LIMITS).current()
    later.close()
    shutil.copytree(later.root / "index", tmp_path / "copy" / "index")
    back = DocumentStore(tmp_path / "copy", EMBEDDER.identity, EMBEDDER.dimension)
    many(back, "c", 30)
    check(Indexes(back, LIMITS), back)
    back.close()


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        *(("words", spoil) for spoil in ("flip a byte", "truncate", "empty", "remove")),
        ("other", "flip a byte"),
        ("lists", "flip a byte"),
        ("lists", "remove"),
    ],
)
def test_a_spoiled_file_is_made_anew_from_the_store(store, kind, spoil):
    many(store, "tower", 80)
    indexes = Indexes(store, LIMITS)
    indexes.current()
    indexes.wait()
    folder = store.root / "index" / parts(store, "words" if kind == "words" else "other")[0]
    path = folder / {"words": "data.csc.index.npy", "other": "rows.npy"}.get(kind, "lists.faiss")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.unlink()  # what is mapped stays as it is
    if spoil != "remove":
        path.write_bytes({"flip a byte": data, "truncate": data[:-10], "empty": b""}[spoil])
    again = Indexes(store, LIMITS)
    check(again, store)
    again.wait()
    check(again, store)
    check(Indexes(store, LIMITS), store)


def test_a_folder_that_cannot_be_written_costs_only_the_files(store, caplog):
    many(store, "tower", 30)
    (store.root / "index").write_text("in the way")
    check(Indexes(store, LIMITS), store)
    assert "made anew" in caplog.text


def test_another_embedders_files_are_not_used(store):
    many(store, "tower", 30)
    Indexes(store, LIMITS).current()
    other = FakeEmbedder("other")
    bare = DocumentStore(store.root)
    assert reembed(bare, other)
    bare.close()
    again = DocumentStore(store.root, other.identity, other.dimension)
    assert again.index_files() is None
    index = Indexes(again, LIMITS).current()
    for passage in again.passages_by_id(again.passage_ids()):
        assert index.nearest(other.embed_query(passage.text), 1).ids.tolist() == [passage.id]
    again.close()


def test_searches_go_on_while_files_are_written_and_another_process_adds(store):
    many(store, "tower", 100)
    indexes, failures = Indexes(store, LIMITS), []
    done = threading.Event()

    def search() -> None:
        query = EMBEDDER.embed_query("tower number 50")
        while not done.is_set():
            try:
                index = indexes.current()
                (best,) = index.nearest(query, 1).ids.tolist()
                assert store.passages_by_id([best])[0].text == "tower number 50"
                assert best in index.words.search("tower number 50", 1).ids
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    other = opened_again(store)
    for number in range(6):
        many(other, f"added{number}", 20)
        if number % 2:
            other.remove(other.find(name=f"added{number}").id)
    indexes.wait()
    done.set()
    for thread in threads:
        thread.join()
    other.close()
    assert not failures
    check(indexes, store)


def test_the_index_file_of_format_1_is_removed(store):
    (store.root / "vectors.faiss").write_bytes(b"old")
    many(store, "few", 3)
    check(Indexes(store), store)
    assert not (store.root / "vectors.faiss").exists()


def test_when_the_writing_process_is_killed_what_is_in_memory_serves_on(store, monkeypatch, caplog):
    many(store, "tower", 100)

    def killed(*given) -> subprocess.Popen:
        child = start_building(*given)
        child.kill()
        return child

    monkeypatch.setattr("rag.indexes.start_building", killed)
    indexes = Indexes(store, LIMITS)
    check(indexes, store)
    indexes.wait()
    check(indexes, store)
    assert "serves on" in caplog.text


def test_killed_at_any_moment_the_writing_process_leaves_indexes_that_answer(store):
    rng = random.Random(0)
    for run in range(KILLS):
        many(store, f"tower{run}", 70)
        child = start_building(store, LIMITS)
        time.sleep(rng.random() * 4)
        child.kill()
        child.wait()
        check(Indexes(store), store)
