"""HTML to blocks: what a reader of the page would see, without what only moves around in it.

Scripts, styles, navigation, controls of forms and hidden parts are left out (hidden text is also
how instructions are smuggled into pages). Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, PreformattedString, Tag

from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.encodings import decode
from rag.readers.tables import Cell, table_lines

_LEFT_OUT = re.compile(
    "script|style|noscript|template|head|nav|button|select|datalist|textarea|dialog"
    "|svg|iframe|object|embed|canvas|audio|video|map|annotation"
)
_BLOCKS = re.compile(
    "address|article|aside|blockquote|body|caption|center|dd|details|div|dl|dt|fieldset|figcaption"
    "|figure|footer|form|h[1-6]|header|hgroup|hr|legend|li|main|ol|p|pre|section|summary|table"
    "|tbody|td|tfoot|th|thead|tr|ul"
)
_HEADING = re.compile("h([1-6])")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\r\n\f]+")  # not the no-break space
_META_CHARSET = re.compile(
    rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]+)""")
_OWN_DOCUMENT_TYPE = re.compile(r"<!doctype[^>\[]{0,1000}\[", re.IGNORECASE)
_XHTML = re.compile(r"\s*<\?xml\b[^>]{0,200}>")
_EMPTY_TAG = re.compile(r"<([A-Za-z][\w:.-]{0,50})([^<>]*)/>")
_VOID = re.compile(  # tags that never have an end
    "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr", re.IGNORECASE
)
_MOST_SPANNED = 200


def read_html(source: Source) -> Iterator[Block]:
    """The page's blocks in reading order. If it has no `h1`, its title stands for one.

    Raises:
        DocumentError: "binary", or "unsafe" if the page declares entities of its own.
    """
    soup = parse_page(source.data, declared_charset(source.data), source.warn)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    if title and not soup.find("h1"):
        yield Block(title, level=1)
    yield from page_blocks(soup)


def parse_page(data: bytes, charset: str | None, warn: Callable[[str], None]) -> BeautifulSoup:
    """The tree of a page. Raises DocumentError as `read_html`.

    Args:
        charset: what the page or its wrapping says of its encoding; believed only if it fits.
    """
    markup = clean(decode(data, charset, warn))
    if _OWN_DOCUMENT_TYPE.search(markup[:100_000]):
        raise DocumentError(
            "unsafe",
            "This page declares its own document type, which no browser heeds and which can be "
            "used to exhaust a computer. It was not read. Save the page again from a browser.",
        )
    if declaration := _XHTML.match(markup):
        # In HTML, `<title/>` would open a title that never ends.
        markup = _EMPTY_TAG.sub(_with_end_tag, markup[declaration.end() :])
    return BeautifulSoup(markup, "lxml")


def page_blocks(soup: BeautifulSoup) -> Iterator[Block]:
    """The blocks of a page's body."""
    return _Walk().blocks(soup)


def _with_end_tag(match: re.Match[str]) -> str:
    name, attributes = match[1], match[2]
    return match[0] if _VOID.fullmatch(name) else f"<{name}{attributes}></{name}>"


def declared_charset(data: bytes) -> str | None:
    """The charset that the page itself declares, near its top."""
    match = _XML_ENCODING.search(data[:1024]) or _META_CHARSET.search(data[:4096])
    return match[1].decode("ascii") if match else None


class _Walk:
    """One pass over a tree; text gathers until a block begins or ends."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._level = 0
        self._separator = "\n\n"
        self._pre = 0  # open `pre` tags

    def blocks(self, root: Tag) -> Iterator[Block]:
        """Blocks in order, without recursion: a hostile page can be thousands of tags deep."""
        stack: list[tuple[PageElement, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if isinstance(node, NavigableString):
                if not isinstance(node, PreformattedString):  # comments, declarations
                    self._add(node)
            elif not isinstance(node, Tag):
                continue
            elif leaving:
                yield from self._flush()
                self._leave(node)
            elif node.name == "br":
                self._parts.append("\n")
            elif node.name == "table" and not _is_layout(node):
                yield from self._flush()
                yield from _table(node)
            elif not _is_left_out(node):
                if _BLOCKS.fullmatch(node.name):
                    yield from self._flush()
                    self._enter(node)
                    stack.append((node, True))
                stack.extend((child, False) for child in reversed(node.contents))
        yield from self._flush()

    def _add(self, text: str) -> None:
        if not self._pre:
            text = _SPACES.sub(" ", text)
            if not self._parts or self._parts[-1][-1] in " \n":
                text = text.lstrip(" ")
        if text:
            self._parts.append(text)

    def _enter(self, node: Tag) -> None:
        if match := _HEADING.fullmatch(node.name):
            self._level = int(match[1])
        self._pre += node.name == "pre"
        if node.name in ("li", "dd", "dt"):
            self._separator = "\n"

    def _leave(self, node: Tag) -> None:
        if _HEADING.fullmatch(node.name):
            self._level = 0
        self._pre -= node.name == "pre"

    def _flush(self) -> Iterator[Block]:
        text = "".join(self._parts).replace("\xad", "").replace(" \n", "\n").rstrip().strip("\n")
        self._parts.clear()
        if text:
            yield Block(text, self._level, separator=self._separator)
            self._separator = "\n\n"


def _is_left_out(node: Tag) -> bool:
    return bool(
        _LEFT_OUT.fullmatch(node.name)
        or node.get("role") == "navigation"
        or node.has_attr("hidden")
        or _HIDDEN_STYLE.search(str(node.get("style", "")))
    )


def _is_layout(table: Tag) -> bool:
    """Whether a table only arranges the page: one column, or tables or headings within."""
    if table.get("role") == "presentation" or table.find(["table", "h1", "h2", "h3"]):
        return True
    return all(len(row.find_all(["td", "th"])) <= 1 for row in table.find_all("tr"))


def _table(table: Tag) -> Iterator[Block]:
    if table.caption:
        yield from _Walk().blocks(table.caption)
    rows = [
        list(row.find_all(["td", "th"])) for row in table.find_all("tr") if not _is_left_out(row)
    ]
    rows = [row for row in rows if row]
    has_header = bool(rows) and all(cell.name == "th" for cell in rows[0])
    separator = "\n\n"
    for line in table_lines(_cells(rows), has_header or None):
        yield Block(line, separator=separator)
        separator = "\n"


def _cells(rows: list[list[Tag]]) -> Iterator[list[Cell]]:
    """The cells of each row, with a place kept for those that reach down from a row above."""
    reaching: dict[int, tuple[int, int]] = {}  # column: (rows still to come, columns)
    for row in rows:
        cells: list[Cell] = []
        column = 0
        tags = iter(row)
        while True:
            if column in reaching:
                left, columns = reaching.pop(column)
                cells.append(Cell(None, columns))
            elif (tag := next(tags, None)) is not None:
                left, columns = _span(tag, "rowspan"), _span(tag, "colspan")
                text = " ".join(block.text for block in _Walk().blocks(tag))
                cells.append(Cell(text, columns))
            else:
                break
            if left > 1:
                reaching[column] = (left - 1, columns)
            column += columns
        yield cells


def _span(tag: Tag, name: str) -> int:
    value = str(tag.get(name, ""))
    return min(int(value), _MOST_SPANNED) if re.fullmatch("[1-9][0-9]{0,5}", value) else 1
