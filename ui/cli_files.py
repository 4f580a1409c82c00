"""Which files `glassbox add` adds, and the names they get. Reads folders; opens no file.

A file that is named itself keeps its own name. One found in a folder is named by the folder and the
way to it, `notes/README.md`, so that files of the same name in two folders are two documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path


def files_to_add(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each file once with its name: those named, and those below folders, in a stable order.

    No hidden ones below folders. Two paths that end alike, `a/notes` and `b/notes`, are named by
    more of themselves.
    """
    roots = list(dict.fromkeys(Path(os.path.abspath(path)) for path in paths))
    seen: set[Path] = set()
    for root, label in zip(roots, _labels(roots), strict=True):
        for file in _below(root) if root.is_dir() else [root]:
            if file not in seen:
                seen.add(file)
                yield file, "/".join((label, *file.relative_to(root).parts))


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            yield path


def _labels(paths: Sequence[Path]) -> list[str]:
    """For each of different paths its shortest end that is no other's."""
    labels = []
    for path in paths:
        others = [other for other in paths if other != path]
        length = 1
        while length < len(path.parts) and any(
            other.parts[-length:] == path.parts[-length:] for other in others
        ):
            length += 1
        labels.append("/".join(path.parts[-length:]))
    return labels
