"""Dropped files into the store: progress, errors in the person's words, and nothing left behind."""

import threading
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rag.documents import DocumentError
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder
from ui import upload
from ui.i18n import h, known
from ui.upload import FileUpdate, add_files
from ui.upload_button import SHOWN_FILES, progress_view


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

    def slow(store, embedder, path, name, progress, should_stop, folder):
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


def zipped(folder, **members):
    path = folder / "0a1b.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "/") + ".md", text)
    return path


def test_a_zip_has_a_line_of_its_own_and_one_for_each_document(made, tmp_path):
    path = zipped(tmp_path, a="One.", b_c="Two.", d="")
    *_, last = add_files(made, [(path, "合同.zip")])
    assert [(f.name, f.state) for f in last] == [
        ("合同.zip", "done"),
        ("合同/a.md", "done"),
        ("合同/b/c.md", "done"),
        ("合同/d.md", "failed"),
    ]
    assert last[0].values == {"name": "合同.zip", "count": 2, "total": 3}
    assert sorted(d.name for d in made.store.documents()) == ["合同/a.md", "合同/b/c.md"]
    assert list(tmp_path.iterdir()) == [tmp_path / "data"]


def test_a_zip_that_is_refused_gives_its_reason(made, tmp_path):
    *_, last = add_files(made, [(zipped(tmp_path), "empty.zip")])
    assert [(f.state, f.code) for f in last] == [("failed", "no_documents")]


def test_files_of_a_folder_keep_their_way_and_wait_for_their_turn(made, tmp_path):
    files = [(written(tmp_path, str(n), f"Text {n}."), f"notes/{n}.md") for n in range(3)]
    first, *_, last = add_files(made, files)
    assert [f.key for f in first] == ["upload.reading", "upload.waiting", "upload.waiting"]
    assert [f.name for f in last] == ["notes/0.md", "notes/1.md", "notes/2.md"]
    assert sorted(d.name for d in made.store.documents()) == [f.name for f in last]


def test_a_way_that_leads_up_is_only_a_name(made, tmp_path):
    *_, last = add_files(made, [(written(tmp_path, "a", "Text."), "../../etc\\passwd")])
    assert [d.name for d in made.store.documents()] == ["etc/passwd"]
    assert last[0].name == "etc/passwd"


def test_a_cancel_keeps_what_was_added_and_names_what_was_not(made, tmp_path):
    cancelled = threading.Event()
    path, other = zipped(tmp_path, a="One.", b="Two.", c="Three."), written(tmp_path, "x", "Four.")
    for lines in add_files(made, [(path, "z.zip"), (other, "x.md")], cancelled.is_set):
        if any(line.state == "done" for line in lines):
            cancelled.set()
    assert [d.name for d in made.store.documents()] == ["z/a.md"]
    assert [(f.name, f.state) for f in lines if f.state != "cancelled"] == [("z/a.md", "done")]
    assert (lines[0].name, lines[0].values["count"]) == ("z.zip", 1)
    assert lines[-1].name == "x.md"
    assert list(tmp_path.iterdir()) == [tmp_path / "data"]


def test_a_cancel_is_told_at_once_though_the_work_ends_later(made, tmp_path, monkeypatch):
    cancelled, ended = threading.Event(), threading.Event()

    def deaf(store, embedder, path, name, progress, should_stop, folder):
        progress("embed", 1, 9)
        ended.wait(20)
        raise DocumentError("cancelled", "Cancelled.")

    monkeypatch.setattr(upload, "ingest", deaf)
    for (line,) in add_files(made, [(written(tmp_path, "a.md", "x"), "a.md")], cancelled.is_set):
        if line.key == "upload.progress":
            cancelled.set()
        if line.key == "upload.cancelling":
            ended.set()
    assert ended.is_set()
    assert line.state == "cancelled"


def test_a_page_that_closes_leaves_none_of_the_files(made, tmp_path):
    files = [(written(tmp_path, f"{n}.md", "Text."), "") for n in range(3)]
    updates = add_files(made, files)
    next(updates)
    updates.close()
    assert list(tmp_path.iterdir()) == [tmp_path / "data"]


def test_of_thousands_of_files_the_failed_and_the_working_ones_are_shown():
    done = [
        FileUpdate(f"{n}", "done", "upload.added", {"name": n, "count": 2}) for n in range(5000)
    ]
    failed = FileUpdate("bad", "failed", "upload.failed", {"name": "bad"}, code="empty", reason="!")
    working = FileUpdate("now", "working", "upload.reading", {"name": "now"})
    html = progress_view([failed, *done, working], "en")
    assert "bad was not added" in html and "Reading now" in html
    assert "and 4942 more: 4942 added, 0 not" in html
    assert html.count("<li") == SHOWN_FILES + 1


def test_how_long_a_step_takes_is_said_once_it_can_be_told():
    line = FileUpdate("a", "working", "upload.reading", {"name": "a"}, seconds_left=200)
    assert ", about 3 min left" in progress_view([line], "en")
    assert "约剩 40 秒" in progress_view([replace(line, seconds_left=40)], "zh")


def zip_of(path, *names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"Words of {name}.")
    return path


def test_two_people_add_the_same_zip_at_once(made, tmp_path):
    """Gradio keeps equal files of all people under one path."""
    names = [f"{n}.md" for n in range(12)]
    shared = zip_of(tmp_path / "docs.zip", *names)
    uploads = [add_files(made, [(shared, "docs.zip")]) for _ in range(2)]
    for upload_ in uploads:  # both were begun before either is done
        next(upload_)
    lasts = []
    threads = [
        threading.Thread(target=lambda each=each: lasts.append(list(each)[-1])) for each in uploads
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {line.state for last in lasts for line in last} == {"done"}
    assert [len(last) for last in lasts] == [13, 13]
    assert sorted(d.name for d in made.store.documents()) == sorted(f"docs/{n}" for n in names)
    assert not list(tmp_path.glob("*.zip")) and not list(tmp_path.glob("own-*"))


def test_a_cancel_leaves_the_upload_of_another_alone(made, tmp_path):
    shared = zip_of(tmp_path / "docs.zip", *(f"{n}.md" for n in range(6)))
    cancelled = threading.Event()
    mine = add_files(made, [(shared, "docs.zip")], cancelled.is_set)
    theirs = add_files(made, [(shared, "docs.zip")])
    next(mine), next(theirs)
    cancelled.set()
    *_, stopped = mine
    *_, last = theirs
    assert stopped[0].state == "cancelled"
    assert {line.state for line in last} == {"done"} and len(made.store.documents()) == 6


def test_what_was_uploaded_anew_meanwhile_is_not_deleted(made, tmp_path):
    path = written(tmp_path, "a.md", "Words.")
    updates = add_files(made, [(path, "a.md")])
    next(updates)
    written(tmp_path, "new", "Words.").rename(path)  # as Gradio puts an upload in its place
    *_, last = updates
    assert last[0].state == "done" and path.exists()
    *_, last = add_files(made, [(path, "a.md")])
    assert last[0].key == "upload.unchanged" and not path.exists()


def test_an_upload_that_is_gone_is_said_to_be(made, tmp_path):
    *_, last = add_files(made, [(tmp_path / "gone.md", "a.md")])
    assert h("en", "upload.error_gone") in progress_view(last, "en")
