"""rag.readers.tables: rows that answer by themselves."""

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
