"""rag.readers.page_image: pages as pictures of bounded size."""

import pytest
from reportlab.pdfgen.canvas import Canvas

from rag.readers.page_image import DPI, MOST_PIXELS, PageImageError, PageImages
from tests.test_pdf import draw


def sized(width: float, height: float) -> bytes:
    def page(canvas: Canvas) -> None:
        canvas.setPageSize((width, height))
        canvas.rect(0, 0, width / 2, height, fill=1)

    return draw(page)


def header(pgm: bytes) -> tuple[int, int]:
    _, width, height, _ = pgm.split(maxsplit=3)[:4]
    return int(width), int(height)


def test_a_page_is_drawn_in_grey_from_its_upper_left() -> None:
    image = PageImages(sized(72, 36)).draw(0)
    assert image.dpi == DPI
    assert header(image.pgm) == (DPI, DPI // 2)
    pixels = image.pgm[-DPI * (DPI // 2) :]
    assert (pixels[10], pixels[DPI - 10]) == (0, 255)


@pytest.mark.parametrize("size", [(14400, 14400), (3000, 4000), (14400, 1), (0.1, 0.1)])
def test_a_page_of_any_size_makes_a_picture_of_a_bearable_one(size: tuple[float, float]) -> None:
    image = PageImages(sized(*size)).draw(0)
    width, height = header(image.pgm)
    assert width * height < 1.01 * MOST_PIXELS
    assert max(width, height) < 32_767


def test_what_cannot_be_opened_or_drawn_is_an_error() -> None:
    with pytest.raises(PageImageError):
        PageImages(b"%PDF-1.4 nothing")
    with pytest.raises(PageImageError):
        PageImages(sized(72, 72)).draw(3)
