"""Files dropped on the page, read into the store one after another, with progress to show.

No Gradio in it. Reading a file blocks, so it runs in a thread of its own; whoever drains the
generator sees what it is doing, and closing the generator asks it to stop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal

from rag.ingest import ingest

from rag.documents import DocumentError
from ui.parts import Parts

log = logging.getLogger(__name__)
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class FileUpdate:
    """The state of one file; `key` and `values` are a sentence of `ui.i18n`."""

    name: str
    state: Literal["working", "done", "failed"]
    key: str
    values: dict[str, object] = field(default_factory=dict)
    done: int = 0
    total: int = 0


def add_files(parts: Parts, paths: Sequence[str | Path]) -> Iterator[tuple[FileUpdate, ...]]:
    """Ingest each file, yielding the state of all files so far. The files themselves are deleted.

    One file that cannot be read does not stop the others.
    """
    finished: list[FileUpdate] = []
    for path in map(Path, paths):
        last = FileUpdate(path.name, "working", "upload.reading", {"name": path.name})
        try:
            yield (*finished, last)
            for last in _add_file(parts, path):
                yield (*finished, last)
        finally:
            path.unlink(missing_ok=True)
        finished.append(last)


def _add_file(parts: Parts, path: Path) -> Iterator[FileUpdate]:
    updates: SimpleQueue[FileUpdate] = SimpleQueue()
    stop = threading.Event()
    name = path.name

    def progress(label: str, done: int, total: int) -> None:
        values: dict[str, object] = {"name": name, "label": label, "done": done, "total": total}
        updates.put(FileUpdate(name, "working", "upload.progress", values, done, total))

    def work() -> None:
        updates.put(_ingest(parts, path, progress, stop))

    worker = threading.Thread(target=work, name="ingest", daemon=True)
    worker.start()
    try:
        while True:
            try:
                update = updates.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            yield update
            if update.state != "working":
                return
    finally:
        stop.set()
        worker.join()


def _ingest(parts: Parts, path: Path, progress, stop: threading.Event) -> FileUpdate:
    name = path.name
    try:
        result = ingest(
            parts.store, parts.embedder, path, name, progress=progress, should_stop=stop.is_set
        )
    except DocumentError as error:
        return FileUpdate(name, "failed", "upload.failed", {"name": name, "reason": str(error)})
    except Exception as error:
        log.error("a file could not be added", exc_info=error)
        reason = type(error).__name__
        return FileUpdate(name, "failed", "upload.failed", {"name": name, "reason": reason})
    values: dict[str, object] = {"name": name, "count": result.document.passages}
    return FileUpdate(name, "done", f"upload.{result.status}", values)
