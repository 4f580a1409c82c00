"""Tables as lines of text, each row with its headings, so that one row answers by itself.

    Name | Age | City
    Name: Ada; Age: 36; City: London

Rows go in and lines come out one at a time, so a table may be longer than memory. Knows nothing of
where the table came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

_LONGEST_HEADING = 60  # characters; more than that is a sentence, not a heading
_LONGEST_LINE = 400  # characters; a longer row goes on in a line that begins with its first cell
_MOST_COLUMNS = 200  # of one cell; a hostile file may claim millions


@dataclass(frozen=True)
class Cell:
    """A cell; `text` is None if it is merged with the one above it."""

    text: str | None
    columns: int = 1


@dataclass(frozen=True)
class _Slot:
    """One place of the grid; `first` is False where a wide cell goes on."""

    text: str
    first: bool = True
    own: bool = True  # False where a cell above reaches down


def table_lines(
    rows: Iterable[Iterable[Cell]], first_row_is_header: bool | None = None
) -> Iterator[str]:
    """One or more lines for each row that is not empty, in order.

    A header whose wide cells have a row of narrower ones below ("2024" over "Plan" and "Actual")
    is read as one row: "2024 Plan", "2024 Actual".

    Args:
        first_row_is_header: None where the file does not say; then it is judged by its look.
    """
    table = (row for row in _grid(rows) if any(slot.text for slot in row))
    top = list(islice(table, 2))
    if not top:
        return
    if first_row_is_header is None:
        first_row_is_header = looks_like_header([slot.text for slot in top[0] if slot.first])
    if not first_row_is_header or len(top) == 1:
        yield from map(_unlabelled, chain(top, table))
        return
    header = [slot.text for slot in top[0]]
    if _is_second_header(*top):
        header = _joined(*top)
        yield " | ".join(text for text in header if text)
        top.pop()
    else:
        yield " | ".join(slot.text for slot in top[0] if slot.text and slot.first)
    for row in chain(top[1:], table):
        yield from _labelled(header, row)


def _grid(rows: Iterable[Iterable[Cell]]) -> Iterator[list[_Slot]]:
    """The text of every place: what is merged stands in each row and column that it covers."""
    above: list[_Slot] = []
    for row in rows:
        slots: list[_Slot] = []
        for cell in row:
            if cell.text is not None:
                text = " ".join(cell.text.split())
            else:
                text = above[len(slots)].text if len(slots) < len(above) else ""
            own = cell.text is not None
            slots.append(_Slot(text, own=own))
            wide = min(cell.columns, _MOST_COLUMNS)
            slots.extend(_Slot(text, False, own) for _ in range(1, wide))
        yield slots
        above = slots


def looks_like_header(cells: list[str]) -> bool:
    """Three or more short, distinct cells without digits, or any such beside an empty corner.

    With two columns, lists of names and values are as common as headings and read well unlabelled.
    """
    return (
        len(cells) >= 3
        and len(set(cells)) == len(cells)
        and all(0 < len(cell) <= _LONGEST_HEADING for cell in cells[1:])
        and (not cells[0] or not any(character.isdigit() for character in "".join(cells)))
    )


def _is_second_header(first: list[_Slot], second: list[_Slot]) -> bool:
    """Whether the second row has text of its own below wide cells of the first, and only there."""
    wide = {column for column, slot in enumerate(first) if _is_wide(first, column) and slot.text}
    own = {column for column, slot in enumerate(second) if slot.text and slot.own}
    texts = [second[column].text for column in own]
    return (
        bool(own)
        and own <= wide
        and len(wide) < len(first)
        and all(len(text) <= _LONGEST_HEADING for text in texts)
        and not all(text[0].isdigit() for text in texts)
    )


def _is_wide(row: list[_Slot], column: int) -> bool:
    return not row[column].first or (column + 1 < len(row) and not row[column + 1].first)


def _joined(first: list[_Slot], second: list[_Slot]) -> list[str]:
    """The headings of two rows of them, by column."""
    below = [slot.text if slot.own else "" for slot in second]
    below += [""] * (len(first) - len(below))
    return [f"{slot.text} {text}".strip() for slot, text in zip(first, below, strict=False)]


def _unlabelled(row: list[_Slot]) -> str:
    cells = [slot.text for slot in row if slot.text and slot.first]
    if len(row) == len(cells) == 2 and len(cells[0]) <= _LONGEST_HEADING:
        return f"{cells[0].rstrip(':：')}: {cells[1]}"
    return " | ".join(cells)


def _labelled(header: list[str], row: list[_Slot]) -> Iterator[str]:
    """The row's cells behind their headings; a long row in several lines that name it again."""
    cells = list(_cells(header, row))
    line: list[str] = []
    length = 0
    for cell in cells:
        if len(line) > 1 and length + len(cell) > _LONGEST_LINE:
            yield "; ".join(line)
            line = [cells[0]] if len(cells[0]) <= 2 * _LONGEST_HEADING else []
            length = sum(map(len, line))
        line.append(cell)
        length += len(cell) + 2
    yield "; ".join(line)


def _cells(header: list[str], row: list[_Slot]) -> Iterator[str]:
    for column, slot in enumerate(row):
        if slot.text and slot.first:
            heading = header[column].rstrip(":：") if column < len(header) else ""
            yield f"{heading}: {slot.text}" if heading not in ("", slot.text) else slot.text
