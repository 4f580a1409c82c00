"""Adding documents in the page: a zip, a folder, progress by page, and a cancel that is quick."""

import time
import zipfile

from playwright.sync_api import expect

from tests.browser.actions import UPLOAD_MS, add_files, go
from tests.browser.made_documents import text_file
from tests.scans import installed_tesseract, scanned
from tests.test_pdf import ENGLISH, flow

LINES = "#documents-progress li"
CANCEL_SECONDS = 3.0  # a busy CI machine; about 0.3 s on an idle one


def begin_adding(page, path) -> None:
    go(page, "documents")
    page.set_input_files("#documents-bar input[type=file]", str(path))


def cancel(page) -> float:
    """Press the button; how long until nothing is at work any more."""
    began = time.monotonic()
    page.click("#documents-cancel")
    expect(page.locator(f"{LINES}.working")).to_have_count(0)
    return time.monotonic() - began


def uploads(server) -> list:
    return [path for path in server.data.rglob("*") if path.is_file() and "uploads" in path.parts]


def test_a_zip_becomes_the_documents_in_it_and_what_cannot_be_read_is_named(page, server, tmp_path):
    path = tmp_path / "港口资料.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("潮汐/时刻表.md", "# 潮汐\n\n高潮在六点零七分。")
        archive.writestr("harbour.txt", "The harbour master is Ingrid Solberg.")
        archive.writestr("empty.txt", "")
        archive.writestr("__MACOSX/._harbour.txt", "junk")
    begin_adding(page, path)
    expect(page.locator(LINES).first).to_contain_text("2 of 3 documents", timeout=UPLOAD_MS)
    expect(page.locator(f"{LINES}.failed")).to_contain_text("港口资料/empty.txt was not added")
    expect(page.locator(f"{LINES}.done")).to_have_count(3)
    listed = page.locator("#documents-list")
    expect(listed).to_contain_text("港口资料/潮汐/时刻表.md")
    expect(listed).to_contain_text("港口资料/harbour.txt")
    expect(page.locator("#documents-cancel")).to_have_count(0)
    assert uploads(server) == []


def test_a_scan_shows_its_pages_and_a_cancel_ends_it_within_a_second(page, server, tmp_path):
    installed_tesseract()
    path = tmp_path / "long scan.pdf"
    path.write_bytes(scanned(flow([("Normal", ENGLISH)] * 8), times=60))
    begin_adding(page, path)
    line = page.locator(f"{LINES}.working")
    expect(line).to_contain_text("recognising text, 2 of 60", timeout=UPLOAD_MS)
    assert cancel(page) < CANCEL_SECONDS
    expect(page.locator(f"{LINES}.cancelled")).to_contain_text("long scan.pdf was not added")
    expect(page.locator("#documents-list")).not_to_contain_text("long scan.pdf")
    expect(page.locator("#documents-cancel")).to_have_count(0)
    assert uploads(server) == []


def test_a_cancel_within_a_zip_keeps_what_was_added_and_says_so(page, server, tmp_path):
    path = tmp_path / "letters.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(400):
            archive.writestr(f"letter {number:03}.txt", f"Letter {number}: the tide is late.")
    begin_adding(page, path)
    expect(page.locator(f"{LINES}.done").first).to_contain_text("letter 000", timeout=UPLOAD_MS)
    assert cancel(page) < CANCEL_SECONDS
    head = page.locator(LINES).first
    expect(head).to_contain_text("documents were added before and stay")
    listed = page.locator("#documents-list")
    expect(listed).to_contain_text("letters/letter 000.txt")
    expect(listed).not_to_contain_text("letters/letter 399.txt")
    assert uploads(server) == []


def test_a_dropped_folder_is_added_with_its_ways(page):
    page.evaluate(
        """() => {
            const file = (name, text) => ({
                name, isFile: true, file: (found) => found(new File([text], name)),
            });
            const folder = (name, children) => ({
                name, isDirectory: true,
                createReader: () => ({ readEntries: (found) => found(children.splice(0, 1)) }),
            });
            const entry = folder("logbook", [
                file("may.md", "The fog bell rang in May."), file(".hidden", "x"),
                folder("june", [file("june.md", "The lamp was cleaned in June.")]),
            ]);
            const drop = new Event("drop", { bubbles: true, cancelable: true });
            drop.dataTransfer = {
                types: ["Files"], items: [{ webkitGetAsEntry: () => entry }], files: [],
            };
            document.body.dispatchEvent(drop);
        }"""
    )
    lines = page.locator("#upload-progress li.done")
    expect(lines).to_have_count(2, timeout=UPLOAD_MS)
    go(page, "documents")
    listed = page.locator("#documents-list")
    expect(listed).to_contain_text("logbook/may.md")
    expect(listed).to_contain_text("logbook/june/june.md")


def test_a_chosen_folder_is_added_with_its_ways(page, tmp_path):
    folder = tmp_path / "stores"
    (folder / "attic" / ".git").mkdir(parents=True)
    text_file(folder, "rope.md", "There are nine coils of rope.")
    text_file(folder / "attic", "oil.md", "Two barrels of lamp oil are left.")
    text_file(folder / "attic" / ".git", "config", "hidden")
    with page.expect_file_chooser() as chooser:
        page.click("#upload-folder")
    chooser.value.set_files(str(folder))
    expect(page.locator("#upload-progress li.done")).to_have_count(2, timeout=UPLOAD_MS)
    go(page, "documents")
    listed = page.locator("#documents-list")
    expect(listed).to_contain_text("stores/rope.md")
    expect(listed).to_contain_text("stores/attic/oil.md")


def test_many_files_at_once_have_a_line_each(page, tmp_path):
    paths = [text_file(tmp_path, f"card {n}.md", f"Card number {n} of the box.") for n in range(12)]
    add_files(page, *paths)
    expect(page.locator(f"{LINES}.done")).to_have_count(12)
