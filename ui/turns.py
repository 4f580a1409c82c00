"""The conversations of one browser session, as plain immutable data kept in a `gr.State`.

Knows nothing of Gradio or HTML. Every change returns a new value, so that a half-finished event
never leaves a conversation half changed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace

from rag.citations import Support
from ui.meter import ContextUse
from ui.session import AnswerUpdate


@dataclass(frozen=True)
class Turn:
    """A question and what came of it."""

    question: str
    update: AnswerUpdate
    context: ContextUse | None = None
    supports: tuple[Support, ...] = ()  # passages behind sentences without a marker

    @property
    def done(self) -> bool:
        return self.update.stage == "done"


@dataclass(frozen=True)
class Chat:
    """One conversation; its title is its first question."""

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    turns: tuple[Turn, ...] = ()

    @property
    def title(self) -> str:
        return " ".join(self.turns[0].question.split()) if self.turns else ""


@dataclass(frozen=True)
class Chats:
    """All conversations of the session, newest first; one is open, one turn may be edited."""

    chats: tuple[Chat, ...] = field(default_factory=lambda: (Chat(),))
    current: str = ""
    editing: int | None = None

    @property
    def chat(self) -> Chat:
        return next((c for c in self.chats if c.id == self.current), self.chats[0])

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.chat.turns

    def new(self) -> Chats:
        """Open an empty conversation; an empty one that exists already is used again."""
        chat = next((c for c in self.chats if not c.turns), None) or Chat()
        rest = tuple(c for c in self.chats if c is not chat)
        return Chats((chat, *rest), chat.id)

    def open(self, chat_id: str) -> Chats:
        """Open an earlier conversation; an unknown id changes nothing."""
        known = any(c.id == chat_id for c in self.chats)
        return replace(self, current=chat_id, editing=None) if known else self

    def edit(self, turn: int | None) -> Chats:
        """Mark a question as being edited, or none."""
        valid = turn is not None and 0 <= turn < len(self.turns)
        return replace(self, editing=turn if valid else None)

    def cut(self, turn: int) -> Chats:
        """Without this turn and those after it."""
        return self._with_turns(self.turns[: max(0, turn)])

    def add(self, turn: Turn) -> Chats:
        return self._with_turns((*self.turns, turn))

    def _with_turns(self, turns: tuple[Turn, ...]) -> Chats:
        changed = replace(self.chat, turns=turns)
        chats = tuple(changed if c.id == changed.id else c for c in self.chats)
        return Chats(chats, changed.id)


def history(turns: tuple[Turn, ...]) -> list[dict[str, str]]:
    """Messages of the turns that have an answer, oldest first."""
    messages = []
    for turn in turns:
        if turn.update.text.strip():
            messages.append({"role": "user", "content": turn.question})
            messages.append({"role": "assistant", "content": turn.update.text})
    return messages
