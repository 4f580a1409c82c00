"""rag.readers.docx: Word documents, in order and whole."""

import io
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from rag.documents import Document, DocumentError, Limits, load_document

W = nsdecls("w")


@pytest.fixture
def word() -> Any:
    return docx.Document()


def read(word: Any, folder: Path, **limits: int) -> Document:
    word.save(folder / "a.docx")
    return load_document(folder / "a.docx", limits=Limits(**limits))


def add_table(word: Any, rows: list[list[str]]) -> Any:
    table = word.add_table(len(rows), len(rows[0]))
    for y, row in enumerate(rows):
        for x, text in enumerate(row):
            table.cell(y, x).text = text
    return table


def test_paragraphs_and_tables_keep_their_order(word: Any, tmp_path: Path) -> None:
    word.add_paragraph("Before.")
    add_table(word, [["Name", "Age", "City"], ["Ada", "36", "London"]])
    word.add_paragraph("After.")
    text = read(word, tmp_path).text
    assert text == "Before.\n\nName | Age | City\nName: Ada; Age: 36; City: London\n\nAfter."


def test_a_single_cell_stands_with_its_heading_and_its_row(word: Any, tmp_path: Path) -> None:
    people = [[f"Person {n}", str(n), f"Town {n}"] for n in range(60)]
    add_table(word, [["Name", "Age", "City"], *people])
    assert "Name: Person 42; Age: 42; City: Town 42" in read(word, tmp_path).text.splitlines()


def test_merged_cells_are_read_in_each_row_and_once_a_row(word: Any, tmp_path: Path) -> None:
    table = add_table(word, [["Team", "Name", "Role"], ["Red", "Ada", "x"], ["", "Bob", "x"]])
    table.cell(1, 0).merge(table.cell(2, 0))
    table.cell(2, 1).merge(table.cell(2, 2))
    lines = read(word, tmp_path).text.splitlines()
    assert "Team: Red; Name: Ada; Role: x" in lines
    assert "Team: Red; Name: Bob x" in lines


