"""HTML to blocks: what a reader of the page would see, without what only moves around in it.

Scripts, styles, navigation, forms' controls and hidden parts are left out (hidden text is also
how instructions are smuggled into pages). Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, PreformattedString, Tag

from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.encodings import decode
from rag.readers.tables import table_lines

_LEFT_OUT = frozenset(
    "script style noscript template svg math iframe object embed head nav button select option "
    "input textarea canvas audio video map dialog".split()
) - {"math"}
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main ol p pre section summary "
    "table caption thead tbody tfoot tr td th ul".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_META_CHARSET = re.compile(
    rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]+)""")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\r\n\f]+")


def read_html(source: Source) -> Iterator[Block]:
    """The page's blocks in reading order. If it has no `h1`, its title stands for one."""
    markup = decode(source.data, declared_charset(source.data), source.warn)
    soup = BeautifulSoup(_without_doctype(clean(markup)), "lxml")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    if title and not soup.find("h1"):
        yield Block(title, level=1)
    yield from _Walk().blocks(soup)


def declared_charset(data: bytes) -> str | None:
    """The charset that the page itself declares, near its top."""
    match = _XML_ENCODING.search(data[:1024]) or _META_CHARSET.search(data[:4096])
    return match[1].decode("ascii") if match else None


def _without_doctype(markup: str) -> str:
    """Refuse declared entities, which only serve to blow up; HTML has none of its own."""
    if "<!entity" in markup[:100_000].lower():
        raise DocumentError(
            "unsafe",
            "This page declares XML entities, which can be used to exhaust a computer, and was "
            "not read. Save it again from a browser.",
        )
    return markup


class _Walk:
    """One pass over the tree; text gathers until a block begins or ends."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._level = 0
        self._separator = "\n\n"

    def blocks(self, root: Tag) -> Iterator[Block]:
        """Visit the tree without recursion: a hostile page can be thousands of tags deep."""
        stack: list[tuple[PageElement, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if isinstance(node, Tag):
                if leaving:
                    yield from self._flush()
                    self._level = 0 if node.name in _HEADINGS else self._level
                elif node.name == "table" and not _is_layout(node):
                    yield from self._flush()
                    yield from _table_blocks(node)
                elif not _is_left_out(node):
                    if node.name in _BLOCKS:
                        yield from self._flush()
                        stack.append((node, True))
                        self._enter(node)
                    elif node.name == "br":
                        self._text.append("\n")
                    stack.extend((child, False) for child in reversed(node.contents))
            elif isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
                kept = node.find_parent("pre") is not None
                self._text.append(str(node) if kept else _SPACES.sub(" ", node))
        yield from self._flush()

    def _enter(self, node: Tag) -> None:
        self._level = _HEADINGS.get(node.name, self._level)
        if node.name in ("li", "dd", "dt"):
            self._separator = "\n"

    def _flush(self) -> Iterator[Block]:
        text = "".join(self._text)
        self._text.clear()
        lines = [line.rstrip() for line in text.replace("\xad", "").split("\n")]
        text = "\n".join(line if line.startswith("  ") else line.lstrip() for line in lines)
        if text.strip():
            yield Block(text.strip("\n"), self._level, separator=self._separator)
            self._separator = "\n\n"


def _is_left_out(node: Tag) -> bool:
    if node.name in _LEFT_OUT or node.get("role") == "navigation" or node.has_attr("hidden"):
        return True
    return bool(_HIDDEN_STYLE.search(str(node.get("style", ""))))


def _is_layout(table: Tag) -> bool:
    """A table that only arranges the page: one column, or tables or headings within."""
    if table.find(["table", "h1", "h2", "h3", "ul", "ol", "pre"]):
        return True
    return all(len(row.find_all(["td", "th"])) <= 1 for row in table.find_all("tr"))


def _table_blocks(table: Tag) -> Iterator[Block]:
    if table.caption:
        yield Block(table.caption.get_text(" ", strip=True))
    separator = "\n\n"
    rows = [row.find_all(["td", "th"]) for row in table.find_all("tr")]
    rows = [row for row in rows if row]
    has_header = bool(rows) and all(cell.name == "th" for cell in rows[0])
    texts = [[cell.get_text(" ", strip=True) for cell in row] for row in rows]
    for line in table_lines(texts, has_header or None):
        yield Block(line, separator=separator)
        separator = "\n"
