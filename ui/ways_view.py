"""Four ways to write as escaped HTML: a card for each, its text, what it took, how it came about.

Pure functions from `ui.ways.WaysUpdate` to strings. Knows nothing of Gradio or models.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape
from itertools import groupby

from generation.step import FinishReason
from ui.i18n import h, t
from ui.search_view import scope
from ui.token_view import visible
from ui.ways_update import Iteration, WaysUpdate, Written

CARDS = ("plain", "retrieved", "parallel", "template")
NUMBER = {"plain": 1, "retrieved": 2, "one_shot": 3, "jacobi": 3, "template": 4}
LAST_ITERATIONS = 6  # drawn while they are made; all of them when they are complete


def status_text(update: WaysUpdate, language: str) -> str:
    """One sentence on what is going on, or how it ended."""
    if update.problem is not None:
        return t(language, update.problem.key, **update.problem.values)
    if update.stage == "retrieving":
        return t(language, "chat.retrieving")
    if update.stage == "waiting":
        return t(language, "chat.waiting", ahead=update.ahead) if update.ahead else ""
    if update.stopped:
        return t(language, "ways.stopped")
    if update.stage == "writing" and update.writing is not None:
        name = t(language, _name(update.writing))
        return t(language, "ways.writing", number=NUMBER[update.writing], name=name)
    return t(language, "ways.done", passes=sum(run.passes for run in _runs(update)))


def card_html(card: str, update: WaysUpdate, language: str) -> str:
    """One of `CARDS` as far as it is written; nothing before the first question."""
    if update.prompt is None:
        return ""
    if card == "parallel":
        return _parallel_html(update, language)
    run = update.plain if card == "plain" else update.retrieved
    if card == "template":
        return _template_html(update, language)
    sizes = _sizes(run, language)
    if card == "retrieved" and run is not None:
        sizes.insert(0, t(language, "ways.passages", count=len(update.prompt.used)))
    method = h(language, f"ways.{card}_method")
    if card == "retrieved" and not update.prompt.used:
        method = h(language, "ways.nothing_relevant")
    body = _text_html(run, update.writing == card) + _facts_html(run, language)
    if card == "retrieved" and update.retrieval is not None:
        body += scope(update.retrieval, len(update.prompt.used), update.question, language)
    return _card(card, sizes, method, body, language, update)


def being_written(update: WaysUpdate) -> str:
    """The text that is being written now and only grows, to be read out by the sentence.

    Guesses of the parallel way change with every pass, so nothing is read of them on the way.
    """
    runs = {"plain": update.plain, "retrieved": update.retrieved, "template": update.template}
    run = runs.get(update.writing or "")
    return run.text if run is not None else ""


def agreement_text(update: WaysUpdate, language: str) -> str:
    """How the Jacobi text compares with the greedy one: computed from the two, never assumed."""
    same = update.jacobi_is_greedy
    if same is None or update.plain is None or update.jacobi is None:
        return ""
    if same:
        return t(
            language,
            "ways.equal",
            count=update.jacobi.tokens,
            passes=update.jacobi.passes,
            greedy=update.plain.passes,
        )
    at = update.parting or 0
    text = t(language, "ways.differ", number=at + 1, precision=update.precision)
    if at < len(update.plain.rivals):
        chosen, rival = (f"{100 * share:.1f} %" for share in update.plain.rivals[at])
        text += " " + t(language, "ways.rivals", chosen=chosen, rival=rival)
    return text


def iterations_html(update: WaysUpdate, language: str) -> str:
    """The passes as rows: what is final, what changed in this one, what is open."""
    if not update.iterations:
        return ""
    writing = update.writing == "jacobi"
    shown = update.iterations[-LAST_ITERATIONS:] if writing else update.iterations
    rows = "".join(_row(iteration, language) for iteration in shown)
    key = "".join(
        f'<i class="it-{state}">{h(language, f"ways.key_{state}")}</i>'
        for state in ("final", "changed", "open")
    )
    label = h(language, "ways.iterations")
    return (
        f'<div class="ways-key">{key}</div><ol class="iterations" role="list" tabindex="0" '
        f'aria-label="{label}" translate="no">{rows}</ol>'
    )


def pieces_html(update: WaysUpdate, language: str) -> str:
    """The form: fixed text in ink, slots marked as the model's."""
    html = ""
    for piece in update.pieces:
        text = escape(piece.text)
        if piece.slot is None:
            html += text
        else:
            title = h(language, "ways.slot", name=piece.slot)
            html += f'<span class="form-slot" title="{title}">{text}</span>'
    return html