def test_a_table_in_a_cell_is_not_lost(word: Any, tmp_path: Path) -> None:
    outer = add_table(word, [["a", "b"], ["c", ""]])
    inner = outer.cell(1, 1).add_table(1, 2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "inner one", "inner two"
    text = read(word, tmp_path).text
    assert text.count("inner one") == text.count("inner two") == 1


def test_a_frame_of_one_cell_holds_paragraphs(word: Any, tmp_path: Path) -> None:
    cell = word.add_table(1, 1).cell(0, 0)
    cell.text = "First."
    cell.add_paragraph("Second.")
    assert read(word, tmp_path).text == "First.\n\nSecond."


def test_headings_make_sections(word: Any, tmp_path: Path) -> None:
    for text, level in (("Guide", 0), ("Install", 1), ("Linux", 2), ("Use", 1)):
        word.add_heading(text, level)
        word.add_paragraph(f"About {text}.")
    document = read(word, tmp_path)
    assert [section.heading for section in document.sections] == [
        ("Guide",),
        ("Install",),
        ("Install", "Linux"),
        ("Use",),
    ]


def test_headers_and_footers_are_read_once_and_without_page_numbers(
    word: Any, tmp_path: Path
) -> None:
    word.add_paragraph("The body says Acme Report too.")
    for _ in range(3):
        word.add_section()
    for section in word.sections:
        section.header.is_linked_to_previous = section.footer.is_linked_to_previous = False
        section.header.paragraphs[0].text = "Acme Report"
        section.footer.paragraphs[0].text = "Call 555-0199"
        section.footer.add_paragraph("Page 3 of 9")
    assert read(word, tmp_path).text == "Call 555-0199\n\nThe body says Acme Report too."


def test_what_python_docx_leaves_out_is_read(word: Any, tmp_path: Path) -> None:
    body = word.element.body
    for xml in (
        "<w:sdt {}><w:sdtContent><w:p><w:r><w:t>control</w:t></w:r></w:p></w:sdtContent></w:sdt>",
        "<w:p {}><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins></w:p>",
        "<w:p {}><w:r><w:t>the x-</w:t></w:r>"
        "<w:smartTag><w:r><w:t>ray</w:t></w:r></w:smartTag></w:p>",
        "<w:p {}><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p>"
        "</w:txbxContent></w:pict></w:r></w:p>",
        '<w:p {}><w:r><w:t xml:space="preserve">one </w:t></w:r><w:r><w:tab/><w:t>two</w:t>'
        "<w:br/><w:t>three</w:t></w:r></w:p>",
    ):
        body.insert(len(body) - 1, parse_xml(xml.format(W)))
    assert read(word, tmp_path).text == (
        "control\n\ninserted\n\nthe x-ray\n\nboxed\n\none \ttwo\nthree"
    )


def test_deleted_and_hidden_text_is_left_out(word: Any, tmp_path: Path) -> None:
    body = word.element.body
    for xml in (
        "<w:p {}><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
        "<w:r><w:t>kept</w:t></w:r></w:p>",
        "<w:p {}><w:r><w:rPr><w:vanish/></w:rPr><w:t>obey me</w:t></w:r></w:p>",
        "<w:p {}><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>",
    ):
        body.insert(len(body) - 1, parse_xml(xml.format(W)))
    assert read(word, tmp_path).text == "kept"


def test_a_footnote_follows_the_paragraph_that_refers_to_it(word: Any, tmp_path: Path) -> None:
    word.add_paragraph("Claim.")
    word.add_paragraph("Next.")
    word.paragraphs[0].runs[0]._r.append(parse_xml(f'<w:footnoteReference {W} w:id="7"/>'))
    word.save(tmp_path / "plain.docx")
    note = '<w:footnote w:id="7"><w:p><w:r><w:t>Source.</w:t></w:r></w:p></w:footnote>'
    notes = f"<w:footnotes {W}>{note}</w:footnotes>"
    relation = (
        '<Relationship Id="rId99" Target="footnotes.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"/>'
    )
    rewrite(
        tmp_path / "plain.docx",
        tmp_path / "a.docx",
        {
            "word/footnotes.xml": lambda _: notes,
            "word/_rels/document.xml.rels": lambda old: old.replace(
                "</Relationships>", relation + "</Relationships>"
            ),
        },
    )
    assert load_document(tmp_path / "a.docx").text == "Claim.\nSource.\n\nNext."


def test_a_document_without_text_is_refused(word: Any, tmp_path: Path) -> None:
    assert code_of(lambda: read(word, tmp_path)) == "no_text"


def test_a_truncated_document_is_refused(word: Any, tmp_path: Path) -> None:
    word.add_paragraph("text " * 1000)
    word.save(tmp_path / "whole.docx")
    data = (tmp_path / "whole.docx").read_bytes()
    for share in (0.1, 0.5, 0.99):
        (tmp_path / "a.docx").write_bytes(data[: int(len(data) * share)])
        assert code_of(lambda: load_document(tmp_path / "a.docx")) == "damaged"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_in_its_xml_are_refused(word: Any, tmp_path: Path, encoding: str) -> None:
    bomb = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE b [<!ENTITY a "{"ha" * 1000}">'
        + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
        + f"]><w:document {W}><w:body><w:p><w:r><w:t>&a8;</w:t></w:r></w:p></w:body></w:document>"
    )
    word.save(tmp_path / "plain.docx")
    rewrite(
        tmp_path / "plain.docx",
        tmp_path / "a.docx",
        {"word/document.xml": lambda _: bomb},
        encoding=encoding,
    )
    assert code_of(lambda: load_document(tmp_path / "a.docx")) == "unsafe"


def test_really_inflated_bytes_are_counted_at_the_limit(word: Any, tmp_path: Path) -> None:
    word.add_paragraph("text")
    word.save(tmp_path / "a.docx")
    size = sum(entry.file_size for entry in zipfile.ZipFile(tmp_path / "a.docx").infolist())
    assert load_document(tmp_path / "a.docx", limits=Limits(archive_bytes=size)).text == "text"
    for limits in (Limits(archive_bytes=size - 1), Limits(archive_entries=5)):
        assert code_of(lambda: load_document(tmp_path / "a.docx", limits=limits)) == "archive_bomb"  # noqa: B023


def test_a_zip_bomb_is_refused_whatever_size_it_declares(word: Any, tmp_path: Path) -> None:
    word.save(tmp_path / "a.docx")
    with zipfile.ZipFile(tmp_path / "a.docx", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image.png", bytes(30_000_000))
    assert code_of(lambda: load_document(tmp_path / "a.docx")) == "archive_bomb"
    data = (tmp_path / "a.docx").read_bytes()
    lying = data.replace((30_000_000).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert lying != data
    (tmp_path / "a.docx").write_bytes(lying)
    assert code_of(lambda: load_document(tmp_path / "a.docx")) in ("archive_bomb", "damaged")


def test_a_column_span_of_millions_costs_nothing(word: Any, tmp_path: Path) -> None:
    table = add_table(word, [["a", "b"], ["c", "d"]])
    properties = table.cell(0, 0)._tc.get_or_add_tcPr()
    properties.append(parse_xml(f'<w:gridSpan {W} w:val="999999999"/>'))
    assert "a | b" in read(word, tmp_path).text


def rewrite(source: Path, target: Path, changes: dict[str, Any], encoding: str = "utf-8") -> None:
    """Copy a ZIP with some of its entries changed or added."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in dict.fromkeys([*old.namelist(), *changes]):
            data = old.read(name) if name in old.namelist() else b""
            if name in changes:
                data = changes[name](data.decode()).encode(encoding)
            new.writestr(name, data)


def code_of(action: Any) -> str:
    with pytest.raises(DocumentError) as error:
        action()
    assert error.value.message.endswith(".")
    return error.value.code


def test_a_docx_is_known_by_its_content_whatever_its_name(word: Any, tmp_path: Path) -> None:
    word.add_paragraph("text")
    buffer = io.BytesIO()
    word.save(buffer)
    for name in ("a.pdf.html", "a.txt", "a"):
        (tmp_path / name).write_bytes(buffer.getvalue())
        assert load_document(tmp_path / name).text == "text"


@pytest.mark.parametrize(
    "kind",
    [
        "application/vnd.ms-word.document.macroEnabled.main+xml",
        "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
    ],
)
def test_documents_with_macros_and_templates_are_read(word: Any, tmp_path: Path, kind: str) -> None:
    word.add_paragraph("text")
    word.save(tmp_path / "plain.docx")
    plain = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    changes = {"[Content_Types].xml": lambda old: old.replace(plain, kind)}
    with zipfile.ZipFile(tmp_path / "plain.docx", "a") as archive:
        archive.writestr("word/media/image.png", bytes(range(256)))
    rewrite(tmp_path / "plain.docx", tmp_path / "a.docm", changes)
    assert load_document(tmp_path / "a.docm").text == "text"


def test_an_old_word_document_is_refused_with_advice(tmp_path: Path) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    (tmp_path / "a.doc").write_bytes(ole + bytes(512) + "WordDocument".encode("utf-16-le"))
    with pytest.raises(DocumentError, match="Save it as DOCX"):
        load_document(tmp_path / "a.doc")
