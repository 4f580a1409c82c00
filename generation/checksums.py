"""SHA-256 of large files, remembered for as long as the file has not changed.

A remembered hash is kept with the size and modification time (in nanoseconds) that the file had,
in a folder of its own, because the file itself may lie where we cannot write. It saves time on a
start; it proves nothing against someone who can write there. `sha256_of` always reads the bytes.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

_BLOCK = 1 << 20  # bytes read at a time


def sha256_of(path: Path, read: Callable[[int], None] | None = None) -> str:
    """Hash the bytes of `path`; `read` is told after each block how many were read so far."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if read is not None:
                read(done)
    return digest.hexdigest()


def remembered_sha256(path: Path, stamps: Path, read: Callable[[int], None] | None = None) -> str:
    """The hash of `path`, read from `stamps` when size and time still match, else computed anew."""
    path = path.resolve()
    stamp_path = stamps / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
    seen = _look(path)
    try:
        stamp = json.loads(stamp_path.read_text("utf-8"))
        if stamp["file"] == seen:
            return str(stamp["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no stamp, or not one of ours: hash the file
    sha256 = sha256_of(path, read)
    if _look(path) == seen:  # unchanged while it was read
        write_atomically(stamp_path, json.dumps({"file": seen, "sha256": sha256}).encode())
    return sha256


def write_atomically(path: Path, data: bytes) -> None:
    """Make `path` hold exactly `data`, or, when interrupted, what it held before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folder for writing; the rename itself is journalled
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _look(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
