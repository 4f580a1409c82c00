"""Files dropped on the page, read into the store one after another, with progress to show.

No Gradio in it. Reading a file blocks, so it runs in a thread of its own; whoever drains the
generator sees what it is doing, and a cancel or closing the generator ends it.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal

from rag.collection import Documents, Entry, documents_in
from rag.database import StoreError
from rag.documents import DocumentError
from rag.embedding import EmbeddingError
from rag.ingest import ingest
from rag.names import display_path
from ui.parts import Parts

log = logging.getLogger(__name__)

_LOOK = 0.1  # seconds between two looks for a cancel
_SHOW = 0.1  # seconds between two updates of the same step: more are not seen
_FORESEE = 3.0  # seconds of a step before its end is foreseen


@dataclass(frozen=True)
class FileUpdate:
    """The state of one file; `key` and `values` are a sentence of `ui.i18n`.

    `code` of a failed one names the reason (`upload.error_<code>`); `reason` says it in English
    with what is particular to this file. `label` of a working one is what `rag` calls the step,
    `seconds_left` how long it may take, once that can be told.
    """

    name: str
    state: Literal["working", "done", "failed", "cancelled"]
    key: str
    values: dict[str, object] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    label: str = ""
    code: str = ""
    reason: str = ""
    seconds_left: float | None = None


Lines = tuple[FileUpdate, ...]


def add_files(
    parts: Parts,
    files: Sequence[tuple[str | Path, str]],
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Lines]:
    """Ingest each (path, name for display), yielding the state of all files so far.

    A name may be a way, `notes/a.md`. A ZIP of documents has a line of its own and one for each of
    them. One file that cannot be read does not stop the others; a cancel stops them all, and what
    was added before it stays. The files themselves are deleted, whatever happens.
    """
    named = [
        (_claimed(Path(path)), Path(path), _way(name) or Path(path).name) for path, name in files
    ]
    waiting = [_said(name, "working", "upload.waiting") for *_, name in named]
    finished: Lines = ()
    try:
        for index, (own, path, name) in enumerate(named):
            lines: Lines = ()
            for lines in _add_file(parts, own, name, is_cancelled):
                yield (*finished, *lines, *waiting[index + 1 :])
            finished += lines
            _delete(own, path)
    finally:
        for own, path, _ in named:
            _delete(own, path)


def _claimed(path: Path) -> Path:
    """The file under a name that is this upload's own; a name of nothing when it is gone.

    Gradio keeps equal files of all people under one path: whoever is done first must not delete
    what another is still reading.
    """
    own = path.with_name(f"own-{secrets.token_hex(8)}")
    try:
        os.link(path, own)
    except FileNotFoundError:
        pass
    except OSError:  # a file system without links; Gradio itself deletes the other in an hour
        shutil.copyfile(path, own)
    return own


def _delete(own: Path, path: Path) -> None:
    """Both names, but `path` only where nobody has uploaded it anew since."""
    with suppress(FileNotFoundError):
        if own.samefile(path):
            path.unlink()
    own.unlink(missing_ok=True)


def _way(name: str) -> str:
    """A name from the browser, with the folders it came in if there were any, safe to show."""
    *folders, last = [""] + [
        p for p in re.split(r"[/\\]", name) if p.strip() not in ("", ".", "..")
    ]
    return display_path(last, "/".join(folders)) if last else ""


def _add_file(
    parts: Parts, path: Path, name: str, is_cancelled: Callable[[], bool]
) -> Iterator[Lines]:
    if is_cancelled():
        yield (_said(name, "cancelled", "upload.cancelled"),)
        return
    if not path.exists():
        yield (_failed(name, "gone", ""),)
        return
    yield (_said(name, "working", "upload.reading"),)
    folder, _, last = name.rpartition("/")
    try:
        with documents_in(path, last, folder, scratch=path.parent) as found:
            if found.are_members:
                yield from _add_members(parts, found, name, is_cancelled)
            else:
                for update in _add_entry(parts, found.entries[0], name, is_cancelled):
                    yield (update,)
    except DocumentError as error:
        yield (_failed(name, error.code, str(error)),)


def _add_members(
    parts: Parts, found: Documents, name: str, is_cancelled: Callable[[], bool]
) -> Iterator[Lines]:
    """A line for the archive, and one for each of its documents that was begun."""
    lines: Lines = ()
    total = len(found.entries)
    for number, entry in enumerate(found.entries, 1):
        if is_cancelled():
            break
        values: dict[str, object] = {"name": name, "done": number, "total": total}
        archive = FileUpdate(name, "working", "upload.archive", values, number - 1, total)
        update = archive
        for update in _add_entry(parts, entry, entry.shown, is_cancelled):
            yield (archive, *lines, update)
        lines += (update,)
    added = sum(line.state == "done" for line in lines)
    values = {"name": name, "count": added, "total": total}
    if is_cancelled():
        yield (FileUpdate(name, "cancelled", "upload.archive_cancelled", values), *lines)
    else:
        yield (FileUpdate(name, "done", "upload.archive_done", values), *lines)


def _add_entry(
    parts: Parts, entry: Entry, shown: str, is_cancelled: Callable[[], bool]
) -> Iterator[FileUpdate]:
    """Run `ingest` in a thread and pass on what it reports; ends it when nobody listens."""
    updates: SimpleQueue[FileUpdate] = SimpleQueue()
    stop = threading.Event()

    def progress(label: str, done: int, total: int) -> None:
        values: dict[str, object] = {"name": shown, "done": done, "total": total}
        updates.put(FileUpdate(shown, "working", "upload.progress", values, done, total, label))

    def should_stop() -> bool:
        return stop.is_set() or is_cancelled()

    def work() -> None:
        updates.put(_ingest(parts, entry, shown, progress, should_stop))

    worker = threading.Thread(target=work, name="ingest", daemon=True)
    worker.start()
    try:
        yield from _paced(updates, shown, is_cancelled)
    finally:
        stop.set()
        worker.join()


def _paced(
    updates: SimpleQueue[FileUpdate], shown: str, is_cancelled: Callable[[], bool]
) -> Iterator[FileUpdate]:
    """Updates until the last, not more often than they can be seen; a cancel is told at once."""
    label, began, told, cancelling = "", 0.0, 0.0, False
    while True:
        if not cancelling and is_cancelled():
            cancelling = True
            yield _said(shown, "working", "upload.cancelling")
        try:
            update = updates.get(timeout=_LOOK)
        except Empty:
            continue
        now = time.monotonic()
        if update.state != "working":
            yield update
            return
        if update.label != label:
            label, began, told = update.label, now, 0.0
        if not cancelling and now - told >= _SHOW:
            told = now
            yield replace(update, seconds_left=_seconds_left(update, now - began))


def _seconds_left(update: FileUpdate, elapsed: float) -> float | None:
    """How long the step goes on if it goes on as it did; None while that would be a guess."""
    if elapsed < _FORESEE or not 0 < update.done < update.total:
        return None
    return elapsed * (update.total - update.done) / update.done


def _ingest(
    parts: Parts,
    entry: Entry,
    shown: str,
    progress: Callable[[str, int, int], None],
    should_stop: Callable[[], bool],
) -> FileUpdate:
    try:
        with entry.open() as path:
            result = ingest(
                *(parts.store, parts.embedder, path, entry.name),
                progress=progress,
                should_stop=should_stop,
                folder=entry.folder,
            )
    except (DocumentError, StoreError) as error:
        if error.code == "cancelled":
            return _said(shown, "cancelled", "upload.cancelled")
        return _failed(shown, error.code, str(error))
    except EmbeddingError as error:
        return _failed(shown, "embedding", str(error))
    except Exception as error:
        log.error("a file could not be added", exc_info=error)
        return _failed(shown, "other", "")
    values: dict[str, object] = {"name": shown, "count": result.document.passages}
    return FileUpdate(shown, "done", f"upload.{result.status}", values)


def _said(name: str, state: Literal["working", "cancelled"], key: str) -> FileUpdate:
    return FileUpdate(name, state, key, {"name": name})


def _failed(name: str, code: str, reason: str) -> FileUpdate:
    return FileUpdate(name, "failed", "upload.failed", {"name": name}, code=code, reason=reason)
