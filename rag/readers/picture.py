"""Picture files (PNG, JPEG, TIFF, WebP) to blocks: the text in them, recognised by tesseract.

tesseract opens the file itself. A TIFF may hold several pages; they are numbered in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

from rag.readers.blocks import Block, DocumentError, Source
from rag.readers.pdf_layout import layout
from rag.readers.pdf_ocr import Recognised, warn_of_recognised, with_even_sizes
from rag.readers.running_lines import without_running_lines
from rag.readers.tesseract import HARDLY_READ, RecognitionError, find_tesseract

_TIFF_STARTS = (b"II*\0", b"MM\0*")
_DPI = 300  # assumed: most pictures do not say, or say how a screen should show them


def read_picture(source: Source) -> Iterator[Block]:
    """The paragraphs in a picture.

    Raises:
        DocumentError: "scanned" where tesseract is missing, "unrecognised" or "no_text".
    """
    tesseract = find_tesseract()
    if tesseract is None:
        raise DocumentError(
            "scanned",
            "This is a picture. Install the tesseract program, so that its text can be recognised "
            "(OCR), and add it again.",
        )
    source.more_time(source.limits.ocr_seconds)
    source.progress("Recognising text", 0, 1)
    seconds = 0.9 * source.limits.ocr_seconds
    if not source.data.startswith(_TIFF_STARTS):
        seconds = min(seconds, source.limits.seconds)  # a single page
    try:
        pages = tesseract.recognise(source.data, _DPI, seconds)
    except RecognitionError as error:
        raise DocumentError(
            "unrecognised",
            "The text of this picture could not be recognised: the picture is damaged or far too "
            "large. Save it again, in parts or with fewer pixels.",
        ) from error
    found = Recognised({n: page.lines for n, page in enumerate(pages) if page.lines})
    found.unsure += [n for n in found.lines if pages[n].confidence < HARDLY_READ]
    if not found.lines:
        raise DocumentError(
            "no_text",
            "No text could be recognised in this picture. Check that it is the right one.",
        )
    warn_of_recognised(found, source.warn)
    lines = with_even_sizes(found.lines, [])
    source.progress("Recognising text", 1, 1)
    yield from layout(without_running_lines([lines.get(n, []) for n in range(len(pages))]))
