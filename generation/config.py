"""How to decode: one frozen record of options, checked when it is made.

Knows no model. An option that does not exist is refused by the constructor itself, and a value that
makes no sense raises a ValueError which names the option and its range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationConfig:
    """Options of one run of the loop; every default leaves the model's distribution alone.

    The order in which they act is that of `generation.sampling`.
    """

    max_new_tokens: int = 256  # >= 1
    temperature: float = 0.0  # >= 0; 0 is greedy
    top_k: int = 0  # >= 0; 0 keeps all
    top_p: float = 1.0  # 0 < p <= 1; 1 keeps all
    min_p: float = 0.0  # 0 <= p <= 1; 0 keeps all
    typical_p: float = 1.0  # 0 < p <= 1; 1 keeps all
    repetition_penalty: float = 1.0  # > 0; 1 is none; counts the prompt too
    presence_penalty: float = 0.0  # -2 to 2; 0 is none; generated tokens only
    frequency_penalty: float = 0.0  # -2 to 2; 0 is none; generated tokens only
    no_repeat_ngram_size: int = 0  # >= 0; 0 is off; counts the prompt too
    logit_bias: tuple[tuple[int, float], ...] = ()  # (token id, -100 to 100); a mapping will do
    min_new_tokens: int = 0  # no end-of-text token before this many
    seed: int = 0  # 0 <= seed < 2**63
    stop: tuple[str, ...] = ()  # strings that end the answer; they are not part of it
    num_beams: int = 1  # >= 1; above 1 is beam search, with a temperature beam sampling
    length_penalty: float = 1.0  # beams: log-probability / length ** this
    early_stopping: bool | str = False  # beams: True, False or "never"; how soon to be content
    num_beam_groups: int = 1  # >= 1, divides num_beams; groups avoid each other's tokens
    diversity_penalty: float = 0.0  # >= 0; beam groups: for a token that another group chose
    num_candidates: int = 10  # >= 1; how many candidates each Step records
    stop_on_repetition: bool = False  # end when the text runs into a loop; not for beams

    def __post_init__(self) -> None:
        self._number("max_new_tokens", 1, 1_000_000, whole=True)
        self._number("temperature", 0.0, 1e6)
        self._number("top_k", 0, 10_000_000, whole=True)
        self._number("top_p", 0.0, 1.0, open_low=True)
        self._number("min_p", 0.0, 1.0)
        self._number("typical_p", 0.0, 1.0, open_low=True)
        self._number("repetition_penalty", 0.0, 1e6, open_low=True)
        self._number("presence_penalty", -2.0, 2.0)
        self._number("frequency_penalty", -2.0, 2.0)
        self._number("no_repeat_ngram_size", 0, 1000, whole=True)
        self._number("min_new_tokens", 0, 1_000_000, whole=True)
        self._number("seed", 0, 2**63 - 1, whole=True)
        self._number("num_beams", 1, 64, whole=True)
        self._number("length_penalty", -100.0, 100.0)
        self._number("num_beam_groups", 1, 64, whole=True)
        self._number("diversity_penalty", 0.0, 1e6)
        self._number("num_candidates", 1, 1000, whole=True)
        if isinstance(self.stop, str) or not all(isinstance(s, str) and s for s in self.stop):
            raise ValueError("stop must be a sequence of non-empty strings")
        object.__setattr__(self, "stop", tuple(self.stop))
        self._check_logit_bias()
        if self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"min_new_tokens ({self.min_new_tokens}) must not be above max_new_tokens "
                f"({self.max_new_tokens})"
            )
        if not isinstance(self.stop_on_repetition, bool):
            raise ValueError(
                f"stop_on_repetition must be True or False, not {self.stop_on_repetition!r}"
            )
        if self.stop_on_repetition and self.num_beams > 1:
            raise ValueError(
                "stop_on_repetition watches one text, so it does not go with num_beams above 1"
            )
        if self.early_stopping not in (True, False, "never"):
            raise ValueError(
                f"early_stopping must be True, False or 'never', not {self.early_stopping!r}"
            )
        if self.num_beams % self.num_beam_groups:
            raise ValueError(
                f"num_beam_groups ({self.num_beam_groups}) must divide num_beams ({self.num_beams})"
            )

    def _number(
        self, name: str, low: float, high: float, *, whole: bool = False, open_low: bool = False
    ) -> None:
        value = getattr(self, name)
        check_number(name, value, low, high, whole=whole, open_low=open_low)
        object.__setattr__(self, name, int(value) if whole else float(value))

    def _check_logit_bias(self) -> None:
        pairs = self.logit_bias.items() if isinstance(self.logit_bias, Mapping) else self.logit_bias
        try:
            bias = {token_id: value for token_id, value in pairs}
        except (TypeError, ValueError):
            bias = {-1: 0}  # refused below
        if not all(
            _is_number(token_id, whole=True)
            and token_id >= 0
            and _is_number(value)
            and -100 <= value <= 100
            for token_id, value in bias.items()
        ):
            raise ValueError("logit_bias must map token ids (from 0) to numbers from -100 to 100")
        object.__setattr__(self, "logit_bias", tuple(sorted(bias.items())))

    @property
    def reads_history(self) -> bool:
        """Whether any option depends on the tokens so far."""
        return (
            self.repetition_penalty != 1.0
            or self.presence_penalty != 0.0
            or self.frequency_penalty != 0.0
            or self.no_repeat_ngram_size != 0
        )

    @property
    def strategy(self) -> str:
        """`greedy`, `sampling`, `beam search`, `diverse beam search` or `beam sampling`."""
        if self.num_beams > 1:
            if self.temperature > 0:
                return "beam sampling"
            return "beam search" if self.num_beam_groups == 1 else "diverse beam search"
        return "greedy" if self.temperature == 0 else "sampling"


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    whole: bool = False,
    open_low: bool = False,
) -> None:
    """ValueError, which names the option and its range, for a value that makes no sense."""
    if (
        not _is_number(value, whole=whole)
        or not low <= value <= high
        or (open_low and value == low)
    ):
        kind = "a whole number" if whole else "a number"
        interval = (
            f"{'above' if open_low else 'from'} {low:g} {'up to' if open_low else 'to'} {high:g}"
        )
        raise ValueError(f"{name} must be {kind} {interval}, not {value!r}")


def _is_number(value: object, *, whole: bool = False) -> bool:
    """A finite number; True and False, which Python counts as numbers, are none here."""
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        return False
    return isinstance(value, Integral) or math.isfinite(float(value))
