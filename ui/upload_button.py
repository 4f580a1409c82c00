"""Wires an upload button: files go into the store, what happens to each is shown.

An adapter between Gradio and `ui.upload.add_files`, shared by every place where files can be added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import gradio as gr

from ui.parts import Parts
from ui.rail import progress_view
from ui.upload import add_files


def wire_upload(
    button: gr.UploadButton,
    progress: gr.HTML,
    parts: Parts,
    language: gr.State,
    documents_changed: gr.State,
) -> None:
    """`progress` shows a line for each file; `documents_changed` is told when any was added."""

    def add(files: Sequence[dict[str, Any]] | None, lang: str) -> Iterator[Any]:
        changed: Any = gr.skip()
        for states in add_files(parts, [file["path"] for file in files or ()]):
            yield progress_view(states, lang), gr.skip()
            if any(state.state == "done" for state in states):
                changed = time.time()
        yield gr.skip(), changed

    button.upload(
        add,
        [button, language],
        [progress, documents_changed],
        preprocess=False,  # preprocessing would leave an empty temporary file behind for each
        concurrency_id="upload",
        concurrency_limit=2,
        api_visibility="private",
        show_progress="hidden",
    )
