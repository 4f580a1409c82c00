"""PDF to blocks. This module opens the file and judges what came out.

A PDF holds glyphs at places, no paragraphs: `pdf_lines` gets the lines of a page from pypdf,
`running_lines` takes out what every page repeats, `pdf_layout` joins lines to paragraphs.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError

from rag.readers.blocks import Block, DocumentError, Source
from rag.readers.pdf_layout import layout
from rag.readers.pdf_lines import Line, page_lines
from rag.readers.running_lines import without_running_lines

_JUNK_SHARE = 0.05  # of the characters; above it the person is warned
_HARDLY_ANY_TEXT = 20  # characters beside a picture: a stamp on a scan
_TAIL = 64 * 1024  # bytes in which the end of a complete file is marked


def read_pdf(source: Source) -> Iterator[Block]:
    """The paragraphs of all pages.

    Raises:
        DocumentError: "damaged", "encrypted", "too_many_pages", "scanned" or "no_text".
    """
    pages = _open(source)
    lines: list[list[Line]] = []
    junk = unread = 0
    for number, page in enumerate(pages, 1):
        try:
            found, found_junk = page_lines(page)
        except MemoryError:
            raise
        except Exception:  # a parser may raise anything on a broken file
            found, found_junk = [], 0
            unread += 1
        lines.append(found)
        junk += found_junk
        source.progress("Reading pages", number, len(pages))
    _judge(pages, lines, junk, unread, source)
    yield from layout(without_running_lines(lines))


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


def _judge(
    pages: list[PageObject], lines: list[list[Line]], junk: int, unread: int, source: Source
) -> None:
    """Refuse a PDF without text; warn of what could not be read."""
    if unread == len(pages):
        raise _damaged()
    lengths = [sum(len(line.text) for line in page) for page in lines]
    short = [page for page, n in zip(pages, lengths, strict=True) if n < _HARDLY_ANY_TEXT]
    pictures = sum(map(_has_picture, short))
    if not any(lengths):
        if pictures:
            raise DocumentError(
                "scanned",
                "This PDF holds no text: its pages are pictures, such as scans. Run text "
                "recognition (OCR) on it and add the result.",
            )
        raise DocumentError("no_text", "This PDF holds no text. Check that it is the right file.")
    if unread:
        source.warn(f"{unread} of {len(pages)} pages are damaged and were left out.")
    if pictures:
        source.warn(
            f"{pictures} of {len(pages)} pages are pictures with hardly any text, such as scans; "
            "what they show cannot be found. Run text recognition (OCR) on them."
        )
    if junk > _JUNK_SHARE * sum(lengths):
        source.warn(
            f"{min(100, round(100 * junk / sum(lengths)))} % of the characters could not be "
            "recognised, since this PDF does not say what its glyphs stand for. What is found in "
            "it may be wrong. Try another copy, or text recognition (OCR)."
        )


def _has_picture(page: PageObject) -> bool:
    try:
        objects = page["/Resources"]["/XObject"]  # type: ignore[index]
        return any(objects[name]["/Subtype"] == "/Image" for name in objects)
    except Exception:  # as above
        return False
