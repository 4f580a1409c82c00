"""`rag.store`: whole or not at all, whoever writes and whatever happens."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from rag.chunking import Passage
from rag.database import Database, StoreError
from rag.documents import Document, Section
from rag.store import AlreadyStored, DocumentStore, EmbedderChanged
from tests.fakes import FakeEmbedder, document, put, sha256

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
def store(tmp_path, embedder):
    store = DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension)
    yield store
    store.close()


def everything(store: DocumentStore) -> dict[str, list[str]]:
    return {d.name: [p.text for p in store.passages(d.id)] for d in store.documents()}


def test_what_is_added_comes_back_exactly(store, embedder):
    text = "第一页。\n\nSecond page."
    sections = (Section(0, 6, 1, ("标题",)), Section(6, 18, 2, ("标题", "Two")))
    whole = Document("a.pdf", "application/pdf", text, sections, ("a warning",))
    passages = [
        Passage("第一页。", 0, 4, 1, ("标题",)),
        Passage("Second page.", 6, 18, 2, ("标题", "Two")),
    ]
    vectors = embedder.embed_passages([p.text for p in passages])
    stored = store.add(whole, passages, vectors, sha256("a"))
    assert store.documents() == [stored]
    assert (stored.name, stored.characters, stored.passages) == ("a.pdf", 18, 2)
    assert stored.warnings == ("a warning",)
    assert len(stored.id) == 32 and int(stored.id, 16) >= 0
    assert store.document(stored.id) == whole
    back = store.passages(stored.id)
    assert [(p.text, p.start, p.end, p.page, p.heading) for p in back] == [
        (p.text, p.start, p.end, p.page, p.heading) for p in passages
    ]
    ids, kept = store.vectors([p.id for p in back])
    assert ids.tolist() == [p.id for p in back]
    np.testing.assert_array_equal(kept, vectors)


def test_it_is_there_after_it_was_opened_again(store, embedder, tmp_path):
    put(store, embedder, "a", "one", "two")
    before = everything(store)
    store.close()
    again = DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension)
    assert everything(again) == before
    again.close()


def test_removal_takes_all_and_shifts_no_id(store, embedder):
    first, second = put(store, embedder, "a", "one", "two"), put(store, embedder, "b", "three")
    kept = store.passages(second.id)
    assert store.remove(first.id)
    assert not store.remove(first.id)
    assert store.passages(first.id) == []
    assert store.passages(second.id) == kept
    assert store.passage_ids().tolist() == [p.id for p in kept]
    with pytest.raises(KeyError):
        store.document(first.id)


def test_ids_are_never_given_again(store, embedder):
    seen = set()
    for round_ in range(5):
        stored = put(store, embedder, "a", f"text {round_}", f"more {round_}")
        ids = {p.id for p in store.passages(stored.id)}
        assert not ids & seen
        seen |= ids
        store.remove(stored.id)


def test_removed_text_is_not_left_in_the_file(store, embedder, tmp_path):
    stored = put(store, embedder, "a", "a very secret sentence")
    store.remove(stored.id)
    store.close()
    for path in (tmp_path / "data").iterdir():
        assert b"very secret" not in path.read_bytes()


def test_the_same_content_again_is_refused_and_named(store, embedder):
    first = put(store, embedder, "a", "same")
    for name in ("a", "b"):
        with pytest.raises(AlreadyStored) as refused:
            put(store, embedder, name, "same")
        assert refused.value.existing == first
    assert store.documents() == [first]


def test_new_content_under_the_same_name_replaces_it_in_one_step(store, embedder):
    first = put(store, embedder, "a", "old")
    generation = store.generation
    second = put(store, embedder, "a", "new")
    assert store.generation == generation + 1
    assert second.id != first.id
    assert everything(store) == {"a": ["new"]}


def test_two_threads_adding_the_same_file_leave_one_document(store, embedder):
    outcomes = []

    def add() -> None:
        try:
            outcomes.append(put(store, embedder, "a", "same", "text"))
        except AlreadyStored as error:
            outcomes.append(error.existing)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({stored.id for stored in outcomes}) == 1 and len(outcomes) == 8
    assert everything(store) == {"a": ["same", "text"]}


def test_threads_adding_different_files_lose_none(store, embedder):
    threads = [
        threading.Thread(target=put, args=(store, embedder, f"{n}", f"text {n}")) for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.documents()) == 12
    assert store.generation == 12


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d, p, v: (d, p, v[:1]),
        lambda d, p, v: (d, p, v[:, :5]),
        lambda d, p, v: (d, p, v * np.nan),
        lambda d, p, v: (d, [], v[:0]),
        lambda d, p, v: (d, [Passage("other", 0, 3, None, ()), p[1]], v),
    ],
    ids=["too few vectors", "another dimension", "not finite", "no passages", "another text"],
)
def test_what_does_not_fit_together_is_refused_whole(store, embedder, spoil):
    whole, passages = document("a", "one", "two")
    vectors = embedder.embed_passages(["one", "two"])
    with pytest.raises(ValueError):
        store.add(*spoil(whole, passages, vectors), sha256("x"))
    assert store.documents() == []
    assert store.generation == 0


def test_half_a_surrogate_pair_is_a_clear_error_and_leaves_nothing(store, embedder):
    with pytest.raises(StoreError) as failed:
        put_raw(store, embedder, "a\ud800")
    assert failed.value.code == "not_text"
    assert store.documents() == []


def put_raw(store, embedder, text: str):
    whole, passages = document("a", text)
    return store.add(whole, passages, embedder.embed_passages(["x"]), sha256("x"))


def test_a_failure_in_the_middle_leaves_the_old_version(store, embedder, monkeypatch):
    first = put(store, embedder, "a", "old")

    def fail(db):
        raise RuntimeError("pulled the plug")

    monkeypatch.setattr("rag.store.record_change", fail)
    with pytest.raises(RuntimeError, match="plug"):
        put(store, embedder, "a", "new")
    assert store.documents() == [first]
    assert everything(store) == {"a": ["old"]}


def test_a_full_disk_is_a_clear_error_and_nothing_changes(store, embedder, monkeypatch):
    put(store, embedder, "a", "old")
    before, opened = everything(store), Database._open

    def small(self):
        db = opened(self)
        db.execute("PRAGMA max_page_count = 30")
        return db

    monkeypatch.setattr(Database, "_open", small)
    store.database._idle.get().close()
    with pytest.raises(StoreError, match="disk is full") as failed:
        put(store, embedder, "a", "x" * 500_000)
    assert failed.value.code == "disk_full"
    assert everything(store) == before
    put(store, embedder, "b", "small enough")
    assert set(everything(store)) == {"a", "b"}


def test_a_writer_that_holds_on_too_long_is_a_clear_error(store, embedder, tmp_path, monkeypatch):
    monkeypatch.setattr("rag.database.BUSY_SECONDS", 0.1)
    store.database._idle.get().close()
    other = sqlite3.connect(tmp_path / "data" / "documents.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError) as failed:
        put(store, embedder, "a", "text")
    assert failed.value.code == "busy"
    assert store.documents() == []  # reading goes on
    other.close()
    put(store, embedder, "a", "text")


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"\x00" * 4096])
def test_another_file_in_its_place_is_a_clear_error(tmp_path, content):
    (tmp_path / "documents.sqlite").write_bytes(content)
    with pytest.raises(StoreError) as failed:
        DocumentStore(tmp_path)
    assert failed.value.code == "damaged"
    assert (tmp_path / "documents.sqlite").read_bytes() == content


def test_a_later_format_is_a_clear_error(tmp_path):
    DocumentStore(tmp_path).close()
    db = sqlite3.connect(tmp_path / "documents.sqlite")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="another version"):
        DocumentStore(tmp_path)


def test_another_embedder_is_refused_by_name(store, embedder, tmp_path):
    put(store, embedder, "a", "one", "two")
    for identity, dimension in (("other", 256), ("fake", 32)):
        with pytest.raises(EmbedderChanged) as refused:
            DocumentStore(tmp_path / "data", identity, dimension)
        assert (refused.value.stored, refused.value.passages) == ("fake", 2)
    assert everything(store) == {"a": ["one", "two"]}


def test_an_empty_store_takes_another_embedder(store, tmp_path):
    other = FakeEmbedder("other", 32)
    again = DocumentStore(tmp_path / "data", other.identity, other.dimension)
    put(again, other, "a", "one")
    again.close()


def test_without_an_embedder_it_lists_and_removes_but_does_not_add(store, embedder, tmp_path):
    stored = put(store, embedder, "a", "one")
    bare = DocumentStore(tmp_path / "data")
    assert bare.documents() == [stored]
    with pytest.raises((StoreError, ValueError)):
        put(bare, embedder, "b", "two")
    assert bare.remove(stored.id)
    bare.close()
    assert store.documents() == []


def test_another_process_is_seen_at_once(store, embedder, tmp_path):
    put(store, embedder, "a", "one")
    code = (
        "from pathlib import Path; from rag.store import DocumentStore\n"
        "from tests.fakes import FakeEmbedder, put\n"
        f"e = FakeEmbedder(); root = Path({str(tmp_path / 'data')!r})\n"
        "s = DocumentStore(root, e.identity, e.dimension)\n"
        "put(s, e, 'b', 'two'); s.close()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert everything(store) == {"a": ["one"], "b": ["two"]}
    assert store.generation == 2


def test_several_processes_may_create_it_at_once(tmp_path):
    code = (
        "from pathlib import Path; from rag.store import DocumentStore\n"
        f"DocumentStore(Path({str(tmp_path / 'data')!r}), 'fake', 64).close()"
    )
    children = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4


def test_a_closed_store_says_so(store):
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.documents()


KILLS = int(os.environ.get("GLASSBOX_KILLS", "10"))


def test_killed_at_any_moment_it_keeps_what_it_reported_and_nothing_half(tmp_path, embedder):
    """`kill -9` a process that adds, replaces and removes; GLASSBOX_KILLS=200 for the long form."""
    data, log = tmp_path / "data", tmp_path / "log"
    golden = DocumentStore(data, embedder.identity, embedder.dimension)
    put(
        golden, embedder, "golden", "the lighthouse was built in 1923", "the keeper lights the lamp"
    )
    log.touch()
    rng = random.Random(0)
    for run in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.writer", str(data), str(log), str(run)], cwd=ROOT
        )
        started = log.stat().st_size
        while log.stat().st_size == started:  # it is at work
            assert child.poll() is None
            time.sleep(0.005)
        time.sleep(rng.random() * 0.2)
        child.send_signal(signal.SIGKILL)
        child.wait()
        check_against(log, golden, embedder)
    golden.close()


def check_against(log: Path, store: DocumentStore, embedder: FakeEmbedder) -> None:
    """Every reported change holds; the one change after the last report may hold or not."""
    from rag.retriever import Retriever

    expected: dict[str, str] = {}
    for line in log.read_text().splitlines():
        action, name, version = line.split()
        if action == "added":
            expected[name] = version
        else:
            expected.pop(name, None)
    found = everything(store)
    differing = {
        name
        for name in (expected.keys() | found.keys()) - {"golden"}
        if name not in found or name not in expected or expected[name] not in found[name][0]
    }
    assert len(differing) <= 1, differing
    with log.open("a") as file:  # so that the next run starts from what is there
        for name in differing:
            held = found[name][0].split()[1] if name in found else "-"
            file.write(f"{'added' if name in found else 'removed'} {name} {held}\n")
    for name, texts in found.items():
        if name != "golden":
            assert len(texts) == 20 and len({text.split()[1] for text in texts}) == 1
    ids = store.passage_ids()
    kept, vectors = store.vectors(ids)
    assert kept.tolist() == ids.tolist()
    for passage in store.passages_by_id(ids):
        np.testing.assert_array_equal(
            vectors[kept.tolist().index(passage.id)], embedder.embed_query(passage.text)
        )
        assert store.document(passage.document_id).text[passage.start : passage.end] == passage.text
    best = Retriever(store, embedder).retrieve("When was the lighthouse built?").passages[0]
    assert (best.document, best.text) == ("golden", "the lighthouse was built in 1923")
