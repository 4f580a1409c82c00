"""One shape for telling a person how far a long job is. Knows nothing about the jobs."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

Progress = Callable[[str, int, int], None]  # (label, done, total); a total of 0 means "unknown"


def silent(label: str, done: int, total: int) -> None:
    """Progress for nobody."""


class TerminalProgress:
    """One line a label: redrawn in place on a terminal, printed once at its start elsewhere."""

    def __init__(self, stream: TextIO | None = None, seconds_between_draws: float = 0.1):
        self._stream = sys.stderr if stream is None else stream
        self._seconds = seconds_between_draws
        self._label: str | None = None
        self._drawn_at = 0.0
        self._complete = False

    def __call__(self, label: str, done: int, total: int) -> None:
        complete = 0 < total <= done
        if label != self._label:
            self._end_line()
            self._label, self._complete = label, False
        elif not self._is_due(complete):
            return
        self._drawn_at, self._complete = time.monotonic(), complete
        if self._stream.isatty():
            share = f"{100 * done // total:3d}% " if total > 0 else ""
            self._stream.write(f"\r\x1b[K{share}{label}" + ("\n" if complete else ""))
        else:
            self._stream.write(f"{label}\n")
        self._stream.flush()

    def _is_due(self, complete: bool) -> bool:
        """Whether to draw the same label again."""
        if self._complete or not self._stream.isatty():
            return False
        return complete or time.monotonic() - self._drawn_at >= self._seconds

    def _end_line(self) -> None:
        if self._label is not None and not self._complete and self._stream.isatty():
            self._stream.write("\n")
