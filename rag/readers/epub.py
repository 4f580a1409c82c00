"""EPUB books to blocks: the files of the book in reading order, each a page of XHTML.

A book is a ZIP. Its package file names the files and their order (the spine); the table of
contents gives the title of those that have no heading of their own. Pages are read by
`rag.readers.html`. The XML around them is parsed without entities, and every name in it is looked
up in the archive only.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from lxml import etree

from rag.readers.archive import check_archive
from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.html import declared_charset, page_blocks, parse_page
from rag.readers.office import reading

_PAGES = (".xhtml", ".html", ".htm", ".xml", ".svg", ".ncx", ".opf")  # may have a document type
_PAGE_TYPES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_NAMES = {
    "container": "urn:oasis:names:tc:opendocument:xmlns:container",
    "opf": "http://www.idpf.org/2007/opf",
    "dc": "http://purl.org/dc/elements/1.1/",
    "ncx": "http://www.daisy.org/z3986/2005/ncx/",
    "html": "http://www.w3.org/1999/xhtml",
    "xenc": "http://www.w3.org/2001/04/xmlenc#",
}


def read_epub(source: Source) -> Iterator[Block]:
    """The book's text in reading order.

    Raises:
        DocumentError: "damaged", "encrypted" (a book with copy protection), "archive_bomb",
            "unsafe", or "no_text".
    """
    check_archive(source.data, source.limits, pages=_PAGES)
    with reading("book"):
        book = _Book(zipfile.ZipFile(io.BytesIO(source.data)))
        files = book.spine()
        titles = book.titles()
        if book.encrypted.intersection(files):
            raise DocumentError(
                "encrypted",
                "This book has copy protection and cannot be read. Add a copy without it.",
            )
    missing = 0
    for number, file in enumerate(files, 1):
        with reading("book"):
            data = book.read(file)
        if data is None:
            missing += 1
            continue
        try:
            soup = parse_page(data, declared_charset(data), source.warn)
        except DocumentError as error:
            if error.code != "binary":
                raise
            missing += 1
            continue
        yield from _titled(page_blocks(soup), titles.get(file, ""))
        source.progress("Reading chapters", number, len(files))
    if missing:
        source.warn(
            f"{missing} of {len(files)} files of this book are missing or damaged, and were left "
            "out."
        )


def _titled(blocks: Iterator[Block], title: str) -> Iterator[Block]:
    """The blocks of one file. If they do not begin with a heading, the title is one."""
    first = next(blocks, None)
    if first is None:
        return
    if title and not first.level:
        first = replace(first, level=1, title=title)
    yield first
    yield from blocks


@dataclass(frozen=True)
class _Item:
    """A file of the book, by its name in the archive."""

    name: str
    media_type: str
    properties: str


class _Book:
    """The package file of a book and what it refers to."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        container = self._xml("META-INF/container.xml")
        root = container.find(".//container:rootfile", _NAMES)
        self._package_name = root.get("full-path", "")
        self._package = self._xml(self._package_name)
        self._items = {
            item.get("id", ""): _Item(
                self._name(item.get("href", ""), self._package_name),
                item.get("media-type", ""),
                item.get("properties") or "",
            )
            for item in self._package.iterfind(".//opf:manifest/opf:item", _NAMES)
        }
        self.encrypted = self._encrypted()

    def spine(self) -> list[str]:
        """The names of the pages in reading order, each once."""
        items = [
            self._items.get(reference.get("idref", ""))
            for reference in self._package.iterfind(".//opf:spine/opf:itemref", _NAMES)
        ]
        pages = [i.name for i in items if i and i.media_type in _PAGE_TYPES and not _is_nav(i)]
        if not pages:
            raise ValueError("a book without pages")
        return list(dict.fromkeys(pages))

    def titles(self) -> dict[str, str]:
        """The title of each page in the table of contents, by its name."""
        titles: dict[str, str] = {}
        for item in self._items.values():
            if _is_nav(item) and item.name in self._names:
                tree = self._xml(item.name)
                for link in tree.iterfind(".//html:nav//html:a", _NAMES):
                    name = self._name(link.get("href", ""), item.name)
                    titles.setdefault(name, _text(link))
            elif item.media_type == "application/x-dtbncx+xml" and item.name in self._names:
                for point in self._xml(item.name).iterfind(".//ncx:navPoint", _NAMES):
                    label, content = (point.find(f"ncx:{tag}", _NAMES) for tag in _NCX_PARTS)
                    if label is not None and content is not None:
                        name = self._name(content.get("src", ""), item.name)
                        titles.setdefault(name, _text(label))
        return titles

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, None if it is not there."""
        return self._archive.read(name) if name in self._names else None

    def _xml(self, name: str) -> Any:
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, recover=True
        )
        data = self._archive.read(name)
        if b"<!ENTITY" in data.replace(b"\0", b""):  # in UTF-16 too
            raise DocumentError(
                "unsafe",
                "This book's XML declares entities, which no publisher needs and which can be used "
                "to exhaust a computer. It was not read.",
            )
        tree = etree.fromstring(data, parser)
        if tree is None:
            raise ValueError(f"{name} holds no XML")
        return tree

    def _name(self, reference: str, base: str) -> str:
        """The name in the archive that a reference in the file `base` means."""
        path = unquote(urlsplit(reference).path)
        return posixpath.normpath(posixpath.join(posixpath.dirname(base), path))

    def _encrypted(self) -> set[str]:
        """The names of the encrypted files; obfuscated fonts are among them in many free books."""
        if "META-INF/encryption.xml" not in self._names:
            return set()
        references = self._xml("META-INF/encryption.xml").iterfind(
            ".//xenc:CipherReference", _NAMES
        )
        return {posixpath.normpath(unquote(one.get("URI", ""))) for one in references}


_NCX_PARTS = ("navLabel", "content")


def _is_nav(item: _Item) -> bool:
    """Whether this page is the table of contents, which repeats all headings."""
    return "nav" in item.properties.split()


def _text(element: Any) -> str:
    return " ".join(clean("".join(element.itertext())).split())
