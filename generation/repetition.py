"""A detector of loops: the end of a text repeats itself, and each time more probably.

Greedy decoding is prone to it: what is already there makes its own repetition more probable, the
more so the more often it is there ("self-reinforcement", Xu et al. 2022, "Learning to Break the
Loop"). So a loop is two things at once: the same tokens over and over up to the end of the text,
and log-probabilities that do not fall while they repeat.

Knows the record of each step and no model. It reports; who asks it decides whether to stop. Lists,
tables, indentation and doubled words repeat little or with changes, and are no loops. Sentences
that repeat with a counter in them are loops that it does not see.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from generation.step import Step

LONGEST = 256  # tokens of the longest n-gram looked for
LEAST_REPEATS = 4
MOST_REPEATS = 64  # whose log-probabilities are reported
LEAST_TOKENS = 32  # of all repeats together: eight times "ha" is laughter
# Rules, rows of an empty table and indentation are one sign over and over, and right.
LEAST_TOKENS_WITHOUT_LETTERS = 160
TOLERANCE = 0.1  # nats by which a repeat may be less probable than the one before
CERTAIN = math.log(0.9)  # as probable as this it cannot grow much more


@dataclass(frozen=True, slots=True)
class Repetition:
    """What the end of a text repeats. Log-probabilities are natural logs."""

    token_ids: tuple[int, ...]  # the n-gram
    text: str
    repeats: int  # complete ones, one after another, the first included
    logprobs: tuple[float, ...]  # the mean per token of each repeat, the last MOST_REPEATS at most
    position: int  # where the first repeat begins, counted as in `Step.position`


class RepetitionDetector:
    """Takes the steps of one text as they come; says when the text has run into a loop.

    The work per token grows with how often that token occurred among the last `LONGEST`, not with
    the length of the text. `decode` gives an n-gram's text; without it the texts of single tokens
    are joined, in which a character spread over tokens shows as U+FFFD.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str] | None = None) -> None:
        self._decode = decode
        self._tokens: list[int] = []
        self._texts: list[str] = []
        self._sums = [0.0]  # sums[i]: log-probabilities of the first i tokens together
        self._places: defaultdict[int, deque[int]] = defaultdict(deque)
        self._runs: dict[int, int] = {}  # period -> how many last tokens equal the one before it
        self._first_position = 0

    def push(self, step: Step) -> Repetition | None:
        """Take one more step; the loop that the text now ends in, if it does."""
        if not self._tokens:
            self._first_position = step.position
        here = len(self._tokens)
        self._tokens.append(step.token_id)
        self._texts.append(step.text)
        self._sums.append(self._sums[-1] + step.logprob)
        places = self._places[step.token_id]
        while places and places[0] < here - LONGEST:
            places.popleft()
        self._runs = {here - place: self._runs.get(here - place, 0) + 1 for place in places}
        places.append(here)
        return self._loop()

    def _loop(self) -> Repetition | None:
        for period in sorted(self._runs):
            length = self._runs[period] + period  # of the part that repeats itself
            start = len(self._tokens) - length
            if length < LEAST_TOKENS or length < LEAST_REPEATS * period:
                continue
            unit = slice(start, start + period)
            if length < LEAST_TOKENS_WITHOUT_LETTERS and not _has_letters(self._texts[unit]):
                continue
            begins = range(start, len(self._tokens) - period + 1, period)
            logprobs = tuple(
                (self._sums[i + period] - self._sums[i]) / period for i in begins[-MOST_REPEATS:]
            )
            if not _grows(logprobs):
                return None
            token_ids = tuple(self._tokens[unit])
            text = self._decode(token_ids) if self._decode else "".join(self._texts[unit])
            return Repetition(token_ids, text, len(begins), logprobs, self._first_position + start)
        return None


def find_repetition(
    steps: Iterable[Step], decode: Callable[[Sequence[int]], str] | None = None
) -> Repetition | None:
    """The loop of most tokens in a list of steps, as it was when it ended; None without one."""
    detector = RepetitionDetector(decode)
    loops = [loop for loop in map(detector.push, steps) if loop is not None]
    return max(loops, key=lambda loop: loop.repeats * len(loop.token_ids), default=None)


def _has_letters(texts: Sequence[str]) -> bool:
    # Part of a character shows as U+FFFD; most characters that are spread over tokens are letters.
    return any(sign.isalpha() or sign == "\ufffd" for text in texts for sign in text)


def _grows(logprobs: Sequence[float]) -> bool:
    """Whether every repeat is about as probable as the one before or more, and the last is more."""
    steady = all(b >= a - TOLERANCE for a, b in pairwise(logprobs))
    return steady and logprobs[-1] >= min(logprobs[0], CERTAIN)
