"""Word documents to blocks, in the order of the body, tables in their place.

A DOCX is a ZIP of XML files, so it can be a bomb twice over: the archive is inflated under
limits, and its XML checked, before python-docx sees it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import docx
from docx.oxml.ns import qn

from rag.readers.archive import check_archive
from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.tables import table_lines

_DAMAGED = "This Word document is damaged and could not be opened. Save it again from Word."


def read_docx(source: Source) -> Iterator[Block]:
    """The paragraphs and table rows of the body; then headers and footers that say more."""
    check_archive(source.data, source.limits)
    try:
        document = docx.Document(io.BytesIO(source.data))
        levels = _heading_levels(document)
        body = document.element.body
    except (KeyError, ValueError, AttributeError, zipfile.BadZipFile, SyntaxError) as error:
        raise DocumentError("damaged", _DAMAGED) from error
    seen: set[str] = set()
    for block in _blocks(body, levels):
        seen.add(block.text)
        yield block
    for text in _headers_and_footers(document):
        if text not in seen and not any(text in other for other in seen):
            seen.add(text)
            yield Block(text)


def _heading_levels(document: Any) -> dict[str, int]:
    """Style id to heading level, from the outline level or the (always English) built-in name."""
    levels: dict[str, int] = {}
    for style in document.styles.element.iter(qn("w:style")):
        name = style.find(qn("w:name"))
        words = (name.get(qn("w:val")) if name is not None else "").lower().split()
        outline = style.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        level = 0
        if words == ["title"]:
            level = 1
        elif len(words) == 2 and words[0] == "heading" and words[1] in "123456":
            level = int(words[1])
        elif outline is not None and outline.get(qn("w:val"), "9") in "012345":
            level = int(outline.get(qn("w:val"))) + 1
        if level:
            levels[style.get(qn("w:styleId"))] = level
    return levels


def _blocks(parent: Any, levels: dict[str, int]) -> Iterator[Block]:
    """Blocks of a body, a cell or a content control; containers are walked through."""
    for element in parent:
        if element.tag == qn("w:p"):
            yield from _paragraph(element, levels)
        elif element.tag == qn("w:tbl"):
            yield from _table(element)
        elif element.tag in _CONTAINERS:
            yield from _blocks(element, levels)


_CONTAINERS = frozenset(
    qn(f"w:{name}") for name in ("sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo")
)


def _paragraph(paragraph: Any, levels: dict[str, int]) -> Iterator[Block]:
    text = clean(_text(paragraph)).strip()
    if text:
        style = paragraph.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
        level = levels.get(style.get(qn("w:val")), 0) if style is not None else 0
        is_item = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}") is not None
        yield Block(text, level, separator="\n" if is_item and not level else "\n\n")


_TEXT = qn("w:t")
_BREAKS = {
    qn("w:tab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
}


def _text(element: Any) -> str:
    parts = []
    for node in element.iter():
        if node.tag == _TEXT:
            parts.append(node.text or "")
        elif node.tag in _BREAKS and node.getparent().tag == qn("w:r"):
            parts.append(_BREAKS[node.tag])
    return "".join(parts)


def _table(table: Any) -> Iterator[Block]:
    rows = [
        [_text(cell) for cell in row.iter(qn("w:tc"))] for row in table.iter(qn("w:tr"))
    ]
    marked = table.find(f"{qn('w:tr')}/{qn('w:trPr')}/{qn('w:tblHeader')}") is not None
    separator = "\n\n"
    for line in table_lines(rows, marked or None):
        yield Block(clean(line), separator=separator)
        separator = "\n"


def _headers_and_footers(document: Any) -> Iterator[str]:
    for section in document.sections:
        for part in (section.header, section.footer):
            for paragraph in part.paragraphs:
                if text := clean(paragraph.text).strip():
                    yield text
