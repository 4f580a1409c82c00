"""The exact prompt as escaped HTML: who wrote each part, what it cost, and what was cut to fit.

Pure functions from `rag.prompt.Prompt` to strings. Untrusted parts stay text.
"""

from __future__ import annotations

from html import escape

from rag.prompt import Prompt
from rag.retriever import RetrievedPassage
from ui.i18n import h, t


def prompt_view(prompt: Prompt, language: str) -> str:
    """The messages as the model reads them, who wrote which part, and what was cut."""
    messages = "".join(_message(message, language) for message in prompt.messages)
    cuts = []
    if prompt.dropped:
        names = "; ".join(f"{p.document} {place(p, language)}".strip() for p in prompt.dropped)
        cuts.append(t(language, "prompt.cut_passages", names=names))
    if prompt.history_dropped:
        cuts.append(t(language, "prompt.cut_history", count=prompt.history_dropped))
    facts = [
        t(language, "prompt.tokens", tokens=f"{prompt.tokens:,}"),
        *(cuts or [t(language, "prompt.cut_nothing")]),
    ]
    return (
        f'<details class="prompt"><summary>{h(language, "prompt.show")}</summary>'
        f"{''.join(f'<p>{escape(fact)}</p>' for fact in facts)}"
        f'<p class="key"><span class="ours">{h(language, "prompt.legend")}</span> '
        f'<span class="theirs">{h(language, "prompt.legend_untrusted")}</span></p>'
        f'<div translate="no">{messages}</div></details>'
    )


def place(passage: RetrievedPassage, language: str) -> str:
    """Page number, or else the innermost heading, or nothing."""
    if passage.page is not None:
        return t(language, "passages.page", page=passage.page)
    return passage.heading[-1] if passage.heading else ""


def _message(message: dict, language: str) -> str:
    content = message["content"]
    plain = isinstance(content, str)
    parts: list[dict] = [{"text": content, "trusted": False}] if plain else content
    spans = "".join(
        f'<span class="{"ours" if part["trusted"] else "theirs"}">{escape(part["text"])}</span>'
        for part in parts
    )
    role = h(language, f"prompt.role_{message['role']}")
    return f'<div class="message"><h4>{role}</h4><pre>{spans}</pre></div>'
