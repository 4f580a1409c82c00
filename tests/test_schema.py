"""`rag.schema`: a file that an earlier version wrote is opened, and keeps all that is in it."""

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from rag import schema
from rag.records import Position
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put

EMBEDDER = FakeEmbedder(dimension=8)
# Written by the program of format 1: two documents, and a third that was added and removed.
FORMAT_1 = Path(__file__).parent / "data" / "format_1.sqlite"
TEXTS = {
    "english.txt": ["The lighthouse was built in 1923.", "The keeper lights the lamp."],
    "中文.txt": ["灯塔守护人每天傍晚点亮主灯。", "Table 1: a b c"],
}


@pytest.fixture
def store(tmp_path):
    shutil.copy(FORMAT_1, tmp_path / "documents.sqlite")
    store = DocumentStore(tmp_path, EMBEDDER.identity, EMBEDDER.dimension)
    yield store
    store.close()


def test_documents_passages_and_vectors_are_what_they_were(store):
    found = {d.name: store.passages(d.id) for d in store.documents()}
    assert {name: [p.text for p in passages] for name, passages in found.items()} == TEXTS
    for passage in (p for passages in found.values() for p in passages):
        _, vectors = store.vectors([passage.id])
        np.testing.assert_array_equal(vectors[0], EMBEDDER.embed_query(passage.text))


def test_scripts_are_those_that_adding_gives(store):
    changes = store.changes(Position())
    assert {s: ids.tolist() for s, ids in changes.added.items()} == {"han": [3, 4], "other": [1, 2]}


def test_an_id_that_was_given_before_is_not_given_again(store):
    put(store, EMBEDDER, "new.txt", "New.")
    assert store.passage_ids().tolist() == [1, 2, 3, 4, 6]


def test_removing_takes_the_passages_along_and_is_noted(store):
    store.remove(store.documents()[0].id)
    assert store.changes(Position()).removed.tolist() == [1, 2]
    assert store.passage_ids().tolist() == [3, 4]


def test_it_has_the_same_tables_as_a_new_file(store, tmp_path):
    DocumentStore(tmp_path / "new").close()

    def tables(path: Path) -> dict[str, list]:
        db = sqlite3.connect(path)
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
        columns = {
            name: [row[1:4] for row in db.execute(f"PRAGMA table_info({name})")] for name in names
        }
        assert db.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        db.close()
        return columns

    assert tables(tmp_path / "documents.sqlite") == tables(tmp_path / "new" / "documents.sqlite")


def test_a_failure_in_the_middle_leaves_the_old_format(tmp_path, monkeypatch):
    path = tmp_path / "documents.sqlite"
    shutil.copy(FORMAT_1, path)
    monkeypatch.setattr(schema, "scripts_of", lambda texts: [None] * len(texts))
    with pytest.raises(Exception, match="script"):
        DocumentStore(tmp_path)
    monkeypatch.undo()
    store = DocumentStore(tmp_path, EMBEDDER.identity, EMBEDDER.dimension)
    assert [d.name for d in store.documents()] == list(TEXTS)
    store.close()
