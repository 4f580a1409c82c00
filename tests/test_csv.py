"""rag.readers.csv: any common CSV, each cell with its heading; CASES 1, 6 and 9."""

import csv
import io
from pathlib import Path

import pytest

from rag.documents import Document, DocumentError, Limits, load_document
from rag.sandbox import parse_in_sandbox

ROWS = [["Name", "Age", "City"], ["Ada", "36", "London"], ["Bob", "20", "Rome"]]
LINES = ["Name | Age | City", "Name: Ada; Age: 36; City: London", "Name: Bob; Age: 20; City: Rome"]


def read(data: bytes | str, folder: Path, name: str = "a.csv", **limits: int) -> Document:
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return load_document(folder / name, limits=Limits(**limits))


def written(rows: list[list[str]], **options: object) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, **options).writerows(rows)  # type: ignore[call-overload]
    return buffer.getvalue()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path: Path, separator: str) -> None:
    document = read(written(ROWS, delimiter=separator), tmp_path)
    assert document.media_type == "text/csv"
    assert document.text.splitlines() == LINES


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_one(tmp_path: Path, end: str) -> None:
    assert read(written(ROWS, lineterminator=end), tmp_path).text.splitlines() == LINES


def test_a_tab_separated_file_is_read_by_either_name(tmp_path: Path) -> None:
    for name in ("a.tsv", "a.TAB"):
        document = read(written(ROWS, delimiter="\t"), tmp_path, name)
        assert document.media_type == "text/tab-separated-values"
        assert document.text.splitlines() == LINES


def test_commas_of_decimals_do_not_part_fields(tmp_path: Path) -> None:
    text = read("Stadt;Preis;Menge\nBern;1,5;2,5\nGenf;2,5;3,5\n", tmp_path).text
    assert text.splitlines()[1] == "Stadt: Bern; Preis: 1,5; Menge: 2,5"


def test_the_separator_that_excel_declares_is_believed(tmp_path: Path) -> None:
    assert read("sep=;\r\na;b\r\n1,2;3,4\r\n", tmp_path).text == "a | b\na: 1,2; b: 3,4"


def test_quoted_fields_keep_separators_quotes_and_lines(tmp_path: Path) -> None:
    rows = [["Name", "Note"], ["Ada", 'said "hi",\nthen left'], ["Bob", "x"]]
    for text in (written(rows), written(rows, doublequote=False, escapechar="\\")):
        assert read(text, tmp_path).text.splitlines() == [
            "Name | Note",
            'Name: Ada; Note: said "hi", then left',
            "Name: Bob; Note: x",
        ]


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "big5", "utf-8", "utf-8-sig", "utf-16"])
def test_a_chinese_cell_stands_with_its_heading_in_every_encoding(
    tmp_path: Path, encoding: str
) -> None:
    text = "姓名,城市,年份\n王小明,北京,2024\n李大文,上海,2023\n"
    lines = read(text.encode(encoding), tmp_path).text.splitlines()
    assert lines[2] == "姓名: 李大文; 城市: 上海; 年份: 2023"


def test_a_quote_that_is_never_closed_swallows_no_rows(tmp_path: Path) -> None:
    rows = "".join(f"item {n},{n}\n" for n in range(50_000))
    document = read('name,size\nscreen 24",9\n"open,1\n' + rows, tmp_path)
    assert "name: item 42; size: 42" in document.text.splitlines()
    assert "never closed" in document.warnings[0]


def test_quotes_inside_of_fields_are_text(tmp_path: Path) -> None:
    document = read('name,size\nscreen 24" wide,9\n"a" b,1\n', tmp_path)
    assert document.text.splitlines()[1] == 'name: screen 24" wide; size: 9'
    assert not document.warnings


def test_titles_ragged_rows_and_empty_rows_do_no_harm(tmp_path: Path) -> None:
    text = "Sales of 2024\n\nCity,Sum\nRome,5\n,,\nOslo,6,late\n"
    assert read(text, tmp_path).text == (
        "Sales of 2024\nCity | Sum\nCity: Rome; Sum: 5\nCity: Oslo; Sum: 6; late"
    )


def test_a_single_column_is_a_list_of_lines(tmp_path: Path) -> None:
    assert read("one, two\nthree\nfour\n", tmp_path).text.splitlines()[-1] == "four"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf", "no_text"),
        (b",,,\n,,\n", "no_text"),
        (b"\n\n \n", "no_text"),
        (bytes(range(256)) * 50, "binary"),
    ],
)
def test_a_file_without_text_is_refused(tmp_path: Path, data: bytes, code: str) -> None:
    with pytest.raises(DocumentError) as error:
        read(data, tmp_path)
    assert error.value.code == code


def test_nul_and_control_characters_are_dropped(tmp_path: Path) -> None:
    assert read("a,b\n1\0,x\x07y\n", tmp_path).text == "a | b\na: 1; b: xy"


def test_a_field_of_a_megabyte_is_read(tmp_path: Path) -> None:
    for start in ("", "a,b\n1,"):
        document = read(start + "字" * 1_000_000 + "\n", tmp_path)
        assert document.text.count("字") == 1_000_000
        assert "not as a table" in document.warnings[0]


def test_headings_are_counted_in_the_limit_of_text_and_the_error_says_so(tmp_path: Path) -> None:
    rows = written([["a heading", "another"], *([str(n), "x"] for n in range(500_000))])
    (tmp_path / "a.csv").write_text(rows)
    with pytest.raises(DocumentError) as error:
        parse_in_sandbox(tmp_path / "a.csv")
    assert error.value.code == "too_much_text"
    assert "headings" in error.value.message


def test_the_sandbox_reads_it_the_same(tmp_path: Path) -> None:
    document = read(written(ROWS), tmp_path)
    assert parse_in_sandbox(tmp_path / "a.csv") == document
