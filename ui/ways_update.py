"""What is known of a question while it is written in four ways: plain data, for views to draw.

Knows neither Gradio nor how anything is generated; `ui.ways` makes these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from generation.comparison import first_divergence
from generation.config import GenerationConfig
from generation.step import FinishReason
from rag.prompt import Prompt
from rag.retriever import Retrieval
from ui.session import Problem

Stage = Literal["retrieving", "waiting", "writing", "done"]
Way = Literal["plain", "retrieved", "one_shot", "jacobi", "template"]


@dataclass(frozen=True)
class Written:
    """What one way has written, and what it took: all of it measured in this run.

    `passes` are calls of the model, those that read the prompt included; `seconds` the time in it.
    """

    prompt_tokens: int
    text: str = ""
    token_ids: tuple[int, ...] = ()
    tokens: int = 0
    passes: int = 0
    seconds: float = 0.0
    finish_reason: FinishReason | None = None  # one-shot ends for no reason: it has n positions
    rivals: tuple[tuple[float, float], ...] = ()  # of the loop: probability of each token, and of
    # the likeliest other one


@dataclass(frozen=True)
class Iteration:
    """One pass of the Jacobi iteration, with the text of each of its tokens."""

    number: int
    texts: tuple[str, ...]
    final: int  # so many tokens at the beginning change no more
    changed: frozenset[int]
    seconds: float


@dataclass(frozen=True)
class Piece:
    """A part of the form: fixed text, or what the model wrote into the slot of that name."""

    text: str
    slot: str | None = None


@dataclass(frozen=True)
class WaysUpdate:
    """Everything known so far. Each update replaces the one before; `stage` "done" is the last."""

    stage: Stage
    question: str
    config: GenerationConfig
    retrieval: Retrieval | None = None
    prompt: Prompt | None = None  # the one with passages
    writing: Way | None = None
    plain: Written | None = None
    retrieved: Written | None = None
    one_shot: Written | None = None
    jacobi: Written | None = None
    iterations: tuple[Iteration, ...] = ()
    template: Written | None = None
    precision: str = "fp32"  # what the model computes in
    pieces: tuple[Piece, ...] = ()
    ahead: int = 0
    stopped: bool = False
    problem: Problem | None = None

    @property
    def text(self) -> str:
        """All that is written so far."""
        runs = (self.plain, self.retrieved, self.one_shot, self.jacobi, self.template)
        return "\n".join(run.text for run in runs if run is not None)

    @property
    def jacobi_is_greedy(self) -> bool | None:
        """Whether both wrote the same tokens, compared one by one; None before both have ended."""
        if self.plain is None or self.jacobi is None:
            return None
        if self.plain.finish_reason is None or self.jacobi.finish_reason is None:
            return None
        return self.plain.token_ids == self.jacobi.token_ids

    @property
    def parting(self) -> int | None:
        """The index of the first token in which Jacobi and greedy text differ, when they do."""
        if self.plain is None or self.jacobi is None or self.jacobi_is_greedy is not False:
            return None
        at = first_divergence(self.plain.token_ids, self.jacobi.token_ids)
        return min(self.plain.tokens, self.jacobi.tokens) if at is None else at

    @property
    def agreeing(self) -> int | None:
        """How many tokens at the beginning of the one-shot text are those of the greedy text."""
        if self.plain is None or self.one_shot is None:
            return None
        at = first_divergence(self.plain.token_ids, self.one_shot.token_ids)
        return len(self.plain.token_ids) if at is None else at
