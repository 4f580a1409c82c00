"""PDF to blocks. This module opens the file and judges what came out.

A PDF holds glyphs at places, no paragraphs: `pdf_lines` gets the lines of a page from pypdf,
`running_lines` takes out what every page repeats, `pdf_layout` joins lines to paragraphs.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError

from rag.readers.blocks import Block, DocumentError, Source
from rag.readers.pdf_layout import layout
from rag.readers.pdf_lines import Line, page_lines
from rag.readers.pdf_ocr import (
    Recognised,
    page_names,
    recognise_pages,
    warn_of_recognised,
    with_even_sizes,
)
from rag.readers.running_lines import without_running_lines
from rag.readers.tesseract import find_tesseract

_JUNK_SHARE = 0.05  # of a file's characters; above it the person is warned
_JUNK_PAGE = 0.2  # of a page's; above it the page is recognised. Below are bullets and formulas,
# among text that is exact while recognised text is not.
_HARDLY_ANY_TEXT = 40  # characters beside a picture: a stamp on a scan
_DEEPEST_FORM = 3  # of drawings in drawings, in which a page's picture may be
_TAIL = 64 * 1024  # bytes in which the end of a complete file is marked


@dataclass
class _Page:
    """What is known of one page. `lines` is None where it could not be read."""

    lines: list[Line] | None
    junk: int  # characters
    has_picture: bool = False

    @property
    def length(self) -> int:
        return sum(len(line.text) for line in self.lines or ())

    @property
    def is_scan(self) -> bool:
        return self.has_picture and self.lines is not None and self.length < _HARDLY_ANY_TEXT

    @property
    def is_junk(self) -> bool:
        return self.junk > _JUNK_PAGE * self.length


def read_pdf(source: Source) -> Iterator[Block]:
    """The paragraphs of all pages; text is recognised (OCR) where pages are pictures.

    Raises:
        DocumentError: "damaged", "encrypted", "too_many_pages", "scanned" or "no_text".
    """
    pages = _read_pages(source)
    wanted = [
        n for n, page in enumerate(pages) if page.lines is None or page.is_scan or page.is_junk
    ]
    tesseract = find_tesseract() if wanted else None
    recognised = recognise_pages(source, tesseract, wanted, len(pages)) if tesseract else None
    if recognised is not None:
        _take(pages, recognised, source)
    _judge(pages, recognised, source)
    yield from layout(without_running_lines([page.lines or [] for page in pages]))


def _read_pages(source: Source) -> list[_Page]:
    """The pages' own text."""
    opened = _open(source)
    pages = []
    for number, page in enumerate(opened, 1):
        try:
            read = _Page(*page_lines(page))
        except MemoryError:
            raise
        except Exception:  # a parser may raise anything on a broken file
            read = _Page(None, 0)
        if read.length < _HARDLY_ANY_TEXT:
            read.has_picture = _has_picture(page)
        pages.append(read)
        source.progress("Reading pages", number, len(opened))
    return pages


def _open(source: Source) -> list[PageObject]:
    tail = source.data.rstrip(b"\0\r\n ")[-_TAIL:]
    if b"startxref" not in tail and b"%%EOF" not in tail:
        raise _damaged()
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
    except DependencyError as error:  # a cipher that needs another library
        raise _encrypted() from error
    except (DocumentError, MemoryError):
        raise
    except Exception as error:  # a parser may raise anything on a broken file
        raise _damaged() from error
    if not pages:
        raise DocumentError("no_text", "This PDF has no pages. Export it again.")
    return pages


def _damaged() -> DocumentError:
    return DocumentError(
        "damaged",
        "This PDF is damaged or incomplete and could not be read. Download or export it again.",
    )


def _encrypted() -> DocumentError:
    return DocumentError(
        "encrypted",
        "This PDF is encrypted. Open it with its password, print it to a new PDF without one, and "
        "add that.",
    )


def _take(pages: list[_Page], recognised: Recognised, source: Source) -> None:
    """Put recognised text in the place of pictures and junk, and say so."""
    others = [page.lines or [] for n, page in enumerate(pages) if n not in recognised.lines]
    for number, lines in with_even_sizes(recognised.lines, others).items():
        pages[number].lines, pages[number].junk = lines, 0
    warn_of_recognised(recognised, source.warn)


def _judge(pages: list[_Page], recognised: Recognised | None, source: Source) -> None:
    """Refuse a PDF without text; warn of what could not be read."""
    unread = [n for n, page in enumerate(pages) if page.lines is None]
    scans = [n for n, page in enumerate(pages) if page.is_scan]
    total = sum(page.length for page in pages)
    if len(unread) == len(pages):
        raise _damaged()
    if not total:
        raise _without_text(bool(scans), recognised)
    if unread:
        source.warn(f"{len(unread)} of {len(pages)} pages are damaged and were left out.")
    if scans and recognised is None:
        source.warn(
            f"{len(scans)} of {len(pages)} pages are pictures with hardly any text, such as scans; "
            "what they show cannot be found. Install the tesseract program, so that their text can "
            "be recognised, and add the file again."
        )
    elif recognised is not None:
        _name_missing(pages, recognised, source)
    junk = sum(page.junk for page in pages)
    if junk > _JUNK_SHARE * total:
        source.warn(
            f"{min(100, round(100 * junk / total))} % of the characters could not be "
            "recognised, since this PDF does not say what its glyphs stand for. What is found in "
            "it may be wrong. Try another copy, or text recognition (OCR)."
        )


def _name_missing(pages: list[_Page], recognised: Recognised, source: Source) -> None:
    """Warn of the pictures whose text is not there."""
    blank = [n for n in recognised.blank + recognised.failed if pages[n].is_scan]
    if blank:
        source.warn(f"No text could be recognised in the pictures on {page_names(sorted(blank))}.")
    if recognised.unreached:
        source.warn(
            f"The text of {page_names(recognised.unreached)} was not recognised, since this file "
            f"would take too long ({source.limits.ocr_pages} pages and "
            f"{source.limits.ocr_seconds / 60:g} minutes are allowed): what they show cannot be "
            "found. Split the file and add the parts."
        )


def _without_text(has_scans: bool, recognised: Recognised | None) -> DocumentError:
    if not has_scans:
        return DocumentError("no_text", "This PDF holds no text. Check that it is the right file.")
    if recognised is None:
        return DocumentError(
            "scanned",
            "This PDF holds no text: its pages are pictures, such as scans. Install the tesseract "
            "program, so that their text can be recognised (OCR), and add the file again.",
        )
    if recognised.unreached or not recognised.blank:
        return DocumentError(
            "unrecognised",
            "This PDF holds no text, only pictures, and recognising their text failed or took too "
            "long. Split it and add the parts.",
        )
    return DocumentError(
        "no_text",
        "This PDF holds only pictures, and no text could be recognised in them. Check that it is "
        "the right file, or scan it again more sharply.",
    )


def _has_picture(page: PageObject) -> bool:
    try:
        return _shows_image(page["/Resources"], _DEEPEST_FORM)
    except Exception:  # as above
        return False


def _shows_image(resources: Any, depth: int) -> bool:
    """Whether a page's resources, or those of drawings in it, hold an image."""
    objects = [resources["/XObject"][name] for name in resources.get("/XObject", ())]
    if any(item["/Subtype"] == "/Image" for item in objects):
        return True
    forms = [item["/Resources"] for item in objects if "/Resources" in item]
    return depth > 1 and any(_shows_image(form, depth - 1) for form in forms)
