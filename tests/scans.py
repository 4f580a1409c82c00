"""Scans made for the tests: PDFs drawn as pictures, and the program that reads them.

Set GLASSBOX_REQUIRE_OCR, as CI does, to let tests fail where tesseract is missing instead of being
skipped.
"""

from __future__ import annotations

import io
import os

import pypdfium2
import pytest
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from rag.readers.tesseract import Tesseract, find_tesseract


def installed_tesseract() -> Tesseract:
    """The program with both languages, or a skipped (in CI: failed) test."""
    tesseract = find_tesseract()
    if tesseract is None or {"eng", "chi_sim"} - set(tesseract.languages):
        missing = pytest.fail if os.environ.get("GLASSBOX_REQUIRE_OCR") else pytest.skip
        missing("tesseract is not installed with eng and chi_sim")
    return tesseract


def page_picture(pdf: bytes, page: int = 0, dpi: int = 200, turned: int = 0):
    """A page as a grey PIL picture, turned to the left by so many degrees."""
    image = pypdfium2.PdfDocument(pdf)[page].render(scale=dpi / 72).to_pil().convert("L")
    return image.rotate(turned, expand=True) if turned else image


def scanned(pdf: bytes, dpi: int = 200, turned: int = 0, times: int = 1) -> bytes:
    """The same pages as pictures alone, `times` after one another."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    for page in range(len(pypdfium2.PdfDocument(pdf))):
        image = page_picture(pdf, page, dpi, turned)
        width, height = (side * 72 / dpi for side in image.size)
        for _ in range(times):
            canvas.setPageSize((width, height))
            canvas.drawImage(ImageReader(image), 0, 0, width, height)
            canvas.showPage()
    canvas.save()
    return buffer.getvalue()
