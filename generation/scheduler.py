"""One owner of the device: who may generate now, in the order in which they asked.

Knows sessions as names and nothing of models, tokens or pages. A turn is held with `with`, so it
is given back however the work ends. The queue is bounded, so that a busy server says so at once
instead of letting everybody wait longer and longer.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.1  # how soon somebody who waits notices that they no longer want to


class Busy(RuntimeError):
    """The queue is full, or this session already has a generation running or waiting."""


class Cancelled(RuntimeError):
    """The one who waited gave up before their turn came."""


class Scheduler:
    """First come, first served, one at a time; at most `max_waiting` wait."""

    def __init__(self, max_waiting: int = 32) -> None:
        self._max_waiting = max_waiting
        self._condition = threading.Condition()
        self._queue: deque[str] = deque()  # the first one has the turn
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait, not counting the one whose turn it is."""
        with self._condition:
            return max(0, len(self._queue) - 1)

    def stopping(self, should_stop: Callable[[], bool] | None) -> Callable[[], bool]:
        """`should_stop`, or always no, until the scheduler closes: then yes."""
        return lambda: self._closed or (should_stop is not None and should_stop())

    def close(self, seconds: float) -> None:
        """Take nobody any more and wait, at most so long, until all have given their turn back.

        A process that ends while another of its threads is inside the model would crash.
        """
        with self._condition:
            self._closed = True
            self._condition.wait_for(lambda: not self._queue, timeout=seconds)

    @contextmanager
    def turn(self, session: str, should_stop: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Wait for this session's turn and hold it.

        Raises Busy at once when the queue is full or the session is in it already, and Cancelled
        when `should_stop` says so while waiting.
        """
        with self._condition:
            if self._closed:
                raise Busy("Glassbox is being stopped.")
            if session in self._queue:
                raise Busy(
                    "An answer is still being written for you. Stop it, or wait for its end."
                )
            if len(self._queue) > self._max_waiting:
                raise Busy(f"{self.waiting} people are waiting already. Try again in a minute.")
            self._queue.append(session)
        try:
            with self._condition:
                while self._queue[0] != session:
                    if should_stop():
                        raise Cancelled
                    self._condition.wait(POLL_SECONDS)
            yield
        finally:
            with self._condition:
                self._queue.remove(session)
                self._condition.notify_all()
