"""Saved indexes: folders of files that never change, and one record of those that count.

A part is written under a name of its own, put on disk, and only then named in the manifest, which
is kept in the documents' file: one transaction, so a process that dies at any moment leaves the old
indexes, the new ones, or a folder that nothing names. A copy of the documents' file that went
another way has the manifest of its own past, never one of another's. Nothing is mapped into memory
before every byte of it was found to be what was written.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rag.records import Position

FOLDER = "index"
_FORMAT_1 = "vectors.faiss"  # where a store of format 1 kept its vectors' index
_ABANDONED_AFTER = 3600.0  # seconds: nobody is still writing, or about to open, what is older


class DamagedPart(ValueError):
    """A saved part is not what was written; the message names the file."""


@dataclass(frozen=True)
class Part:
    """One folder of files: a segment of the words, or the vectors in one script.

    `position` is the moment of the store up to which it was built.
    """

    kind: str  # "words", "han" or "other"
    name: str
    position: Position
    sha256: dict[str, str]  # by file name
    facts: dict[str, float] = field(default_factory=dict)  # measured when it was built


@dataclass(frozen=True)
class Manifest:
    parts: tuple[Part, ...] = ()

    def of(self, *kinds: str) -> list[Part]:
        return [part for part in self.parts if part.kind in kinds]

    def position(self, *kinds: str) -> Position:
        """The moment from which on an index that has loaded these kinds must follow the store.

        Of one kind's parts the last was written with all passages that are in none before it.
        """
        if not all(self.of(kind) for kind in kinds):
            return Position()
        return Position(
            min(max(part.position.last_passage for part in self.of(kind)) for kind in kinds),
            min(part.position.last_removal for part in self.of(*kinds)),
        )

    def to_json(self) -> str:
        return json.dumps([asdict(part) for part in self.parts])

    @classmethod
    def from_json(cls, text: str | None) -> "Manifest":
        rows = json.loads(text) if text else []
        return cls(tuple(Part(**{**row, "position": Position(**row["position"])}) for row in rows))


class IndexFiles:
    """The folder of saved indexes beside one store's file."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    @contextmanager
    def writing(self, kind: str, position: Position) -> Iterator[tuple[Path, dict, list[Part]]]:
        """A folder to write a part's files into, its facts, and where the part is put when done.

        Raises OSError; what was written is removed then.
        """
        name = f"{kind}-{secrets.token_hex(8)}"
        unfinished = self._folder / f"unfinished-{name}"
        unfinished.mkdir(mode=0o700, parents=True)
        facts: dict[str, float] = {}
        made: list[Part] = []
        try:
            yield unfinished, facts, made
            hashes = {path.name: _on_disk(path) for path in sorted(unfinished.iterdir())}
            os.replace(unfinished, self._folder / name)
            _sync_folder(self._folder)
            made.append(Part(kind, name, position, hashes, facts))
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise

    def verified(self, part: Part) -> Path:
        """The part's folder, after reading all of it. Raises DamagedPart or OSError.

        A second for 2 GB that the operating system has in memory, so it is done before every use.
        """
        folder = self._folder / part.name
        for name, expected in part.sha256.items():
            if _hash(folder / name) != expected:
                raise DamagedPart(f"{part.name}/{name} is not what was saved (SHA-256 differs)")
        return folder

    def clean(self, manifest: Manifest) -> None:
        """Remove what the manifest does not name, unless it is so new that it may be about to be.

        Windows keeps files that are mapped; they go another time.
        """
        named = {part.name for part in manifest.parts}
        with contextlib.suppress(OSError):
            (self._folder.parent / _FORMAT_1).unlink(missing_ok=True)
            for folder in self._folder.iterdir():
                old = time.time() - folder.stat().st_mtime > _ABANDONED_AFTER
                if folder.name not in named and old:
                    shutil.rmtree(folder, ignore_errors=True)


def with_parts(manifest: Manifest, kind: str, parts: list[Part]) -> Manifest:
    """The manifest with these parts of `kind` in the place of those it has."""
    return replace(manifest, parts=(*(p for p in manifest.parts if p.kind != kind), *parts))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _on_disk(path: Path) -> str:
    """Its SHA-256, once all of it is on disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    """So that the new name outlives a power cut too; Windows does it by itself."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
