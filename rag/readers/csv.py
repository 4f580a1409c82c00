"""CSV and TSV files to blocks, each row a line with its headings.

What parts the fields is found by trying: the separator that cuts most rows into the same number of
fields. The first row holds the headings unless it holds numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from rag.readers.blocks import Block, Source, clean
from rag.readers.encodings import decode
from rag.readers.sheets import SheetCell, sheet_blocks
from rag.readers.text import read_text

_SEPARATORS = "\t;|,"  # when several fit: the ones that are rarer inside a field first
_SAMPLE_LINES = 200
_SAMPLE = 200_000  # characters
_DECLARED = re.compile(r"sep=([,;|\t:^~])\r?\n", re.IGNORECASE)  # Excel's own first line
_NUMBER = re.compile(
    r"[-+(]?\s*[$€£¥￥]?\s*[-+]?\d[\d,.\s']*(e[-+]?\d+)?\s*[%€$]?\)?"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d\d.*)?|\d{1,2}:\d\d(:\d\d)?",
    re.IGNORECASE,
)
_CELL_LIMIT = "field larger than field limit"
_UNCLOSED = "unexpected end of data"


def read_csv(source: Source) -> Iterator[Block]:
    """The rows of the file, empty ones left out.

    Raises:
        DocumentError: "binary" if it is no text.
    """
    text = decode(source.data, warn=source.warn)
    declared = _DECLARED.match(text)
    if declared:
        text = text[declared.end() :]
    options = _options(text, declared[1] if declared else _separator(text), source)
    if options is None:
        yield from read_text(text)
        return
    rows = (row for row in csv.reader(_lines(text), **options) if any(map(str.strip, row)))
    yield from sheet_blocks(map(_cells, rows), first_is_header=True)


def _options(text: str, separator: str, source: Source) -> dict[str, Any] | None:
    """How to read the rows; None if a row has a field too long for any table."""
    options: dict[str, Any] = {"delimiter": separator}
    if '\\"' in text and '""' not in text:
        options |= {"escapechar": "\\", "doublequote": False}
    if _quotes_close(text, options):
        return options
    options = {"delimiter": separator, "quoting": csv.QUOTE_NONE}
    if not _quotes_close(text, options):
        source.warn(
            f"This file has a field of more than {csv.field_size_limit():,} characters, so it was "
            "read as text and not as a table."
        )
        return None
    source.warn(
        "A quotation mark in this file is never closed, so quotation marks were read as text and "
        "every line as a row."
    )
    return options


def _separator(text: str) -> str:
    """The separator that cuts the most of the first rows into the same number of fields."""
    sample = "".join(islice(io.StringIO(text[:_SAMPLE], newline=""), _SAMPLE_LINES))

    def fit(separator: str) -> float:
        try:
            sizes = Counter(
                len(row) for row in csv.reader(_lines(sample), delimiter=separator) if row
            )
        except csv.Error:
            return 0
        counts = {size: rows for size, rows in sizes.items() if size > 1}
        return max(counts.values(), default=0) / max(1, sizes.total())

    best = max(_SEPARATORS, key=fit)
    return best if fit(best) else ","


def _quotes_close(text: str, options: dict[str, Any]) -> bool:
    """Whether quoted fields end where fields may end, so that no row swallows those after it."""
    try:
        for _ in csv.reader(_lines(text), strict=True, **options):
            pass
    except csv.Error as error:
        if _UNCLOSED in str(error) or _CELL_LIMIT in str(error):
            return False
        return _quotes_close_loosely(text, options)
    return True


def _quotes_close_loosely(text: str, options: dict[str, Any]) -> bool:
    """The same for a file with marks inside of fields, as in `"a"b`: no row may span many lines."""
    reader = csv.reader(_lines(text), **options)
    line = 0
    try:
        for _ in reader:
            if reader.line_num - line > 100:
                return False
            line = reader.line_num
    except csv.Error:
        return False
    return True


def _lines(text: str) -> Iterable[str]:
    return io.StringIO(text, newline="")  # ends of lines within quoted fields are kept


def _cells(row: list[str]) -> list[SheetCell]:
    return [
        SheetCell(field, not _NUMBER.fullmatch(field))
        for field in (" ".join(clean(field).split()) for field in row)
    ]
