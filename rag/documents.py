"""A file to text with positions: where each page and each heading's part begins and ends.

Text, Markdown, HTML, PDF, DOCX, PPTX, XLSX, CSV, EPUB and e-mail, told apart by what is in the file
and only then by its name.
The readers (`rag.readers`) are imported when needed, so that reading a text file stays cheap.
Files are read in this process, without limits on time and memory: untrusted ones go through
`rag.sandbox`, which runs this module in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from rag import media_type as media_types
from rag.media_type import media_type
from rag.names import display_name
from rag.readers.blocks import MEGABYTE, Block, DocumentError, Limits, Progress, Source

__all__ = [
    "Document",
    "DocumentError",
    "Limits",
    "Section",
    "load_document",
    "load_stream",
    "open_file",
]

_LONGEST_HEADING = 120  # characters, where it is referred to
_TABLES = (media_types.CSV, media_types.TSV, media_types.XLSX)
_MOST_HEADINGS = 10_000  # in one document; what comes after counts as text


@dataclass(frozen=True)
class Section:
    """A stretch of a document's text on one page and under one heading.

    Attributes:
        start, end: characters in the text; a section starts where the one before ends.
        page: counted from 1; None where the format has no pages.
        heading: the headings above, outermost first.
    """

    start: int
    end: int
    page: int | None
    heading: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """What was read from one file.

    Attributes:
        name: for display only; never a path.
        sections: cover the text exactly, in order.
        warnings: sentences for the person about what could not be read well.
    """

    name: str
    media_type: str
    text: str
    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()


def load_document(
    path: Path,
    name: str | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Document:
    """Read one file.

    Args:
        path: where its bytes are.
        name: what the person calls it (default: the file's own name).
        progress: called as (label, done, total), for PDF after each page.

    Raises:
        DocumentError: it cannot be read; the message says why and what to do.
    """
    with open_file(path) as file:
        return load_stream(file, path.name if name is None else name, limits, progress)


def open_file(path: Path) -> BinaryIO:
    """Open for reading what must be a file: a pipe would block, and a device never end."""
    if path.exists() and not path.is_file():
        raise DocumentError("unsupported", "This is not a file that can be read.")
    return open(path, "rb")


def load_stream(
    stream: BinaryIO,
    name: str,
    limits: Limits | None = None,
    progress: Progress | None = None,
    more_time: Callable[[float], None] | None = None,
) -> Document:
    """`load_document` for bytes that are already open for reading.

    `more_time` is called before work that may take so many seconds more than `limits.seconds`.
    """
    limits = limits or Limits()
    shown = display_name(name)
    warnings: list[str] = []
    source = Source(_read(stream, limits), limits, warnings.append, progress or _no_progress)
    if more_time is not None:
        source = replace(source, more_time=more_time)
    kind = media_type(source.data, shown, source.warn)
    text, sections = _assemble(_blocks(source, kind), limits, kind)
    return Document(shown, kind, text, sections, tuple(dict.fromkeys(warnings)))


def _no_progress(label: str, done: int, total: int) -> None:
    pass


def _read(stream: BinaryIO, limits: Limits) -> bytes:
    data = stream.read(limits.file_bytes + 1)
    if len(data) > limits.file_bytes:
        raise DocumentError(
            "too_big",
            f"This file is larger than {_megabytes(limits.file_bytes)}. Split it and add the "
            "parts.",
        )
    if not data:
        raise DocumentError("empty", "This file is empty (0 bytes). Check that it was saved.")
    return data


def _blocks(source: Source, kind: str) -> Iterator[Block]:
    """The blocks of a file of that kind. A reader is imported only once a file needs it."""
    match kind:
        case media_types.PDF:
            from rag.readers.pdf import read_pdf as read
        case media_types.PICTURE:
            from rag.readers.picture import read_picture as read
        case media_types.DOCX:
            from rag.readers.docx import read_docx as read
        case media_types.PPTX:
            from rag.readers.pptx import read_pptx as read
        case media_types.XLSX:
            from rag.readers.xlsx import read_xlsx as read
        case media_types.CSV | media_types.TSV:
            from rag.readers.csv import read_csv as read
        case media_types.EPUB:
            from rag.readers.epub import read_epub as read
        case media_types.EML:
            from rag.readers.eml import read_eml as read
        case media_types.HTML:
            from rag.readers.html import read_html as read
        case _:
            return _text_blocks(source, kind)
    return read(source)


def _text_blocks(source: Source, kind: str) -> Iterator[Block]:
    from rag.readers.encodings import decode
    from rag.readers.text import read_markdown, read_text

    text = decode(source.data, warn=source.warn)
    return read_markdown(text) if kind == media_types.MARKDOWN else read_text(text)


def _assemble(
    blocks: Iterable[Block], limits: Limits, kind: str
) -> tuple[str, tuple[Section, ...]]:
    """The blocks' text joined, and the sections that cover it."""
    parts: list[str] = []
    starts: list[tuple[int, int | None, tuple[str, ...]]] = []  # (start, page, heading)
    open_headings: list[tuple[int, str]] = []  # (level, title), outermost first
    length = size = headings = 0
    for block in blocks:
        text = (block.separator if parts else "") + block.text
        if block.ends_headings:
            open_headings = []
        is_heading = block.level > 0 and headings < _MOST_HEADINGS
        if is_heading:
            headings += 1
            title = " ".join((block.title or block.text).split())[:_LONGEST_HEADING]
            open_headings = [item for item in open_headings if item[0] < block.level]
            open_headings.append((block.level, title))
        heading = tuple(title for _, title in open_headings)
        if is_heading or not starts or starts[-1][1:] != (block.page, heading):
            start = length + len(text) - len(block.text)
            starts.append((start if parts else 0, block.page, heading))
        parts.append(text)
        length += len(text)
        size += len(text.encode())
        if size > limits.text_bytes:
            raise DocumentError(
                "too_much_text",
                f"This file holds more than {_megabytes(limits.text_bytes)} of text"
                + (", with the headings that each row is kept with" if kind in _TABLES else "")
                + ". Split it and add the parts.",
            )
    text = "".join(parts)
    if not text.strip():
        raise DocumentError(
            "no_text", "No text was found in this file. Check that it is the right one."
        )
    ends = [start for start, _, _ in starts[1:]] + [length]
    sections = tuple(
        Section(start, end, page, heading)
        for (start, page, heading), end in zip(starts, ends, strict=True)
    )
    return text, sections


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:,.3g} MB" if count >= MEGABYTE // 10 else f"{count:,} bytes"
