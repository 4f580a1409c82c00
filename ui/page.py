"""What every page is handed by the shell. Knows no page.

A page module has `build(shell: Shell) -> None`, called inside its own `gr.Tab`.
"""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from ui.i18n import Words
from ui.parts import Parts

# Gradio gives each event a queue of one unless told otherwise. Long answers share one group: the
# scheduler decides whose turn it is. Everything else has its own, so that stop, upload, documents
# and health never wait behind an answer.
GENERATION = {"concurrency_id": "generation", "concurrency_limit": 16, "api_visibility": "private"}
QUICK = {"concurrency_limit": 16, "api_visibility": "private", "show_progress": "hidden"}


@dataclass(frozen=True)
class Rail:
    """The components of the rail that pages listen to."""

    new_chat: gr.Button
    chats: gr.HTML  # its event `open_chat` carries {"id": ...}
    documents: gr.HTML


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
