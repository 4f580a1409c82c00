"""`rag.ingest`: one file, whole or not at all."""

import threading
from pathlib import Path

import pytest

from rag.documents import DocumentError
from rag.embedding import EmbeddingStopped
from rag.ingest import ingest, ingest_folder
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder

TEXT = "# Lighthouse\n\nThe lighthouse was built in 1923.\n\n# 灯塔\n\n守护人每天傍晚点亮主灯。\n"


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
def store(tmp_path, embedder):
    store = DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension)
    yield store
    store.close()


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "lighthouse.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_file_becomes_a_document_with_passages_of_its_text(store, embedder, path):
    steps = []
    result = ingest(store, embedder, path, progress=lambda *step: steps.append(step))
    assert result.status == "added"
    assert store.documents() == [result.document]
    text = store.document(result.document.id).text
    passages = store.passages(result.document.id)
    assert all(text[p.start : p.end] == p.text for p in passages)
    assert "1923" in "".join(p.text for p in passages)


def test_files_of_one_name_in_two_folders_are_two_documents(store, embedder, tmp_path):
    for folder in ("a/notes", "b/notes", "more"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "README.md").write_text(f"About {folder}.", encoding="utf-8")
    for folder in ("a/notes", "b/notes", "more"):
        path = tmp_path / folder / "README.md"
        assert ingest(store, embedder, path, folder=folder).status == "added"
        assert ingest(store, embedder, path, folder=folder).status == "unchanged"
    names = sorted(document.name for document in store.documents())
    assert names == ["a/notes/README.md", "b/notes/README.md", "more/README.md"]


def test_passages_are_embedded_under_their_headings_but_kept_as_they_are(store, embedder, tmp_path):
    embedded = []

    class Recording(FakeEmbedder):
        def embed_passages(self, texts, progress=None, should_stop=None):
            embedded.extend(texts)
            return super().embed_passages(texts)

    path = tmp_path / "long.md"
    path.write_text("# Tides\n\n" + "The water rises and it falls again. " * 60, encoding="utf-8")
    stored = ingest(store, Recording(), path).document
    assert stored.passages > 1
    assert all(text.startswith(("Tides\n", "# Tides")) for text in embedded)
    assert not any(p.text.startswith("Tides\n") for p in store.passages(stored.id))


def test_the_same_file_again_is_unchanged_and_not_embedded(store, embedder, path):
    first = ingest(store, embedder, path)
    embedder.embed_passages = lambda *_: pytest.fail("was embedded again")
    again = ingest(store, embedder, path)
    assert (again.status, again.document) == ("unchanged", first.document)


def test_the_same_content_under_another_name_is_refused_with_the_name_it_has(store, embedder, path):
    first = ingest(store, embedder, path)
    with pytest.raises(DocumentError, match=r"lighthouse\.md") as refused:
        ingest(store, embedder, path, "copy.md")
    assert refused.value.code == "already_stored"
    assert store.documents() == [first.document]


def test_a_new_version_replaces_the_old_one(store, embedder, path):
    first = ingest(store, embedder, path)
    path.write_text(TEXT.replace("1923", "1924"), encoding="utf-8")
    second = ingest(store, embedder, path)
    assert second.status == "replaced"
    assert store.documents() == [second.document]
    assert store.passages(first.document.id) == []


def test_two_uploads_at_once_of_the_same_file_are_one_document(store, path):
    both = threading.Barrier(2, timeout=20)

    class Meeting(FakeEmbedder):
        def embed_passages(self, texts, progress=None, should_stop=None):
            both.wait()  # both are past the look whether it is there
            return super().embed_passages(texts)

    results = []
    threads = [
        threading.Thread(target=lambda: results.append(ingest(store, Meeting(), path)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(r.status for r in results) == ["added", "unchanged"]
    assert [r.document for r in results] == store.documents() * 2


def failing(error: Exception):
    class Failing(FakeEmbedder):
        def embed_passages(self, texts, progress=None, should_stop=None):
            raise error

    return Failing()


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (RuntimeError("out of memory"), RuntimeError),
        (EmbeddingStopped(), DocumentError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_when_embedding_fails_nothing_stays_behind(store, path, error, raised):
    before = sorted(p.name for p in store.root.iterdir())
    with pytest.raises(raised):
        ingest(store, failing(error), path)
    assert store.documents() == []
    assert store.generation == 0
    assert sorted(p.name for p in store.root.iterdir()) == before


def test_when_embedding_a_new_version_fails_the_old_one_stays(store, embedder, path):
    first = ingest(store, embedder, path)
    path.write_text("another text", encoding="utf-8")
    with pytest.raises(RuntimeError):
        ingest(store, failing(RuntimeError("no")), path)
    assert store.documents() == [first.document]


def test_a_cancel_leaves_nothing(store, embedder, path):
    for after in range(3):
        asked = []

        def should_stop(after=after, asked=asked) -> bool:
            asked.append(1)
            return len(asked) > after

        with pytest.raises(DocumentError) as cancelled:
            ingest(store, embedder, path, should_stop=should_stop)
        assert cancelled.value.code == "cancelled"
    assert store.documents() == []


def test_a_file_that_changes_while_it_is_read_is_refused(store, embedder, path, monkeypatch):
    from rag import ingest as module

    parse = module.parse_in_sandbox

    def changing(file, *arguments, **more):
        document = parse(file, *arguments, **more)
        file.write_text("changed", encoding="utf-8")
        return document

    monkeypatch.setattr(module, "parse_in_sandbox", changing)
    with pytest.raises(DocumentError, match="changed while"):
        ingest(store, embedder, path)
    assert store.documents() == []


def test_a_file_that_is_not_there_is_an_ordinary_error(store, embedder, tmp_path):
    with pytest.raises(FileNotFoundError):
        ingest(store, embedder, tmp_path / "none.md")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a\x00b.md", "\u202egnp.md", "x" * 400 + ".md"]
)
def test_a_name_is_only_something_to_look_at(store, embedder, path, tmp_path, name):
    outside = sorted(p for p in tmp_path.iterdir())
    stored = ingest(store, embedder, path, name).document
    assert sorted(p for p in tmp_path.iterdir()) == outside
    assert "/" not in stored.name and "\x00" not in stored.name and len(stored.name) <= 120
    assert ingest(store, embedder, path, name).status == "unchanged"


def test_a_folder_of_languages_is_added_once_and_then_only_what_changed(store, embedder, tmp_path):
    for language, text in (("en", "The lighthouse."), ("zh", "灯塔的守护人。")):
        (tmp_path / "corpus" / language).mkdir(parents=True)
        (tmp_path / "corpus" / language / "a.md").write_text(text, encoding="utf-8")
    corpus = tmp_path / "corpus"
    assert [r.status for r in ingest_folder(store, embedder, corpus)] == ["added", "added"]
    assert [d.name for d in store.documents()] == ["a.en.md", "a.zh.md"]
    (corpus / "en" / "a.md").write_text("The lighthouse keeper.", encoding="utf-8")
    assert [r.status for r in ingest_folder(store, embedder, corpus)] == ["replaced", "unchanged"]
