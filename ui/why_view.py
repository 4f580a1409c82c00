"""Why these passages: the two rankings, their fusion, and the threshold, as escaped HTML.

Pure functions from `rag.retriever.Retrieval` to strings.
"""

from __future__ import annotations

from html import escape

from rag.retriever import Retrieval
from ui.i18n import h, t
from ui.prompt_view import place


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
    found = (*retrieval.passages, *retrieval.rejected)
    if not found:
        return ""
    numbers = {
        "value": f"{found[0].probability:.3f}",
        "threshold": f"{retrieval.threshold:.3f}",
    }
    key = "passages.relevant" if retrieval.relevant else "passages.irrelevant"
    return f"<p>{h(language, key, **numbers)}</p>"


def _ranked(rank: int | None, score: float | None, language: str) -> str:
    if rank is None or score is None:
        return "–"
    return f"{h(language, 'passages.rank', rank=rank)} · {score:.3f}"
