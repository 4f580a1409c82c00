"""The documents in one file: the file itself, or each member of a ZIP.

A member is inflated under limits into a file with a random name, one at a time, and that file is
gone when it has been read; its own path is a name to show, never a place. DOCX, EPUB and the like
are ZIPs too, but documents: they stay whole. Knows nothing of the store nor of what is readable.
"""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rag.archive_names import entry_names
from rag.names import display_path
from rag.readers.blocks import MEGABYTE, DocumentError, Limits

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_ENTRY_MARK = b"PK\x01\x02"  # before each entry of a ZIP's directory
_OF_A_PROGRAM = {  # a ZIP with any of these is a file of one: Office, EPUB, OpenDocument, Java
    *("[Content_Types].xml", "word/document.xml", "xl/workbook.xml", "ppt/presentation.xml"),
    *("mimetype", "META-INF/container.xml", "META-INF/MANIFEST.MF"),
}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)  # known to need no memory
_SYSTEM_FILES = {"__MACOSX", "thumbs.db", "desktop.ini"}
_CHUNK = 256 * 1024


@dataclass(frozen=True)
class CollectionLimits:
    """How much one ZIP of documents may cost, inclusive. Each document has `Limits` of its own."""

    entries: int = 10_000
    inflated_bytes: int = 1024 * MEGABYTE  # of all members together, as they come out
    ratio: int = 300  # of one member, once it is larger than a megabyte
    member_bytes: int = Limits.file_bytes


@dataclass(frozen=True)
class Entry:
    """One document to add.

    Attributes:
        name, folder: what it is called and where it lies, to show (`rag.names.display_path`).
        open: a context manager with the path of its bytes. Entering it raises DocumentError for a
            member that cannot be had.
    """

    name: str
    folder: str
    open: Callable[[], AbstractContextManager[Path]]

    @property
    def shown(self) -> str:
        return display_path(self.name, self.folder)


@dataclass(frozen=True)
class Documents:
    """What is in one file. `are_members`: of a ZIP, where the file is no document itself."""

    entries: tuple[Entry, ...]
    are_members: bool


@contextmanager
def documents_in(
    path: Path,
    name: str,
    folder: str = "",
    scratch: Path | None = None,
    limits: CollectionLimits | None = None,
) -> Iterator[Documents]:
    """What to add of the file at `path`: in most cases the file, under `name`.

    The members of `docs.zip` lie in the folder `docs`. Hidden files and those that systems leave
    behind are passed over.

    Args:
        scratch: where members are inflated (default: the system's folder for temporary files).

    Raises:
        DocumentError: "archive_bomb", "encrypted" or "no_documents", about the ZIP as a whole.
    """
    limits = limits or CollectionLimits()
    archive = _open_collection(path, limits)
    if archive is None:
        yield Documents((Entry(name, folder, lambda: nullcontext(path)),), are_members=False)
        return
    with archive, tempfile.TemporaryDirectory(prefix="glassbox-", dir=scratch) as inflated:
        members = _Archive(archive, Path(inflated), limits).entries(name, folder)
        yield Documents(tuple(members), are_members=True)


def _open_collection(path: Path, limits: CollectionLimits) -> zipfile.ZipFile | None:
    """The ZIP at `path`; None for whatever else is there, a document that is a ZIP included."""
    if not _may_be_archive(path, limits):
        return None
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError):  # whoever reads it will say that it is damaged
        return None
    if _OF_A_PROGRAM & set(archive.namelist()):
        archive.close()
        return None
    return archive


def _may_be_archive(path: Path, limits: CollectionLimits) -> bool:
    """Raises DocumentError before a huge directory is read into memory.

    A document inside that is a ZIP itself, not packed again, has such marks too, hence the slack.
    """
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] not in _ZIP_STARTS:
            return False
        position = marks = 0
        while (position := data.find(_ENTRY_MARK, position) + 1) > 0:
            marks += 1
            if marks > 5 * limits.entries:
                raise _too_many(limits)
    return True


