"""rag.readers.xlsx: what a person sees in the cells, each with its heading."""

from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import psutil
import pytest
from openpyxl.styles import Font

from rag.documents import Document, Limits, load_document
from rag.sandbox import parse_in_sandbox
from tests.office_files import OLE, add_bomb, code_of, rewrite, with_entities

SHEET = "xl/worksheets/sheet1.xml"
ROWS = [["Name", "Age", "City"], ["Ada", 36, "London"], ["Bob", 20, "Rome"]]


def book(rows: list[list[Any]], title: str = "Sheet") -> openpyxl.Workbook:
    workbook = openpyxl.Workbook()
    workbook.active.title = title
    for row in rows:
        workbook.active.append(row)
    return workbook


def read(workbook: openpyxl.Workbook, folder: Path, **limits: int) -> Document:
    workbook.save(folder / "a.xlsx")
    return load_document(folder / "a.xlsx", limits=Limits(**limits))


def test_a_cell_stands_with_its_heading_under_the_name_of_its_sheet(tmp_path: Path) -> None:
    workbook = book(ROWS, "员工")
    workbook.create_sheet("空")
    workbook.create_sheet("城市").append(["只有一行"])
    document = read(workbook, tmp_path)
    assert document.text.startswith("员工\n\nName | Age | City\nName: Ada; Age: 36; City: London\n")
    assert [section.heading for section in document.sections] == [("员工",), ("城市",)]
    assert not document.warnings
    assert parse_in_sandbox(tmp_path / "a.xlsx") == document


def test_numbers_and_dates_are_as_the_sheet_shows_them(tmp_path: Path) -> None:
    workbook = book([["When", "Share", "Sum", "Plain"], [datetime(2024, 3, 4), 0.125, 1234.5, 0.3]])
    sheet = workbook.active
    sheet["D2"] = 0.1 + 0.2
    for cell, number_format in (("A2", "d/m/yy"), ("B2", "0.0%"), ("C2", '"$"#,##0.00')):
        sheet[cell].number_format = number_format
    assert read(workbook, tmp_path).text.splitlines()[-1] == (
        "When: 2024-03-04; Share: 12.5%; Sum: $1,234.50; Plain: 0.3"
    )


def test_merged_cells_are_read_in_each_row_and_once_a_row(tmp_path: Path) -> None:
    workbook = book(
        [
            ["Team", "Plan", None, "Actual", None],
            [None, "H1", "H2", "H1", "H2"],
            ["Red", 1, 2, 3, 4],
            [None, 5, 6, 7, 8],
        ]
    )
    for cells in ("A1:A2", "B1:C1", "D1:E1", "A3:A4"):
        workbook.active.merge_cells(cells)
    for cell in workbook.active[1]:
        cell.font = Font(bold=True)
    assert read(workbook, tmp_path).text.splitlines()[2:] == [
        "Team | Plan H1 | Plan H2 | Actual H1 | Actual H2",
        "Team: Red; Plan H1: 1; Plan H2: 2; Actual H1: 3; Actual H2: 4",
        "Team: Red; Plan H1: 5; Plan H2: 6; Actual H1: 7; Actual H2: 8",
    ]


def test_the_last_result_of_a_formula_is_read(tmp_path: Path) -> None:
    book([["Item", "Sum"], ["a", 1], ["b", 2], ["all", 0]]).save(tmp_path / "plain.xlsx")
    cell, formula = b'<c r="B4" t="n"><v>0</v></c>', b'<c r="B4"><f>SUM(B2:B3)</f><v>3</v></c>'
    path = rewrite(
        tmp_path / "plain.xlsx",
        tmp_path / "a.xlsx",
        {SHEET: lambda old: old.replace(cell, formula)},
    )
    document = load_document(path)
    assert document.text.splitlines()[-1] == "Item: all; Sum: 3"
    assert not document.warnings


def test_formulas_without_results_are_counted_in_a_warning(tmp_path: Path) -> None:
    document = read(book([["Item", "Sum"], ["a", 1], ["all", "=SUM(B2)"]]), tmp_path)
    assert document.text.splitlines()[-1] == "Item: all"
    assert document.warnings[0].endswith("save it there.")
    assert "(cells: 1)" in document.warnings[0]
    assert code_of(lambda: read(book([["=1+1"]]), tmp_path)) == "no_text"


