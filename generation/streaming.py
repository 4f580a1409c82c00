"""Token ids to text, piece by piece, never showing half a character or part of a stop string.

Knows a tokenizer; knows no model and no page. A character may be spread over several tokens (one
Chinese character or emoji often is), so text is released only when the next token cannot change it.
The released pieces, joined, equal the decoding of all tokens at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generation.model import LanguageModel
    from generation.step import Step

REPLACEMENT = "\ufffd"
UTF8_MAX_BYTES = 4


class TextStream:
    """Incremental decoding of one text.

    A window of the last tokens is decoded again with every new one, so the cost per token does not
    grow with the text. `_context` holds the tokens before the window: some tokenizers decode a
    token differently at the very start of a text (they drop its leading space).
    """

    def __init__(self, lm: LanguageModel) -> None:
        self._lm = lm
        self._context: list[int] = []
        self._pending: list[int] = []
        self._released = 0  # characters of the pending tokens' text that were already returned

    def push(self, token_id: int) -> str:
        """Take one more token; the text that is now certain (may be empty)."""
        self._pending.append(token_id)
        text = self._pending_text()
        if not text.endswith(REPLACEMENT):
            piece = text[self._released :]
            self._context, self._pending, self._released = self._pending, [], 0
            return piece
        # The text ends in an unfinished character, or in a real U+FFFD. An unfinished one needs at
        # most three more tokens, so after that only the last character can still be in doubt.
        if len(self._pending) < UTF8_MAX_BYTES:
            return ""
        piece = text[self._released : -1]
        self._released = max(self._released, len(text) - 1)
        return piece

    def finish(self) -> str:
        """What is still held back, when no token follows."""
        piece = self._pending_text()[self._released :]
        self._context, self._pending, self._released = self._pending, [], 0
        return piece

    def _pending_text(self) -> str:
        if not self._pending:
            return ""
        before = self._lm.decode(self._context) if self._context else ""
        return self._lm.decode(self._context + self._pending)[len(before) :]


class StopMatcher:
    """Says when a stop string has been written, wherever the borders of tokens fall."""

    def __init__(self, lm: LanguageModel, stop: Sequence[str]) -> None:
        self._stream = TextStream(lm)
        self._stop = tuple(stop)
        self._tail = ""
        self._tail_length = max(map(len, stop)) - 1

    def push(self, token_id: int) -> bool:
        """True when this token completes a stop string."""
        text = self._tail + self._stream.push(token_id)
        self._tail = text[-self._tail_length :] if self._tail_length else ""
        return any(stop in text for stop in self._stop)


def stream_text(
    lm: LanguageModel, steps: Iterable[Step], stop: Sequence[str] = ()
) -> Iterator[tuple[Step, str]]:
    """Pair every step with the text that became showable with it.

    The end-of-text token has no text. A stop string, and all after it, is cut; text that could be
    the beginning of a stop string waits until it is clear that it is not. When the steps end
    without a finish reason (the consumer cancelled), the last characters held back stay unshown.
    """
    stream = TextStream(lm)
    held = ""
    for step in steps:
        ended = step.finish_reason is not None
        if step.token_id not in lm.end_ids:
            held += stream.push(step.token_id)
        if ended:
            held += stream.finish()
        held, cut = cut_at_stop(held, stop)
        waiting = 0 if ended or cut else possible_stop_prefix(held, stop)
        showable = held[: len(held) - waiting]
        held = held[len(showable) :]
        yield step, showable


def cut_at_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """`text` up to the first stop string in it, and whether there was one."""
    found = [at for at in (text.find(s) for s in stop) if at >= 0]
    return (text[: min(found)], True) if found else (text, False)


def possible_stop_prefix(text: str, stop: Sequence[str]) -> int:
    """How many characters at the end of `text` may be the beginning of a stop string."""
    longest = 0
    for s in stop:
        for n in range(min(len(s) - 1, len(text)), longest, -1):
            if text.endswith(s[:n]):
                longest = n
                break
    return longest
