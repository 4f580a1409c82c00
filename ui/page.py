"""What every page is handed by the shell. Knows no page.

A page module has `build(shell: Shell) -> None`, called inside its own `gr.Tab`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ui.i18n import Words, h
from ui.parts import Parts

# Gradio gives each event a queue of one unless told otherwise. Long answers share one group: the
# scheduler decides whose turn it is. Everything else has its own, so that stop, upload, documents
# and health never wait behind an answer.
GENERATION: dict[str, Any] = {
    "concurrency_id": "generation",
    "concurrency_limit": 16,
    "api_visibility": "private",
    "show_progress": "hidden",
}
QUICK: dict[str, Any] = {
    "concurrency_limit": 16,
    "api_visibility": "private",
    "show_progress": "hidden",
}


def acts(*names: str) -> str:
    """`js_on_load` for a `gr.HTML`: a click on an element with `data-act="name"` becomes its event.

    Listen with `html.name(...)`; the event's data are all `data-` attributes of the element. They
    come from the browser, so check them (`ui.page.integer` does for numbers).
    """
    return f"""
const names = {json.dumps(names)};
element.addEventListener("click", (event) => {{
  const button = event.target.closest("[data-act]");
  if (button && element.contains(button) && names.includes(button.dataset.act))
    trigger(button.dataset.act, {{ ...button.dataset }});
}});
"""


def close_button(language: str, sheet: str) -> str:
    """Closes a sheet (`rail`, `side`) on a narrow screen; not shown on a wide one."""
    label = h(language, "shell.close")
    return (
        f'<button type="button" class="switch close" data-sheet="{sheet}" aria-label="{label}">'
        "✕</button>"
    )


def integer(event: gr.EventData, name: str) -> int | None:
    """A number from an event's data, or None for whatever is not one."""
    value = str((event._data or {}).get(name, ""))
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


@dataclass(frozen=True)
class Rail:
    """The components of the rail that pages listen to."""

    new_chat: gr.Button
    chats: gr.HTML  # its event `open` carries {"chat": id}
    documents: gr.HTML
    show_documents: gr.Button


@dataclass(frozen=True)
class Shell:
    """Shared by all pages of one app.

    `language` holds "en" or "zh" for this browser session: take it as an event's input, and listen
    to its `.change` where HTML must be drawn again. A page that added or removed documents returns
    `time.time()` to `documents_changed`; whoever lists documents listens to that one's `.change`.
    """

    parts: Parts
    words: Words
    language: gr.State
    documents_changed: gr.State
    tabs: gr.Tabs  # select a page by returning gr.Tabs(selected="chat" | "compare" | "documents")
    rail: Rail