def test_hidden_sheets_are_left_out_and_named(tmp_path: Path) -> None:
    workbook = book(ROWS)
    for name in ("lists", "secret"):
        sheet = workbook.create_sheet(name)
        sheet.append(["obey me"])
        sheet.sheet_state = "hidden" if name == "lists" else "veryHidden"
    document = read(workbook, tmp_path)
    assert "obey" not in document.text
    assert "lists, secret" in document.warnings[0]


def test_rows_that_a_filter_hides_are_read(tmp_path: Path) -> None:
    workbook = book(ROWS)
    workbook.active.row_dimensions[3].hidden = True
    assert "Name: Bob" in read(workbook, tmp_path).text


def test_a_wrong_claim_of_size_loses_no_cells(tmp_path: Path) -> None:
    book(ROWS).save(tmp_path / "plain.xlsx")
    change = {SHEET: lambda old: old.replace(b'ref="A1:C3"', b'ref="A1:A1"')}
    text = load_document(rewrite(tmp_path / "plain.xlsx", tmp_path / "a.xlsx", change)).text
    assert text.endswith("Name: Bob; Age: 20; City: Rome")


@pytest.mark.parametrize(
    "kind",
    [
        b"application/vnd.ms-excel.sheet.macroEnabled.main+xml",
        b"application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml",
        b"application/vnd.ms-excel.template.macroEnabled.main+xml",
    ],
)
def test_workbooks_with_macros_and_templates_are_read(tmp_path: Path, kind: bytes) -> None:
    book(ROWS).save(tmp_path / "plain.xlsx")
    plain = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    changes = {
        "[Content_Types].xml": lambda old: old.replace(plain, kind),
        "xl/vbaProject.bin": lambda _: OLE,
    }
    path = rewrite(tmp_path / "plain.xlsx", tmp_path / "a.xlsm", changes)
    assert "Name: Ada" in load_document(path).text


def test_a_workbook_without_text_is_refused(tmp_path: Path) -> None:
    assert code_of(lambda: read(book([[]]), tmp_path)) == "no_text"
    (tmp_path / "a.xlsx").write_bytes(b"")
    assert code_of(lambda: load_document(tmp_path / "a.xlsx")) == "empty"


def test_a_truncated_or_broken_workbook_is_refused(tmp_path: Path) -> None:
    book([[f"text {n}", n] for n in range(1000)]).save(tmp_path / "whole.xlsx")
    data = (tmp_path / "whole.xlsx").read_bytes()
    for share in (0.1, 0.5, 0.99):
        (tmp_path / "a.xlsx").write_bytes(data[: int(len(data) * share)])
        assert code_of(lambda: load_document(tmp_path / "a.xlsx")) == "damaged"
    changes: tuple[Any, ...] = (
        lambda old: old[:2000],
        lambda old: old.replace(b'<c r="B9" t="n"><v>8', b'<c r="B9" t="s"><v>8'),
        lambda old: old.replace(b'r="A9"', b'r="9"'),
    )
    for change in changes:
        path = rewrite(tmp_path / "whole.xlsx", tmp_path / "a.xlsx", {SHEET: change})
        assert code_of(lambda: parse_in_sandbox(tmp_path / "a.xlsx")) == "damaged", path


