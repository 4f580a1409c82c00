"""Dropped files into the store: progress, errors in the person's words, and nothing left behind."""

from types import SimpleNamespace

import pytest

from rag.documents import DocumentError
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder
from ui import upload
from ui.i18n import h, known
from ui.upload import FileUpdate, add_files
from ui.upload_button import progress_view


@pytest.fixture
def made(tmp_path):
    embedder = FakeEmbedder()
    store = DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension)
    yield SimpleNamespace(store=store, embedder=embedder)
    store.close()


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_added_under_its_own_name_and_its_copy_is_deleted(made, tmp_path):
    path = written(tmp_path, "0a1b.md", "# Lease\n\nThree months.")
    *_, last = add_files(made, [(path, "租约 (1).md")])
    assert [(f.name, f.state, f.key) for f in last] == [("租约 (1).md", "done", "upload.added")]
    assert [d.name for d in made.store.documents()] == ["租约 (1).md"]
    assert not path.exists()


def test_a_bad_file_does_not_stop_the_good_one_and_its_copy_is_deleted_too(made, tmp_path):
    bad, good = written(tmp_path, "bad.md", ""), written(tmp_path, "good.md", "Words.")
    *_, last = add_files(made, [(bad, ""), (good, "")])
    assert [(f.state, f.code) for f in last] == [("failed", "empty"), ("done", "")]
    assert not bad.exists() and not good.exists()


def test_the_same_file_again_is_unchanged(made, tmp_path):
    for _ in range(2):
        path = written(tmp_path, "a.md", "Words.")
        *_, last = add_files(made, [(path, "a.md")])
    assert last[0].key == "upload.unchanged"


def test_a_closed_page_stops_the_reading(made, tmp_path, monkeypatch):
    asked = []

    def slow(store, embedder, path, name, progress, should_stop):
        while not should_stop():
            progress("embed", 1, 9)
        asked.append(name)
        raise DocumentError("cancelled", "Cancelled.")

    monkeypatch.setattr(upload, "ingest", slow)
    path = written(tmp_path, "a.md", "Words.")
    updates = add_files(made, [(path, "a.md")])
    next(updates), next(updates)
    updates.close()
    assert asked == ["a.md"]
    assert not path.exists()


def test_an_unexpected_error_says_nothing_of_the_inside(made, tmp_path, monkeypatch):
    monkeypatch.setattr(upload, "ingest", lambda *a, **k: 1 / 0)
    *_, last = add_files(made, [(written(tmp_path, "a.md", "Words."), "a.md")])
    assert h("en", "upload.error_other") in progress_view(last, "en")


@pytest.mark.parametrize("code", ["empty", "scanned", "encrypted", "damaged", "timeout"])
def test_a_failure_is_said_in_the_persons_language(code):
    failed = FileUpdate("a", "failed", "upload.failed", {"name": "a"}, code=code, reason="Why.")
    assert known(f"upload.error_{code}")
    assert "Why." in progress_view([failed], "en")
    assert h("zh", f"upload.error_{code}") in progress_view([failed], "zh")


def test_progress_is_a_bar_with_words_and_names_are_escaped():
    values = {"name": "<b>", "done": 3, "total": 9}
    working = FileUpdate("<b>", "working", "upload.progress", values, 3, 9, label="embed")
    html = progress_view([working], "zh")
    assert '<progress value="3" max="9">' in html
    assert h("zh", "upload.step_embed") in html
    assert "<b>" not in html
