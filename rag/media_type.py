"""Which kind of file is this? What is in it decides; its name only where content cannot tell."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable

from rag.readers.blocks import DocumentError

TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_SUPPORTED = "Save it as PDF, DOCX, HTML, Markdown or plain text."
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FOREIGN = (  # (first bytes, what it is)
    (_OLE, "an Office file of the old kind (.doc, .xls or .ppt)"),
    (b"{\\rtf", "an RTF document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"II*\0", "a picture"),
    (b"MM\0*", "a picture"),
    (b"\x1f\x8b", "a compressed archive"),
    (b"7z\xbc\xaf", "a compressed archive"),
    (b"Rar!", "a compressed archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\0", "a program"),
    (b"SQLite format 3\0", "a database"),
)
_HTML_START = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:\s|<\?xml[^>]{0,200}>|<!--.{0,2000}?-->)*<(?:!doctype\s+html|html[\s>])",
    re.IGNORECASE | re.DOTALL,
)


def media_type(data: bytes, name: str, warn: Callable[[str], None]) -> str:
    """The media type of a file's bytes.

    Args:
        name: its display name; the last extension counts.
        warn: told when name and content disagree.

    Raises:
        DocumentError: "unsupported", with what it is and what to do.
    """
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    kind = _by_content(data) or _by_extension(extension)
    claimed = {"pdf": PDF, "docx": DOCX}.get(extension)
    if claimed and kind != claimed:
        warn(f"Its name ends in .{extension}, but it holds {_SPOKEN[kind]} and was read as that.")
    return kind


_SPOKEN = {
    TEXT: "plain text", MARKDOWN: "Markdown", HTML: "HTML", PDF: "a PDF", DOCX: "a Word document"
}  # fmt: skip


def _by_content(data: bytes) -> str | None:
    if b"%PDF-" in data[:1024]:
        return PDF
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_type(data)
    if data.startswith(_OLE) and "EncryptedPackage".encode("utf-16-le") in data:
        raise DocumentError(
            "encrypted",
            "This document is encrypted. Open it in Office and save it without a password.",
        )
    for start, what in _FOREIGN:
        if data.startswith(start):
            raise DocumentError("unsupported", f"This is {what}. {_SUPPORTED}")
    return HTML if _HTML_START.match(data[:8192]) else None


def _zip_type(data: bytes) -> str:
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, ValueError) as error:
        raise DocumentError(
            "damaged", "This file is damaged or incomplete. Save it again and add it once more."
        ) from error
    if "word/document.xml" in names:
        return DOCX
    raise DocumentError(
        "unsupported", f"This is an archive or a file of another program. {_SUPPORTED}"
    )


def _by_extension(extension: str) -> str:
    if extension in ("html", "htm", "xhtml"):
        return HTML
    return MARKDOWN if extension in ("md", "markdown") else TEXT
