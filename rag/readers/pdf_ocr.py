"""Text recognition for those pages of a PDF that hold pictures instead of text, within a budget.

Pages are drawn one after another and recognised several at a time. What was not reached in time is
named, never left out silently.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby

from rag.readers.blocks import Source
from rag.readers.hocr import RecognisedPage
from rag.readers.page_image import PageImageError, PageImages
from rag.readers.pdf_lines import Line
from rag.readers.tesseract import HARDLY_READ, RecognitionError, Tesseract

_MOST_AT_ONCE = 4
_SIZE_STEP = 1.3  # letters that differ by less are of one size: a scan is measured roughly
_USUAL_SIZE = 10.0  # points, where no page holds text to compare with


@dataclass
class Recognised:
    """What came of recognising some pages, by their numbers from 0.

    Attributes:
        lines: of pages in which text was found.
        unsure: pages of these that could hardly be read.
        blank: pages in which there was none.
        failed: pages that could not be drawn or recognised, or took too long alone.
        unreached: pages for which the budget of the whole file did not last.
    """

    lines: dict[int, list[Line]] = field(default_factory=dict)
    unsure: list[int] = field(default_factory=list)
    blank: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    unreached: list[int] = field(default_factory=list)


def recognise_pages(
    source: Source, tesseract: Tesseract, pages: Sequence[int], count: int
) -> Recognised:
    """The lines of `pages` (numbers from 0) of a PDF of `count` pages, in points as elsewhere.

    Asks the source for `limits.ocr_seconds` more time, of which it keeps to nine tenths, and looks
    at no more than `limits.ocr_pages`.
    """
    source.more_time(source.limits.ocr_seconds)
    found = Recognised(unreached=list(pages[source.limits.ocr_pages :]))
    pages = pages[: source.limits.ocr_pages]
    try:
        images = PageImages(source.data)
    except PageImageError:
        return replace(found, failed=list(pages))
    with closing(images):
        if len(images) != count:  # the two libraries disagree on what the pages are
            return replace(found, failed=list(pages))
        run = _Run(source, tesseract, images, time.monotonic() + 0.9 * source.limits.ocr_seconds)
        for done, (page, outcome) in enumerate(run.outcomes(pages), 1):
            if outcome == "unreached":
                found.unreached.append(page)
            elif isinstance(outcome, str):
                found.failed.append(page)
            elif not outcome.lines:
                found.blank.append(page)
            else:
                found.lines[page] = outcome.lines
                if outcome.confidence < HARDLY_READ:
                    found.unsure.append(page)
            source.progress("Recognising text", done, len(pages))
    found.unreached.sort()
    return found


@dataclass(frozen=True)
class _Run:
    source: Source
    tesseract: Tesseract
    images: PageImages
    deadline: float  # of time.monotonic()

    def outcomes(self, pages: Sequence[int]) -> Iterator[tuple[int, RecognisedPage | str]]:
        """Each page in order with what is on it, or "failed" or "unreached"."""
        at_once = max(1, min(_MOST_AT_ONCE, (os.cpu_count() or 1) // 2))  # the page comes first
        waiting: deque[tuple[int, Future[RecognisedPage | str]]] = deque()
        with ThreadPoolExecutor(at_once) as pool:
            for page in pages:
                waiting.append((page, self._begin(pool, page)))
                if len(waiting) > at_once:
                    yield _ended(waiting.popleft())
            yield from map(_ended, waiting)

    def _begin(self, pool: ThreadPoolExecutor, page: int) -> Future[RecognisedPage | str]:
        """Draw here, where PDFium is safe, and recognise in a thread."""
        ended: Future[RecognisedPage | str] = Future()
        if time.monotonic() >= self.deadline:
            ended.set_result("unreached")
            return ended
        try:
            image = self.images.draw(page)
        except PageImageError:
            ended.set_result("failed")
            return ended
        return pool.submit(self._recognise, image.pgm, image.dpi)

    def _recognise(self, pgm: bytes, dpi: float) -> RecognisedPage | str:
        left = self.deadline - time.monotonic()
        if left <= 0:
            return "unreached"
        try:
            pages = self.tesseract.recognise(pgm, dpi, min(left, self.source.limits.seconds))
        except RecognitionError:
            return "unreached" if time.monotonic() >= self.deadline else "failed"
        return pages[0] if pages else "failed"


def _ended(item: tuple[int, Future[RecognisedPage | str]]) -> tuple[int, RecognisedPage | str]:
    return item[0], item[1].result()


def with_even_sizes(
    recognised: dict[int, list[Line]], others: Sequence[list[Line]]
) -> dict[int, list[Line]]:
    """The lines with sizes that can be compared with one another and with text that was not drawn.

    What is measured in a scan varies from line to line, and by a constant from the sizes of fonts.
    """
    measured = _usual_size([line for lines in recognised.values() for line in lines])
    usual = _usual_size([line for lines in others for line in lines]) or _USUAL_SIZE
    if not measured:
        return recognised

    def even(size: float) -> float:
        steps = round(math.log(max(size, 0.01) / measured, _SIZE_STEP))
        return usual * _SIZE_STEP**steps

    return {
        page: [replace(line, size=even(line.size)) for line in lines]
        for page, lines in recognised.items()
    }


def _usual_size(lines: Sequence[Line]) -> float:
    """The size that most characters have, in half points; 0 without any."""
    characters: Counter[float] = Counter()
    for line in lines:
        characters[round(2 * line.size) / 2] += len(line.text)
    return characters.most_common(1)[0][0] if characters else 0.0


def warn_of_recognised(recognised: Recognised, warn: Callable[[str], None]) -> None:
    """Say whose text was recognised, and whose could hardly be."""
    if recognised.lines:
        warn(
            f"The text of {page_names(list(recognised.lines))} was recognised in pictures (OCR) "
            "and may hold errors."
        )
    if recognised.unsure:
        warn(
            f"Much of {page_names(recognised.unsure)} could hardly be recognised: what is found "
            "there may be wrong. Scan it again, upright and more sharply."
        )


def page_names(pages: Sequence[int]) -> str:
    """Pages, from 0, as a person counts them: "page 3", "pages 1-4, 7 and 9"."""
    runs = []
    for _, group in groupby(enumerate(sorted(pages)), key=lambda item: item[1] - item[0]):
        numbers = [page + 1 for _, page in group]
        runs.append(f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0]))
    joined = " and ".join(filter(None, (", ".join(runs[:-1]), runs[-1])))
    return f"{'page' if len(pages) == 1 else 'pages'} {joined}"
