"""The passages behind an answer as escaped HTML, and what in them supports it.

Pure functions from rag's plain data to strings. Everything read from a document (text, headings,
file names) is escaped; nothing in it is ever markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from rag.citations import Support, link_citations
from rag.evidence import Span
from rag.prompt import Prompt
from rag.retrieved import Dropped, Retrieval, RetrievedPassage
from rag.terms import has_han
from ui.i18n import h, t
from ui.meter import ContextUse
from ui.prompt_view import place, prompt_view
from ui.search_view import scope, searched_for
from ui.turns import Turn
from ui.why_view import fate, percent, why_these

EXCERPT = 220  # characters shown of a passage, around what supports the answer; of Chinese, half


def panel(turn: Turn | None, number: int, language: str) -> str:
    """The right side for one turn; `number` says which turn, so that citations find it."""
    if turn is None:
        return _empty("passages.empty", language)
    update = turn.update
    if update.retrieval is None:
        body = _empty("passages.off", language) if turn.done else ""
        return body + (prompt_view(update.prompt, language) if update.prompt else "")
    searched = searched_for(update.search, language)
    if not update.retrieval.considered:
        return searched + _empty("passages.no_documents", language)
    used = update.prompt.used if update.prompt else ()
    parts = [
        searched,
        _title(update.retrieval, used, update.prompt is not None, language),
        scope(update.retrieval, len(used), turn.question, language),
        *passage_cards(used, update.text, turn.supports, update.retrieval, language, turn.done),
    ]
    parts += _left_out(update.retrieval, update.prompt, turn.context, language)
    parts.append(why_these(update.retrieval, language, update.prompt, turn.context))
    if update.prompt is not None:
        parts.append(prompt_view(update.prompt, language))
    return f'<div class="passages" data-turn="{number}">{"".join(parts)}</div>'


def cited_numbers(answer: str, count: int) -> set[int]:
    """Which of the passages 1..count the answer points at."""
    return {s.citation for s in link_citations(answer, count) if s.citation is not None}


def passage_cards(
    used: Sequence[RetrievedPassage],
    answer: str,
    supports: Iterable[Support],
    retrieval: Retrieval,
    language: str,
    done: bool,
) -> list[str]:
    """A card for each passage of the prompt; once `done`, those nothing points at stand back.

    Marked is what stands behind the answer, or else what fits the question.
    """
    spans: dict[int, set[Span]] = {}
    for support in supports:
        spans.setdefault(support.citation, set()).add(support.span)
    pointed_at = cited_numbers(answer, len(used)) | set(spans)
    cards = []
    for number, passage in enumerate(used, start=1):
        question_span = {passage.highlight} if passage.highlight else set()
        marks = sorted(spans.get(number, question_span))
        aside = done and number not in pointed_at
        cards.append(passage_card(passage, number, language, retrieval, marks, aside))
    return cards


def passage_card(
    passage: RetrievedPassage,
    number: int,
    language: str,
    retrieval: Retrieval,
    marks: Sequence[Span] = (),
    aside: bool = False,
) -> str:
    """A passage of the prompt, its supporting parts marked; `aside` when nothing points at it."""
    text, rest = passage.text, ""
    start, end = window(text, marks)
    if end - start < len(text.strip()):
        rest = (
            f"<details><summary>{h(language, 'passages.whole')}</summary>"
            f'<p class="text" dir="auto">{_marked(text, marks, 0, len(text))}</p></details>'
        )
    shown = re.sub(r"\n\s*\n", "\n", _marked(text, marks, start, end).strip())
    before = "… " if start > _after_headings(text) else ""
    after = " …" if end < len(text.rstrip()) else ""
    note = f'<p class="aside">{h(language, "passages.not_cited")}</p>' if aside else ""
    label = h(language, "passages.cite_label", number=number, document=passage.document)
    return (
        f'<section class="card passage{" quiet-card" if aside else ""}" '
        f'data-passage="{number}" tabindex="-1" aria-label="{label}">'
        f'<header><span class="number">{number}</span>{_name(passage)}'
        f"{_page(passage, language)}</header>{_heading(passage)}"
        f'<p class="text" dir="auto">{before}{shown}{after}</p>{rest}{note}'
        f"{_bar(passage, retrieval, language)}</section>"
    )


def window(text: str, marks: Sequence[Span]) -> Span:
    """Which part of a passage to show: the first mark whole, with some text around it.

    It begins at a word, and after the headings, which stand above the text anyway.
    """
    beginning = _after_headings(text)
    first, last = marks[0] if marks else (beginning, beginning)
    room = max(0, (EXCERPT // 2 if has_han(text) else EXCERPT) - (last - first))
    start = max(min(beginning, first), first - room // 3)
    if beginning < start < first and not has_han(text):
        start = text.find(" ", start, first) + 1 or first
    end = min(len(text), last + room - (first - start))
    return start, end


def _marked(text: str, marks: Sequence[Span], start: int, end: int) -> str:
    """`text[start:end]` escaped, with the marks in it; marks are in order and do not overlap."""
    html, at = "", start
    for left, right in marks:
        left, right = max(at, left), min(right, end)
        if left < right:
            html += f"{escape(text[at:left])}<mark>{escape(text[left:right])}</mark>"
            at = right
    return html + escape(text[at:end])


def _after_headings(text: str) -> int:
    """Where the text begins behind Markdown headings; 0 if there is nothing else."""
    match = re.match(r"(?:#{1,6} [^\n]*\n|\s*\n)*", text)
    return match.end() if match and text[match.end() :].strip() else 0


def share(passage: RetrievedPassage, retrieval: Retrieval) -> float:
    """Length of a bar, 0..1: the probability, with the threshold in the middle."""
    above = passage.probability - retrieval.threshold
    room = 1 - retrieval.threshold if above > 0 else retrieval.threshold
    return max(0.04, 0.5 + 0.5 * above / room)


def _title(
    retrieval: Retrieval, used: Sequence[RetrievedPassage], prompted: bool, language: str
) -> str:
    if prompted and used:
        found = len(retrieval.passages) + len(retrieval.rejected)
        words = t(language, "passages.title", used=len(used), found=found)
    else:
        words = t(language, "passages.title_none")
    return f'<h3 class="label">{escape(words)}</h3>'


def _left_out(
    retrieval: Retrieval, prompt: Prompt | None, context: ContextUse | None, language: str
) -> list[str]:
    """Passages that the model did not get, each with the reason."""
    if prompt is None:
        return []

    def names(passages: Sequence[RetrievedPassage]) -> str:
        lines = (
            f"<li>{_name(p)} <span>{escape(place(p, language))}</span>"
            f"<small>{escape(fate(p, prompt, context, language))}</small></li>"
            for p in passages
        )
        return f'<ul class="names">{"".join(lines)}</ul>'

    if not retrieval.relevant:
        words = f'<p class="hint">{h(language, "passages.none_relevant")}</p>'
        return [words, names(retrieval.rejected)]
    far = [p for p in retrieval.rejected if p.dropped in (None, Dropped.BELOW_THRESHOLD)]
    aside = [p for p in retrieval.rejected if p not in far]
    groups = (("dropped", prompt.dropped), ("too_far", far), ("set_aside", aside))
    left_out = []
    for key, passages in groups:
        if passages:
            words = h(language, f"passages.{key}", count=len(passages))
            left_out.append(
                f'<details class="left-{key}"><summary>{words}</summary>{names(passages)}</details>'
            )
    return left_out


def _bar(passage: RetrievedPassage, retrieval: Retrieval, language: str) -> str:
    numbers = {
        "score": percent(passage.probability),
        "threshold": percent(retrieval.threshold),
    }
    label = h(language, "passages.bar", **numbers)
    width = 100 * share(passage, retrieval)
    return (
        f'<div class="bar" role="img" aria-label="{label}" title="{label}">'
        f'<i style="width:{width:.0f}%"></i></div>'
    )


def _name(passage: RetrievedPassage) -> str:
    name = escape(passage.document)
    return f'<bdi class="name" title="{name}">{name}</bdi>'


def _page(passage: RetrievedPassage, language: str) -> str:
    if passage.page is None:
        return ""
    return f'<span class="place">{h(language, "passages.page", page=passage.page)}</span>'


def _heading(passage: RetrievedPassage) -> str:
    if not passage.heading:
        return ""
    whole = escape(" › ".join(passage.heading))
    return f'<p class="heading" dir="auto" title="{whole}">{escape(passage.heading[-1])}</p>'


def _empty(key: str, language: str) -> str:
    return (
        f'<h3 class="label">{h(language, "passages.title_none")}</h3>'
        f'<p class="hint">{h(language, key)}</p>'
    )
