"""One question, two prompts: the same generation with and without retrieved passages, side by side.

The counterpart of `ui.session.answer` for two answers at once: the compare page and the command
line drain it. No Gradio in it. How tokens are chosen is `generation.comparison.compare`'s business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from generation.comparison import Side, compare, differing_tokens, first_divergence
from generation.config import GenerationConfig
from generation.method import Method
from generation.model import LanguageModel
from generation.scheduler import Cancelled
from generation.scoring import TokenScore, score
from generation.step import FinishReason, Step
from generation.streaming import stream_text
from rag.prompt import Prompt, build_messages
from rag.retrieval_config import RetrievalConfig
from rag.retrieved import Retrieval
from ui.parts import Parts
from ui.searching import retrieve
from ui.session import Problem, ShouldStop, problem_of

Stage = Literal["retrieving", "waiting", "reading", "writing", "done"]
SIDES: tuple[Side, Side] = ("with", "without")


@dataclass
class SideRun:
    """One answer so far. `pieces[i]` is the text that became showable with `steps[i]`."""

    prompt: Prompt
    prompt_tokens: int
    steps: list[Step] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    finish_reason: FinishReason | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def tokens_per_second(self) -> float | None:
        """Of this side's own decoding steps; None until there are two tokens."""
        seconds = sum(step.seconds for step in self.steps[1:])
        return (len(self.steps) - 1) / seconds if seconds > 0 else None


@dataclass(frozen=True)
class ComparisonUpdate:
    """Everything known so far; each replaces the one before, and `stage` "done" is the last.

    The runs grow in place. `divergence` is the first index at which the tokens differ, once known.
    `differing` counts the prompt tokens that only one side has. `rescored` is the answer with
    retrieval under the prompt without it, token for token, when both were written to their end.
    """

    stage: Stage
    question: str
    config: GenerationConfig
    method: Method = Method()  # noqa: RUF009  (frozen)
    retrieval: Retrieval | None = None
    runs: dict[Side, SideRun] = field(default_factory=dict)
    differing: int = 0
    divergence: int | None = None
    ahead: int = 0
    rescored: Sequence[TokenScore] = ()
    problem: Problem | None = None

    @property
    def text(self) -> str:
        """All that is written so far, on both sides."""
        return "".join(run.text for run in self.runs.values())


def compare_answers(
    parts: Parts,
    question: str,
    config: GenerationConfig,
    retrieval: RetrievalConfig = RetrievalConfig(),  # noqa: B008  (frozen)
    language: str = "en",
    should_stop: ShouldStop | None = None,
    *,
    session: str = "",
    method: Method = Method(),  # noqa: B008  (frozen)
) -> Generator[ComparisonUpdate, None, None]:
    """Answer `question` twice in lockstep, yielding an update whenever a token was added.

    Closing the generator, or `should_stop` returning true, ends both. Whatever goes wrong becomes
    the last update's `problem`; what was written is kept in it. Beams are refused as a problem.
    """
    lm, stopped = parts.model, parts.scheduler.stopping(should_stop)
    update = ComparisonUpdate("retrieving", question, config, method)
    try:
        yield update
        found = retrieve(parts.retriever, question, retrieval)
        prompts = {
            "with": _prompt(lm, question, found.passages, config, language),
            "without": _prompt(lm, question, (), config, language),
        }
        ids = {side: lm.encode_chat(prompts[side].messages) for side in SIDES}
        update = replace(
            update,
            stage="waiting",
            retrieval=found,
            runs={side: SideRun(prompts[side], len(ids[side])) for side in SIDES},
            differing=sum(differing_tokens(ids["with"], ids["without"])),
            ahead=parts.scheduler.waiting,
        )
        yield update
        with parts.scheduler.turn(session, stopped):
            update = replace(update, stage="reading")
            yield update
            for written in _write(lm, update, ids, stopped):
                update = written
                yield update
    except Cancelled:  # while waiting for the turn
        yield _ended(update)
    except Exception as error:
        yield replace(update, stage="done", problem=problem_of(error, lm, config))


def _prompt(
    lm: LanguageModel, question: str, passages: Sequence, config: GenerationConfig, language: str
) -> Prompt:
    return build_messages(
        question,
        passages,
        count_tokens=lambda messages: len(lm.encode_chat(messages)),
        budget=lm.context_length - config.max_new_tokens,
        language=language,
    )


def _write(
    lm: LanguageModel, update: ComparisonUpdate, ids: dict[Side, list[int]], stopped: ShouldStop
) -> Iterator[ComparisonUpdate]:
    config, runs = update.config, update.runs
    writers = {side: _Writer(lm, config) for side in SIDES}
    turns = compare(lm, ids["with"], ids["without"], config, stopped, update.method)
    with closing(turns):
        for side, step in turns:
            run = runs[side]
            run.steps.append(step)
            run.pieces.append(writers[side].push(step))
            run.finish_reason = step.finish_reason
            if update.divergence is None:
                update = replace(update, divergence=_divergence(runs))
            update = replace(update, stage="writing")
            yield update
    if not stopped() and ids["with"] != ids["without"]:
        update = replace(update, rescored=_rescore(lm, ids["without"], runs["with"]))
    yield _ended(update)


def _rescore(lm: LanguageModel, prompt_ids: list[int], run: SideRun) -> list[TokenScore]:
    """Teacher forcing: how probable is what one side wrote, given the other side's prompt?"""
    token_ids = [step.token_id for step in run.steps]
    return score(lm, prompt_ids, token_ids[: lm.context_length - len(prompt_ids)])


def _ended(update: ComparisonUpdate) -> ComparisonUpdate:
    """The last update: a side without a reason to end was stopped."""
    for run in update.runs.values():
        run.finish_reason = run.finish_reason or FinishReason.CANCELLED
    return replace(update, stage="done")


def _divergence(runs: dict[Side, SideRun]) -> int | None:
    return first_divergence(*([step.token_id for step in runs[side].steps] for side in SIDES))


class _Writer:
    """`stream_text` for steps that arrive one by one, in between those of the other side."""

    def __init__(self, lm: LanguageModel, config: GenerationConfig) -> None:
        self._arrived: deque[Step] = deque()
        self._stream = stream_text(lm, self._take(), config.stop)

    def _take(self) -> Iterator[Step]:
        while True:
            yield self._arrived.popleft()

    def push(self, step: Step) -> str:
        """The text that this step makes showable: one pair comes out for each step that went in."""
        self._arrived.append(step)
        _, piece = next(self._stream)
        return piece
