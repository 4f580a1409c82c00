"""Parse an untrusted file in a child process that may use only so much memory and time.

The child gets the file as its standard input and answers over a pipe with JSON, so a parser that
crashes, hangs or eats memory costs one child and an error message. What the child starts itself
(text recognition) has limits of its own, as high, and ends with it. The time limit is raised once,
to a documented height, when the child says that text must be recognised in pictures. Where the
operating system has no `resource` limits (Windows) or does not enforce the one on memory (macOS),
wall time and the limits inside the readers are what is left. This is no barrier against code
execution in a parser: the child still runs as the same user.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag.documents import Document, DocumentError, Limits, Section, load_stream, open_file
from rag.names import display_name
from rag.readers.blocks import MEGABYTE, Progress

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_POLL = 0.05  # seconds between two looks at `should_stop` and the clock
_KEPT_VARIABLES = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "TMPDIR", "TEMP", "TESSDATA_PREFIX")
_LENGTH = struct.Struct(">I")


def parse_in_sandbox(
    path: Path,
    name: str | None = None,
    limits: Limits | None = None,
    should_stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
) -> Document:
    """`load_document` in a child process. The child is gone when this returns.

    Args:
        should_stop: asked some twenty times a second; True ends the child at once.
        progress: called in this thread as (label, done, total).

    Raises:
        DocumentError: as `load_document`, and "timeout", "too_much_memory", "crashed" or
            "cancelled".
    """
    limits = limits or Limits()
    shown = display_name(path.name if name is None else name)
    deadline, extended = time.monotonic() + limits.seconds, False
    with open_file(path) as file:
        child = subprocess.Popen(
            [sys.executable, "-P", "-B", "-m", "rag.sandbox", json.dumps([shown, asdict(limits)])],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # a group of its own, so that what it started ends with it
        )
    try:
        for frame in _frames(child, 4 * limits.text_bytes + 64 * MEGABYTE):
            if should_stop is not None and should_stop():
                raise DocumentError("cancelled", "Reading this file was cancelled.")
            if time.monotonic() > deadline:
                raise _timeout(limits)
            if frame.get("more_time") and not extended:
                extended, deadline = True, deadline + limits.ocr_seconds
            elif "progress" in frame and progress is not None:
                progress(*frame["progress"])
            elif "error" in frame:
                raise DocumentError(*frame["error"])
            elif "document" in frame:
                return _document(frame["document"])
        raise _died(child, limits)
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with all that it started: their group has its number."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # all gone; on macOS, all zombies
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()


def _environment() -> dict[str, str]:
    """Little: no tokens or proxies of the server's, and the path on which this package lies."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {"PYTHONPATH": str(Path(__file__).parents[1])}


def _frames(child: subprocess.Popen[bytes], largest: int) -> Iterator[dict[str, Any]]:
    """What the child sends, of at most `largest` bytes each; {} whenever there is nothing new."""
    frames: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def read_all() -> None:
        assert child.stdout is not None
        try:
            with child.stdout as stream, suppress(OSError, ValueError, RecursionError):
                while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
                    (length,) = _LENGTH.unpack(head)
                    if length > largest or len(body := stream.read(length)) < length:
                        break
                    frames.put(json.loads(body))
        finally:
            frames.put(None)

    threading.Thread(target=read_all, daemon=True).start()
    frame: dict[str, Any] | None = {}
    while frame is not None:
        yield frame
        try:
            frame = frames.get(timeout=_POLL)
        except queue.Empty:
            frame = {}


def _died(child: subprocess.Popen[bytes], limits: Limits) -> DocumentError:
    """What it means that a child ends, or should be about to, without an answer."""
    try:
        status = child.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return _crashed()
    if hasattr(signal, "SIGXCPU") and status == -signal.SIGXCPU:
        return _timeout(limits)
    if hasattr(signal, "SIGKILL") and status == -signal.SIGKILL:
        return _too_much_memory()
    return _crashed()


def _crashed() -> DocumentError:
    return DocumentError(
        "crashed",
        "The program that reads this kind of file crashed on it. The file may be damaged: save it "
        "again, or as another format.",
    )


def _timeout(limits: Limits) -> DocumentError:
    return DocumentError(
        "timeout",
        f"Reading this file took longer than {limits.seconds:g} seconds and was stopped. Split it "
        "and add the parts.",
    )


def _too_much_memory() -> DocumentError:
    return DocumentError(
        "too_much_memory",
        "Reading this file needs more memory than is allowed. Split it and add the parts.",
    )


def _document(fields: dict[str, Any]) -> Document:
    """The document in a frame; a parser that was taken over could send anything."""
    try:
        sections = tuple(
            Section(int(start), int(end), page, tuple(map(str, heading)))
            for start, end, page, heading in fields["sections"]
        )
        name, media_type, text = (str(fields[key]) for key in ("name", "media_type", "text"))
        return Document(name, media_type, text, sections, tuple(map(str, fields["warnings"])))
    except (KeyError, TypeError, ValueError) as error:
        raise _crashed() from error


# What follows runs in the child.


def main(arguments: str) -> None:
    """Parse standard input; send frames to what was standard output when the process began."""
    name, fields = json.loads(arguments)
    limits = Limits(**fields)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get between the frames
    _limit_self(limits)
    # openpyxl would load it for nothing, and it reserves memory for each core of the machine.
    sys.modules["numpy"] = None  # type: ignore[assignment]

    def send(**frame: object) -> None:
        body = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
        out.write(_LENGTH.pack(len(body)) + body)
        out.flush()

    def progress(label: str, done: int, total: int) -> None:
        send(progress=(label, done, total))

    def more_time(seconds: float) -> None:
        _limit_processor_time(limits.seconds + seconds)
        send(more_time=True)

    try:
        document = load_stream(sys.stdin.buffer, name, limits, progress, more_time)
        sections = [(s.start, s.end, s.page, s.heading) for s in document.sections]
        send(document={**vars(document), "sections": sections})
    except DocumentError as error:
        send(error=(error.code, error.message))
    except MemoryError:
        refusal = _too_much_memory()
        send(error=(refusal.code, refusal.message))


def _limit_self(limits: Limits) -> None:
    if hasattr(os, "nice"):
        os.nice(5)  # the page comes first
    if resource is None:
        return
    longest = int(limits.seconds + limits.ocr_seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (longest, longest))
    _limit_processor_time(limits.seconds)
    for kind, soft, hard in (
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_NOFILE, 64, 64),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(kind, (soft, hard))


def _limit_processor_time(seconds: float) -> None:
    """Of this process and, each for itself, of those that it starts from now on."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, hard))


if __name__ == "__main__":
    main(sys.argv[1])
