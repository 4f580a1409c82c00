"""rag.readers.picture: photographs and scans as picture files."""

import io

import pytest
from PIL import Image

from rag.documents import DocumentError, load_document
from rag.sandbox import parse_in_sandbox
from tests.scans import installed_tesseract, page_picture
from tests.test_pdf import CHINESE, ENGLISH, SONG, flow, fonts

__all__ = ["fonts"]  # a fixture


def saved(image: Image.Image, file_format: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_the_text_in_a_picture_is_read(tmp_path, file_format) -> None:
    installed_tesseract()
    picture = page_picture(flow([("Normal", ENGLISH)]), dpi=300)
    (tmp_path / "a").write_bytes(saved(picture, file_format))
    document = parse_in_sandbox(tmp_path / "a")
    assert document.text == ENGLISH
    assert document.warnings == (
        "The text of page 1 was recognised in pictures (OCR) and may hold errors.",
    )


def test_the_pages_of_a_tiff_are_numbered(tmp_path) -> None:
    installed_tesseract()
    texts = ((ENGLISH, None), (CHINESE, SONG))
    pages = [page_picture(flow([("Normal", t)], font), dpi=300) for t, font in texts]
    data = saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    (tmp_path / "a.tiff").write_bytes(data)
    document = load_document(tmp_path / "a.tiff")
    found = {s.page: document.text[s.start : s.end] for s in document.sections}
    assert ENGLISH[:60] in found[1]
    assert "改变的是上下文，而不改变文本的生成方式" in found[2]


def test_a_picture_without_text_or_with_damage_is_refused(tmp_path) -> None:
    installed_tesseract()
    blank = saved(Image.new("L", (500, 500), 255), "PNG")
    for data, code in ((blank, "no_text"), (blank[:60], "unrecognised")):
        (tmp_path / "a.png").write_bytes(data)
        with pytest.raises(DocumentError) as error:
            parse_in_sandbox(tmp_path / "a.png")
        assert error.value.code == code


def test_a_picture_of_a_billion_pixels_costs_an_error(tmp_path) -> None:
    installed_tesseract()
    (tmp_path / "a.png").write_bytes(saved(Image.new("1", (32_000, 32_000), 1), "PNG"))
    with pytest.raises(DocumentError) as error:
        parse_in_sandbox(tmp_path / "a.png")
    assert error.value.code in ("unrecognised", "no_text")


def test_without_tesseract_it_is_said_what_would_help(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("rag.readers.picture.find_tesseract", lambda: None)
    (tmp_path / "a.png").write_bytes(saved(Image.new("L", (50, 50)), "PNG"))
    with pytest.raises(DocumentError, match="Install the tesseract program") as error:
        load_document(tmp_path / "a.png")
    assert error.value.code == "scanned"
