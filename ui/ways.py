"""One question written in four ways by one model: what each took is counted while it is written.

Autoregression, retrieval and autoregression, parallel generation, and filling a form. All but the
second read the same prompt, so what differs between them is the way of writing alone. The page and
the HTTP API drain `write_ways`. No Gradio in it; how tokens are made is `generation`'s business.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from generation.comparison import first_divergence
from generation.config import GenerationConfig
from generation.decoding import PREFILL_CHUNK, generate
from generation.model import LanguageModel
from generation.parallel import JacobiIteration, jacobi_decode, one_shot
from generation.scheduler import Cancelled
from generation.step import FinishReason
from generation.streaming import stream_text
from generation.template_filling import TemplateUpdate, fill_template
from generation.template_syntax import TemplateError, parse_template
from rag.prompt import Prompt, build_messages
from rag.retriever import Retrieval
from rag.terms import has_han
from ui.i18n import LANGUAGES, t
from ui.parts import Parts
from ui.session import Problem, ShouldStop, problem_of

Stage = Literal["retrieving", "waiting", "writing", "done"]
Way = Literal["plain", "retrieved", "one_shot", "jacobi", "template"]
LEAST_TOKENS, MOST_TOKENS, DEFAULT_TOKENS = 4, 64, 24
MAX_TEMPLATE = 4000  # characters


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
    def agreeing(self) -> int | None:
        """How many tokens at the beginning of the one-shot text are those of the greedy text."""
        if self.plain is None or self.one_shot is None:
            return None
        at = first_divergence(self.plain.token_ids, self.one_shot.token_ids)
        return len(self.plain.token_ids) if at is None else at


def default_template(question: str, language: str = "en") -> str:
    """A form in the language of the question, or in `language` when there is no question yet."""
    if question.strip():
        language = "zh" if has_han(question) else "en"
    return t(language, "ways.template")


def is_default_template(template: str) -> bool:
    """Whether nobody has changed it (an empty one counts: there is nothing to fill in it)."""
    return not template.strip() or template in [
        t(language, "ways.template") for language in LANGUAGES
    ]


def write_ways(
    parts: Parts,
    question: str,
    template: str = "",
    max_new_tokens: int = DEFAULT_TOKENS,
    k: int = 4,
    should_stop: ShouldStop | None = None,
    *,
    session: str = "",
) -> Generator[WaysUpdate, None, None]:
    """Write the answer in every way, one after another, in one turn of the scheduler.

    Each way is greedy, so that the texts can be compared; `max_new_tokens` holds for each of them,
    and in the form for each slot without a `max_tokens`. Closing the generator, or `should_stop`
    returning true, ends the work. Whatever goes wrong becomes the last update's `problem`.
    """
    lm, stopped = parts.model, should_stop or (lambda: False)
    if is_default_template(template):
        template = default_template(question)
    update = WaysUpdate("retrieving", question, GenerationConfig())
    try:
        config = GenerationConfig(max_new_tokens=_checked(max_new_tokens))
        update = replace(update, config=config)
        if len(template) > MAX_TEMPLATE:
            raise TemplateError(f"The template is longer than {MAX_TEMPLATE} characters.")
        parse_template(template)
        yield update
        retrieval = parts.retriever.retrieve(question, k=k)
        passages = retrieval.passages if retrieval.relevant else ()
        language = "zh" if has_han(question) else "en"
        plain, retrieved = (
            build_messages(
                question,
                given,
                count_tokens=lambda messages: len(lm.encode_chat(messages)),
                budget=lm.context_length - config.max_new_tokens,
                language=language,
            )
            for given in ((), passages)
        )
        ahead = parts.scheduler.waiting
        update = replace(
            update, stage="waiting", retrieval=retrieval, prompt=retrieved, ahead=ahead
        )
        yield update
        with parts.scheduler.turn(session, stopped):
            ids = lm.encode_chat(plain.messages)
            # Made first, because it refuses a form that cannot be filled before anything is run.
            filling = fill_template(lm, ids, template, config, stopped)
            update = replace(update, stage="writing", ahead=0)
            with_ids = lm.encode_chat(retrieved.messages)
            for written in _ways(lm, update, ids, with_ids, template, filling, stopped):
                update = written  # what a problem below is reported with
                yield update
        yield replace(update, stage="done", writing=None, stopped=stopped())
    except Cancelled:
        yield replace(update, stage="done", writing=None, stopped=True)
    except TemplateError as error:
        problem = Problem("ways.bad_template", {"message": str(error)})
        yield replace(update, stage="done", writing=None, problem=problem)
    except Exception as error:
        problem = problem_of(error, lm, update.config)
        yield replace(update, stage="done", writing=None, problem=problem)


def _checked(max_new_tokens: int) -> int:
    whole = isinstance(max_new_tokens, int) and not isinstance(max_new_tokens, bool)
    if not whole or not LEAST_TOKENS <= max_new_tokens <= MOST_TOKENS:
        raise ValueError(
            f"max_new_tokens must be a whole number from {LEAST_TOKENS} to {MOST_TOKENS}, "
            f"not {max_new_tokens!r}"
        )
    return max_new_tokens


def _ways(
    lm: LanguageModel,
    update: WaysUpdate,
    ids: list[int],
    with_ids: list[int],
    template: str,
    filling: Iterator[TemplateUpdate],
    stopped: ShouldStop,
) -> Iterator[WaysUpdate]:
    """The five runs in their order; the ones after a stop are not begun."""
    for written in _autoregression(lm, ids, update.config, stopped):
        update = replace(update, writing="plain", plain=written)
        yield update
    for written in _autoregression(lm, with_ids, update.config, stopped):
        update = replace(update, writing="retrieved", retrieved=written)
        yield update
    if not stopped():
        update = replace(update, writing="one_shot", one_shot=_one_shot(lm, ids, update.config))
        yield update
    written, n = Written(len(ids)), update.config.max_new_tokens
    for iteration in jacobi_decode(lm, ids, n, stopped):
        written = replace(
            written,
            text=_shown(lm, iteration.token_ids),
            token_ids=iteration.token_ids,
            tokens=len(iteration.token_ids),
            passes=iteration.passes,
            seconds=written.seconds + iteration.seconds,
            finish_reason=iteration.finish_reason,
        )
        drawn = (*update.iterations, _iteration(lm, iteration))
        update = replace(update, writing="jacobi", jacobi=written, iterations=drawn)
        yield update
    before = parse_template(template).before
    for written, pieces in _form(filling, Written(len(ids)), before):
        update = replace(update, writing="template", template=written, pieces=pieces)
        yield update


def _autoregression(
    lm: LanguageModel, ids: list[int], config: GenerationConfig, stopped: ShouldStop
) -> Iterator[Written]:
    """The loop: the prompt is read in chunks, and every token but the last one costs a pass."""
    written = Written(len(ids))
    if stopped():
        return
    yield written
    reading = math.ceil(len(ids) / PREFILL_CHUNK)
    steps = generate(lm, ids, config, should_stop=stopped)
    for step, piece in stream_text(lm, steps, config.stop):
        written = replace(
            written,
            text=written.text + piece,
            token_ids=(*written.token_ids, step.token_id),
            tokens=written.tokens + 1,
            passes=reading + written.tokens,
            seconds=written.seconds + step.seconds,
            finish_reason=step.finish_reason,
        )
        yield written


def _one_shot(lm: LanguageModel, ids: list[int], config: GenerationConfig) -> Written:
    shot = one_shot(lm, ids, config.max_new_tokens)
    return Written(
        prompt_tokens=len(ids),
        text=shot.text,
        token_ids=shot.token_ids,
        tokens=len(shot.token_ids),
        passes=shot.passes,
        seconds=shot.seconds,
    )


def _iteration(lm: LanguageModel, iteration: JacobiIteration) -> Iteration:
    return Iteration(
        number=iteration.number,
        texts=tuple(lm.decode([token_id]) for token_id in iteration.token_ids),
        final=iteration.final,
        changed=frozenset(iteration.changed),
        seconds=iteration.seconds,
    )


def _shown(lm: LanguageModel, token_ids: Sequence[int]) -> str:
    return lm.decode([token_id for token_id in token_ids if token_id not in lm.end_ids])


def _form(
    filling: Iterator[TemplateUpdate], written: Written, before: Sequence[str]
) -> Iterator[tuple[Written, tuple[Piece, ...]]]:
    """The form after every token, in pieces: which of its text is fixed and which was written."""
    for update in filling:
        pieces: list[Piece] = []
        for fixed, slot in zip(before, update.slots, strict=False):
            pieces += [Piece(fixed), Piece(slot.text, slot.name)]
        done = "".join(piece.text for piece in pieces)
        if update.done:
            pieces.append(Piece(update.text[len(done) :]))
        elif len(update.slots) < len(before):
            fixed = before[len(update.slots)]
            if update.slot not in {piece.slot for piece in pieces}:
                value = update.text[len(done) + len(fixed) :]
                pieces += [Piece(fixed), Piece(value, update.slot)]
        step = update.step
        written = replace(
            written,
            text=update.text,
            tokens=written.tokens + (step is not None),
            passes=update.passes,
            seconds=written.seconds + (step.seconds if step is not None else 0.0),
            finish_reason=FinishReason.EOS if update.done else None,
        )
        yield written, tuple(pieces)
