"""hOCR, which is what text recognition answers, to lines with their places.

Knows the format (HTML whose titles hold boxes in pixels), not who wrote it nor of which picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from rag.readers.blocks import clean
from rag.readers.pdf_lines import Line

_NUMBERS = re.compile(r"(bbox|baseline|textangle|x_size|x_wconf)((?: -?[\d.]+)+)")
_WIDE = re.compile("[\u2e80-\u9fff\uf900-\ufaff]")
_WIDE_MARK = re.compile("[\u3000-\u303f\uff00-\uff20\uff3b-\uff40\uff5b-\uff65]")
_CHINESE_HEIGHT = 1.18  # times that of Latin letters in a font of the same size, as measured
_LEAST_CONFIDENCE = 30  # percent, of a line; below it are strokes of drawings taken for letters


@dataclass(frozen=True)
class RecognisedPage:
    """One picture's text, turned upright where the program said how it was turned.

    Attributes:
        confidence: percent, the mean over characters; 0 without any.
        sideways: whether most lines run up or down, though nothing was said of turning.
    """

    lines: list[Line]
    confidence: float
    sideways: bool


def read_hocr(hocr: bytes, dpi: float) -> list[RecognisedPage]:
    """The pages in hOCR, places in points from the lower left at `dpi` pixels an inch.

    Lines without a letter or digit, and those that were hardly recognised, are left out.
    Raises ValueError for what is not hOCR.
    """
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, recover=True)
    try:
        root = etree.fromstring(hocr, parser) if hocr.strip() else None
    except etree.XMLSyntaxError as error:
        raise ValueError("no hOCR") from error
    if root is None:
        raise ValueError("no hOCR")
    return [_page(page, 72 / dpi) for page in root.iterfind(".//{*}div[@class='ocr_page']")]


def _page(page: etree._Element, scale: float) -> RecognisedPage:
    box = Box(*_numbers(page)["bbox"])
    lines, total, characters, tall = [], 0.0, 0, 0
    for element in page.iterfind(".//{*}span"):
        numbers = _numbers(element)
        if "x_size" not in numbers or "bbox" not in numbers:
            continue
        words = list(_words(element))
        count = sum(len(word) for word, _ in words)
        confidence = sum(len(word) * percent for word, percent in words)
        text = clean(_joined([word for word, _ in words]))
        if not any(map(str.isalnum, text)) or confidence < _LEAST_CONFIDENCE * count:
            continue
        angle = int(numbers.get("textangle", [0])[0])
        place = Box(*numbers["bbox"]).turned(angle, box)
        tall += place.bottom - place.top > 2 * (place.right - place.left) and len(text) > 2
        base = place.bottom + (0.0 if angle else numbers.get("baseline", [0.0])[-1])
        height = box.right if angle % 180 else box.bottom
        left, right, y = place.left * scale, place.right * scale, (height - base) * scale
        lines.append(Line(text, left, right, y, _size(text, numbers["x_size"][0]) * scale, False))
        total, characters = total + confidence, characters + count
    mean = total / characters if characters else 0.0
    return RecognisedPage(lines, mean, sideways=2 * tall > len(lines))


@dataclass(frozen=True)
class Box:
    """Edges in pixels from the upper left of a picture."""

    left: float
    top: float
    right: float
    bottom: float

    def turned(self, angle: int, page: Box) -> Box:
        """Where it is once the page's text, written at `angle` degrees, is upright."""
        if angle == 90:  # upwards
            return Box(page.bottom - self.bottom, self.left, page.bottom - self.top, self.right)
        if angle == 180:
            return Box(
                *(page.right - self.right, page.bottom - self.bottom),
                *(page.right - self.left, page.bottom - self.top),
            )
        if angle == 270:  # downwards
            return Box(self.top, page.right - self.right, self.bottom, page.right - self.left)
        return self


def _size(text: str, measured: float) -> float:
    """The size of a line's letters, in one measure for Latin and Chinese."""
    wide = len(_WIDE.findall(text)) > len(text) / 3
    return measured / _CHINESE_HEIGHT if wide else measured


def _words(line: etree._Element) -> Iterator[tuple[str, float]]:
    """The words of a line and how sure their recognition is, in percent."""
    for word in line.iterfind(".//{*}span[@class='ocrx_word']"):
        text = "".join(word.itertext()).strip()
        if text:
            yield text, _numbers(word).get("x_wconf", [0.0])[0]


def _numbers(element: etree._Element) -> dict[str, list[float]]:
    found = _NUMBERS.findall(element.get("title", ""))
    return {name: [float(number) for number in numbers.split()] for name, numbers in found}


def _joined(words: list[str]) -> str:
    """Words with spaces, but none that only part Chinese characters, their marks and digits."""
    text = ""
    for word in words:
        text += " " if text and _space_between(text[-1], word[0]) else ""
        text += word
    return text


def _space_between(before: str, after: str) -> bool:
    if _WIDE_MARK.match(before) or _WIDE_MARK.match(after):
        return False
    wide = bool(_WIDE.match(before)), bool(_WIDE.match(after))
    if all(wide):
        return False
    return not (any(wide) and (before.isdigit() or after.isdigit()))