class _Archive:
    """One open ZIP, and how much has come out of it."""

    def __init__(self, archive: zipfile.ZipFile, inflated: Path, limits: CollectionLimits) -> None:
        self._archive = archive
        self._inflated = inflated
        self._limits = limits
        self._left = limits.inflated_bytes

    def entries(self, name: str, folder: str) -> list[Entry]:
        members = self._archive.infolist()
        if len(members) > self._limits.entries:
            raise _too_many(self._limits)
        ways = [_way(member_name) for member_name in entry_names(members)]
        kept = [
            (way, member)
            for way, member in zip(ways, members, strict=True)
            if way and not member.is_dir() and not any(map(_is_left_behind, way))
        ]
        if any(member.flag_bits & 1 for _, member in kept):
            raise DocumentError(
                "encrypted",
                "This archive is encrypted. Unpack it with its password and add what is in it.",
            )
        if not kept:
            raise DocumentError("no_documents", "There are no documents in this archive.")
        stem = name.rpartition(".")[0] or name
        doubled = all(len(way) > 1 and way[0] == stem for way, _ in kept)
        base = [folder] if doubled else [folder, stem]
        seen: set[str] = set()
        result = []
        for way, member in sorted(kept, key=lambda item: item[0]):
            around = "/".join(filter(None, (*base, *way[:-1])))
            called = _unlike(way[-1], around, seen)
            result.append(Entry(called, around, partial(self._open, member)))
        return result

    @contextmanager
    def _open(self, member: zipfile.ZipInfo) -> Iterator[Path]:
        """Inflate one member; its file is gone afterwards."""
        if stat.S_ISLNK(member.external_attr >> 16):
            raise DocumentError("unsupported", "This is a link to another file, not a document.")
        if member.compress_type not in _METHODS:
            raise DocumentError(
                "unsupported",
                "It is packed in a way that cannot be read here. Unpack the archive and add this "
                "file by itself.",
            )
        handle, place = tempfile.mkstemp(dir=self._inflated)
        try:
            with os.fdopen(handle, "wb") as out:
                for chunk in self._chunks(member):
                    out.write(chunk)
            if (nested := _open_collection(Path(place), self._limits)) is not None:
                nested.close()
                raise DocumentError(
                    "nested_archive",
                    "An archive inside an archive is not opened. Unpack it and add what is in it.",
                )
            yield Path(place)
        finally:
            Path(place).unlink(missing_ok=True)

    def _chunks(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        """A member's bytes, counted as they come out: what it declares is the sender's claim."""
        limits, size = self._limits, 0
        try:
            with self._archive.open(member) as stream:
                while chunk := stream.read(_CHUNK):
                    size += len(chunk)
                    self._left -= len(chunk)
                    if size > limits.member_bytes:
                        raise DocumentError(
                            "too_big",
                            f"This file is larger than {limits.member_bytes // MEGABYTE} MB. "
                            "Split it and add the parts.",
                        )
                    if self._left < 0:
                        raise _bomb(f"all in it is more than {limits.inflated_bytes:,} bytes")
                    packed = max(1, member.compress_size)
                    if size > MEGABYTE and size > limits.ratio * packed:
                        raise _bomb(f"this file inflates more than {limits.ratio}-fold")
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise DocumentError(
                "damaged", "This file is damaged in the archive. Pack it again."
            ) from error
        if not size:
            raise DocumentError("empty", "This file is empty (0 bytes). Check that it was saved.")


def _way(name: str) -> tuple[str, ...]:
    """The parts of a member's name, without those that lead nowhere or up."""
    parts = name.replace("\\", "/").split("/")
    return tuple(part for part in parts if part.strip() not in ("", ".", ".."))


def _is_left_behind(part: str) -> bool:
    """Hidden, written by a system, or the mark of a document that is open in an office program."""
    return part.startswith((".", "~$")) or part in _SYSTEM_FILES or part.lower() in _SYSTEM_FILES


def _unlike(name: str, folder: str, seen: set[str]) -> str:
    """`name`, numbered in front (long names lose their end) where it looks like one before."""
    called, number = name, 1
    while (shown := display_path(called, folder)) in seen:
        number += 1
        called = f"({number}) {name}"
    seen.add(shown)
    return called


def _too_many(limits: CollectionLimits) -> DocumentError:
    return _bomb(f"it has more than {limits.entries:,} entries")


def _bomb(reason: str) -> DocumentError:
    return DocumentError(
        "archive_bomb", f"It was not read, because {reason}. Unpack it and add what you need."
    )
