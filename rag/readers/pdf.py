"""PDF to blocks: lines with their places on the page, joined again to paragraphs.

A PDF holds glyphs at positions, no paragraphs. pypdf gives the text of each line with its matrix;
`rag.readers.pdf_layout` joins lines. This module opens the file and judges what came out.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError, PyPdfError

from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.pdf_layout import Line, page_blocks, without_repeated_lines

_JUNK_SHARE = 0.05


def read_pdf(source: Source) -> Iterator[Block]:
    """The paragraphs of each page.

    Raises:
        DocumentError: "damaged", "encrypted", "no_pages", "too_many_pages" or "scanned".
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages = _open(source)
    lines = []
    for number, page in enumerate(pages, 1):
        lines.append(_lines(page))
        source.progress("Reading pages", number, len(pages))
    _judge(lines, source)
    for number, page_lines in enumerate(without_repeated_lines(lines), 1):
        yield from page_blocks(page_lines, number)


def _open(source: Source) -> list[PageObject]:
    try:
        reader = PdfReader(io.BytesIO(source.data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise _encrypted()
        count = len(reader.pages)
        if count > source.limits.pages:
            raise DocumentError(
                "too_many_pages",
                f"This PDF has {count:,} pages; at most {source.limits.pages:,} can be read. "
                "Split it and add the parts.",
            )
        pages = list(reader.pages)
    except DependencyError as error:
        raise _encrypted() from error
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise DocumentError(
            "damaged",
            "This PDF is damaged or incomplete and could not be opened. Download or export it "
            "again.",
        ) from error
    if not pages:
        raise DocumentError("no_pages", "This PDF has no pages. Export it again.")
    return pages


def _encrypted() -> DocumentError:
    return DocumentError(
        "encrypted",
        "This PDF is encrypted. Open it with its password and save or print it to a PDF without "
        "one.",
    )


def _lines(page: PageObject) -> list[Line]:
    """The lines of a page in the order of its content."""
    lines: list[Line] = []
    parts: list[str] = []
    place: tuple[float, float, float] | None = None

    def visit(text: str, cm: list[float], tm: list[float], font: object, size: float) -> None:
        nonlocal place
        for index, piece in enumerate(text.split("\n")):
            if index:
                end_line()
            if piece:
                if place is None or not "".join(parts).strip():
                    x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
                    y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
                    scale = abs(tm[3] * cm[3]) or abs(tm[1] * cm[2]) or 1.0
                    place = (x, y, size * scale)
                parts.append(piece)

    def end_line() -> None:
        nonlocal place
        text = clean("".join(parts)).strip()
        if text and place is not None:
            lines.append(Line(text, *place))
        parts.clear()
        place = None

    page.extract_text(visitor_text=visit)
    end_line()
    return lines


def _judge(pages: list[list[Line]], source: Source) -> None:
    """Refuse a PDF without text; warn of pages without text and of junk in place of text."""
    empty = sum(not lines for lines in pages)
    if empty == len(pages):
        raise DocumentError(
            "scanned",
            "No text was found in this PDF: its pages are pictures, such as scans. Run text "
            "recognition (OCR) on it and add the result.",
        )
    text = "".join(line.text for lines in pages for line in lines)
    if empty:
        source.warn(f"{empty} of {len(pages)} pages hold no text; they may be scans.")
    junk = text.count("\ufffd") + sum(len(part) for part in _cid_codes(text))
    if junk > _JUNK_SHARE * len(text):
        source.warn(
            f"About {100 * junk // len(text)} % of the characters could not be recognised, since "
            "this PDF does not say what its glyphs stand for. Answers from it may be wrong."
        )


def _cid_codes(text: str) -> list[str]:
    import re

    return re.findall(r"\(cid:\d+\)", text)