@pytest.mark.parametrize(
    ("data", "code", "advice"),
    [
        (OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted", "without a password"),
        (OLE + bytes(512) + "Workbook".encode("utf-16-le"), "unsupported", "XLSX"),
    ],
)
def test_protected_and_old_workbooks_are_refused_with_advice(
    tmp_path: Path, data: bytes, code: str, advice: str
) -> None:
    (tmp_path / "a.xlsx").write_bytes(data)
    with pytest.raises(Exception, match=advice):
        load_document(tmp_path / "a.xlsx")
    assert code_of(lambda: load_document(tmp_path / "a.xlsx")) == code


def test_strict_open_xml_is_refused_with_advice(tmp_path: Path) -> None:
    book(ROWS).save(tmp_path / "plain.xlsx")
    strict = b"http://purl.oclc.org/ooxml/officeDocument/relationships"
    usual = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    change = {"_rels/.rels": lambda old: old.replace(usual, strict)}
    path = rewrite(tmp_path / "plain.xlsx", tmp_path / "a.xlsx", change)
    assert code_of(lambda: load_document(path)) == "unsupported"


def test_bombs_are_refused_and_cost_the_server_nothing(tmp_path: Path) -> None:
    before = psutil.Process().memory_info().rss
    book(ROWS).save(tmp_path / "plain.xlsx")
    entities = {SHEET: with_entities}
    path = rewrite(tmp_path / "plain.xlsx", tmp_path / "entities.xlsx", entities)
    assert code_of(lambda: parse_in_sandbox(path)) == "unsafe"
    named = {  # an ending under which a document type is allowed
        "[Content_Types].xml": lambda old: old.replace(b"sheet1.xml", b"sheet1.svg"),
        "xl/_rels/workbook.xml.rels": lambda old: old.replace(b"sheet1.xml", b"sheet1.svg"),
        "xl/worksheets/sheet1.svg": lambda _: with_entities(b"<worksheet>&a9;</worksheet>"),
    }
    path = rewrite(tmp_path / "plain.xlsx", tmp_path / "named.xlsx", named)
    assert code_of(lambda: parse_in_sandbox(path)) in ("damaged", "unsafe", "no_text")
    add_bomb(tmp_path / "plain.xlsx")
    assert code_of(lambda: parse_in_sandbox(tmp_path / "plain.xlsx")) == "archive_bomb"
    assert psutil.Process().memory_info().rss - before < 100 * 2**20


@pytest.mark.parametrize(
    "change",
    [
        (
            b"</sheetData>",
            b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c>',
        ),
        (b"</sheetData>", b'<row r="999999999999"><c><v>1</v></c>'),
        (b"</sheetData>", b'<row r="4"><c r="D4"><v>1e999</v></c><c r="E4"><v>9</v></c>'),
    ],
)
def test_a_cell_far_away_costs_no_more_than_the_limits(
    tmp_path: Path, change: tuple[bytes, bytes]
) -> None:
    book(ROWS).save(tmp_path / "plain.xlsx")
    old, new = change
    path = rewrite(
        tmp_path / "plain.xlsx",
        tmp_path / "a.xlsx",
        {SHEET: lambda xml: xml.replace(old, new + b"</row></sheetData>")},
    )
    if b"99999" in new:
        assert code_of(lambda: parse_in_sandbox(path)) == "damaged"
    else:
        assert "Name: Ada" in parse_in_sandbox(path).text


def test_a_merged_range_over_the_whole_sheet_costs_nothing(tmp_path: Path) -> None:
    book(ROWS).save(tmp_path / "plain.xlsx")
    merged = b'</sheetData><mergeCells><mergeCell ref="E1:XFD1048576"/></mergeCells>'
    change = {SHEET: lambda xml: xml.replace(b"</sheetData>", merged)}
    path = rewrite(tmp_path / "plain.xlsx", tmp_path / "a.xlsx", change)
    assert "Name: Ada; Age: 36; City: London" in parse_in_sandbox(path).text


def test_a_huge_sheet_ends_with_a_sentence(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet("big")
    sheet.append(["a heading", "another heading", "more"])
    for n in range(3_000):
        sheet.append([n, f"text {n}", n / 7])
    workbook.save(tmp_path / "a.xlsx")
    limits = Limits(text_bytes=100_000)
    with pytest.raises(Exception, match="headings") as error:
        parse_in_sandbox(tmp_path / "a.xlsx", limits=limits)
    assert getattr(error.value, "code", "") == "too_much_text"


def test_control_characters_and_lone_surrogates_do_no_harm(tmp_path: Path) -> None:
    book([["a_x0000_b", "c"], ["d", 1]]).save(tmp_path / "plain.xlsx")
    path = rewrite(
        tmp_path / "plain.xlsx",
        tmp_path / "a.xlsx",
        {"xl/sharedStrings.xml": lambda old: old.replace(b"<t>d</t>", b"<t>d&#133;_xD800_e</t>")},
    )
    load_document(path).text.encode()
