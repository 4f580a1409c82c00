"""A store whose process was killed at a named moment: what was reported is there, nothing is half.

Random moments are in tests/test_store.py. Full disks are real ones: the operating system refuses
the bytes.
"""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rag.index_building import Building, Limits
from rag.reembedding import reembed
from rag.retriever import Retriever
from rag.store import DocumentStore
from tests.doomed import CALLS, STATEMENTS
from tests.fakes import FakeEmbedder, put

ROOT = Path(__file__).resolve().parents[1]
OLD = {"golden": 2, "note.md": 2}
GOLDEN = ("When was the lighthouse built?", "the lighthouse was built in 1923")

MOMENTS = [
    ("add", "before the first row"),
    ("add", "between document and passages"),
    ("add", "before the change is counted"),
    ("add", "before the commit"),
    ("remove", "in the middle of a removal"),
    ("remove", "before the change is counted"),
    ("remove", "before the commit"),
    ("index", "before a file is on disk"),
    ("index", "before a file gets its name"),
    ("index", "after a file got its name"),
    ("index", "before the saved index is recorded"),
    ("index", "between two saved parts"),
    ("index", "before the approximate index is written"),
    ("index", "when old files may go"),
    ("embed again", "while new vectors are kept"),
    ("embed again", "before new vectors replace the old"),
    ("embed again", "before the commit"),
]


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
def data(tmp_path, embedder) -> Path:
    """A store with a golden answer and a file in an older version."""
    store = DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension)
    put(store, embedder, "golden", GOLDEN[1], "the keeper lights the lamp")
    put(store, embedder, "note.md", "the first version", "of a note")
    store.close()
    return tmp_path / "data"


@pytest.fixture
def new_version(tmp_path) -> Path:
    path = tmp_path / "note.md"
    path.write_text("# Second\n\nThe second version of the note.\n", encoding="utf-8")
    return path


def contents(store: DocumentStore) -> dict[str, int]:
    """Passages by document; each passage must be its document's text and have its vector."""
    ids = store.passage_ids()
    found, vectors = store.vectors(ids)
    assert sorted(found.tolist()) == sorted(ids)
    embedder = FakeEmbedder()
    for passage in store.passages_by_id(ids):
        row = vectors[found.tolist().index(passage.id)]
        assert abs(float(row @ embedder.embed_query(passage.searchable)) - 1) < 1e-5
        assert store.document(passage.document_id).text[passage.start : passage.end] == passage.text
    return {document.name: document.passages for document in store.documents()}


def best(store: DocumentStore, embedder: FakeEmbedder) -> tuple[str, str]:
    found = Retriever(store, embedder).retrieve(GOLDEN[0]).passages[0]
    return found.document, found.text


@pytest.mark.parametrize(("action", "moment"), MOMENTS)
def test_killed_there_it_is_as_before(data, new_version, embedder, action, moment):
    child = subprocess.run(
        [sys.executable, "-m", "tests.doomed", action, data, new_version, moment],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()  # the moment did come
    store = DocumentStore(data, embedder.identity, embedder.dimension)
    assert contents(store) == OLD
    assert best(store, embedder) == ("golden", GOLDEN[1])
    Building(store, Limits(unsaved=0, unsaved_share=0.0)).run()  # nothing is in its way
    assert best(store, embedder) == ("golden", GOLDEN[1])
    store.close()


def test_every_moment_that_has_a_name_is_tried():
    assert {moment for _, moment in MOMENTS} == STATEMENTS.keys() | CALLS.keys()


def test_after_a_kill_embedding_again_goes_on_and_ends(data, new_version):
    for moment in ("while new vectors are kept", "before new vectors replace the old"):
        subprocess.run(
            [sys.executable, "-m", "tests.doomed", "embed again", data, new_version, moment],
            cwd=ROOT,
            check=False,
        )
    other = FakeEmbedder(identity="other")
    store = DocumentStore(data)
    assert reembed(store, other)
    store.close()
    store = DocumentStore(data, other.identity, other.dimension)
    assert best(store, other) == ("golden", GOLDEN[1])
    store.close()


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from rag.database import StoreError
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
embedder = FakeEmbedder()
store = DocumentStore(Path(sys.argv[1]), embedder.identity, embedder.dimension)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    put(store, embedder, "large", *(f"part {n} of something large" for n in range(600)))
except StoreError as error:
    print(error.code, error)
"""


@pytest.mark.parametrize("room", [0, 4096, 40_000, 300_000])
def test_a_disk_that_takes_no_more_bytes_changes_nothing_and_is_explained(data, embedder, room):
    """The operating system refuses to make any file longer, at several points of the change."""
    limit = max(path.stat().st_size for path in data.iterdir()) + room
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(data), str(limit)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.startswith(("disk_full", "disk_failed")), child.stdout + child.stderr
    assert "nothing was changed" in child.stdout
    store = DocumentStore(data, embedder.identity, embedder.dimension)
    assert contents(store) == OLD
    put(store, embedder, "later", "there is room again")
    assert best(store, embedder) == ("golden", GOLDEN[1])
    store.close()


FULL_FOR_INDEXES = """
import shutil, sys
from pathlib import Path
from rag.index_building import Limits
from rag.indexes import Indexes
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put
embedder, folder = FakeEmbedder(), Path(sys.argv[1])
store = DocumentStore(folder / "data", embedder.identity, embedder.dimension)
for n in range(30):
    put(store, embedder, f"{n}", *(f"part {m} of number {n}" for m in range(20)))
(folder / "filler").write_bytes(bytes(shutil.disk_usage(folder).free - 300_000))
for _ in range(2):
    index = Indexes(store, Limits(unsaved=100)).current()
    print(index.count(), len(index.nearest(embedder.embed_query("part 7"), 5)))
"""
CAN_MOUNT = (
    shutil.which("unshare") is not None
    and not subprocess.run(
        ["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False
    ).returncode
)


@pytest.mark.skipif(not CAN_MOUNT, reason="a small disk cannot be made here")
def test_a_disk_that_is_full_when_indexes_are_saved_costs_no_answer(tmp_path):
    """The bytes of a mapped file are refused by ending the process, so none is written so."""
    command = 'mount -t tmpfs -o size=6m none "$1" && exec "$2" -c "$3" "$1"'
    child = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command, "", tmp_path, sys.executable, FULL_FOR_INDEXES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stdout) == (0, "600 5\n600 5\n"), child.stderr
    assert "No space left" in child.stderr
