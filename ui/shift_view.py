"""One answer scored under two prompts, as escaped HTML: which tokens the passages made likelier.

Pure functions from pairs of log-probabilities to strings; knows neither models nor Gradio. Amber is
likelier with the passages, slate likelier without; every figure is also in a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ui.i18n import h, t
from ui.token_view import visible

LEVELS = (0.1, 0.7, 2.3)  # nats: a tenth likelier, twice, ten times
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
TABLE_HEADS = ("position", "token", "with", "without", "delta")


class Shift(NamedTuple):
    """A token of the answer and its natural log-probability under each prompt."""

    text: str
    with_logprob: float
    without_logprob: float

    @property
    def delta(self) -> float:
        return self.with_logprob - self.without_logprob


def shift_html(shifts: Sequence[Shift], language: str) -> str:
    """The tokens shaded by how much the passages changed their probability, bars, and the sum."""
    if not shifts:
        return ""
    tokens = "".join(_token(shift, language) for shift in shifts)
    label = h(language, "shift.label", count=len(shifts))
    return (
        f'<section class="card shift"><h3>{h(language, "shift.title")} '
        f"<small>{h(language, 'shift.method')}</small></h3>"
        f'<div class="tokens" role="list" aria-label="{label}" translate="no">{tokens}</div>'
        f'{_bars(shifts)}<p class="ending"><span>{escape(sum_text(shifts, language))}</span>'
        f'<span><i class="key-with"></i>{h(language, "shift.likelier_with")}</span>'
        f'<span><i class="key-without"></i>{h(language, "shift.likelier_without")}</span></p>'
        f"{_table(shifts, language)}</section>"
    )


def sum_text(shifts: Sequence[Shift], language: str) -> str:
    """What the passages did to the probability of the whole answer, by the chain rule."""
    total = sum(shift.delta for shift in shifts)
    key = "shift.sum_likelier" if total >= 0 else "shift.sum_unlikelier"
    return t(language, key, total=signed(total), factor=factor(abs(total)))


def factor(nats: float) -> str:
    """exp(nats) as a person can take it in: ``7.4`` or, when it is vast, ``e³¹``."""
    return f"{math.exp(nats):,.1f}" if nats < 9 else "e" + f"{nats:.0f}".translate(SUPERSCRIPT)


def signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def level(delta: float) -> int:
    """0 for no change worth a colour, up to 3."""
    return sum(abs(delta) >= bound for bound in LEVELS)


def _token(shift: Shift, language: str) -> str:
    side = "with" if shift.delta >= 0 else "without"
    title = h(language, "shift.token", token=visible(shift.text), delta=signed(shift.delta))
    breaks = "<br>" * min(2, shift.text.count("\n"))
    return (
        f'<span class="tok {side}-{level(shift.delta)}" role="listitem" aria-label="{title}" '
        f'title="{title}">{escape(visible(shift.text))}</span>{breaks}'
    )


def _bars(shifts: Sequence[Shift]) -> str:
    """One bar a token, up for likelier with passages, down for likelier without, on one scale."""
    up = max(LEVELS[-1], *(shift.delta for shift in shifts))
    down = max(0.0, *(-shift.delta for shift in shifts))
    bars = "".join(
        f'<i class="{"up" if shift.delta >= 0 else "down"}" '
        f'style="--size:{abs(shift.delta) / (up + down):.3f}"></i>'
        for shift in shifts
    )
    zero = down / (up + down)
    return f'<div class="bars" style="--zero:{zero:.3f}" aria-hidden="true">{bars}</div>'


def _table(shifts: Sequence[Shift], language: str) -> str:
    heads = "".join(f'<th scope="col">{h(language, f"shift.col_{x}")}</th>' for x in TABLE_HEADS)
    rows = "".join(
        f"<tr><td>{number}</td><td><code>{escape(visible(shift.text))}</code></td>"
        f"<td>{shift.with_logprob:.2f}</td><td>{shift.without_logprob:.2f}</td>"
        f"<td>{signed(shift.delta)}</td></tr>"
        for number, shift in enumerate(shifts, start=1)
    )
    return (
        f'<details class="token-table"><summary>{h(language, "tokens.table")}</summary>'
        f'<div class="scroll"><table translate="no"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )
