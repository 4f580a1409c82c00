"""A store whose vectors are in real Milvus Lite: killed, robbed, moved, and still whole."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag.database import StoreError
from rag.embedding import EmbeddingStopped
from rag.lost_vectors import restore_lost
from rag.milvus_connection import MilvusError
from rag.milvus_vectors import VectorsLost
from rag.reembedding import reembed
from rag.retriever import Retriever
from rag.store import DocumentStore, EmbedderChanged
from rag.vector_moving import MoveFailed, move_vectors
from rag.vector_place import VectorsElsewhere
from tests.fakes import FakeEmbedder, put
from tests.milvus_files import file_address, let_go, served

ROOT = Path(__file__).resolve().parents[1]
EMBEDDER = FakeEmbedder()
GOLDEN = {
    "When was the lighthouse built?": "the lighthouse was built in 1923",
    "Which boats steer by the lamp?": "pilot boats steer by the lamp",
    "守护人在傍晚点亮什么灯？": "灯塔守护人每天傍晚点亮主灯。",
    "barley in autumn": "the barley in autumn",
}
PLANTS = ("walnut", "barley", "clover", "maize", "lupin", "fennel")
SEASONS = ("spring", "summer", "autumn", "winter", "frost")


@pytest.fixture
def milvus(tmp_path):
    address = file_address(tmp_path)
    yield address
    let_go(address)


def open_store(tmp_path: Path, where: object = None, embedder=EMBEDDER) -> DocumentStore:
    place = None if where is None else str(where)
    return DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension, place)


@pytest.fixture
def data(tmp_path):
    """A folder with a store whose vectors are in SQLite."""
    store = open_store(tmp_path)
    fill(store)
    store.close()
    return tmp_path / "data"


@pytest.fixture
def store(tmp_path, milvus):
    """A store whose vectors are in Milvus."""
    store = open_store(tmp_path, milvus)
    fill(store)
    Retriever(store, EMBEDDER).retrieve("lighthouse")
    yield store
    store.close()


def fill(store: DocumentStore, embedder=EMBEDDER) -> None:
    put(store, embedder, "a.txt", *list(GOLDEN.values())[:2])
    put(store, embedder, "中文.txt", list(GOLDEN.values())[2])
    for plant in PLANTS:
        put(store, embedder, f"{plant}.txt", *(f"the {plant} in {season}" for season in SEASONS))


def answers(store: DocumentStore, embedder=EMBEDDER) -> list:
    """Every passage and number of every golden question, as the retriever gives them."""
    retriever = Retriever(store, embedder)
    found = []
    for question, wanted in GOLDEN.items():
        retrieval = retriever.retrieve(question)
        assert retrieval.passages[0].text == wanted
        found.append(
            [
                (p.passage_id, p.document, pytest.approx(p.score, abs=1e-5), p.dense_rank)
                for p in retrieval.passages
            ]
        )
    return found


def vectors_in_sqlite(data: Path) -> int:
    db = sqlite3.connect(data / "documents.sqlite")
    (count,) = db.execute("SELECT count(vector) FROM passages").fetchone()
    db.close()
    return count


def restarted(tmp_path: Path, milvus, where: object = None) -> DocumentStore:
    let_go(milvus)
    return open_store(tmp_path, where)


def test_answers_are_those_of_a_store_with_its_vectors_in_sqlite(tmp_path, store):
    plain = DocumentStore(tmp_path / "plain", EMBEDDER.identity, EMBEDDER.dimension)
    fill(plain)
    assert answers(store) == answers(plain)
    plain.close()


def test_sqlite_holds_a_vector_only_until_milvus_has_it(tmp_path, store):
    assert vectors_in_sqlite(store.root) == 0
    put(store, EMBEDDER, "new.txt", "a note about zebras")
    assert vectors_in_sqlite(store.root) == 1
    assert Retriever(store, EMBEDDER).retrieve("zebras").passages[0].document == "new.txt"
    assert vectors_in_sqlite(store.root) == 0


def test_a_restart_finds_what_there_was_without_being_told_where(tmp_path, store, milvus):
    before = answers(store)
    store.close()
    again = restarted(tmp_path, milvus)
    assert answers(again) == before
    again.close()


def test_a_removed_document_is_not_found_and_leaves_milvus(tmp_path, store, milvus):
    store.remove(store.find(name="a.txt").id)
    texts = [p.text for p in Retriever(store, EMBEDDER).retrieve("the lighthouse").passages]
    assert "the lighthouse was built in 1923" not in texts
    bare = DocumentStore(store.root)  # as `glassbox remove`, which opens no Milvus
    bare.remove(bare.find(name="maize.txt").id)
    bare.close()
    store.close()
    again = restarted(tmp_path, milvus)
    ids = again.elsewhere.open("other").ids.tolist() + again.elsewhere.open("han").ids.tolist()
    assert sorted(ids) == again.passage_ids().tolist()
    again.close()


def test_documents_are_added_while_another_program_has_the_file_open(tmp_path, store):
    code = (
        "from pathlib import Path; from rag.store import DocumentStore\n"
        "from tests.fakes import FakeEmbedder, put; e = FakeEmbedder()\n"
        f"s = DocumentStore(Path({str(store.root)!r}), e.identity, e.dimension)\n"
        "put(s, e, 'new.txt', 'a note about zebras'); s.close()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert Retriever(store, EMBEDDER).retrieve("zebras").passages[0].document == "new.txt"


def test_two_stores_in_one_milvus_do_not_mix(tmp_path, store, milvus):
    other = DocumentStore(tmp_path / "other", EMBEDDER.identity, EMBEDDER.dimension, str(milvus))
    put(other, EMBEDDER, "b.txt", "the orchard was planted by Petra")
    assert Retriever(other, EMBEDDER).retrieve("orchard planted").considered == 1
    assert len(answers(store)) == len(GOLDEN)
    other.close()


def test_two_programs_over_one_server_see_each_others_changes(tmp_path, data):
    with served(tmp_path / "server") as address:
        move_vectors(data, str(address))
        ours, theirs = open_store(tmp_path), open_store(tmp_path)
        searching = [Retriever(store, EMBEDDER) for store in (ours, theirs)]
        assert all(retriever.retrieve("barley").considered == 33 for retriever in searching)
        put(ours, EMBEDDER, "new.txt", "a note about zebras")
        for retriever in searching:  # the first hands the vector over, the second finds it there
            assert retriever.retrieve("zebras").passages[0].document == "new.txt"
        theirs.remove(theirs.find(name="new.txt").id)
        assert all(retriever.retrieve("zebras").considered == 33 for retriever in searching)
        ours.close()
        theirs.close()


def test_another_place_than_the_noted_one_says_what_to_run(tmp_path, store, milvus):
    with pytest.raises(VectorsElsewhere) as refused:
        open_store(tmp_path, "sqlite")
    assert str(refused.value) == (
        f"The vectors are kept in {milvus}; to move them: glassbox move-vectors sqlite"
    )
    with pytest.raises(VectorsElsewhere, match=r"move-vectors milvus:/.*else\.db"):
        open_store(tmp_path, f"milvus:{tmp_path}/else.db")
    open_store(tmp_path, milvus).close()


def test_an_empty_store_goes_where_it_is_asked_to(tmp_path, milvus):
    open_store(tmp_path, milvus).close()
    store = open_store(tmp_path, "sqlite")
    assert store.elsewhere is None
    store.close()


def test_no_secret_is_written(tmp_path):
    store = open_store(tmp_path, "milvus:http://me:hidden@127.0.0.1:9")
    put(store, EMBEDDER, "a.txt", "text")
    with pytest.raises(MilvusError) as failed:
        Retriever(store, EMBEDDER).retrieve("text")
    store.close()
    assert "hidden" not in str(failed.value)
    for path in (tmp_path / "data").rglob("*"):
        assert path.is_dir() or b"hidden" not in path.read_bytes()


def test_vectors_that_are_lost_are_noticed_and_made_again(tmp_path, store, milvus):
    before = answers(store)
    store.close()
    let_go(milvus)
    shutil.rmtree(milvus.uri)
    store = open_store(tmp_path)
    with pytest.raises(VectorsLost, match="lost the vectors of 33 passage") as lost:
        answers(store)
    assert lost.value.missing == 33
    steps = []
    assert restore_lost(store, EMBEDDER, lambda *step: steps.append(step)) == 33
    assert steps == [("embed", 0, 33)]
    assert answers(store) == before
    store.close()


def test_an_old_copy_of_milvus_lacks_only_what_came_since(tmp_path, store, milvus):
    store.close()
    let_go(milvus)
    shutil.copytree(milvus.uri, tmp_path / "copy")
    store = open_store(tmp_path)
    put(store, EMBEDDER, "new.txt", "a note about zebras", "and their stripes")
    Retriever(store, EMBEDDER).retrieve("zebras")
    store.remove(store.find(name="fennel.txt").id)
    Retriever(store, EMBEDDER).retrieve("zebras")
    store.close()
    let_go(milvus)
    shutil.rmtree(milvus.uri)
    shutil.copytree(tmp_path / "copy", milvus.uri)
    store = open_store(tmp_path)
    assert restore_lost(store, EMBEDDER) == 2
    assert Retriever(store, EMBEDDER).retrieve("zebras").passages[0].document == "new.txt"
    assert sum(len(store.elsewhere.open(s)) for s in ("han", "other")) == len(store.passage_ids())
    store.close()


def test_an_old_copy_of_the_documents_never_names_a_vector_of_a_newer_one(tmp_path, store, milvus):
    store.close()
    shutil.copy(store.root / "documents.sqlite", tmp_path / "old.sqlite")
    store = restarted(tmp_path, milvus)
    put(store, EMBEDDER, "new.txt", "a note about zebras")
    Retriever(store, EMBEDDER).retrieve("zebras")
    newest = store.passage_ids().max()
    store.close()
    shutil.copy(tmp_path / "old.sqlite", store.root / "documents.sqlite")
    store = restarted(tmp_path, milvus)
    assert len(answers(store)) == len(GOLDEN)
    put(store, EMBEDDER, "other.txt", "a note about giraffes")
    assert store.passage_ids().max() > newest
    assert Retriever(store, EMBEDDER).retrieve("giraffes").passages[0].document == "other.txt"
    store.close()


def test_making_lost_vectors_goes_on_where_it_was_stopped(tmp_path, store, milvus, monkeypatch):
    monkeypatch.setattr("rag.lost_vectors.BATCH", 10)
    embedded = []

    class Stopping(FakeEmbedder):
        def embed_passages(self, texts, progress=None, should_stop=None):
            if should_stop is not None and should_stop():
                raise EmbeddingStopped
            embedded.extend(texts)
            return super().embed_passages(texts)

    store.close()
    let_go(milvus)
    shutil.rmtree(milvus.uri)
    store, embedder = open_store(tmp_path), Stopping()
    assert restore_lost(store, embedder, should_stop=lambda: len(embedded) >= 20) == 20
    assert restore_lost(store, embedder) == 13
    assert len(embedded) == 33
    answers(store)
    store.close()


def test_another_embedder_gets_a_collection_of_its_own(tmp_path, store, milvus):
    store.close()
    other = FakeEmbedder("other", 32)
    with pytest.raises(EmbedderChanged):
        open_store(tmp_path, embedder=other)
    bare = DocumentStore(store.root)
    assert reembed(bare, other)
    bare.close()
    store = open_store(tmp_path, embedder=other)
    assert Retriever(store, other).retrieve("barley in autumn").considered == 33
    assert vectors_in_sqlite(store.root) == 0
    with store.elsewhere._connection.explained() as client:
        assert len(client.list_collections()) == 2  # one for each script, and none of the old
    store.close()


def test_vectors_are_moved_there_and_back_and_answers_stay(tmp_path, data, milvus):
    store = open_store(tmp_path)
    before = answers(store)
    assert move_vectors(data, str(milvus)) == 33
    with pytest.raises(VectorsElsewhere, match="start Glassbox again"):
        store.revision  # noqa: B018  # a program that had the store open is told
    store.close()
    assert vectors_in_sqlite(data) == 0
    for where in (milvus, file_address(tmp_path, "second.db")):
        assert move_vectors(data, str(where)) == 33  # to where they are, or from file to file
        store = open_store(tmp_path)
        assert str(store.elsewhere.address) == str(where)
        assert answers(store) == before
        store.close()
    assert move_vectors(data, "sqlite") == 33
    store = open_store(tmp_path)
    assert store.elsewhere is None
    assert answers(store) == before
    store.close()
    assert vectors_in_sqlite(data) == 33


def test_a_server_under_two_names_is_not_moved_onto_itself(tmp_path, data):
    with served(tmp_path / "server") as address:
        move_vectors(data, str(address))
        move_vectors(data, str(address).replace("127.0.0.1", "localhost"))
        store = open_store(tmp_path)
        assert "localhost" in str(store.elsewhere.address)
        answers(store)
        store.close()


def test_what_is_gone_for_good_is_abandoned_and_made_again(tmp_path, store, milvus):
    before = answers(store)
    store.close()
    let_go(milvus)
    shutil.rmtree(milvus.uri)
    with pytest.raises(VectorsLost):
        move_vectors(store.root, "sqlite")
    move_vectors(store.root, "sqlite", abandon=True)
    store = open_store(tmp_path)
    assert restore_lost(store, EMBEDDER) == 33
    assert answers(store) == before
    store.close()


def test_milvus_that_did_not_keep_what_it_was_given_is_not_moved_to(data, milvus, monkeypatch):
    monkeypatch.setattr("rag.milvus_index.MilvusIndex.add", lambda self, ids, vectors: None)
    with pytest.raises(MoveFailed, match="did not keep"):
        move_vectors(data, str(milvus))
    assert vectors_in_sqlite(data) == 33


def test_milvus_that_holds_other_vectors_is_not_moved_to(data, milvus, monkeypatch):
    from rag.milvus_index import MilvusIndex

    add = MilvusIndex.add
    monkeypatch.setattr(MilvusIndex, "add", lambda self, ids, rows: add(self, ids, rows[::-1]))
    with pytest.raises(MoveFailed, match="other vectors"):
        move_vectors(data, str(milvus))
    assert vectors_in_sqlite(data) == 33


def test_a_store_that_was_never_added_to_only_notes_the_place(tmp_path, milvus):
    assert move_vectors(tmp_path / "data", str(milvus)) == 0
    store = open_store(tmp_path)
    assert str(store.elsewhere.address) == str(milvus)
    store.close()


def test_where_milvus_cannot_be_reached_nothing_moves(data):
    with pytest.raises(MilvusError, match="does not answer"):
        move_vectors(data, "milvus:http://127.0.0.1:9")
    assert vectors_in_sqlite(data) == 33
    with pytest.raises(StoreError, match="--store takes"):
        move_vectors(data, "faiss")


# A child that works on a store, and dies when SQLite is asked for a statement that begins so.
CHILD = """
import sys
from pathlib import Path
from rag.retriever import Retriever
from rag.store import DocumentStore
from rag.vector_moving import move_vectors
from tests.doomed import die, watch_statements
from tests.fakes import FakeEmbedder, put
embedder, root = FakeEmbedder(), Path(sys.argv[1])
"""
SEARCH = """
if sys.argv[2] == "before Milvus has them":
    from rag.milvus_index import MilvusIndex
    MilvusIndex.add = lambda *given: die()
