"""Excel workbooks to blocks: each visible sheet under its name, each row a line with its headings.

Values are those that the sheet shows: results of formulas as they were last computed, numbers in
their format (`rag.readers.number_format`), merged cells in each row they cover. Rows are streamed
by openpyxl, which leaves out what its read-only mode does not know: merged ranges, and formulas
that were never computed. Both are looked for in the sheet's XML. Hidden sheets are left out, and
named in a warning; rows and columns that are hidden or filtered are read. Charts, pictures,
comments and text boxes are not.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import openpyxl
from openpyxl.utils import range_boundaries

from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.number_format import shown
from rag.readers.office import office_file, reading
from rag.readers.sheets import Row, SheetCell, sheet_blocks

_CHUNK = 256 * 1024
_OVERLAP = 2_000  # characters of XML: longer than what is looked for
_MERGED = re.compile(
    rb'<(?:\w+:)?mergeCell\b[^>]{0,200}?\bref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"'
)
_UNCOMPUTED = re.compile(
    rb"(?:</(?:\w+:)?f>|<(?:\w+:)?f\b[^<>]{0,1000}/>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>|</(?:\w+:)?c>)"
)
_MOST_ROWS = 1_048_576  # of a sheet in Excel
_MOST_MERGED = 10_000  # ranges of one sheet
_MOST_COLUMNS = 200  # of a merged range
_EMPTY = SheetCell()


def read_xlsx(source: Source) -> Iterator[Block]:
    """The sheets in their order.

    Raises:
        DocumentError: "damaged", "encrypted", "archive_bomb", "unsafe", "unsupported", or "no_text"
            if there are only formulas that were never computed.
    """
    file = office_file(source, "workbook")
    with reading("workbook"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions, which are not read
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        visible = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
        hidden = [sheet.title for sheet in workbook.worksheets if sheet.sheet_state != "visible"]
    if hidden:
        names = ", ".join(hidden[:5]) + (", …" if len(hidden) > 5 else "")
        source.warn(
            f"Hidden sheets were left out: {names}. Show them in Excel and save the "
            "workbook to have them read."
        )
    uncomputed = 0
    is_empty = True
    for number, sheet in enumerate(visible, 1):
        with reading("workbook"):
            details = _details(workbook, sheet)
        uncomputed += details.uncomputed
        rows = _guarded(_rows(sheet, details))
        for block in _under_its_name(sheet_blocks(rows), clean(sheet.title)):
            is_empty = False
            yield block
        source.progress("Reading sheets", number, len(visible))
    if uncomputed and is_empty:
        raise DocumentError(
            "no_text",
            "This workbook holds formulas but not their results. Open it in a spreadsheet program "
            "and save it there.",
        )
    if uncomputed:
        source.warn(
            f"Formulas whose results were not saved were left out (cells: {uncomputed:,}). "
            "Open the workbook in a spreadsheet program and save it there."
        )


def _under_its_name(blocks: Iterator[Block], name: str) -> Iterator[Block]:
    """The blocks below the name of their sheet; nothing if there are none."""
    first = next(blocks, None)
    if first is not None:
        yield Block(name, level=1)
        yield first
        yield from blocks


def _guarded(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, with whatever openpyxl raises while it streams them as an error for the person."""
    while True:
        with reading("workbook"):
            row = next(rows, None)
        if row is None:
            return
        yield row


@dataclass
class _Details:
    """What openpyxl's read-only mode leaves out of one sheet.

    Attributes:
        merged: (first row, last row, first column, last column) of each range, by first row.
        uncomputed: how many formulas have no result.
    """

    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    uncomputed: int = 0


def _details(workbook: Any, sheet: Any) -> _Details:
    """Found in the sheet's XML as text: a second parse would cost as much as the first."""
    details = _Details()
    archive: zipfile.ZipFile = workbook._archive
    with archive.open(sheet._worksheet_path) as stream:
        window = b""
        while chunk := stream.read(_CHUNK):
            window += chunk
            end = 0
            for match in _UNCOMPUTED.finditer(window):
                details.uncomputed += 1
                end = match.end()
            for match in _MERGED.finditer(window):
                end = max(end, match.end())
                if len(details.merged) < _MOST_MERGED:
                    left, top, right, bottom = range_boundaries(match[1].decode())
                    details.merged.append((top, bottom, left, min(right, left + _MOST_COLUMNS)))
            window = window[max(end, len(window) - _OVERLAP) :]
    details.merged.sort()
    return details


def _rows(sheet: Any, details: _Details) -> Iterator[Row]:
    """The sheet's rows from the first, as openpyxl streams them, whatever size the file claims."""
    sheet.reset_dimensions()
    coming = iter([*details.merged, None])
    following = next(coming)
    covering: list[tuple[int, int, int, int]] = []
    for number, cells in enumerate(sheet.rows, 1):
        if number > _MOST_ROWS:
            raise ValueError("a row beyond the last one that a sheet can have")
        row = list(map(_sheet_cell, cells))
        while following is not None and following[0] <= number:
            covering.append(following)
            following = next(coming)
        if covering:
            covering = [merged for merged in covering if merged[1] >= number]
            _mark_merged(row, number, covering)
        yield row


def _mark_merged(row: list[SheetCell], number: int, merged: Iterable[tuple[int, ...]]) -> None:
    """Mark the places of one row that are covered by a merged cell."""
    for top, _, left, right in merged:
        row.extend([_EMPTY] * (right - len(row)))
        if number > top:
            row[left - 1] = SheetCell(merged="above")
        for column in range(left, right):
            row[column] = SheetCell(merged="left")


def _sheet_cell(cell: Any) -> SheetCell:
    value = cell.value
    if value is None:
        return _EMPTY
    if isinstance(value, str):
        return SheetCell(clean(value), is_text=True, bold=_is_bold(cell))
    text = shown(value, cell.number_format)
    is_date = isinstance(value, date | datetime)
    return SheetCell(text, is_text=False, bold=not is_date and _is_bold(cell))


def _is_bold(cell: Any) -> bool:
    font = cell.font
    return bool(font is not None and font.b)
