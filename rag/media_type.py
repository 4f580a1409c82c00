"""Which kind of file is this? What is in it decides; its name only where content cannot tell.

Kinds that are not read are named for what they are, with what to save them as.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable

from rag.readers.blocks import MEGABYTE, DocumentError

TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
CSV = "text/csv"
TSV = "text/tab-separated-values"
EML = "message/rfc822"
PDF = "application/pdf"
PICTURE = "image/*"  # whichever of those in which text can be recognised
EPUB = "application/epub+zip"
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = _OFFICE + "wordprocessingml.document"
PPTX = _OFFICE + "presentationml.presentation"
XLSX = _OFFICE + "spreadsheetml.sheet"

_SPOKEN = {
    TEXT: "plain text",
    MARKDOWN: "Markdown",
    HTML: "HTML",
    CSV: "comma-separated values",
    TSV: "tab-separated values",
    EML: "an e-mail",
    PDF: "a PDF",
    PICTURE: "a picture",
    EPUB: "an EPUB book",
    DOCX: "a Word document",
    PPTX: "a PowerPoint presentation",
    XLSX: "an Excel workbook",
}
_EXTENSIONS = {
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "html": HTML,
    "htm": HTML,
    "xhtml": HTML,
    "csv": CSV,
    "tsv": TSV,
    "tab": TSV,
    "eml": EML,
}
_CLAIMED = {"pdf": PDF, "docx": DOCX, "pptx": PPTX, "xlsx": XLSX, "epub": EPUB}

_SUPPORTED = (
    "Save it as PDF, DOCX, PPTX, XLSX, CSV, EPUB, HTML, Markdown or plain text, an e-mail as EML."
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_KINDS = (  # (the name of a stream in it, what it is and what to do)
    ("__substg1.0_", "an Outlook message (.msg). Save it as EML."),
    ("EncryptedPackage", ""),
    ("WordDocument", "a Word document of the old kind (.doc). Save it as DOCX."),
    ("PowerPoint Document", "a presentation of the old kind (.ppt). Save it as PPTX."),
    ("Workbook", "a workbook of the old kind (.xls). Save it as XLSX."),
    ("Book", "a workbook of the old kind (.xls). Save it as XLSX."),
)
_FOREIGN = (  # (first bytes, what it is)
    (_OLE, "an Office file of the old kind (.doc, .xls or .ppt)"),
    (b"{\\rtf", "an RTF document"),
    (b"GIF8", "a picture"),
    (b"\x1f\x8b", "a compressed archive"),
    (b"7z\xbc\xaf", "a compressed archive"),
    (b"Rar!", "a compressed archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\0", "a program"),
    (b"SQLite format 3\0", "a database"),
)
_PICTURES = re.compile(rb"\x89PNG\r\n|\xff\xd8\xff|II\*\0|MM\0\*|RIFF....WEBP", re.DOTALL)
_MAIN_PARTS = (  # (its type in an Office package, with macros and templates; its usual name)
    (re.compile(rb"(wordprocessingml|ms-word)\.[\w.]{0,80}main\+xml"), "word/document.xml", DOCX),
    (
        re.compile(rb"(presentationml|ms-powerpoint)\.[\w.]{0,80}main\+xml"),
        "ppt/presentation.xml",
        PPTX,
    ),
    (re.compile(rb"(spreadsheetml|ms-excel)\.[\w.]{0,80}main\+xml"), "xl/workbook.xml", XLSX),
)
_OPEN_DOCUMENT = re.compile(
    rb"application/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)"
)
_SAVE_AS = {b"text": "DOCX", b"spreadsheet": "XLSX", b"presentation": "PPTX"}
_HTML_START = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:\s|<\?xml[^>]{0,200}>|<!--.{0,2000}?-->)*<(?:!doctype\s+html|html[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_MAIL_START = re.compile(rb"^(?:\xef\xbb\xbf|\s|From [^\n]*\n)*[!-9;-~]+[ \t]*:")


def media_type(data: bytes, name: str, warn: Callable[[str], None]) -> str:
    """The media type of a file's bytes.

    Args:
        name: its display name; the last extension counts.
        warn: told when name and content disagree.

    Raises:
        DocumentError: "unsupported", with what it is and what to do.
    """
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    kind = _by_content(data) or _by_extension(extension, data)
    claimed = _CLAIMED.get(extension)
    if claimed and kind != claimed:
        warn(f"Its name ends in .{extension}, but it holds {_SPOKEN[kind]} and was read as that.")
    return kind


def _by_content(data: bytes) -> str | None:
    if b"%PDF-" in data[:1024]:
        return PDF
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_type(data)
    if data.startswith(_OLE):
        _refuse_old_office(data)
    if _PICTURES.match(data):
        return PICTURE
    for start, what in _FOREIGN:
        if data.startswith(start):
            raise DocumentError("unsupported", f"This is {what}. {_SUPPORTED}")
    return HTML if _HTML_START.match(data[:8192]) else None


def _refuse_old_office(data: bytes) -> None:
    """Refuse a compound file by the name of the stream that tells its kind, if it has one."""
    for stream, what in _OLE_KINDS:
        if stream.encode("utf-16-le") in data:
            if what:
                raise DocumentError("unsupported", f"This is {what}")
            raise DocumentError(
                "encrypted",
                "This document is encrypted. Open it in Office and save it without a password.",
            )


def _zip_type(data: bytes) -> str:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        names = set(archive.namelist())
        content_types = _start(archive, "[Content_Types].xml")
        declared = _start(archive, "mimetype")
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise DocumentError(
            "damaged", "This file is damaged or incomplete. Save it again and add it once more."
        ) from error
    for main_part, usual_name, kind in _MAIN_PARTS:
        if usual_name in names or main_part.search(content_types):
            return kind
    if "META-INF/container.xml" in names:
        return EPUB
    if b"sheet.binary.macroEnabled" in content_types:
        raise DocumentError("unsupported", "This is a binary workbook (.xlsb). Save it as XLSX.")
    if match := _OPEN_DOCUMENT.match(declared):
        raise DocumentError(
            "unsupported", f"This is an OpenDocument file. Save it as {_SAVE_AS[match[1]]} or PDF."
        )
    raise DocumentError(
        "unsupported", f"This is an archive or a file of another program. {_SUPPORTED}"
    )


def _start(archive: zipfile.ZipFile, name: str) -> bytes:
    """The first megabyte of an entry; nothing if there is none, or if it is encrypted."""
    try:
        with archive.open(name) as stream:
            return stream.read(MEGABYTE)
    except (KeyError, RuntimeError):
        return b""


def _by_extension(extension: str, data: bytes) -> str:
    kind = _EXTENSIONS.get(extension, TEXT)
    if kind == EML and not _MAIL_START.match(data[:8192]):
        return TEXT
    return kind
