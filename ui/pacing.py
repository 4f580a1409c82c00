"""When to show an update, and when to say a sentence: pages need less than a model writes.

Pure functions on iterables and strings; knows neither Gradio nor models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Protocol, TypeVar


class Update(Protocol):
    """A state of an answer, or of a comparison of two."""

    @property
    def stage(self) -> str: ...
    @property
    def text(self) -> str: ...


U = TypeVar("U", bound=Update)
FRAME_SECONDS = 0.04
# The end of a sentence: Chinese stops end one by themselves, the others need a space after them.
_SENTENCE_END = re.compile(r"[。！？]+[”’」』）]*|[.!?]+[\"'”’)]*(?=\s)|\n")


def paced(
    updates: Iterable[U],
    seconds: float = FRAME_SECONDS,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[U]:
    """At most one update each `seconds`; a new stage, the first text and the end always come."""
    stage, shown_text, shown_at = "", False, 0.0
    for update in updates:
        now = clock()
        new = update.stage != stage or (bool(update.text) and not shown_text)
        if new or now - shown_at >= seconds:
            stage, shown_text, shown_at = update.stage, bool(update.text), now
            yield update


def next_sentences(text: str, start: int) -> tuple[str, int]:
    """The whole sentences of `text` after `start`, and where they end; for announcing politely."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start)]
    end = ends[-1] if ends else start
    return text[start:end].strip(), end
