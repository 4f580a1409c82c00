"""rag.readers.tesseract: the real program, by pipes alone."""

import io

import pytest

from rag.readers.tesseract import RecognitionError, Tesseract, choose_languages, find_tesseract
from tests.scans import installed_tesseract, page_picture
from tests.test_pdf import ENGLISH, flow


def test_a_picture_goes_in_and_its_lines_come_out() -> None:
    buffer = io.BytesIO()
    page_picture(flow([("Normal", ENGLISH)])).save(buffer, "PNG")
    (page,) = installed_tesseract().recognise(buffer.getvalue(), 200, 60)
    assert " ".join(line.text for line in page.lines) == ENGLISH
    assert page.confidence > 80


def test_what_is_no_picture_fails_and_a_slow_look_is_ended() -> None:
    tesseract = installed_tesseract()
    with pytest.raises(RecognitionError):
        tesseract.recognise(b"no picture", 300, 60)
    pgm = b"P5 3000 3000 255\n" + bytes(range(250)) * 36000
    with pytest.raises(RecognitionError):
        tesseract.recognise(pgm, 300, 0.1)


def test_the_pages_languages_come_before_others() -> None:
    assert choose_languages(["osd", "eng", "deu", "chi_sim"]) == ("eng", "chi_sim")
    assert choose_languages(["osd", "deu"]) == ("deu",)
    assert choose_languages(["osd"]) == ()


def test_where_the_program_is_missing_there_is_none(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tesseract() is None


def test_a_program_that_is_gone_is_an_ordinary_failure() -> None:
    with pytest.raises(RecognitionError):
        Tesseract("/nowhere/tesseract", ("eng",), False).recognise(b"", 300, 1)
