"""Is this ZIP safe to open? It is inflated once under limits, nothing is kept.

What an entry declares about its size is the sender's claim, so bytes are counted as they come out.
"""

from __future__ import annotations

import io
import zipfile
import zlib

from rag.readers.blocks import MEGABYTE, DocumentError, Limits

_CHUNK = 256 * 1024
_PAGES = (".svg", ".htm", ".html", ".bin")  # the last may be settings of a printer


def check_archive(data: bytes, limits: Limits, pages: tuple[str, ...] = _PAGES) -> None:
    """Refuse a ZIP with too many entries, too much in it, or XML that declares entities.

    Args:
        pages: endings of the names of entries that may declare a document type, as pages do; who
            reads these must do so with a parser that knows no entities.

    Raises:
        DocumentError: "damaged", "encrypted", "archive_bomb" or "unsafe".
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
        if len(entries) > limits.archive_entries:
            raise _bomb(f"it has {len(entries):,} entries, more than {limits.archive_entries:,}")
        total = 0
        for entry in entries:
            if entry.flag_bits & 1:
                raise DocumentError(
                    "encrypted", "This document is encrypted. Save it without a password."
                )
            total += _inflated_size(archive, entry, limits.archive_bytes - total, limits, pages)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise DocumentError(
            "damaged", "This document is damaged or incomplete. Save it again and add it once more."
        ) from error


def _inflated_size(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    allowed: int,
    limits: Limits,
    pages: tuple[str, ...],
) -> int:
    """The bytes that really come out of one entry, once they have been looked through."""
    size = 0
    before = b""
    is_page = entry.filename.lower().endswith(pages)
    with archive.open(entry) as stream:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > allowed:
                raise _bomb(f"it inflates to more than {limits.archive_bytes:,} bytes")
            if size > MEGABYTE and size > limits.archive_ratio * max(1, entry.compress_size):
                raise _bomb(f"a part of it inflates more than {limits.archive_ratio}-fold")
            window = b"" if is_page else (before + chunk).replace(b"\0", b"")  # in UTF-16 too
            if b"<!DOCTYPE" in window or b"<!ENTITY" in window:
                raise DocumentError(
                    "unsafe",
                    "This document's XML declares its own document type, which no Office program "
                    "writes and which can be used to exhaust a computer. It was not read.",
                )
            before = chunk[-32:]
    return size


def _bomb(reason: str) -> DocumentError:
    return DocumentError(
        "archive_bomb",
        f"This document was not opened because {reason}, which is far from an ordinary document. "
        "Save it again in parts, or with smaller pictures.",
    )
