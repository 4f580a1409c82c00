"""What the command line shows while something long runs: one tidy line, or plain lines in a log.

Knows nothing of what is being done; it is called with `(label, done, total)`.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

from ui.plain_text import one_line

_REDRAW_SECONDS = 0.1
_BAR = 20


class ProgressLine:
    """A `Progress` callable. On a terminal one line is redrawn; else each label is printed once.

    Several threads may call it: each call draws a whole line. `close` leaves nothing half-drawn.
    """

    def __init__(self, stream: TextIO | None = None, width: int = 78) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._live = self._stream.isatty()
        self._width = width
        self._said: set[str] = set()
        self._label = ""
        self._drawn = ""
        self._drawn_at = 0.0
        self._lock = threading.Lock()

    def __call__(self, label: str, done: int, total: int) -> None:
        with self._lock:
            if label not in self._said and (not self._live or not self._fits(label)):
                self._said.add(label)
                self._erase()
                print(one_line(label), file=self._stream, flush=True)
            if self._live:
                self._draw(label, done, total)

    def close(self) -> None:
        with self._lock:
            self._erase()

    def _fits(self, label: str) -> bool:
        return len(label) + _BAR + 10 <= self._width

    def _draw(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        finished = 0 < total <= done
        if label == self._label and not finished and now - self._drawn_at < _REDRAW_SECONDS:
            return
        short = label if self._fits(label) else label.split(",")[0]
        line = progress_line(short, done, total, self._width)
        self._stream.write("\r" + line.ljust(len(self._drawn)))
        self._stream.flush()
        self._label, self._drawn_at, self._drawn = label, now, line

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * len(self._drawn) + "\r")
            self._stream.flush()
            self._drawn = ""


def progress_line(label: str, done: int, total: int, width: int = 78) -> str:
    """``Reading lease.pdf  [########............]  42 %``; the label alone without a total."""
    if total <= 0:
        return one_line(label, width)
    share = min(1.0, max(0.0, done / total))
    filled = round(_BAR * share)
    tail = f"  [{'#' * filled}{'.' * (_BAR - filled)}] {100 * share:3.0f} %"
    return one_line(label, width - len(tail)) + tail
