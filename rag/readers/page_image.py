"""Pages of a PDF as grey pictures, drawn by PDFium. Knows no text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pypdfium2

DPI = 300  # what text recognition is trained for; Chinese at 10 points needs it
MOST_PIXELS = 12_000_000  # an A4 page at 300 dpi has 8.7 million
_LONGEST_SIDE = 30_000  # pixels; tesseract takes no more than 32,767


class PageImageError(Exception):
    """A page that PDFium cannot draw."""


@dataclass(frozen=True)
class PageImage:
    """A picture in the PGM format: a short header and one byte a pixel. `dpi`: as drawn."""

    pgm: bytes
    dpi: float


class PageImages:
    """The pages of one PDF. Not to be used by several threads: PDFium must not be.

    Raises PageImageError for a file that PDFium cannot open.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            raise PageImageError from error

    def __len__(self) -> int:
        return len(self._document)

    def draw(self, index: int) -> PageImage:
        """Page `index` (from 0) at `DPI`, or at less where that makes more than `MOST_PIXELS`."""
        try:
            page = self._document[index]
            width, height = (max(1.0, side) for side in page.get_size())
            scale = min(
                DPI / 72,
                math.sqrt(MOST_PIXELS / (width * height)),
                _LONGEST_SIDE / max(width, height),
            )
            bitmap = page.render(scale=scale, grayscale=True)
        except pypdfium2.PdfiumError as error:
            raise PageImageError from error
        try:
            return PageImage(_pgm(bitmap), 72 * scale)
        finally:
            bitmap.close()
            page.close()

    def close(self) -> None:
        self._document.close()


def _pgm(bitmap: Any) -> bytes:
    rows = memoryview(bitmap.buffer).cast("B")
    width, height, stride = bitmap.width, bitmap.height, bitmap.stride
    pixels = (rows[start : start + width] for start in range(0, height * stride, stride))
    return b"".join([b"P5 %d %d 255\n" % (width, height), *pixels])
