"""Which browser sessions are generating now, so that a stop button or a closed tab can end it.

Knows sessions as names. One instance belongs to one page; nothing is global.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Running:
    """Hands each run a stop flag and lets other events of the same session raise it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._flags: dict[str, list[threading.Event]] = {}

    @contextmanager
    def run(self, session: str) -> Iterator[threading.Event]:
        """The flag of one run; forgotten however the run ends."""
        flag = threading.Event()
        with self._changed:
            self._flags.setdefault(session, []).append(flag)
        try:
            yield flag
        finally:
            with self._changed:
                flags = self._flags[session]
                flags.remove(flag)
                if not flags:
                    del self._flags[session]
                self._changed.notify_all()

    def active(self, session: str) -> bool:
        with self._changed:
            return session in self._flags

    def stop(self, session: str, wait: float = 0.0) -> None:
        """End whatever this session is running; return when it ended, after `wait` seconds at most.

        Nothing to end is fine.
        """
        with self._changed:
            for flag in self._flags.get(session, ()):
                flag.set()
            self._changed.wait_for(lambda: session not in self._flags, timeout=wait)
