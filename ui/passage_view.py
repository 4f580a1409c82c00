"""The passages behind an answer as escaped HTML: what supports it, and why these.

Pure functions from rag's plain data to strings. Everything read from a document (text, headings,
file names) is escaped; nothing in it is ever markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from rag.citations import link_citations
from rag.prompt import Prompt
from rag.retriever import Retrieval, RetrievedPassage
from rag.terms import has_han
from ui.i18n import h, t
from ui.prompt_view import place, prompt_view
from ui.turns import Turn

EXCERPT = 220  # characters shown of a passage, around what supports the answer; of Chinese, half
LEAST_SPAN = 0.05  # of score between threshold and full bar, so that bars do not exaggerate


def panel(turn: Turn | None, number: int, language: str) -> str:
    """The right side for one turn; `number` says which turn, so that citations find it."""
    if turn is None:
        return _empty("passages.empty", language)
    update = turn.update
    if update.retrieval is None:
        body = _empty("passages.off", language) if turn.done else ""
        return body + (prompt_view(update.prompt, language) if update.prompt else "")
    if not update.retrieval.considered:
        return _empty("passages.no_documents", language)
    used = update.prompt.used if update.prompt else ()
    spans = {support.citation: support.span for support in turn.supports}
    cited = cited_numbers(update.text, len(used)) | set(spans)
    parts = [_title(update.retrieval, used, update.prompt is not None, language)]
    for n, passage in enumerate(used, start=1):
        marked = replace(passage, highlight=spans.get(n, passage.highlight))
        aside = turn.done and n not in cited
        parts.append(passage_card(marked, n, language, update.retrieval, aside))
    parts += _left_out(update.retrieval, update.prompt, language)
    parts.append(why_these(update.retrieval, language))
    if update.prompt is not None:
        parts.append(prompt_view(update.prompt, language))
    return f'<div class="passages" data-turn="{number}">{"".join(parts)}</div>'


def cited_numbers(answer: str, count: int) -> set[int]:
    """Which of the passages 1..count the answer points at."""
    return {s.citation for s in link_citations(answer, count) if s.citation is not None}


def passage_card(
    passage: RetrievedPassage,
    number: int,
    language: str,
    retrieval: Retrieval,
    aside: bool = False,
) -> str:
    """A passage of the prompt, its supporting part marked; `aside` when nothing points at it."""
    before, marked, after = excerpt(passage.text, passage.highlight)
    body = escape(before) + (f"<mark>{escape(marked)}</mark>" if marked else "") + escape(after)
    rest = ""
    if len(before + marked + after) < len(passage.text):
        whole = _marked(passage.text, passage.highlight)
        rest = (
            f"<details><summary>{h(language, 'passages.whole')}</summary>"
            f'<p class="text" dir="auto">{whole}</p></details>'
        )
    note = "" if not aside else f'<p class="aside">{h(language, "passages.not_cited")}</p>'
    classes = "card passage" + (" quiet-card" if aside else "")
    label = h(language, "passages.cite_label", number=number, document=passage.document)
    return (
        f'<section class="{classes}" data-passage="{number}" tabindex="-1" aria-label="{label}">'
        f'<header><span class="number">{number}</span>{_name(passage)}'
        f"{_page(passage, language)}</header>{_heading(passage)}"
        f'<p class="text" dir="auto">{body}</p>{rest}{note}'
        f"{_bar(passage, retrieval, language)}</section>"
    )


def excerpt(text: str, highlight: tuple[int, int] | None) -> tuple[str, str, str]:
    """What to show of a passage: before, the supporting span, after; cut ends carry an ellipsis.

    Without a span it begins after the headings, which stand above it anyway.
    """
    beginning = _after_headings(text)
    start, end = highlight or (beginning, beginning)
    room = max(0, (EXCERPT // 2 if has_han(text) else EXCERPT) - (end - start))
    first = max(0, start - room // 3) if highlight else start
    last = min(len(text), end + room - (start - first))
    before = ("… " if first > beginning else "") + text[first:start].lstrip()
    after = text[end:last].rstrip() + (" …" if last < len(text) else "")
    return _compact(before), text[start:end], _compact(after)


def _compact(text: str) -> str:
    return re.sub(r"\n\s*\n", "\n", text)


def _after_headings(text: str) -> int:
    """Where the text begins behind Markdown headings; 0 if there is nothing else."""
    match = re.match(r"(?:#{1,6} [^\n]*\n|\s*\n)*", text)
    return match.end() if match and text[match.end() :].strip() else 0


def share(passage: RetrievedPassage, retrieval: Retrieval) -> float:
    """Length of a score bar, 0..1: the best passage fills it, the threshold is its middle."""
    best = max(p.score for p in retrieval.passages)
    span = max(best - retrieval.threshold, LEAST_SPAN)
    return min(1.0, max(0.04, 0.5 + 0.5 * (passage.score - retrieval.threshold) / span))


def why_these(retrieval: Retrieval, language: str) -> str:
    """The ranks and scores that chose the passages, and the threshold they were held to."""
    head = "".join(
        f"<th>{h(language, f'passages.col_{name}')}</th>"
        for name in ("passage", "fused", "meaning", "words")
    )
    rows = "".join(
        f"<tr><td>{escape(p.document)} <small>{escape(place(p, language))}</small></td>"
        f"<td>{p.score:.3f}</td><td>{_ranked(p.dense_rank, p.dense_score, language)}</td>"
        f"<td>{_ranked(p.lexical_rank, p.lexical_score, language)}</td></tr>"
        for p in (*retrieval.passages, *retrieval.rejected)
    )
    signals = "".join(
        f"<tr><td>{escape(name)}</td><td>{value:.3f}</td></tr>"
        for name, value in retrieval.signals.items()
    )
    text = t(
        language,
        "passages.why_text",
        considered=f"{retrieval.considered:,}",
        milliseconds=f"{1000 * retrieval.seconds:.0f}",
    )
    return (
        f'<details class="why"><summary>{h(language, "passages.why")}</summary>'
        f"<p>{escape(text)}</p>{_verdict(retrieval, language)}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<table><thead><tr><th>{h(language, 'passages.col_signal')}</th>"
        f"<th>{h(language, 'passages.col_value')}</th></tr></thead>"
        f"<tbody>{signals}</tbody></table>"
        f"<p>{h(language, 'passages.why_limit')}</p></details>"
    )


def _verdict(retrieval: Retrieval, language: str) -> str:
    """The number that decides whether anything is relevant, beside its threshold."""
    if "score" not in retrieval.signals:
        return ""
    numbers = {
        "value": f"{retrieval.signals['score']:.3f}",
        "threshold": f"{retrieval.threshold:.3f}",
    }
    key = "passages.relevant" if retrieval.relevant else "passages.irrelevant"
    return f"<p>{h(language, key, **numbers)}</p>"


def _title(
    retrieval: Retrieval, used: Sequence[RetrievedPassage], prompted: bool, language: str
) -> str:
    if prompted and used:
        found = len(retrieval.passages) + len(retrieval.rejected)
        words = t(language, "passages.title", used=len(used), found=found)
    else:
        words = t(language, "passages.title_none")
    return f'<h3 class="label">{escape(words)}</h3>'


def _left_out(retrieval: Retrieval, prompt: Prompt | None, language: str) -> list[str]:
    """Passages that the model did not get: they did not fit, or nothing was relevant."""
    if prompt is None:
        return []
    if not retrieval.relevant:
        sentence = f'<p class="hint">{h(language, "passages.none_relevant")}</p>'
        cards = [_left_out_card(p, "passages.not_given", language) for p in retrieval.rejected]
        return [sentence, *cards]
    return [
        *(_left_out_card(p, "passages.dropped", language) for p in prompt.dropped),
        *(_left_out_card(p, "passages.too_far", language) for p in retrieval.rejected),
    ]


def _left_out_card(passage: RetrievedPassage, reason: str, language: str) -> str:
    header = f"<header>{_name(passage)}{_page(passage, language)}</header>{_heading(passage)}"
    why = f'<p class="aside">{h(language, reason)}</p>'
    return f'<section class="card passage quiet-card">{header}{why}</section>'


def _bar(passage: RetrievedPassage, retrieval: Retrieval, language: str) -> str:
    numbers = {"score": f"{passage.score:.3f}", "threshold": f"{retrieval.threshold:.3f}"}
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


def _ranked(rank: int | None, score: float | None, language: str) -> str:
    if rank is None or score is None:
        return "–"
    return f"{h(language, 'passages.rank', rank=rank)} · {score:.3f}"


def _marked(text: str, highlight: tuple[int, int] | None) -> str:
    if highlight is None:
        return escape(text)
    start, end = highlight
    return f"{escape(text[:start])}<mark>{escape(text[start:end])}</mark>{escape(text[end:])}"


def _empty(key: str, language: str) -> str:
    return (
        f'<h3 class="label">{h(language, "passages.title_none")}</h3>'
        f'<p class="hint">{h(language, key)}</p>'
    )
