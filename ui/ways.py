"""One question written in four ways by one model: what each took is counted while it is written.

Autoregression, retrieval and autoregression, parallel generation, and filling a form. All but the
second read the same prompt, so what differs between them is the way of writing alone. The page and
the HTTP API drain `write_ways`. No Gradio in it; how tokens are made is `generation`'s business.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from generation.config import GenerationConfig
from generation.decoding import PREFILL_CHUNK, generate
from generation.model import LanguageModel
from generation.parallel import JacobiIteration, jacobi_decode, one_shot
from generation.scheduler import Cancelled
from generation.step import Step
from generation.streaming import TextStream, stream_text
from generation.template_filling import TemplateUpdate, fill_template
from generation.template_syntax import TemplateError, parse_template
from rag.prompt import build_messages
from rag.retrieval_config import RetrievalConfig
from rag.terms import has_han
from ui.i18n import LANGUAGES, t
from ui.parts import Parts
from ui.searching import retrieve
from ui.session import Problem, ShouldStop, problem_of
from ui.ways_update import Iteration, Piece, WaysUpdate, Written

LEAST_TOKENS, MOST_TOKENS, DEFAULT_TOKENS = 4, 64, 24
MAX_TEMPLATE = 4000  # characters


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
    retrieval: RetrievalConfig = RetrievalConfig(),  # noqa: B008  (frozen)
    should_stop: ShouldStop | None = None,
    *,
    session: str = "",
) -> Generator[WaysUpdate, None, None]:
    """Write the answer in every way, one after another, in one turn of the scheduler.

    Each way is greedy, so that the texts can be compared; `max_new_tokens` holds for each of them,
    and in the form for each slot without a `max_tokens`. Closing the generator, or `should_stop`
    returning true, ends the work. Whatever goes wrong becomes the last update's `problem`.
    """
    lm, stopped = parts.model, parts.scheduler.stopping(should_stop)
    if is_default_template(template):
        template = default_template(question)
    update = WaysUpdate("retrieving", question, GenerationConfig(), precision=lm.precision)
    try:
        config = GenerationConfig(max_new_tokens=_checked(max_new_tokens))
        update = replace(update, config=config)
        if len(template) > MAX_TEMPLATE:
            raise TemplateError(f"The template is longer than {MAX_TEMPLATE} characters.")
        parse_template(template)
        yield update
        found = retrieve(parts.retriever, question, retrieval)
        language = "zh" if has_han(question) else "en"
        plain, retrieved = (
            build_messages(
                question,
                given,
                count_tokens=lambda messages: len(lm.encode_chat(messages)),
                budget=lm.context_length - config.max_new_tokens,
                language=language,
            )
            for given in ((), found.passages)
        )
        ahead = parts.scheduler.waiting
        update = replace(update, stage="waiting", retrieval=found, prompt=retrieved, ahead=ahead)
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
            rivals=(*written.rivals, _rivals(step)),
        )
        yield written


def _rivals(step: Step) -> tuple[float, float]:
    """The probability of the token that was chosen, and of the likeliest of the others."""
    others = (c.logprob for c in step.candidates if c.token_id != step.token_id)
    return math.exp(step.logprob), math.exp(max(others, default=-math.inf))


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
        texts=_texts(lm, iteration.token_ids),
        final=iteration.final,
        changed=frozenset(iteration.changed),
        seconds=iteration.seconds,
    )


def _texts(lm: LanguageModel, token_ids: Sequence[int]) -> tuple[str, ...]:
    """The text of each token; a character of several tokens belongs to the last of them."""
    stream = TextStream(lm)
    *texts, last = [stream.push(token_id) for token_id in token_ids]
    return (*texts, last + stream.finish())


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
            finish_reason=update.slots[-1].finish_reason
            if update.done
            else None,  # the last slot's
        )
        yield written, tuple(pieces)
