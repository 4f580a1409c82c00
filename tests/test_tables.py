"""rag.readers.tables: rows that answer by themselves."""

from itertools import count, islice

from rag.readers.tables import Cell, table_lines


def lines(rows: list[list[str]], header: bool | None = None) -> list[str]:
    return list(table_lines([[Cell(text) for text in row] for row in rows], header))


def test_each_row_repeats_the_headings() -> None:
    assert lines([["Name", "Age", "City"], ["Ada", "36", "London"], ["Bob", "", "Rome"]]) == [
        "Name | Age | City",
        "Name: Ada; Age: 36; City: London",
        "Name: Bob; City: Rome",
    ]


def test_two_columns_are_names_and_values_unless_marked() -> None:
    rows = [["Name", "Ada"], ["Age:", "36"]]
    assert lines(rows) == ["Name: Ada", "Age: 36"]
    assert lines(rows, header=True) == ["Name | Ada", "Name: Age:; Ada: 36"]


def test_a_first_row_with_numbers_is_a_header_only_beside_an_empty_corner() -> None:
    assert lines([["Ada", "36", "London"], ["Bob", "20", "Rome"]])[1] == "Bob | 20 | Rome"
    assert lines([["", "2023", "2024"], ["Sales", "5", "6"]])[1] == "Sales; 2023: 5; 2024: 6"


def test_empty_rows_and_tables_give_nothing() -> None:
    assert lines([]) == lines([[]]) == lines([["", " "], []]) == []


def test_a_row_longer_than_the_header_is_not_lost() -> None:
    assert lines([["A", "B"], ["1", "2", "3"]], header=True)[1] == "A: 1; B: 2; 3"


def test_a_header_alone_is_a_row() -> None:
    assert lines([["A", "B", "C"]], header=True) == ["A | B | C"]


def test_narrow_headings_below_wide_ones_are_read_with_them() -> None:
    rows = [
        [Cell("Team"), Cell("2024", 2), Cell("2025", 2)],
        [Cell(None), Cell("Plan"), Cell("Actual"), Cell("Plan"), Cell("Actual")],
        [Cell("Red"), Cell("5"), Cell("6"), Cell("7"), Cell("8")],
    ]
    assert list(table_lines(rows, True)) == [
        "Team | 2024 Plan | 2024 Actual | 2025 Plan | 2025 Actual",
        "Team: Red; 2024 Plan: 5; 2024 Actual: 6; 2025 Plan: 7; 2025 Actual: 8",
    ]


def test_a_row_below_wide_headings_that_has_all_its_cells_is_no_heading() -> None:
    rows = [[Cell("Team"), Cell("Name", 2)], [Cell("Red"), Cell("Ada"), Cell("Lovelace")]]
    assert list(table_lines(rows, True))[1] == "Team: Red; Name: Ada; Name: Lovelace"


def test_a_long_row_goes_on_in_lines_that_begin_with_its_first_cell() -> None:
    header = ["Name", *(f"Column {n}" for n in range(60))]
    found = lines([header, ["Ada", *(f"value {n}" for n in range(60))]], header=True)[1:]
    assert all(line.startswith("Name: Ada; ") and len(line) < 500 for line in found)
    assert len(found) > 2 and sum("Column 41: value 41" in line for line in found) == 1


def test_a_table_longer_than_memory_streams() -> None:
    endless = ([Cell(str(n)), Cell("x"), Cell("y")] for n in count())
    assert list(islice(table_lines(endless), 3)) == ["0 | x | y", "1 | x | y", "2 | x | y"]
