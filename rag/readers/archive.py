"""Is this ZIP safe to open? It is inflated once under limits, nothing is kept.

What an entry declares about its size is the sender's claim, so bytes are counted as they come out.
"""

from __future__ import annotations

import io
import zipfile
import zlib

from rag.readers.blocks import MEGABYTE, DocumentError, Limits

_CHUNK = 256 * 1024


def check_archive(data: bytes, limits: Limits) -> None:
    """Refuse a ZIP with too many entries, too much in it, or XML that declares entities.

    Raises:
        DocumentError: "damaged", "archive_bomb" or "unsafe".
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
        if len(entries) > limits.archive_entries:
            raise _bomb(f"it has {len(entries):,} entries, more than {limits.archive_entries:,}")
        total = 0
        for entry in entries:
            total = _check_entry(archive, entry, total, limits)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DocumentError(
            "damaged",
            "This document is damaged or incomplete. Save it again and add it once more.",
        ) from error


def _check_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, total: int, limits: Limits
) -> int:
    """Inflate one entry; the number of bytes inflated so far."""
    inflated = 0
    is_xml = entry.filename.lower().endswith((".xml", ".rels"))
    before = b""
    with archive.open(entry) as stream:
        while chunk := stream.read(_CHUNK):
            inflated += len(chunk)
            if total + inflated > limits.archive_bytes:
                raise _bomb(f"it inflates to more than {limits.archive_bytes // MEGABYTE} MB")
            ratio = inflated / max(1, entry.compress_size)
            if inflated > MEGABYTE and ratio > limits.archive_ratio:
                raise _bomb(f"a part of it inflates more than {limits.archive_ratio}-fold")
            if is_xml and b"<!DOCTYPE" in before + chunk:
                raise DocumentError(
                    "unsafe",
                    "This document's XML declares a document type, which Word never writes and "
                    "which can be used to exhaust a computer. It was not read.",
                )
            before = chunk[-16:]
    return total + inflated


def _bomb(reason: str) -> DocumentError:
    return DocumentError(
        "archive_bomb",
        f"This document was not opened because {reason}, which is far from an ordinary document. "
        "Save it again, with smaller pictures or in parts.",
    )
