"""Files that are kept: where, whole or not at all, one writer at a time, known by their SHA-256.

Knows nothing of models. A remembered hash is kept with the size and modification time (in
nanoseconds) that the file had, in a folder of its own, since the file itself may lie where we
cannot write. It saves time on a start; it proves nothing against someone who can write to the
cache. `sha256_of` always reads the bytes.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from generation.progress import Progress, silent

_BLOCK = 1 << 20  # bytes read at a time


def cache_dir() -> Path:
    """Where everything is kept that can be fetched or made again."""
    home = os.environ.get("GLASSBOX_HOME")
    if home:
        return Path(home).expanduser() / "cache"
    return Path(platformdirs.user_cache_dir("glassbox"))


@contextmanager
def locked(name: str, waiting: str, progress: Progress = silent) -> Iterator[None]:
    """Hold the lock `name` among all users of this cache; the system frees a dead holder's lock.

    `progress` is told `waiting`, about once a second, for as long as somebody else has it.
    """
    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{name}.lock")
    while True:
        try:
            lock.acquire(timeout=1.0)
            break
        except Timeout:
            progress(waiting, 0, 0)
    try:
        yield
    finally:
        lock.release()


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


def file_sha256(path: Path, progress: Progress = silent) -> str:
    """The hash of `path`: remembered while size and modification time stay, else computed anew."""
    path = path.resolve()
    stamps = cache_dir() / "checksums"
    stamp_path = stamps / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
    seen = _look(path)
    with suppress(OSError, ValueError, KeyError, TypeError):  # no stamp, or not one of ours
        stamp = json.loads(stamp_path.read_text("utf-8"))
        if stamp["file"] == seen:
            return str(stamp["sha256"])
    label = f"Checking {path.name}"
    sha256 = sha256_of(path, lambda done: progress(label, done, seen["size"]))
    if _look(path) == seen:  # unchanged while it was read
        with suppress(OSError):  # a cache that cannot be written to is only slower
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
        with suppress(OSError):
            os.unlink(temporary)
        raise


def publish_folder(folder: Path, place: Path) -> None:
    """Move a finished folder to `place` in one step, with all its bytes on the disk first.

    `place` must not exist and lie on the same file system.
    """
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)
    os.rename(folder, place)
    _sync(place.parent)


def _sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _look(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
