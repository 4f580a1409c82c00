"""Word documents to blocks, in the order of the body, tables in their place.

A DOCX is a ZIP of XML files, so it can be a bomb twice over: `rag.readers.office` has it inflated
under limits and looked through for entities before python-docx sees it. python-docx then finds
the parts; the XML is walked here, since its own paragraphs and tables leave out content controls,
text boxes, footnotes and insertions. Deleted and hidden text is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import docx
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml

from rag.readers.blocks import Block, Source, clean
from rag.readers.office import office_file, reading
from rag.readers.running_lines import is_page_number
from rag.readers.tables import Cell, table_lines

_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_CONTAINERS = {qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"), qn("w:smartTag"), qn("w:ins")}
_TEXT = {qn("w:t"), _MATH_TEXT}
_SPACES = {qn("w:tab"): "\t", qn("w:ptab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n"}
_HYPHEN = qn("w:noBreakHyphen")
_NOT_TEXT = {  # properties, deletions, reading aids, and text boxes, which follow the paragraph
    *(qn(f"w:{name}") for name in ("pPr", "rPr", "del", "moveFrom", "rt", "txbxContent")),
    _FALLBACK,
}


def read_docx(source: Source) -> Iterator[Block]:
    """Headers and footers that say what the body does not, once; then the body.

    Raises:
        DocumentError: "damaged", "encrypted", "archive_bomb", "unsafe" or "unsupported".
    """
    file = office_file(source, "Word document")
    with reading("Word document"):
        document = docx.Document(file)
        reader = _Reader(document)
        body = list(reader.blocks(document.element.body))
        running = list(reader.headers_and_footers())
    text = "\n".join(block.text for block in body)
    yield from (Block(line) for line in dict.fromkeys(running) if line not in text)
    yield from body


class _Reader:
    """Walks the XML of one document."""

    def __init__(self, document: Any) -> None:
        self._part = document.part
        self._levels = _heading_levels(document)
        self._notes = {
            note.get(qn("w:id")): note
            for part in self._related("/footnotes", "/endnotes")
            for note in parse_xml(part.blob)
        }

    def _related(self, *kinds: str) -> Iterator[Any]:
        for relation in self._part.rels.values():
            if not relation.is_external and relation.reltype.endswith(kinds):
                yield relation.target_part

    def blocks(self, parent: Any) -> Iterator[Block]:
        """Blocks of a body, a cell or a text box; containers are walked through."""
        for element in parent:
            if element.tag == qn("w:p"):
                yield from self._paragraph(element)
            elif element.tag == qn("w:tbl"):
                yield from self._table(element)
            elif element.tag in _CONTAINERS:
                yield from self.blocks(element)

    def headers_and_footers(self) -> Iterator[str]:
        """Their paragraphs but page numbers, in the order of the parts."""
        for part in self._related("/header", "/footer"):
            for paragraph in _all_but_fallbacks(parse_xml(part.blob), "w:p"):
                line = _text(paragraph)
                if line and not is_page_number(line):
                    yield line

    def _paragraph(self, paragraph: Any) -> Iterator[Block]:
        style = paragraph.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
        level = self._levels.get(style.get(qn("w:val")), 0) if style is not None else 0
        is_item = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}") is not None
        if text := _text(paragraph):
            yield Block(text, level, separator="\n" if is_item and not level else "\n\n")
        for box in _all_but_fallbacks(paragraph, "w:txbxContent"):
            yield from self.blocks(box)
        for reference in paragraph.iter(qn("w:footnoteReference"), qn("w:endnoteReference")):
            note = self._notes.get(reference.get(qn("w:id")))
            if note is not None and (text := _text(note)):
                yield Block(text, separator="\n")

    def _table(self, table: Any) -> Iterator[Block]:
        rows = [list(_children(row, qn("w:tc"))) for row in _children(table, qn("w:tr"))]
        if all(len(row) <= 1 for row in rows):  # a frame around text, not a table
            for row in rows:
                for cell in row:
                    yield from self.blocks(cell)
            return
        marked = table.find(f"{qn('w:tr')}/{qn('w:trPr')}/{qn('w:tblHeader')}") is not None
        separator = "\n\n"
        for line in table_lines((map(_cell, row) for row in rows), marked or None):
            yield Block(line, separator=separator)
            separator = "\n"


def _heading_levels(document: Any) -> dict[str, int]:
    """Style id to heading level, by the built-in name (English in every Word) or outline level."""
    levels: dict[str, int] = {}
    for style in document.styles.element.iter(qn("w:style")):
        name = style.find(qn("w:name"))
        outline = style.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        based_on = style.find(qn("w:basedOn"))
        match = re.fullmatch("heading ([1-6])", _value(name).lower())
        if match:
            level = int(match[1])
        elif _value(name).lower() == "title":
            level = 1
        elif _value(outline) in list("012345"):
            level = int(_value(outline)) + 1
        else:
            level = levels.get(_value(based_on), 0)
        levels[style.get(qn("w:styleId"))] = level
    return levels


def _value(element: Any) -> str:
    return "" if element is None else element.get(qn("w:val"), "")


def _children(parent: Any, tag: str) -> Iterator[Any]:
    """Rows of a table or cells of a row, also those inside content controls."""
    for element in parent:
        if element.tag == tag:
            yield element
        elif element.tag in _CONTAINERS:
            yield from _children(element, tag)


def _cell(cell: Any) -> Cell:
    properties = cell.find(qn("w:tcPr"))
    span = merge = None
    if properties is not None:
        span, merge = properties.find(qn("w:gridSpan")), properties.find(qn("w:vMerge"))
    goes_on = merge is not None and _value(merge) != "restart"
    columns = int(_value(span)) if _value(span).isdecimal() else 1
    return Cell(None if goes_on else _text(cell), columns)


def _all_but_fallbacks(element: Any, name: str) -> Iterator[Any]:
    """Everything of that name within, but not what is there a second time for old programs."""
    for found in element.iter(qn(name)):
        if not any(ancestor.tag == _FALLBACK for ancestor in found.iterancestors()):
            yield found


def _text(element: Any) -> str:
    """The text of a paragraph, or of everything in a cell or note, its paragraphs as lines."""
    paragraphs = [element] if element.tag == qn("w:p") else _all_but_fallbacks(element, "w:p")
    lines = (clean("".join(_pieces(paragraph))).strip() for paragraph in paragraphs)
    return "\n".join(line for line in lines if line)


def _pieces(element: Any) -> Iterator[str]:
    for node in element:
        if node.tag in _NOT_TEXT or node.find(f"{qn('w:rPr')}/{qn('w:vanish')}") is not None:
            continue
        if node.tag in _TEXT:
            yield node.text or ""
        elif node.tag in _SPACES:
            yield _SPACES[node.tag]
        elif node.tag == _HYPHEN:
            yield "-"
        else:
            yield from _pieces(node)