def _parallel_html(update: WaysUpdate, language: str) -> str:
    shot, jacobi = update.one_shot, update.jacobi
    count = shot.tokens if shot is not None else update.config.max_new_tokens
    agreeing = _agreeing_text(update, language)
    # All of its positions are on view: line breaks too, which would only make it tall.
    shot_html = _text_html(shot and replace(shot, text=visible(shot.text)), False)
    body = (
        f'<div class="ways-part"><h4>{h(language, "ways.one_shot")} '
        f"<small>{h(language, 'ways.one_shot_method', count=count)}</small></h4>"
        f"{shot_html}{_facts_html(shot, language)}"
        f'<p class="finding">{escape(agreeing)}</p></div>'
        f'<div class="ways-part"><h4>{h(language, "ways.jacobi")} '
        f"<small>{h(language, 'ways.jacobi_method')}</small></h4>"
        f"{_text_html(jacobi, update.writing == 'jacobi')}{_facts_html(jacobi, language)}"
        f'<p class="finding">{escape(agreement_text(update, language))}</p></div>'
        f'<div class="ways-whole">{iterations_html(update, language)}</div>'
    )
    method = h(language, "ways.parallel_method")
    return _card("parallel", _sizes(shot, language), method, body, language, update)


def _template_html(update: WaysUpdate, language: str) -> str:
    run = update.template
    if run is None:
        body = f'<p class="hint">{h(language, "ways.waits")}</p>'
    else:
        key = (
            f'<i class="it-fixed">{h(language, "ways.fixed")}</i>'
            f'<i class="form-slot">{h(language, "ways.slots")}</i>'
        )
        body = (
            f'<div class="ways-text form-text" dir="auto">{pieces_html(update, language)}</div>'
            f'{_facts_html(run, language)}<div class="ways-key">{key}</div>'
        )
    method = h(language, "ways.template_method")
    return _card("template", _sizes(run, language), method, body, language, update)


def _agreeing_text(update: WaysUpdate, language: str) -> str:
    if update.agreeing is None or update.one_shot is None:
        return ""
    count = update.one_shot.tokens
    return t(language, "ways.agree", of=count, agreeing=update.agreeing)


def _row(iteration: Iteration, language: str) -> str:
    def state(index: int) -> str:
        if index < iteration.final:
            return "final"
        return "changed" if index in iteration.changed else "open"

    items = ""
    for kind, indices in groupby(range(len(iteration.texts)), state):
        texts = [escape(visible(iteration.texts[index])) for index in indices]
        # Final tokens are of no more interest one by one; those that changed are.
        texts = texts if kind == "changed" else ["".join(texts)]
        items += "".join(f'<span class="it-{kind}">{text}</span>' for text in texts if text)
    label = h(language, "ways.iteration", number=iteration.number)
    figure = f"{iteration.final}/{len(iteration.texts)}"
    return f"<li><small>{label} · {figure}</small><span>{items}</span></li>"


def _card(
    card: str, sizes: list[str], method: str, body: str, language: str, update: WaysUpdate
) -> str:
    busy = "true" if update.stage != "done" and _active(update) == card else "false"
    name = h(language, _name(card))
    number = CARDS.index(card) + 1
    return (
        f'<section class="card way {card}" data-way="{card}" aria-label="{number} {name}" '
        f'aria-busy="{busy}"><h3><b>{number}</b> {name} '
        f"<small>{escape(' · '.join(sizes))}</small></h3>"
        f'<p class="hint">{method}</p>{body}</section>'
    )


def _active(update: WaysUpdate) -> str | None:
    return "parallel" if update.writing in ("one_shot", "jacobi") else update.writing


def _name(way: str) -> str:
    return "ways.template_title" if way == "template" else f"ways.{way}"


def _sizes(run: Written | None, language: str) -> list[str]:
    return [] if run is None else [t(language, "ways.tokens_in", count=f"{run.prompt_tokens:,}")]


def _text_html(run: Written | None, writing: bool) -> str:
    if run is None:
        return '<div class="ways-text"></div>'
    cursor = '<span class="cursor" aria-hidden="true"></span>' if writing else ""
    return f'<div class="ways-text" dir="auto">{escape(run.text.rstrip())}{cursor}</div>'


def _facts_html(run: Written | None, language: str) -> str:
    """What it took, each figure measured in this run."""
    if run is None:
        return f'<p class="ending"><span>{h(language, "ways.waits")}</span></p>'
    facts = [
        t(language, "ways.passes", count=run.passes),
        t(language, _ending_key(run), count=run.tokens),
        t(language, "ways.seconds", seconds=f"{run.seconds:.2f}"),
    ]
    first, *others = (escape(fact) for fact in facts)
    rest = "".join(f"<span>{fact}</span>" for fact in others)
    return f'<p class="ending"><strong>{first}</strong>{rest}</p>'


def _ending_key(run: Written) -> str:
    if run.rivals and run.finish_reason in (FinishReason.LENGTH, FinishReason.CONTEXT_FULL):
        return "ways.tokens_cut"
    return "ways.tokens_out"


def _runs(update: WaysUpdate) -> list[Written]:
    runs = (update.plain, update.retrieved, update.one_shot, update.jacobi, update.template)
    return [run for run in runs if run is not None]
