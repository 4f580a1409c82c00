"""Tables as lines of text, each row with its headings, so that one row answers by itself.

    Name | Age | City
    Name: Ada; Age: 36; City: London

Knows nothing of where the table came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LONGEST_HEADING = 60  # characters; more than that is a sentence, not a heading
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


def table_lines(
    rows: Iterable[Iterable[Cell]], first_row_is_header: bool | None = None
) -> Iterator[str]:
    """One line for each row that is not empty, in order.

    Args:
        first_row_is_header: None where the file does not say; then it is judged by its look.
    """
    table = [row for row in _grid(rows) if any(slot.text for slot in row)]
    if not table:
        return
    if first_row_is_header is None:
        first_row_is_header = _looks_like_header(table)
    if not first_row_is_header or len(table) == 1:
        yield from map(_unlabelled, table)
        return
    yield " | ".join(slot.text for slot in table[0] if slot.text and slot.first)
    for row in table[1:]:
        yield "; ".join(_labelled(table[0], row))


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
            slots.append(_Slot(text))
            slots.extend(_Slot(text, False) for _ in range(1, min(cell.columns, _MOST_COLUMNS)))
        yield slots
        above = slots


def _looks_like_header(table: list[list[_Slot]]) -> bool:
    """Three or more short, distinct cells without digits, or any such beside an empty corner.

    With two columns, lists of names and values are as common as headings and read well unlabelled.
    """
    cells = [slot.text for slot in table[0]]
    return (
        len(cells) >= 3
        and len(set(cells)) == len(cells)
        and all(0 < len(cell) <= _LONGEST_HEADING for cell in cells[1:])
        and (not cells[0] or not any(character.isdigit() for character in "".join(cells)))
    )


def _unlabelled(row: list[_Slot]) -> str:
    cells = [slot.text for slot in row if slot.text and slot.first]
    if len(row) == len(cells) == 2 and len(cells[0]) <= _LONGEST_HEADING:
        return f"{cells[0].rstrip(':：')}: {cells[1]}"
    return " | ".join(cells)


def _labelled(header: list[_Slot], row: list[_Slot]) -> Iterator[str]:
    for column, slot in enumerate(row):
        if slot.text and slot.first:
            heading = header[column].text.rstrip(":：") if column < len(header) else ""
            yield f"{heading}: {slot.text}" if heading not in ("", slot.text) else slot.text
