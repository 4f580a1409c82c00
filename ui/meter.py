"""What fills the model's context window, counted from the prompt that was sent; a thin bar.

Pure functions; knows a token counter as a callable and no model. The total is exact. The parts are
counted one by one; what is left over (our instructions and the chat markup) belongs to "system".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from rag.prompt import Prompt
from ui.i18n import t


@dataclass(frozen=True)
class ContextUse:
    """Tokens of each part; `room` is what the answer may use, `limit` the model's window.

    `each_passage` has the tokens of every passage by its id, those that did not fit too;
    `history_dropped` those of the earlier messages that did not.
    """

    system: int
    passages: int
    history: int
    question: int
    room: int
    limit: int
    each_passage: Mapping[int, int] = field(default_factory=dict)
    history_dropped: int = 0

    @property
    def free(self) -> int:
        """What is left of the window beside the prompt and the room for the answer."""
        return max(0, self.limit - self.room - self.used)

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
    dropped, kept = history[: prompt.history_dropped], history[prompt.history_dropped :]
    each_passage = {p.passage_id: count(p.text) for p in (*prompt.used, *prompt.dropped)}
    asked = min(count(question), prompt.tokens)
    passages = sum(each_passage[p.passage_id] for p in prompt.used)
    passages = min(passages, prompt.tokens - asked)
    earlier = min(sum(count(m["content"]) for m in kept), prompt.tokens - asked - passages)
    return ContextUse(
        system=prompt.tokens - asked - passages - earlier,
        passages=passages,
        history=earlier,
        question=asked,
        room=room,
        limit=limit,
        each_passage=each_passage,
        history_dropped=sum(count(m["content"]) for m in dropped),
    )


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
