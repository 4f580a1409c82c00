"""Tables as lines of text, each row with its headings, so that one row answers by itself.

    Name | Age | City
    Name: Ada; Age: 36; City: London

Knows nothing of where the table came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_SPACES = re.compile(r"\s+")
_LONGEST_HEADING = 60


def table_lines(rows: Iterable[Sequence[str]], first_row_is_header: bool | None) -> Iterator[str]:
    """One line for each row that is not empty.

    Args:
        rows: the cells of each row, of any number; the same text twice in a row (a cell merged
            over several rows or columns) is the caller's affair.
        first_row_is_header: None where the file does not say; then it is judged by its look.
    """
    table = [[_SPACES.sub(" ", cell).strip() for cell in row] for row in rows]
    table = [row for row in table if any(row)]
    if not table:
        return
    if first_row_is_header is None:
        first_row_is_header = _looks_like_header(table)
    if not first_row_is_header or len(table) < 2:
        for row in table:
            yield _unlabelled(row)
        return
    header = table[0]
    yield " | ".join(cell for cell in header if cell)
    for row in table[1:]:
        yield "; ".join(_labelled(header, row))


def _looks_like_header(table: list[list[str]]) -> bool:
    """Three or more distinct, short cells without digits over at least one row.

    With two columns, "name, value" lists are as common as headings, and read well unlabelled.
    """
    first = table[0]
    return (
        len(table) > 1
        and len(first) >= 3
        and len(set(first)) == len(first)
        and all(cell and len(cell) <= _LONGEST_HEADING for cell in first)
        and not any(character.isdigit() for cell in first for character in cell)
    )


def _unlabelled(row: list[str]) -> str:
    cells = [cell for cell in row if cell]
    if len(row) == 2 and len(cells) == 2 and cells[0][-1] not in ":：" and len(cells[0]) <= 60:
        return f"{cells[0]}: {cells[1]}"
    return " | ".join(cells)


def _labelled(header: list[str], row: list[str]) -> Iterator[str]:
    for column, cell in enumerate(row):
        heading = header[column].rstrip(":：") if column < len(header) else ""
        if cell:
            yield f"{heading}: {cell}" if heading and heading != cell else cell
