"""The composition root: each command opens only what it needs, and the corpus comes once."""

import subprocess
import sys
from pathlib import Path

import pytest

import app
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder
from ui.cli_options import Options

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"torch", "transformers", "sentence_transformers", "gradio", "faiss"}


@pytest.mark.parametrize("command", ["list", "remove"])
def test_looking_at_the_documents_imports_no_model(command, tmp_path):
    argv = [command, "--data", str(tmp_path), *(["x"] if command == "remove" else [])]
    code = f"import sys, app; app.main({argv!r}); print({HEAVY!r} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "set()", done.stderr


@pytest.fixture
def application(tmp_path, monkeypatch):
    monkeypatch.setattr(app.Application, "_embedder", FakeEmbedder())
    labels = []
    made = app.Application(Options(tmp_path / "data"), lambda *progress: labels.append(progress))
    made.labels = labels
    return made


def test_the_first_start_adds_the_corpus_in_both_languages_with_progress(application):
    application._add_corpus()
    names = {document.name for document in application._store.documents()}
    assert {"kv-cache.en.md", "kv-cache.zh.md"} <= names
    assert application.labels[-1][1:] == (len(names), len(names))


def test_what_was_removed_from_the_corpus_stays_removed(application):
    application._add_corpus()
    for document in application._store.documents():
        application._store.remove(document.id)
    application._add_corpus()
    assert application._store.documents() == []


def test_documents_of_another_embedder_are_embedded_again(application, tmp_path):
    other = FakeEmbedder()
    other.identity = "another"
    old = DocumentStore(tmp_path / "data", other.identity, other.dimension)
    from rag.ingest import ingest

    path = tmp_path / "note.md"
    path.write_text("A note about walnuts.")
    ingest(old, other, path)
    old.close()
    assert len(application._store.documents()) == 1
    assert application._store.embedder_identity == FakeEmbedder().identity
    assert any("again" in label for label, *_ in application.labels)


def test_the_store_can_be_opened_without_an_embedder(tmp_path, monkeypatch):
    monkeypatch.setattr(
        app.Application, "_embedder", property(lambda _: pytest.fail("the embedder was opened"))
    )
    made = app.Application(Options(tmp_path / "data"), lambda *_: None)
    assert made.document_store().documents() == []
