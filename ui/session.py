"""One question to one answer: search, build the prompt, generate, stream. No Gradio in it.

The chat page, the comparison and the command line all drain `answer`; none of them has a way of its
own. What it yields is plain data for views to draw, with keys of `ui.i18n` where words are needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Literal

from generation.beam_search import beam_search
from generation.config import GenerationConfig
from generation.model import LanguageModel
from generation.scheduler import Busy, Cancelled
from generation.step import FinishReason, PromptTooLong, Step
from generation.strategies import Method, strategy_name, write
from generation.streaming import cut_at_stop, stream_text
from rag.database import StoreError
from rag.embedding import EmbeddingError
from rag.follow_up import SearchQuestion
from rag.prompt import Prompt, QuestionTooLong, build_messages
from rag.retrieval_config import RetrievalConfig
from rag.retrieved import Retrieval, RetrievedPassage
from ui.parts import Parts
from ui.searching import completed, needs_model, retrieve, rewritten

Stage = Literal["rewriting", "retrieving", "waiting", "reading", "writing", "done"]
ShouldStop = Callable[[], bool]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seconds:
    """Where the time went; `first_token` runs from the turn's begin until text can appear.

    `rewriting` is what the model took to say what a follow-up question is about.
    """

    rewriting: float = 0.0
    retrieval: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    first_token: float = 0.0


@dataclass(frozen=True)
class Problem:
    """One sentence for the person, as a key of `ui.i18n` with its values."""

    key: str
    values: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerUpdate:
    """Everything known so far. Each update replaces the one before; `stage` "done" is the last.

    `steps` grows in place while the answer is written (and stays empty with beams, whose text may
    still change). `retrieval` is None when it was off; its `relevant` says whether passages were
    put into the prompt. `search` is what was searched for; the prompt has the person's own words.
    """

    stage: Stage
    text: str = ""
    steps: Sequence[Step] = ()
    tokens: int = 0
    strategy: str = ""  # as `strategy_name` says it, once the prompt is known
    search: SearchQuestion | None = None
    retrieval: Retrieval | None = None
    prompt: Prompt | None = None
    finish_reason: FinishReason | None = None
    seconds: Seconds = Seconds()
    ahead: int = 0
    problem: Problem | None = None

    @property
    def tokens_per_second(self) -> float | None:
        """Of decoding alone; None until there are two tokens."""
        return (self.tokens - 1) / self.seconds.decode if self.seconds.decode > 0 else None


def answer(
    parts: Parts,
    question: str,
    history: Sequence[dict[str, str]] = (),
    config: GenerationConfig = GenerationConfig(),  # noqa: B008  (frozen)
    retrieval: RetrievalConfig | None = RetrievalConfig(),  # noqa: B008  (frozen)
    language: str = "en",
    should_stop: ShouldStop | None = None,
    *,
    session: str = "",
    system: str | None = None,
    method: Method = Method(),  # noqa: B008  (frozen)
) -> Iterator[AnswerUpdate]:
    """Answer `question`, yielding an update at each token and whenever the stage changes.

    Without `retrieval` the model answers alone. Closing the generator, or `should_stop` returning
    true, ends the work at once. Whatever goes wrong becomes the last update's `problem`; the text
    so far is kept in it.
    """
    lm, stopped = parts.model, parts.scheduler.stopping(should_stop)
    update = AnswerUpdate("retrieving")
    # Only what the model has to do waits for a turn; a search alone goes ahead of the queue.
    model_first = retrieval is not None and needs_model(question, history, retrieval)

    def searched(update: AnswerUpdate, search: SearchQuestion) -> AnswerUpdate:
        assert retrieval is not None
        found = retrieve(parts.retriever, search.text, retrieval)
        seconds = Seconds(rewriting=search.seconds, retrieval=found.seconds)
        return replace(update, search=search, retrieval=found, seconds=seconds)

    def prompted(update: AnswerUpdate) -> tuple[AnswerUpdate, list[int] | None]:
        """The update with its prompt, and the prompt without passages where it is needed."""

        def prompt_with(passages: Sequence[RetrievedPassage]) -> Prompt:
            return build_messages(
                question,
                passages,
                history,
                count_tokens=lambda messages: len(lm.encode_chat(messages)),
                budget=lm.context_length - config.max_new_tokens,
                system=system,
                language=language,
            )

        prompt = prompt_with(update.retrieval.passages if update.retrieval else ())
        without_ids = None
        if method.context_alpha and prompt.used:
            without_ids = lm.encode_chat(prompt_with(()).messages)
        used = method if without_ids or not method.context_alpha else Method()  # else plain
        return replace(update, prompt=prompt, strategy=strategy_name(config, used)), without_ids

    try:
        if not model_first:
            if retrieval is not None:
                yield update
                update = searched(update, completed(question, history, retrieval))
            update, without_ids = prompted(update)
        update = replace(update, stage="waiting", ahead=parts.scheduler.waiting)
        yield update
        with parts.scheduler.turn(session, stopped):
            if model_first:
                update = replace(update, stage="rewriting", ahead=0)
                yield update
                search = rewritten(lm, question, history, stopped)
                if stopped():
                    raise Cancelled
                update = replace(update, stage="retrieving", search=search)
                yield update
                update, without_ids = prompted(searched(update, search))
            update = replace(update, stage="reading", ahead=0)
            yield update
            assert update.prompt is not None
            ids = lm.encode_chat(update.prompt.messages)
            if config.num_beams > 1:
                method.check_with(config)
                written = _write_beams(lm, update, ids, config, stopped)
            else:
                steps = write(lm, ids, config, method, stopped, without_ids)
                written = _write_steps(lm, update, steps, config)
            for written_update in _timed(update, written):
                update = written_update  # what a problem below is reported with
                yield update
    except Cancelled:
        yield replace(update, stage="done", finish_reason=FinishReason.CANCELLED)
    except Exception as error:
        yield replace(update, stage="done", problem=problem_of(error, lm, config))


def _timed(update: AnswerUpdate, written: Iterator[AnswerUpdate]) -> Iterator[AnswerUpdate]:
    """Add when the first token came, and a last update that says how it ended."""
    before = update.seconds.rewriting + update.seconds.retrieval
    started, first = perf_counter(), 0.0
    for written_update in written:
        first = first or before + perf_counter() - started
        seconds = replace(written_update.seconds, first_token=first)
        update = replace(written_update, seconds=seconds)
        yield update
    reason = update.finish_reason or FinishReason.CANCELLED
    yield replace(update, stage="done", finish_reason=reason)


def _write_steps(
    lm: LanguageModel, update: AnswerUpdate, written: Iterator[Step], config: GenerationConfig
) -> Iterator[AnswerUpdate]:
    text, steps = "", list[Step]()
    for step, piece in stream_text(lm, written, config.stop):
        text += piece
        steps.append(step)
        seconds = update.seconds
        if len(steps) == 1:
            seconds = replace(seconds, prefill=step.seconds)
        else:
            seconds = replace(seconds, decode=seconds.decode + step.seconds)
        update = replace(
            update,
            stage="writing",
            text=text,
            steps=steps,
            tokens=len(steps),
            finish_reason=step.finish_reason,
            seconds=seconds,
        )
        yield update


def _write_beams(
    lm: LanguageModel,
    update: AnswerUpdate,
    ids: list[int],
    config: GenerationConfig,
    stopped: ShouldStop,
) -> Iterator[AnswerUpdate]:
    started, first = perf_counter(), 0.0
    for beam in beam_search(lm, ids, config, stopped):
        elapsed = perf_counter() - started
        first = first or elapsed
        update = replace(
            update,
            stage="writing",
            text=cut_at_stop(beam.best.text, config.stop)[0],
            tokens=len(beam.best.token_ids),
            finish_reason=beam.best.finish_reason if beam.done else None,
            seconds=replace(update.seconds, prefill=first, decode=elapsed - first),
        )
        yield update


def problem_of(error: Exception, lm: LanguageModel, config: GenerationConfig) -> Problem:
    """What happened, what was kept, what to do. The log keeps the details of the unexpected."""
    match error:
        case Busy():
            return Problem("error.busy")
        case QuestionTooLong() | PromptTooLong():
            budget = max(0, lm.context_length - config.max_new_tokens)
            return Problem("error.too_long", {"budget": f"{budget:,}"})
        case ValueError():
            return Problem("error.setting", {"message": str(error)})
        case StoreError() | EmbeddingError():
            log.error("the documents could not be searched", exc_info=error)
            return Problem("error.documents", {"message": str(error).rstrip(".")})
    if _is_out_of_memory(error):
        return Problem("error.memory")
    log.error("answering failed", exc_info=error)
    return Problem("error.unknown", {"kind": type(error).__name__})


def _is_out_of_memory(error: Exception) -> bool:
    """torch raises a RuntimeError of its own on a GPU, and a plain one on a CPU."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
    )
