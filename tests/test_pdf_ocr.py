"""rag.readers.pdf_ocr and rag.readers.pdf: scanned pages are read by the real tesseract, or not."""

import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from pypdf import PdfReader, PdfWriter

from rag.documents import Document, DocumentError, Limits, load_document
from rag.readers import pdf as pdf_reader
from rag.readers.pdf_ocr import page_names
from rag.sandbox import parse_in_sandbox
from tests.scans import installed_tesseract, scanned
from tests.test_pdf import CHINESE, ENGLISH, SONG, code_of, draw, flow, fonts, lines, read

__all__ = ["fonts"]  # a fixture

ENGLISH_PDF = flow([("Heading1", "Retrieval"), ("Normal", ENGLISH)])


@pytest.fixture
def tesseract():
    return installed_tesseract()


def joined(*pdfs: bytes) -> bytes:
    writer, buffer = PdfWriter(), io.BytesIO()
    for data in pdfs:
        for page in PdfReader(io.BytesIO(data)).pages:
            writer.add_page(page)
    writer.write(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
def test_an_english_scan_is_read_whichever_way_it_lies(tesseract, tmp_path, turned) -> None:
    pdf = flow([("Heading1", "Retrieval"), ("Normal", f"{ENGLISH} {ENGLISH}")])
    document = read(scanned(pdf, turned=turned), tmp_path)
    assert document.text == f"Retrieval\n\n{ENGLISH} {ENGLISH}"
    assert document.sections[0].heading == ("Retrieval",)
    assert "page 1 was recognised" in document.warnings[0]


def test_a_chinese_scan_is_read_without_spaces_between_characters(tesseract, tmp_path) -> None:
    data = flow([("Normal", CHINESE)], SONG)
    text = read(scanned(data), tmp_path).text
    assert "检索改变的是上下文，而不改变文本的生成方式。" in text
    assert "参见 Shannon 的实验" in text


def test_a_page_that_can_hardly_be_read_is_warned_of(tesseract, tmp_path) -> None:
    document = read(scanned(flow([("Normal", ENGLISH[:72])]), turned=180), tmp_path)
    assert "could hardly be recognised" in document.warnings[1]


def test_only_the_scanned_pages_are_recognised_and_all_keep_their_numbers(
    tesseract, tmp_path
) -> None:
    own = draw(lines(["This page has text of its own, which nobody needs to recognise at all."]))
    data = joined(own, scanned(ENGLISH_PDF), own)
    reports: list[tuple[str, int, int]] = []
    (tmp_path / "a.pdf").write_bytes(data)
    document = load_document(tmp_path / "a.pdf", progress=lambda *report: reports.append(report))
    assert [report for report in reports if report[0] == "Recognising text"] == [
        ("Recognising text", 1, 1)
    ]
    spans = {s.page: document.text[s.start : s.end] for s in document.sections}
    assert ENGLISH in spans[2] and "of its own" in spans[1] and "of its own" in spans[3]
    assert document.warnings == (
        "The text of page 2 was recognised in pictures (OCR) and may hold errors.",
    )


def test_a_stamp_over_a_scan_does_not_pass_for_its_text(tesseract, tmp_path) -> None:
    stamp = PdfReader(io.BytesIO(draw(lines(["Scanned by a telephone"], y=60)))).pages[0]
    writer, buffer = PdfWriter(clone_from=io.BytesIO(scanned(ENGLISH_PDF))), io.BytesIO()
    writer.pages[0].merge_page(stamp)
    writer.write(buffer)
    assert ENGLISH in read(buffer.getvalue(), tmp_path).text


def test_glyphs_of_unknown_meaning_are_recognised_by_their_looks(tesseract, tmp_path) -> None:
    junk = draw(lines(["(cid:12)" * 6, "but this is drawn and can be seen by everybody"], size=14))
    document = read(junk, tmp_path)
    assert "this is drawn and can be seen by everybody" in document.text
    assert "recognised in pictures" in document.warnings[0]


def test_bullets_of_unknown_meaning_do_not_cost_the_exact_text_of_a_page(tmp_path) -> None:
    page = draw(
        lines([f"(cid:3) the item called number {n} of the list, in full" for n in range(5)])
    )
    document = read(page, tmp_path)
    assert document.text.count("(cid:3)") == 5
    assert "could not be recognised" in document.warnings[0]


def test_a_picture_without_text_is_named(tesseract, tmp_path) -> None:
    from tests.test_pdf import picture

    document = read(draw(lines([ENGLISH[:80]]), picture), tmp_path)
    assert document.warnings == ("No text could be recognised in the pictures on page 2.",)
    assert code_of(draw(picture), tmp_path) == "no_text"


def test_pages_beyond_the_budget_are_named_and_the_others_kept(tesseract, tmp_path) -> None:
    data = joined(*[scanned(ENGLISH_PDF)] * 4)
    document = read(data, tmp_path, ocr_pages=2)
    assert {section.page for section in document.sections} == {1, 2}
    assert document.warnings[0].startswith("The text of pages 1-2 was recognised")
    assert document.warnings[1].startswith("The text of pages 3-4 was not recognised")


def test_when_the_time_is_up_what_was_read_is_kept(tesseract, tmp_path) -> None:
    (tmp_path / "a.pdf").write_bytes(scanned(ENGLISH_PDF, times=40))
    begin = time.monotonic()
    document = parse_in_sandbox(tmp_path / "a.pdf", limits=Limits(ocr_seconds=8))
    assert time.monotonic() - begin < 20
    read_pages = {section.page for section in document.sections}
    assert 0 < len(read_pages) < 40
    assert "was not recognised" in document.warnings[-1]
    assert "-40 was not" in document.warnings[-1]


def test_without_the_time_for_a_single_page_the_file_is_refused(tesseract, tmp_path) -> None:
    (tmp_path / "a.pdf").write_bytes(scanned(ENGLISH_PDF))
    with pytest.raises(DocumentError) as error:
        load_document(tmp_path / "a.pdf", limits=Limits(ocr_seconds=0.001))
    assert error.value.code == "unrecognised"


def test_time_is_given_only_while_text_is_recognised(tesseract, tmp_path) -> None:
    (tmp_path / "a.pdf").write_bytes(scanned(ENGLISH_PDF, times=4))
    document: Document = parse_in_sandbox(tmp_path / "a.pdf", limits=Limits(seconds=3))
    assert {section.page for section in document.sections} == {1, 2, 3, 4}


def test_without_tesseract_scans_are_refused_and_it_is_said_what_would_help(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(pdf_reader, "find_tesseract", lambda: None)
    with pytest.raises(DocumentError, match="Install the tesseract program") as error:
        read(scanned(ENGLISH_PDF), tmp_path)
    assert error.value.code == "scanned"
    document = read(joined(ENGLISH_PDF, scanned(ENGLISH_PDF)), tmp_path)
    assert "1 of 2 pages are pictures" in document.warnings[0]
    assert "Install the tesseract program" in document.warnings[0]


def running_tesseracts() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.name() == "tesseract"]


def works(process: psutil.Process) -> bool:
    """Whether it is there and not merely waiting to be forgotten by the system."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_cancel_ends_tesseract_too_and_leaves_no_file(tesseract, tmp_path) -> None:
    (tmp_path / "a.pdf").write_bytes(scanned(ENGLISH_PDF, times=30))
    before = set(os.listdir("/tmp"))
    stop, seen = threading.Event(), list[psutil.Process]()

    def watch() -> None:
        while not seen:
            seen.extend(running_tesseracts())
            time.sleep(0.02)
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    with pytest.raises(DocumentError) as error:
        parse_in_sandbox(tmp_path / "a.pdf", should_stop=stop.is_set)
    assert error.value.code == "cancelled"
    time.sleep(0.2)
    assert not [process for process in seen if works(process)]
    assert {name for name in set(os.listdir("/tmp")) - before if "tess" in name} == set()
    assert psutil.Process().children() == []


def test_a_tesseract_that_hangs_costs_one_page_and_not_the_file(tmp_path, monkeypatch) -> None:
    script = tmp_path / "bin" / "tesseract"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n[ $1 = --list-langs ] && printf 'List:\\neng\\n' || sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    data = joined(ENGLISH_PDF, scanned(ENGLISH_PDF))
    document = read(data, tmp_path, seconds=1)
    assert ENGLISH in document.text
    assert document.warnings == ("No text could be recognised in the pictures on page 2.",)


def test_the_child_that_recognises_imports_neither_network_nor_models(tmp_path: Path) -> None:
    code = "import rag.readers.pdf, sys; print(*sys.modules)"
    root = Path(__file__).parents[1]
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert not {"socket", "ssl", "http.client", "numpy", "torch"} & set(output.split())


def test_pages_are_named_as_people_count_them() -> None:
    assert page_names([2]) == "page 3"
    assert page_names([6, 0, 1, 2, 8]) == "pages 1-3, 7 and 9"
