"""Office files and archives for tests: made by real libraries, then broken by hand."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rag.documents import DocumentError

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
Change = Callable[[bytes], bytes]


def rewrite(source: Path, target: Path, changes: dict[str, Change]) -> Path:
    """Copy a ZIP with some of its entries changed or added."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in dict.fromkeys([*old.namelist(), *changes]):
            data = old.read(name) if name in old.namelist() else b""
            new.writestr(name, changes[name](data) if name in changes else data)
    return target


def add_bomb(path: Path) -> None:
    """An entry that inflates a thousandfold."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("media/image.bmp", bytes(30_000_000))


def with_entities(xml: bytes) -> bytes:
    """The same XML with entities that grow to gigabytes declared before its root element."""
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE x [<!ENTITY a0 "ha">{entities}]>'.encode()
    end = xml.index(b"?>") + 2 if xml.startswith(b"<?xml") else 0
    return xml[:end] + bomb + xml[end:]


def code_of(action: Callable[[], object]) -> str:
    """The code of the refusal, whose message must be a sentence."""
    with pytest.raises(DocumentError) as error:
        action()
    assert error.value.message.endswith(".")
    return error.value.code
