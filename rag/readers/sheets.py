"""Rows of a spreadsheet or a CSV file to lines: where its tables begin and which row has headings.

A sheet says nothing of this, so it is judged by its look: single cells above a table are its title,
headings are text above cells that are not, or bold, or (in a CSV file) simply the first row. Empty
rows part tables, unless what follows goes on in the same columns. Rows are looked at a few at a
time, so a sheet may be longer than memory.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from rag.readers.blocks import Block
from rag.readers.tables import Cell, looks_like_header, table_lines

_LOOK_AHEAD = 4  # rows
_LONGEST_HEADING = 60  # characters
_YEAR = re.compile(r"(19|20)\d\d")


@dataclass(frozen=True)
class SheetCell:
    """One place of a sheet.

    Attributes:
        is_text: not a number, a date or a truth value.
        merged: the cell on which side reaches over this place.
    """

    text: str = ""
    is_text: bool = True
    bold: bool = False
    merged: Literal["", "left", "above"] = ""


Row = Sequence[SheetCell]


def sheet_blocks(rows: Iterable[Row], first_is_header: bool = False) -> Iterator[Block]:
    """The lines of one sheet, tables and titles parted by empty lines.

    Args:
        rows: from the top, empty ones too; the place in a row is the column.
        first_is_header: whether the first row of a table has headings even if all below is text.
    """
    sheet = _Sheet(rows)
    header: Row | None = None
    separator = "\n\n"
    while sheet.skip_empty_rows():
        if sheet.is_title():
            yield Block(_title(sheet.take()), separator=separator)
            separator = "\n" if sheet.goes_on() else "\n\n"
            continue
        goes_on = header is not None and not _begins_table(sheet, header, first_is_header)
        top: list[Row] = []
        if goes_on and header is not None:
            top = [header]  # read before; labels this part too
        elif _is_header(sheet, first_is_header):
            header = sheet.row
        else:
            header = None
        part = chain(top, sheet.table(header, first_is_header))
        lines = table_lines(map(_cells, part), header is not None)
        for line in islice(lines, len(top), None):
            yield Block(line, separator="\n\n" if separator == "\n\n" else "\n")
            separator = "\n"
        separator = "\n\n"


class _Sheet:
    """The rows still to come, of which the next few can be seen."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self._seen: deque[Row] = deque()

    @property
    def row(self) -> Row:
        return self._seen[0]

    def _look(self, count: int) -> None:
        self._seen.extend(islice(self._rows, max(0, count - len(self._seen))))

    def take(self) -> Row:
        return self._seen.popleft()

    def below(self) -> list[Row]:
        """A few rows below this one, up to the first empty one."""
        self._look(_LOOK_AHEAD)
        rows: list[Row] = []
        for row in islice(self._seen, 1, _LOOK_AHEAD):
            if not _has_text(row):
                break
            rows.append(row)
        return rows

    def skip_empty_rows(self) -> bool:
        """Whether there is a row with text; if so, it is `row` now."""
        while True:
            self._look(1)
            if not self._seen:
                return False
            if _has_text(self.row):
                return True
            self._seen.popleft()

    def goes_on(self) -> bool:
        """Whether the next row has text."""
        self._look(1)
        return bool(self._seen) and _has_text(self.row)

    def is_title(self) -> bool:
        """Whether this row has a single text."""
        return len(_texts(self.row)) == 1

    def table(self, header: Row | None, first_is_header: bool) -> Iterator[Row]:
        """The rows of the table that begins here, over gaps that do not end it."""
        yield self.take()
        while True:
            while self.goes_on():
                yield self.take()
            if not self.skip_empty_rows() or self.is_title() or header is None:
                return
            if _begins_table(self, header, first_is_header):
                return


def _begins_table(sheet: _Sheet, header: Row, first_is_header: bool) -> bool:
    """Whether the row after a gap belongs to another table than the one before."""
    columns, known = _columns(sheet.row), _columns(header)
    if not columns <= known:
        return True
    if not _is_header(sheet, first_is_header and columns != known):
        return False
    was_bold = all(cell.bold for cell in _texts(header))
    return was_bold == all(cell.bold for cell in _texts(sheet.row))


def _is_header(sheet: _Sheet, first_is_header: bool) -> bool:
    """Whether this row looks like headings of the rows below it."""
    row, below = sheet.row, sheet.below()
    texts = _texts(row)
    if len(texts) < 2 or any(len(cell.text) > _LONGEST_HEADING for cell in texts):
        return False
    if not any(len(_texts(lower)) > 1 for lower in below):
        return False
    if all(cell.bold for cell in texts) and not all(cell.bold for cell in _texts(below[0])):
        return True
    if not all(cell.is_text or _YEAR.fullmatch(cell.text) for cell in texts):
        return False
    if len({cell.text for cell in texts}) < len(texts):
        return False
    return (
        first_is_header
        or any(_is_typed(column, row, below) for column in range(len(row)))
        or looks_like_header([row[column].text for column in sorted(_columns(row))])
    )


def _is_typed(column: int, row: Row, below: list[Row]) -> bool:
    """Whether a text or a year stands above nothing but numbers, dates and the like."""
    heading = row[column]
    is_year = not heading.is_text
    cells = [lower[column] for lower in below if column < len(lower) and lower[column].text]
    return bool(heading.text and cells) and not any(
        cell.is_text or (is_year and _YEAR.fullmatch(cell.text)) for cell in cells
    )


def _texts(row: Row) -> list[SheetCell]:
    return [cell for cell in row if cell.text and not cell.merged]


def _has_text(row: Row) -> bool:
    return any(cell.text and not cell.merged for cell in row)


def _columns(row: Row) -> set[int]:
    return {column for column, cell in enumerate(row) if cell.text or cell.merged}


def _title(row: Row) -> str:
    return " ".join(_texts(row)[0].text.split())


def _cells(row: Row) -> list[Cell]:
    cells: list[Cell] = []
    for cell in row:
        if cell.merged == "left" and cells:
            cells[-1] = Cell(cells[-1].text, cells[-1].columns + 1)
        else:
            cells.append(Cell(None if cell.merged == "above" else cell.text))
    return cells
