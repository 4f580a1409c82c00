"""What fills the model's context window, counted from the prompt that was sent; a thin bar.

Pure functions; knows a token counter as a callable and no model. The total is exact. The parts are
counted one by one; what is left over (our instructions and the chat markup) belongs to "system".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from rag.prompt import Prompt
from ui.i18n import t


@dataclass(frozen=True)
class ContextUse:
    """Tokens of each part; `room` is what the answer may use, `limit` the model's window."""

    system: int
    passages: int
    history: int
    question: int
    room: int
    limit: int

    @property
    def used(self) -> int:
        return self.system + self.passages + self.history + self.question


def measure(
    prompt: Prompt,
    question: str,
    history: Sequence[dict[str, str]],
    count: Callable[[str], int],
    room: int,
    limit: int,
) -> ContextUse:
    """Split `prompt.tokens` into parts. `history` is what was offered, before any was dropped."""
    kept = history[prompt.history_dropped :]
    asked = min(count(question), prompt.tokens)
    passages = min(sum(count(p.text) for p in prompt.used), prompt.tokens - asked)
    earlier = min(sum(count(m["content"]) for m in kept), prompt.tokens - asked - passages)
    system = prompt.tokens - asked - passages - earlier
    return ContextUse(system, passages, earlier, asked, room, limit)


def meter(use: ContextUse | None, limit: int, language: str) -> str:
    """The bar with its legend; every part is also said in words."""
    use = use or ContextUse(0, 0, 0, 0, 0, limit)
    room = max(0, min(use.room, use.limit - use.used))
    parts = {
        "system": use.system,
        "passages": use.passages,
        "history": use.history,
        "question": use.question,
        "room": room,
    }
    names = {name: t(language, f"meter.{name}") for name in parts}
    words = "; ".join(f"{names[name]} {size:,}" for name, size in parts.items())
    bar = "".join(
        f'<i class="m-{name}" style="flex-basis:{100 * size / use.limit:.2f}%"></i>'
        for name, size in parts.items()
        if size
    )
    legend = "".join(
        f'<li><i class="m-{name}"></i>{escape(names[name])} <b>{size:,}</b></li>'
        for name, size in parts.items()
    )
    total = t(language, "meter.total", used=f"{use.used:,}", limit=f"{use.limit:,}")
    return (
        f'<details class="meter"><summary aria-label="{escape(total + ". " + words)}">'
        f'<span class="meter-bar">{bar}</span><span class="meter-total">{escape(total)}</span>'
        f'</summary><ul class="legend">{legend}</ul></details>'
    )
