"""Tokens as escaped HTML: shaded by probability, marked where two answers part, with a table twin.

Pure functions from `generation.decoding.Step`s to strings. Knows nothing of Gradio or models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Protocol

from ui.i18n import h, t


class Token(Protocol):
    """What a token view needs; `Step` and `TokenScore` both have it."""

    @property
    def text(self) -> str: ...
    @property
    def logprob(self) -> float: ...
    @property
    def rank(self) -> int: ...


# Lower bounds of probability for the shades 0 (no surprise) to 4; anything below is shade 5.
SHADES = (0.9, 0.7, 0.45, 0.2, 0.05)

_MARKS = {"\n": "↵", "\r": "␍", "\t": "⇥"}


def shade(logprob: float) -> int:
    """0 for an expected token up to 5 for a surprising one: one rose scale for the whole app."""
    probability = math.exp(min(0.0, logprob))
    return next((level for level, bound in enumerate(SHADES) if probability >= bound), len(SHADES))


def probability_text(logprob: float) -> str:
    """A probability with as many digits as mean something: ``62 %``, ``0.31 %``, ``< 0.01 %``."""
    percent = 100 * math.exp(min(0.0, logprob))
    if percent >= 99.95:
        return "100 %"
    if percent >= 10:
        return f"{percent:.0f} %"
    if percent >= 1:
        return f"{percent:.1f} %"
    return f"{percent:.2f} %" if percent >= 0.01 else "< 0.01 %"


def visible(text: str) -> str:
    """Token text with its line breaks and other invisible characters drawn; not escaped yet."""
    return "".join(_MARKS.get(c, c if c.isprintable() else f"⟨{ord(c):04X}⟩") for c in text)


def divergence_mark(language: str) -> str:
    """The red bar before the first token in which two answers differ; said as well as shown."""
    label = h(language, "tokens.divergence")
    return f'<span class="diverge" role="img" aria-label="{label}" title="{label}"></span>'


def tokens_html(
    tokens: Sequence[Token], language: str = "en", divergence: int | None = None
) -> str:
    """The tokens in a row, shaded by probability, with text, probability and rank in each title.

    `divergence` is the index before which the bar is drawn; an index past the end draws none.
    """
    items = []
    for index, token in enumerate(tokens):
        title = escape(_title(token, language))
        mark = divergence_mark(language) if index == divergence else ""
        breaks = "<br>" * min(2, token.text.count("\n"))
        items.append(
            f'{mark}<span class="tok shade-{shade(token.logprob)}" role="listitem" '
            f'title="{title}">{escape(visible(token.text))}</span>{breaks}'
        )
    label = h(language, "tokens.label", count=len(tokens))
    return (
        f'<div class="tokens" role="list" aria-label="{label}" translate="no">'
        + "".join(items)
        + "</div>"
    )


def legend_html(language: str = "en") -> str:
    """The scale in words and boxes, so that the shading can be read without guessing."""
    boxes = "".join(f'<i class="shade-{level}"></i>' for level in range(len(SHADES) + 1))
    return (
        f'<div class="shades"><span>{h(language, "tokens.expected")}</span>'
        f'<span class="scale" aria-hidden="true">{boxes}</span>'
        f"<span>{h(language, 'tokens.surprising')}</span></div>"
    )


def token_table(
    tokens: Sequence[Token], language: str = "en", divergence: int | None = None
) -> str:
    """The same figures as a table in a closed `details`: for readers and for screen readers."""
    rows = []
    for index, token in enumerate(tokens):
        note = t(language, "tokens.divergence") if index == divergence else ""
        rows.append(
            f"<tr><td>{index + 1}</td><td><code>{escape(visible(token.text))}</code></td>"
            f"<td>{escape(probability_text(token.logprob))}</td><td>{token.logprob:.2f}</td>"
            f"<td>{token.rank}</td><td>{escape(note)}</td></tr>"
        )
    heads = ("position", "token", "probability", "logprob", "rank", "note")
    header = "".join(f'<th scope="col">{h(language, f"tokens.{key}")}</th>' for key in heads)
    return (
        f'<details class="token-table"><summary>{h(language, "tokens.table")}</summary>'
        f'<div class="scroll"><table translate="no"><thead><tr>{header}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def token_panel(
    tokens: Sequence[Token], language: str = "en", divergence: int | None = None
) -> str:
    """Shaded tokens, their scale and the table: what opens under an answer."""
    return (
        tokens_html(tokens, language, divergence)
        + legend_html(language)
        + token_table(tokens, language, divergence)
    )


def mean_logprob(tokens: Sequence[Token]) -> float | None:
    """Mean natural log-probability under the model, or None without tokens."""
    return sum(token.logprob for token in tokens) / len(tokens) if tokens else None


def _title(token: Token, language: str) -> str:
    return t(
        language,
        "tokens.title",
        token=visible(token.text),
        probability=probability_text(token.logprob),
        rank=token.rank,
    )
