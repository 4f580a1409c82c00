"""rag.readers.pdf and what it is made of: PDFs to paragraphs; CASES 4, 5 and 7."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate

from rag.documents import Document, DocumentError, Limits, load_document

SONG = "STSong-Light"
DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")

ENGLISH = (
    "Retrieval changes the context; it does not change how text is generated. The decoder still "
    "writes one token at a time, and every token is conditioned on all tokens before it."
)
CHINESE = (
    "检索改变的是上下文，而不改变文本的生成方式。解码器仍然一次写一个词元，每个词元都以它之前的全部词元为条件。"
    "参见 Shannon 的实验，以及后来的 Transformer 模型。"
)


def draw(*pages: Callable[[Canvas], object]) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    for page in pages:
        page(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def lines(texts: Sequence[str], font: str = "Helvetica", size: int = 11, y: int = 700) -> Any:
    def page(canvas: Canvas) -> None:
        canvas.setFont(font, size)
        for index, text in enumerate(texts):
            canvas.drawString(72, y - index * size * 1.3, text)

    return page


def flow(parts: Sequence[tuple[str, str]], font: str | None = None) -> bytes:
    """A PDF of (style, text), laid out by reportlab in justified lines."""
    buffer = io.BytesIO()
    styles = getSampleStyleSheet()
    story = []
    for style, text in parts:
        wrapped = "CJK" if font else None
        extra = {"fontName": font, "wordWrap": wrapped} if font else {"alignment": 4}
        story.append(Paragraph(text, styles[style].clone("x", **extra)))
    SimpleDocTemplate(buffer).build(story)
    return buffer.getvalue()


@pytest.fixture(scope="module", autouse=True)
def fonts() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont(SONG))


def read(data: bytes, folder: Path, **limits: int) -> Document:
    (folder / "a.pdf").write_bytes(data)
    return load_document(folder / "a.pdf", limits=Limits(**limits))


def code_of(data: bytes, folder: Path, **limits: int) -> str:
    with pytest.raises(DocumentError) as error:
        read(data, folder, **limits)
    assert error.value.message.endswith(".")
    return error.value.code


def test_english_lines_are_joined_to_paragraphs_with_spaces(tmp_path: Path) -> None:
    parts = [("Heading1", "Retrieval"), ("Normal", f"{ENGLISH} {ENGLISH}"), ("Normal", ENGLISH)]
    document = read(flow(parts), tmp_path)
    assert document.text == f"Retrieval\n\n{ENGLISH} {ENGLISH}\n{ENGLISH}"
    assert document.sections[0].heading == ("Retrieval",)


def test_chinese_lines_are_joined_without_spaces(tmp_path: Path) -> None:
    document = read(flow([("Heading1", "检索"), ("Normal", CHINESE * 3)], SONG), tmp_path)
    assert document.text.replace(" ", "") == f"检索\n\n{CHINESE * 3}".replace(" ", "")
    assert "上下文，而不改变文本的生成方式。解码器" in document.text


@pytest.mark.skipif(not DEJAVU.exists(), reason="needs a TrueType font to embed")
def test_text_in_an_embedded_font_is_read(tmp_path: Path) -> None:
    pdfmetrics.registerFont(TTFont("DejaVu", DEJAVU))
    page = lines(["Größe, naïve café, Ελληνικά, Привет."], "DejaVu")
    assert read(draw(page), tmp_path).text == "Größe, naïve café, Ελληνικά, Привет."


def test_hyphens_at_line_ends_go_unless_the_word_has_one(tmp_path: Path) -> None:
    page = lines(
        [
            "The well-known method needs a long line of text, which is a proba-",
            "bility written out in full, and a second one to see how the well-",
            "known method deals with it at the end of a line, as we do here.",
        ]
    )
    text = read(draw(page), tmp_path).text
    assert "a probability written" in text
    assert "how the well-known method deals" in text


def test_radicals_and_ligatures_become_what_people_type() -> None:
    from rag.readers.pdf_lines import searchable

    assert searchable("⾔⽂⼀⻅⻛⻢ \ufb01le o\ufb03ce") == "言文一见风马 file office"
    assert searchable("Index . . . . . . . . . 12") == "Index … 12"


def test_list_items_and_table_rows_keep_their_lines(tmp_path: Path) -> None:
    page = lines([ENGLISH[:80], "and so on to its end:", "• first item", "• second item", "Ada 36"])
    assert read(draw(page), tmp_path).text.splitlines()[-3:] == [
        "• first item",
        "• second item",
        "Ada 36",
    ]


def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    def page(canvas: Canvas) -> None:
        for x, word in ((72, "left"), (320, "right")):
            for row in range(6):
                canvas.drawString(x, 700 - 14 * row, f"{word} column text in line {row} goes on")

    text = read(draw(page), tmp_path).text
    assert text.index("left column text in line 5") < text.index("right column text in line 0")
    assert "line 0 goes on left column text in line 1" in text


def test_pages_are_kept_and_a_sentence_goes_on_over_them(tmp_path: Path) -> None:
    first = lines([*["A line of text that is as long as all the others are."] * 3, "The end of it"])
    second = lines(["goes on over the page. Then comes another sentence here."])
    document = read(draw(first, second), tmp_path)
    assert "The end of it goes on over the page." in document.text
    assert [section.page for section in document.sections] == [1, 2]
    assert document.text[document.sections[1].start :].startswith("goes on")


def running(canvas: Canvas, number: int, body: str) -> None:
    canvas.drawString(72, 800, "Acme Annual Report")
    canvas.drawString(72, 700, body)
    canvas.drawString(72, 40, f"Page {number} of 6")
    canvas.drawString(300, 40, f"Chapter 1 | {number}")


def test_running_lines_are_kept_once_and_page_numbers_go(tmp_path: Path) -> None:
    data = draw(*(lambda c, n=n: running(c, n, f"Body number {n * n + 7}.") for n in range(1, 7)))
    text = read(data, tmp_path).text
    assert text.count("Acme Annual Report") == 1
    assert text.count("Chapter 1") == 1
    assert "Page" not in text
    for n in range(1, 7):
        assert f"Body number {n * n + 7}." in text


def test_a_running_line_that_the_text_says_anyway_goes_everywhere(tmp_path: Path) -> None:
    pages = [lambda c, n=n: running(c, n, f"Body {n * n}.") for n in range(1, 7)]
    text = read(draw(lines(["Acme Annual Report"]), *pages), tmp_path).text
    assert text.count("Acme Annual Report") == 1


def test_what_is_repeated_on_few_pages_or_elsewhere_stays(tmp_path: Path) -> None:
    pages = [lines([f"Topic {n} of the day", *["same line in the middle"] * 8]) for n in (3, 9, 4)]
    text = read(draw(*pages), tmp_path).text
    assert text.count("same line in the middle") == 24
    assert all(f"Topic {n}" in text for n in (3, 9, 4))


def test_a_page_is_never_left_empty(tmp_path: Path) -> None:
    text = read(draw(*(lines([f"This is page {n}."]) for n in range(1, 6))), tmp_path).text
    assert all(f"This is page {n}." in text for n in range(1, 6))


@pytest.fixture
def without_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.readers.pdf.find_tesseract", lambda: None)


def picture(canvas: Canvas) -> None:
    from PIL import Image
    from reportlab.lib.utils import ImageReader

    canvas.drawImage(ImageReader(Image.new("L", (8, 8))), 72, 72, 400, 600)


def test_scans_are_refused_and_a_few_among_text_are_warned_of(
    tmp_path: Path, without_tesseract: None
) -> None:
    assert code_of(draw(picture, picture), tmp_path) == "scanned"
    document = read(draw(lines([ENGLISH[:80]]), picture), tmp_path)
    assert "1 of 2 pages are pictures" in document.warnings[0]


def test_blank_and_missing_pages_are_refused(tmp_path: Path) -> None:
    assert code_of(draw(lambda canvas: None), tmp_path) == "no_text"
    buffer = io.BytesIO()
    PdfWriter().write(buffer)
    assert code_of(buffer.getvalue(), tmp_path) == "no_text"


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_an_encrypted_pdf_is_refused_unless_anyone_may_read_it(
    tmp_path: Path, algorithm: str
) -> None:
    for password, expected in (("secret", "encrypted"), ("", None)):
        writer = PdfWriter(clone_from=io.BytesIO(draw(lines(["Some text."]))))
        writer.encrypt(password, owner_password="owner", algorithm=algorithm)
        buffer = io.BytesIO()
        writer.write(buffer)
        if expected:
            assert code_of(buffer.getvalue(), tmp_path) == expected
        else:
            assert read(buffer.getvalue(), tmp_path).text == "Some text."


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_pdf_is_refused(tmp_path: Path, share: float) -> None:
    data = draw(*[lines([ENGLISH[:80]])] * 3)
    assert code_of(data[: int(len(data) * share)], tmp_path) == "damaged"


def test_broken_objects_give_an_error_or_text_but_never_a_crash(tmp_path: Path) -> None:
    data = draw(*[lines([ENGLISH[:80]])] * 2)
    for start in range(0, len(data) - 20, 97):
        broken = data[:start] + b"[<(/99999" + data[start + 9 :]
        try:
            read(broken, tmp_path)
        except DocumentError as error:
            assert error.code in ("damaged", "no_text", "encrypted", "scanned")


def test_junk_in_place_of_characters_is_warned_of_above_five_percent(
    tmp_path: Path, without_tesseract: None
) -> None:
    for text, warned in (("(cid:12)" * 4 + "x" * 50, True), ("(cid:12)" + "x" * 200, False)):
        assert bool(read(draw(lines([text])), tmp_path).warnings) == warned


def test_glyphs_of_unknown_meaning_are_warned_of(tmp_path: Path, without_tesseract: None) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(draw(lines(["\u4e2d\u6587" * 20], SONG))))
    for font in writer.pages[0]["/Resources"]["/Font"].values():  # type: ignore[index]
        font.get_object()[NameObject("/Encoding")] = NameObject("/Identity-H")
    buffer = io.BytesIO()
    writer.write(buffer)
    assert "could not be recognised" in read(buffer.getvalue(), tmp_path).warnings[0]


def test_pages_are_limited_exactly(tmp_path: Path) -> None:
    data = draw(*(lines([f"Text {n * n}"]) for n in range(1, 4)))
    for limit in (3, 4):
        assert read(data, tmp_path, pages=limit).sections[-1].page == 3
    assert code_of(data, tmp_path, pages=2) == "too_many_pages"


def test_a_pdf_of_300_pages_is_read_page_by_page(tmp_path: Path) -> None:
    body = [f"{ENGLISH[:75]} {n}" for n in range(12)]
    (tmp_path / "a.pdf").write_bytes(draw(*[lines(body)] * 300))
    reports: list[tuple[str, int, int]] = []
    document = load_document(tmp_path / "a.pdf", progress=lambda *report: reports.append(report))
    assert [done for _, done, total in reports if total == 300] == list(range(1, 301))
    assert {section.page for section in document.sections} == set(range(1, 301))


def test_a_pdf_with_something_before_its_header_is_still_a_pdf(tmp_path: Path) -> None:
    data = b"\n\n" + draw(lines(["Some text."]))
    assert PdfReader(io.BytesIO(data)).pages
    assert read(data, tmp_path).media_type == "application/pdf"
