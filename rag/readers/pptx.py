"""PowerPoint presentations to blocks: slides as pages, under their titles, with speaker notes.

python-pptx opens the package and gives the slides in order; the XML of a slide is walked here,
since its own shapes leave out what stands in alternate content, such as formulas and diagrams. On a
slide the title comes first, then everything in the order in which a screen reader would say it.
Tables and charts become rows with their headings. Hidden slides are left out and named in a
warning. Footers are read once, slide numbers not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pptx
from pptx.oxml import parse_xml
from pptx.oxml.ns import qn

from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.number_format import shown
from rag.readers.office import office_file, reading
from rag.readers.tables import Cell, table_lines

_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_ALTERNATE, _CHOICE, _FALLBACK = (
    _COMPATIBILITY + name for name in ("AlternateContent", "Choice", "Fallback")
)
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_TITLES = ("title", "ctrTitle")
_RUNNING = ("ftr", "hdr", "dt")
_NOTES = "Speaker notes"
_LONGEST_TITLE = 120  # characters of what stands for the title of a slide without one


def read_pptx(source: Source) -> Iterator[Block]:
    """The slides in order; the page of a block is the number of its slide.

    Raises:
        DocumentError: "damaged", "encrypted", "archive_bomb", "unsafe", "unsupported",
            "too_many_pages", or "no_text" for slides that are only pictures.
    """
    file = office_file(source, "presentation")
    with reading("presentation"):
        presentation = pptx.Presentation(file)
        count = len(presentation.slides)
        if count > source.limits.pages:
            raise DocumentError(
                "too_many_pages",
                f"This presentation has {count:,} slides; at most {source.limits.pages:,} can be "
                "read. Split it and add the parts.",
            )
        slides = list(presentation.slides)
    said: set[str] = set()  # footers
    hidden: list[int] = []
    is_empty = True
    for number, slide in enumerate(slides, 1):
        with reading("presentation"):
            is_hidden = slide.element.get("show") in ("0", "false")
            blocks = [] if is_hidden else list(_slide(slide, said))
        if is_hidden:
            hidden.append(number)
        for block in blocks:
            is_empty = False
            yield replace(block, page=number)
        source.progress("Reading slides", number, count)
    if is_empty and count:
        raise DocumentError(
            "no_text",
            "No text was found on the slides of this presentation: they are empty, hidden or "
            "pictures. Export it as PDF to have text recognised in pictures.",
        )
    if hidden:
        numbers = ", ".join(map(str, hidden[:10])) + (", …" if len(hidden) > 10 else "")
        source.warn(f"Hidden slides were left out: {numbers}.")


def _slide(slide: Any, said: set[str]) -> Iterator[Block]:
    """The title or what stands for it, the rest, and the notes."""
    shapes = [shape for shape in _shapes(slide.element) if _placeholder(shape) != "sldNum"]
    title = " ".join(" ".join(_lines(s)) for s in shapes if _placeholder(s) in _TITLES).strip()
    body: list[Block] = []
    first_line = ""
    for shape in shapes:
        kind = _placeholder(shape)
        if kind in _TITLES:
            continue
        blocks = list(_shape(shape, slide.part))
        if kind in _RUNNING:
            blocks = [block for block in blocks if block.text not in said]
            said.update(block.text for block in blocks)
        if not body and blocks and shape.tag == qn("p:sp") and "\n" not in blocks[0].text:
            first_line = blocks[0].text[: _LONGEST_TITLE + 1]
        body += blocks
    if title:
        yield Block(title, level=1)
    elif body and 0 < len(first_line) <= _LONGEST_TITLE:
        body[0] = replace(body[0], level=1)
    elif body:
        body[0] = replace(body[0], ends_headings=True)
    yield from body
    if slide.has_notes_slide:
        notes = [s for s in _shapes(slide.notes_slide.element) if _placeholder(s) == "body"]
        lines = [line for shape in notes for line in _lines(shape)]
        if lines:
            is_first = not title and not body
            yield Block("\n".join(lines), 2, _NOTES, ends_headings=is_first)


def _shapes(element: Any) -> Iterator[Any]:
    """The shapes of a slide or a group, those of its groups in their place."""
    for child in element:
        if child.tag == _ALTERNATE:
            yield from _shapes(_best_alternative(child))
        elif child.tag in (qn("p:cSld"), qn("p:spTree"), qn("p:grpSp")):
            yield from _shapes(child)
        elif child.tag in (qn("p:sp"), qn("p:graphicFrame"), qn("p:cxnSp")):
            yield child


def _best_alternative(element: Any) -> Any:
    """What a new program shows; nothing is shown twice."""
    found = element.find(_CHOICE)
    if found is None:
        found = element.find(_FALLBACK)
    return () if found is None else found


def _placeholder(shape: Any) -> str:
    """The kind of placeholder that a shape fills; "" for other shapes."""
    found = shape.find(f"{qn('p:nvSpPr')}/{qn('p:nvPr')}/{qn('p:ph')}")
    return "" if found is None else found.get("type", "obj")


def _shape(shape: Any, part: Any) -> Iterator[Block]:
    if shape.tag != qn("p:graphicFrame"):
        if lines := _lines(shape):
            yield Block("\n".join(lines))
        return
    separator = "\n\n"
    for line in _graphic(shape, part):
        yield Block(line, separator=separator)
        separator = "\n"


def _graphic(frame: Any, part: Any) -> Iterator[str]:
    """The lines of a table, a chart or a diagram."""
    table = next(frame.iter(qn("a:tbl")), None)
    chart = next(frame.iter(_CHART + "chart"), None)
    diagram = next(frame.iter(_DIAGRAM + "relIds"), None)
    if table is not None:
        properties = table.find(qn("a:tblPr"))
        has_header = properties is not None and properties.get("firstRow") in ("1", "true")
        rows = ([_cell(cell) for cell in row if cell.tag == qn("a:tc")] for row in table)
        yield from table_lines(map(_without_covered, rows), has_header or None)
    elif chart is not None:
        yield from _chart_lines(_related(part, chart.get(qn("r:id"))))
    elif diagram is not None:
        for point in _related(part, diagram.get(qn("r:dm"))).iter(_DIAGRAM + "pt"):
            yield from _lines(point)


def _related(part: Any, relation: str) -> Any:
    """The XML of a part that this one refers to."""
    related = part.related_part(relation)
    return related._element if hasattr(related, "_element") else parse_xml(related.blob)


def _cell(cell: Any) -> tuple[Cell, bool]:
    """A cell, and whether one to its left covers it."""
    covered = cell.get("hMerge") in ("1", "true")
    above = cell.get("vMerge") in ("1", "true")
    span = cell.get("gridSpan", "1")
    columns = int(span) if span.isdecimal() and len(span) < 7 else 1
    return Cell(None if above else "\n".join(_lines(cell)), max(1, columns)), covered


def _without_covered(cells: list[tuple[Cell, bool]]) -> list[Cell]:
    return [cell for cell, covered in cells if not covered]


def _chart_lines(chart: Any) -> Iterator[str]:
    """Its titles, then a row for each category with the value of each series."""
    for title in chart.iter(_CHART + "title"):
        yield from _lines(title)
    series = list(chart.iter(_CHART + "ser"))
    names = [" ".join(_points(one.find(_CHART + "tx"), "v")) for one in series]
    columns = [
        _cached(one.find(_CHART + "val")) or _cached(one.find(_CHART + "yVal")) for one in series
    ]
    categories: dict[int, str] = {}
    for one in series:
        found = _cached(one.find(_CHART + "cat")) or _cached(one.find(_CHART + "xVal"))
        categories = found | categories
    rows = [[Cell("")] + [Cell(name) for name in names]]
    for index in sorted(set(categories).union(*columns)):
        values = [Cell(column.get(index, "")) for column in columns]
        rows.append([Cell(categories.get(index, "")), *values])
    yield from table_lines(rows, first_row_is_header=True)


def _points(element: Any, name: str) -> list[str]:
    return [] if element is None else [clean(v.text or "") for v in element.iter(_CHART + name)]


def _cached(element: Any) -> dict[int, str]:
    """The values of a chart's series by their index, in their number format."""
    if element is None:
        return {}
    number_format = next((code.text for code in element.iter(_CHART + "formatCode")), None)
    values: dict[int, str] = {}
    for point in element.iter(_CHART + "pt"):
        text = clean(" ".join(_points(point, "v")))
        index = point.get("idx", "")
        if index.isdecimal() and len(index) < 10:
            values[int(index)] = _as_number(text, number_format)
    return values


def _as_number(text: str, number_format: str | None) -> str:
    if number_format is None:
        return text
    try:
        return shown(float(text), number_format)
    except ValueError:
        return text


def _lines(element: Any) -> list[str]:
    """The paragraphs of a shape or a cell that hold text."""
    paragraphs = (clean("".join(_pieces(p))).strip() for p in element.iter(qn("a:p")))
    return [line for line in paragraphs if line]


def _pieces(element: Any) -> Iterator[str]:
    for node in element:
        if node.tag in (qn("a:t"), _MATH_TEXT):
            yield node.text or ""
        elif node.tag == qn("a:br"):
            yield "\n"
        elif node.tag == _ALTERNATE:
            yield from _pieces(_best_alternative(node))
        else:
            yield from _pieces(node)
