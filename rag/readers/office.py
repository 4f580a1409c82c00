"""An Office file (DOCX, PPTX, XLSX) made ready for the library that reads it, or refused.

Files with macros and templates hold the same parts as plain ones under other type names, which
python-docx and python-pptx do not accept: the names are changed. Macros are code that only Office
runs; here they are bytes that nobody looks at.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from rag.readers.archive import check_archive
from rag.readers.blocks import DocumentError, Source

_CONTENT_TYPES = "[Content_Types].xml"
_STRICT = b"http://purl.oclc.org/ooxml/"
_OTHER_MAIN_TYPES = (  # (types of main parts with macros or of templates, the plain type)
    (
        rb"application/vnd\.(?:ms-word\.(?:document|template)\.macroEnabled"
        rb"|openxmlformats-officedocument\.wordprocessingml\.template|ms-word\.template)"
        rb"[\w.]{0,80}main\+xml",
        b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    ),
    (
        rb"application/vnd\.(?:ms-powerpoint\.\w{1,20}\.macroEnabled"
        rb"|openxmlformats-officedocument\.presentationml\.(?:template|slideshow))\.main\+xml",
        b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
    ),
)


def office_file(source: Source, what: str) -> io.BytesIO:
    """The file, checked by `rag.readers.archive`, with its main part under its plain type.

    Args:
        what: the kind of document, for the person.

    Raises:
        DocumentError: "damaged", "encrypted", "archive_bomb", "unsafe" or "unsupported".
    """
    check_archive(source.data, source.limits)
    with reading(what), zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        names = archive.namelist()
        if "_rels/.rels" in names and _STRICT in archive.read("_rels/.rels"):
            raise DocumentError(
                "unsupported",
                f"This {what} is saved as Strict Open XML. In Office, save it once more without "
                "“Strict” in the name of the format.",
            )
        types = archive.read(_CONTENT_TYPES)
        plain = types
        for pattern, main_type in _OTHER_MAIN_TYPES:
            plain = re.sub(pattern, main_type, plain, flags=re.IGNORECASE)
        if plain == types:
            return io.BytesIO(source.data)
        return _without_media(archive, plain)


def _without_media(archive: zipfile.ZipFile, content_types: bytes) -> io.BytesIO:
    """A copy with other content types; what is no XML is in it by name only."""
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as plain:
        for name in dict.fromkeys(archive.namelist()):
            is_xml = name.lower().endswith((".xml", ".rels"))
            data = (
                content_types if name == _CONTENT_TYPES else archive.read(name) if is_xml else b""
            )
            plain.writestr(name, data)
    copy.seek(0)
    return copy


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever a parser raises on a broken file as a "damaged" `DocumentError`."""
    try:
        yield
    except (DocumentError, MemoryError):
        raise
    except Exception as error:  # a parser may raise anything on a broken file
        raise DocumentError(
            "damaged", f"This {what} is damaged and could not be read. Save it once more."
        ) from error
