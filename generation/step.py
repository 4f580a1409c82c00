"""The record of one turn of the loop. Every view and every trace is drawn from a list of these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FinishReason(StrEnum):
    """Why an answer ended."""

    EOS = "eos"  # the model chose an end-of-text token
    LENGTH = "length"  # max_new_tokens reached
    STOP_STRING = "stop_string"  # a stop string was written
    CONTEXT_FULL = "context_full"  # prompt and answer fill the model's window
    REPETITION = "repetition"  # the text ran into a loop, and stop_on_repetition was asked for
    CANCELLED = "cancelled"  # the consumer stopped


class PromptTooLong(ValueError):
    """The prompt leaves no room in the model's context window for one new token."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could have been chosen. Log-probabilities are natural logs."""

    token_id: int
    text: str
    logprob: float  # the model's
    sampler_logprob: float  # after the sampler; -inf when it was cut


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the loop. Log-probabilities are natural logs, entropy is in bits."""

    position: int  # of this token, counted from the first token of the prompt
    token_id: int
    text: str  # of this token by itself; U+FFFD where it holds only part of a character
    logprob: float  # under the model
    sampler_logprob: float  # under the distribution the choice was made from
    rank: int  # 1 is the model's most probable token
    entropy: float  # of the model's distribution
    end_prob: float  # probability that the model gave to ending here
    candidates: tuple[Candidate, ...]  # the model's most probable tokens, and the chosen one
    seconds: float  # this turn; the first one includes reading the prompt
    finish_reason: FinishReason | None = None  # on the last step; a cancelled run has none
