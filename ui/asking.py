"""From a question and the chosen settings to the turn of a conversation, as a page shows it.

No Gradio in it: drains `ui.session.answer` at the pace of a page and measures the context once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rag.citations import CheckedAnswer, check_citations, without_unsupported
from ui.meter import ContextUse, measure
from ui.pacing import paced
from ui.parts import Parts
from ui.session import AnswerUpdate, ShouldStop, answer
from ui.settings import Settings
from ui.turns import Turn, history


def ask(
    parts: Parts,
    question: str,
    earlier: tuple[Turn, ...],
    settings: Settings,
    language: str,
    session: str,
    should_stop: ShouldStop,
) -> Iterator[Turn]:
    """The turn that answers `question`, again and again until it is done."""
    messages = history(earlier)
    context: ContextUse | None = None

    def measured(update: AnswerUpdate) -> ContextUse | None:
        if update.prompt is None:
            return None
        return measure(
            update.prompt,
            question,
            messages,
            count=lambda text: len(parts.model.encode(text)),
            room=settings.config.max_new_tokens,
            limit=parts.model.context_length,
        )

    updates = answer(
        parts,
        question,
        messages,
        settings.config,
        settings.retrieval,
        language,
        should_stop,
        session=session,
        system=settings.system,
        method=settings.method,
    )
    for update in paced(updates):
        context = context or measured(update)
        checked = _checked(update)
        yield Turn(question, replace(update, text=checked.text), context, checked.supports)


def _checked(update: AnswerUpdate) -> CheckedAnswer:
    """Without citations that nothing supports; once all is written, with what stands behind it."""
    texts = [passage.text for passage in update.prompt.used] if update.prompt else []
    if update.stage == "done":
        return check_citations(update.text, texts)
    return CheckedAnswer(without_unsupported(update.text, texts), ())
