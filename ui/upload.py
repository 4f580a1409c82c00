"""Files dropped on the page, read into the store one after another, with progress to show.

No Gradio in it. Reading a file blocks, so it runs in a thread of its own; whoever drains the
generator sees what it is doing, and closing the generator asks it to stop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from rag.database import StoreError
from rag.documents import DocumentError
from rag.embedding import EmbeddingError
from rag.ingest import ingest
from ui.parts import Parts

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileUpdate:
    """The state of one file; `key` and `values` are a sentence of `ui.i18n`.

    `code` of a failed one names the reason (`upload.error_<code>`); `reason` says it in English
    with what is particular to this file. `label` of a working one is what `rag` calls the step.
    """

    name: str
    state: Literal["working", "done", "failed"]
    key: str
    values: dict[str, object] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    label: str = ""
    code: str = ""
    reason: str = ""


def add_files(
    parts: Parts, files: Sequence[tuple[str | Path, str]]
) -> Iterator[tuple[FileUpdate, ...]]:
    """Ingest each (path, name for display), yielding the state of all files so far.

    One file that cannot be read does not stop the others. The files themselves are deleted.
    """
    finished: list[FileUpdate] = []
    for path, given_name in files:
        path = Path(path)
        name = given_name or path.name
        last = FileUpdate(name, "working", "upload.reading", {"name": name})
        try:
            yield (*finished, last)
            for last in _add_file(parts, path, name):
                yield (*finished, last)
        finally:
            path.unlink(missing_ok=True)
        finished.append(last)


def _add_file(parts: Parts, path: Path, name: str) -> Iterator[FileUpdate]:
    """Run `ingest` in a thread and pass on what it reports; stops it when nobody listens."""
    updates: SimpleQueue[FileUpdate] = SimpleQueue()
    stop = threading.Event()

    def progress(label: str, done: int, total: int) -> None:
        values: dict[str, object] = {"name": name, "done": done, "total": total}
        updates.put(FileUpdate(name, "working", "upload.progress", values, done, total, label))

    def work() -> None:
        updates.put(_ingest(parts, path, name, progress, stop.is_set))

    worker = threading.Thread(target=work, name="ingest", daemon=True)
    worker.start()
    try:
        while True:
            update = updates.get()
            yield update
            if update.state != "working":
                return
    finally:
        stop.set()
        worker.join()


def _ingest(
    parts: Parts,
    path: Path,
    name: str,
    progress: Callable[[str, int, int], None],
    should_stop: Callable[[], bool],
) -> FileUpdate:
    try:
        result = ingest(
            parts.store, parts.embedder, path, name, progress=progress, should_stop=should_stop
        )
    except (DocumentError, StoreError) as error:
        return _failed(name, error.code, str(error))
    except EmbeddingError as error:
        return _failed(name, "embedding", str(error))
    except Exception as error:
        log.error("a file could not be added", exc_info=error)
        return _failed(name, "other", "")
    values: dict[str, object] = {"name": name, "count": result.document.passages}
    return FileUpdate(name, "done", f"upload.{result.status}", values)


def _failed(name: str, code: str, reason: str) -> FileUpdate:
    return FileUpdate(name, "failed", "upload.failed", {"name": name}, code=code, reason=reason)
