"""rag.readers.sheets: tables in a grid that does not say where they are."""

from itertools import count, islice

from rag.readers.sheets import Row, SheetCell, sheet_blocks


def row(*values: object, bold: bool = False) -> list[SheetCell]:
    return [
        SheetCell("" if value is None else str(value), isinstance(value, str | None), bold)
        for value in values
    ]


def text(rows: list[Row], first_is_header: bool = False) -> str:
    parts = [block.separator + block.text for block in sheet_blocks(rows, first_is_header)]
    return "".join(parts).removeprefix("\n\n")


def test_text_above_numbers_is_headings_of_every_row() -> None:
    assert text([row("City", "People"), row("Rome", 5), row("Oslo", 1)]) == (
        "City | People\nCity: Rome; People: 5\nCity: Oslo; People: 1"
    )


def test_years_are_headings_too() -> None:
    assert text([row("City", 2023, 2024), row("Rome", 5, 6)]).endswith(
        "City: Rome; 2023: 5; 2024: 6"
    )


def test_bold_text_above_text_is_headings() -> None:
    assert text([row("Key", "Value", bold=True), row("a", "b")]).endswith("Key: a; Value: b")


def test_names_and_values_are_no_table_with_headings() -> None:
    assert text([row("Name", "Ada"), row("City", "Rome"), row("Age", 5)]) == (
        "Name: Ada\nCity: Rome\nAge: 5"
    )


def test_titles_above_a_table_are_lines_of_their_own() -> None:
    rows = [row("Sales"), row(None), row("City", "People"), row("Rome", 5)]
    assert text(rows) == "Sales\n\nCity | People\nCity: Rome; People: 5"
    assert text(rows[:1] + rows[2:]) == "Sales\nCity | People\nCity: Rome; People: 5"


def test_headings_reach_over_empty_rows_to_more_of_the_same_columns() -> None:
    rows = [
        row("City", "People"),
        row("Rome", 5),
        row(),
        row("Oslo", 1),
        row("All"),
        row("Bern", 2),
    ]
    assert text(rows).splitlines()[2] == "City: Oslo; People: 1"
    assert text(rows).splitlines()[-1] == "City: Bern; People: 2"
    rows.insert(4, row())
    assert text(rows).splitlines()[-2:] == ["All", "City: Bern; People: 2"]


def test_a_new_row_of_headings_after_a_gap_begins_a_new_table() -> None:
    rows = [row("City", "People"), row("Rome", 5), row(), row("Team", "Points"), row("Red", 3)]
    assert text(rows).split("\n\n")[1] == "Team | Points\nTeam: Red; Points: 3"


def test_a_table_in_other_columns_has_none_of_the_headings_before() -> None:
    rows = [row("City", "People"), row("Rome", 5), row(), row(None, None, "x", "y")]
    assert text(rows).endswith("\n\nx | y")


def test_the_first_row_of_a_csv_file_is_headings_if_it_has_no_numbers() -> None:
    assert text([row("q", "a"), row("why", "so")], True).endswith("q: why; a: so")
    assert text([row("a", 5), row("b", 6)], True) == "a: 5\nb: 6"


def test_merged_places_stand_in_each_row_and_make_no_row() -> None:
    rows: list[Row] = [
        row("Team", "Name", "Age"),
        row("Red", "Ada", 36),
        [SheetCell(merged="above"), SheetCell("Bob"), SheetCell("20", False)],
        [SheetCell(merged="above"), SheetCell(), SheetCell()],
    ]
    assert text(rows).splitlines()[2:] == ["Team: Red; Name: Bob; Age: 20"]


def test_a_sheet_longer_than_memory_streams() -> None:
    rows = (row("a", n) for n in count())
    assert [block.text for block in islice(sheet_blocks(rows), 2)] == ["a: 0", "a: 1"]
