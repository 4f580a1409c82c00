"""Why these passages: every number that chose them or left them out, as escaped HTML.

Pure functions from `rag.retrieved.Retrieval` to strings. Each passage is a group of rows in one
table, which therefore reads in a narrow column too; what each number means stands below in words.
"""

from __future__ import annotations

from html import escape

from rag.prompt import Prompt
from rag.retrieved import Retrieval, RetrievedPassage, Signal
from ui.i18n import h, known, t
from ui.meter import ContextUse
from ui.prompt_view import place

COLUMNS = ("meaning", "words", "fused", "probability")


def why_these(
    retrieval: Retrieval,
    language: str,
    prompt: Prompt | None = None,
    context: ContextUse | None = None,
) -> str:
    """The ranks, scores and threshold of each passage, and what became of it.

    `prompt` says which passages were given to the model, `context` how many tokens they took.
    """
    found = _in_order(retrieval)
    text = h(
        language,
        "why.text",
        considered=f"{retrieval.considered:,}",
        looked=len(found),
        milliseconds=f"{1000 * retrieval.seconds:.0f}",
    )
    groups = "".join(_group(p, retrieval, prompt, context, language) for p in found)
    columns = [*COLUMNS, *(["rerank"] if _reranked(retrieval) else [])]
    head = "".join(f'<th scope="col">{h(language, f"why.{name}")}</th>' for name in columns)
    table = f"<table><thead><tr>{head}</tr></thead>{groups}</table>" if found else ""
    meanings = "".join(
        f"<dt>{h(language, f'why.{name}')}</dt><dd>{h(language, f'why.{name}_means')}</dd>"
        for name in columns
    )
    return (
        f'<details class="why"><summary>{h(language, "passages.why")}</summary>'
        f"<p>{text}</p>{_verdict(retrieval, language)}{_history(prompt, context, language)}{table}"
        f"<dl>{meanings if found else ''}</dl>"
        f"<p>{h(language, 'passages.why_limit')}</p></details>"
    )


def percent(probability: float) -> str:
    """Whole percent, but never 100 or 0 for what is not certain."""
    return (
        f"{min(99.9, max(0.1, 100 * probability)):.{0 if 1 <= 100 * probability <= 99 else 1}f} %"
    )


def fate(
    passage: RetrievedPassage, prompt: Prompt | None, context: ContextUse | None, language: str
) -> str:
    """What became of a passage that was found, with the reason and its tokens where known."""
    tokens = context.each_passage.get(passage.passage_id) if context else None
    if prompt is not None:
        ids = [used.passage_id for used in prompt.used]
        if passage.passage_id in ids:
            key = "fate.used" if tokens is not None else "fate.used_uncounted"
            number = ids.index(passage.passage_id) + 1
            return t(language, key, number=number, tokens=f"{tokens or 0:,}")
        if passage.passage_id in [dropped.passage_id for dropped in prompt.dropped]:
            if tokens is None or context is None:
                return t(language, "fate.no_room_uncounted")
            return t(language, "fate.no_room", tokens=f"{tokens:,}", free=f"{context.free:,}")
    if passage.dropped is None:
        return ""
    return t(language, f"fate.{passage.dropped.value}")


def _in_order(retrieval: Retrieval) -> list[RetrievedPassage]:
    return [*retrieval.passages, *retrieval.rejected]


def _reranked(retrieval: Retrieval) -> bool:
    return any(p.rerank_score is not None for p in _in_order(retrieval))


def _group(
    passage: RetrievedPassage,
    retrieval: Retrieval,
    prompt: Prompt | None,
    context: ContextUse | None,
    language: str,
) -> str:
    """The rows of one passage: its name, its numbers, what became of it."""
    cells = [
        _ranked(passage.dense_rank, passage.dense_score, language),
        _ranked(passage.lexical_rank, passage.lexical_score, language),
        _ranked(passage.rank or None, passage.score, language),
        f"<b>{percent(passage.probability)}</b>",
    ]
    if _reranked(retrieval):
        score = passage.rerank_score
        cells.append("–" if score is None else f"{score:.3f}")
    where = escape(place(passage, language))
    name = f"<bdi>{escape(passage.document)}</bdi> <small>{where}</small>"
    kept = passage.dropped is None
    said = [fate(passage, prompt, context, language)]
    if passage.joined:
        said.append(t(language, "why.joined", count=len(passage.joined)))
    words = "".join(f"<span>{escape(text)}</span>" for text in said if text)
    return (
        f'<tbody class="{"kept" if kept else "left"}">'
        f'<tr><th scope="rowgroup" colspan="{len(cells)}">{name}</th></tr>'
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        f'<tr><td class="fate" colspan="{len(cells)}">{words}'
        f"{_signals(passage, language)}</td></tr></tbody>"
    )


def _signals(passage: RetrievedPassage, language: str) -> str:
    """How the probability comes about: what each signal adds to the log-odds."""
    if not passage.signals:
        return ""
    rows = ""
    for signal in passage.signals:
        numbers = (f"{signal.value:.3f}", f"{signal.neutral:.3f}", f"{signal.weight:g}")
        cells = (*map(_minus, numbers), _signed(signal.contribution))
        rows += f'<tr><th colspan="4">{escape(_name(signal, language))}</th></tr>'
        rows += f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    total = sum(signal.contribution for signal in passage.signals)
    head = "".join(
        f'<th scope="col">{h(language, f"why.signal_{column}")}</th>'
        for column in ("value", "neutral", "weight", "adds")
    )
    said = h(
        language, "why.log_odds", total=_signed(total), probability=percent(passage.probability)
    )
    return (
        f'<details class="signals" data-passage="{passage.passage_id}">'
        f"<summary>{h(language, 'why.signals')}</summary><p>{said}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _name(signal: Signal, language: str) -> str:
    key = f"signal.{signal.name.replace(' ', '_')}"
    return t(language, key) if known(key) else signal.name


def _signed(number: float) -> str:
    return _minus(f"{number:+.2f}")


def _minus(number: str) -> str:
    return number.replace("-", "−")


def _verdict(retrieval: Retrieval, language: str) -> str:
    """The probability that decides whether anything is relevant, beside its threshold."""
    found = _in_order(retrieval)
    if not found:
        return ""
    best = max(found, key=lambda passage: passage.probability)
    numbers = {"value": percent(best.probability), "threshold": percent(retrieval.threshold)}
    key = "passages.relevant" if retrieval.relevant else "passages.irrelevant"
    return f"<p>{h(language, key, **numbers)}</p>"


def _history(prompt: Prompt | None, context: ContextUse | None, language: str) -> str:
    """Earlier messages that the model was not given, because there was no room for them."""
    if prompt is None or not prompt.history_dropped:
        return ""
    tokens = f"{context.history_dropped:,}" if context else "?"
    said = h(language, "fate.history", count=prompt.history_dropped, tokens=tokens)
    return f"<p>{said}</p>"


def _ranked(rank: int | None, score: float, language: str) -> str:
    if rank is None:
        return f'<span title="{h(language, "why.not_found")}">–</span><small>{score:.3f}</small>'
    return f"{h(language, 'passages.rank', rank=rank)}<small>{score:.3f}</small>"
