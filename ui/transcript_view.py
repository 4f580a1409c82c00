"""A conversation as escaped HTML: questions, answers with citations, one quiet line of numbers.

Pure functions from `ui.turns` to strings. Buttons carry `data-act` and `data-turn`; what they do is
decided by the page that listens.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from generation.step import FinishReason
from ui import markdown
from ui.decoding_text import strategy_text
from ui.i18n import h, t
from ui.session import AnswerUpdate
from ui.token_view import token_panel
from ui.turns import Turn


def transcript(turns: Sequence[Turn], language: str, editing: int | None = None) -> str:
    """Finished turns before the last one, oldest first."""
    return "".join(
        turn_view(turn, number, language, editing == number, last=False)
        for number, turn in enumerate(turns)
    )


def welcome(language: str, notice: str | None = None) -> str:
    """What an empty conversation shows."""
    said = f'<p class="notice">{escape(notice)}</p>' if notice else ""
    title, text = t(language, "chat.welcome_title"), t(language, "chat.welcome")
    return f'<div class="welcome"><h2>{escape(title)}</h2><p>{escape(text)}</p>{said}</div>'


def turn_view(
    turn: Turn, number: int, language: str, editing: bool = False, last: bool = True
) -> str:
    """A question and its answer, finished or still being written; only the last can be retried."""
    tools = _button("edit", number, language) if turn.done else ""
    state = "" if turn.done else " running"
    return (
        f'<article class="turn{state}{" editing" if editing else ""}" data-turn="{number}">'
        f'<div class="ask"><h3 class="sr">{h(language, "chat.you")}</h3>'
        f'<div class="bubble">{escape(turn.question)}</div><div class="tools">{tools}</div></div>'
        f'<div class="reply"><h3 class="sr">{h(language, "chat.answer")}</h3>'
        f"{_notice(turn, language)}{_answer(turn, number, language)}"
        f"{_problem(turn.update, language)}{_ending(turn, number, language, last)}"
        f"{_tokens(turn, language)}</div></article>"
    )


def _tokens(turn: Turn, language: str) -> str:
    """Every token with its probability, to open; beams keep none."""
    if not turn.done or not turn.update.steps:
        return ""
    tokens = token_panel(turn.update.steps, language)
    return f"<details><summary>{h(language, 'tokens.show')}</summary>{tokens}</details>"


def notice_key(turn: Turn) -> str | None:
    """The sentence that says an answer has no passages behind it, when the person may not know."""
    retrieval = turn.update.retrieval
    if retrieval is None or retrieval.relevant:
        return None
    return "chat.nothing_relevant" if retrieval.considered else "chat.no_documents"


def _notice(turn: Turn, language: str) -> str:
    key = notice_key(turn)
    return f'<p class="notice">{h(language, key)}</p>' if key else ""


def _answer(turn: Turn, number: int, language: str) -> str:
    update = turn.update
    used = update.prompt.used if update.prompt else ()

    def cite(n: int, by_model: bool) -> str:
        key = "passages.cite_label" if by_model else "passages.support_label"
        label = h(language, key, number=n, document=used[n - 1].document)
        kind = "cite" if by_model else "cite found"
        return (
            f'<button type="button" class="{kind}" data-act="cite" data-turn="{number}" '
            f'data-passage="{n}" aria-label="{label}" title="{label}">{n}</button>'
        )

    writing = update.stage in ("reading", "writing")
    html = markdown.render(update.text, cite, len(used), language, turn.supports, cursor=writing)
    return f'<div class="answer" dir="auto">{html}</div>'


def _problem(update: AnswerUpdate, language: str) -> str:
    if update.problem is None:
        return ""
    sentence = t(language, update.problem.key, **update.problem.values)
    return f'<p class="problem" role="alert">{escape(sentence)}</p>'


def _ending(turn: Turn, number: int, language: str, last: bool) -> str:
    """The quiet line: how it ended or what it is doing, and the numbers of this run."""
    facts = [stage_words(turn.update, language), *_numbers(turn.update, language)]
    words = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    tools = ""
    if turn.done:
        passages = _button("show", number, language) if turn.update.retrieval else ""
        copy = (
            f'<button type="button" class="quiet" data-copy="answer">'
            f"{h(language, 'chat.copy')}</button>"
        )
        retry = _button("retry", number, language) if last else ""
        tools = f'<span class="tools">{passages}{copy}{retry}</span>'
    return f'<p class="ending">{words}{tools}</p>'


def stage_words(update: AnswerUpdate, language: str) -> str:
    """What is going on, or how it ended."""
    match update.stage:
        case "rewriting":
            return t(language, "chat.rewriting")
        case "retrieving":
            return t(language, "chat.retrieving")
        case "waiting":
            key = "chat.waiting" if update.ahead else "chat.waiting_next"
            return t(language, key, ahead=update.ahead)
        case "reading":
            tokens = update.prompt.tokens if update.prompt else 0
            return t(language, "chat.reading", tokens=f"{tokens:,}")
        case "writing":
            return t(language, "chat.writing", count=update.tokens)
    if update.problem is not None:
        return "⚠ " + t(language, "finish.error")
    reason = update.finish_reason or FinishReason.CANCELLED
    mark = {FinishReason.EOS: "✓ ", FinishReason.STOP_STRING: "✓ "}.get(reason, "■ ")
    return mark + t(language, f"finish.{reason.value}")


def _numbers(update: AnswerUpdate, language: str) -> list[str]:
    done = update.stage == "done"
    facts = [strategy_text(update.strategy, language)] if done and update.strategy else []
    if update.seconds.rewriting:
        facts.append(t(language, "chat.rewrote", seconds=f"{update.seconds.rewriting:.1f}"))
    if update.seconds.first_token:
        seconds = f"{update.seconds.first_token:.2f}"
        facts.append(t(language, "chat.first_token", seconds=seconds))
    if rate := update.tokens_per_second:
        facts.append(t(language, "chat.rate", rate=f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"))
    if done and update.tokens:
        facts.append(t(language, "chat.tokens", count=update.tokens))
    if done and update.prompt and update.prompt.history_dropped:
        facts.append(t(language, "chat.history_dropped", count=update.prompt.history_dropped))
    return facts


def _button(act: str, number: int, language: str) -> str:
    label = t(language, "chat.show_passages" if act == "show" else f"chat.{act}")
    return (
        f'<button type="button" class="quiet" data-act="{act}" data-turn="{number}">'
        f"{escape(label)}</button>"
    )