elif sys.argv[2] == "between Milvus and SQLite":
    watch_statements(lambda statement: statement.startswith("UPDATE passages SET vector = NULL"))
store = DocumentStore(root, embedder.identity, embedder.dimension)
put(store, embedder, "new.txt", "a note about zebras", "and their stripes")
print("added", flush=True)
Retriever(store, embedder).retrieve("zebras")
die()
"""
MOVE = """
watch_statements(lambda statement: statement.startswith("UPDATE state SET vectors_at"))
move_vectors(root, sys.argv[2])
"""


def child(code: str, *argv: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, "-c", CHILD + code, *argv], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done


@pytest.mark.parametrize(
    "moment", ["before Milvus has them", "between Milvus and SQLite", "after both"]
)
def test_killed_at_a_named_moment_what_was_reported_is_found(tmp_path, store, milvus, moment):
    store.close()
    let_go(milvus)
    assert child(SEARCH, str(store.root), moment).stdout == "added\n"
    assert vectors_in_sqlite(store.root) == (0 if moment == "after both" else 2)
    store = open_store(tmp_path)
    assert restore_lost(store, EMBEDDER) == 0
    assert Retriever(store, EMBEDDER).retrieve("zebras").passages[0].document == "new.txt"
    assert answers(store)
    assert vectors_in_sqlite(store.root) == 0
    store.close()


@pytest.mark.parametrize("back", [False, True])
def test_a_move_that_is_killed_before_its_end_has_not_begun_and_can_be_finished(
    tmp_path, data, milvus, back
):
    store = open_store(tmp_path)
    before = answers(store)
    store.close()
    if back:
        move_vectors(data, str(milvus))
        let_go(milvus)
    target = "sqlite" if back else str(milvus)
    child(MOVE, str(data), target)
    store = open_store(tmp_path)
    assert (store.elsewhere is not None) == back
    assert answers(store) == before
    store.close()
    assert move_vectors(data, target) == 33
    store = open_store(tmp_path)
    assert (store.elsewhere is not None) != back
    assert answers(store) == before
    store.close()


WRITER = """
from itertools import count
store = DocumentStore(root, embedder.identity, embedder.dimension)
retriever = Retriever(store, embedder)
for turn in count():
    name = f"n{turn % 3}.txt"
    put(store, embedder, name, *(f"{name} {sys.argv[2]} turn {turn} part {n}" for n in range(20)))
    print(name, f"{sys.argv[2]} turn {turn}", flush=True)
    retriever.retrieve("turn")
"""


def test_killed_at_any_moment_milvus_holds_just_the_passages(tmp_path, store, milvus):
    """`kill -9` a process that adds and replaces; GLASSBOX_KILLS=200 for the long form."""
    rng = random.Random(0)
    for run in range(max(2, int(os.environ.get("GLASSBOX_KILLS", "10")) // 5)):
        store.close()
        let_go(milvus)
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD + WRITER, str(store.root), f"run {run}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        reported = dict([process.stdout.readline().split(" ", 1)])
        time.sleep(rng.random() * 0.4)
        process.kill()
        reported |= dict(line.split(" ", 1) for line in process.stdout if line.endswith("\n"))
        process.wait()
        store = open_store(tmp_path)
        assert restore_lost(store, EMBEDDER) == 0
        assert answers(store)
        ids = [*store.elsewhere.open("other").ids, *store.elsewhere.open("han").ids]
        assert sorted(ids) == store.passage_ids().tolist()
        for name in reported:
            passages = store.passages(store.find(name=name).id)
            assert len(passages) == 20
            vectors = store.elsewhere.open("other").get([p.id for p in passages])
            assert (vectors == EMBEDDER.embed_passages([p.text for p in passages])).all()
    store.close()
