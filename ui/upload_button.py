"""Wires an upload button: files go into the store, what happens to each is shown.

An adapter between Gradio and `ui.upload.add_files`, shared by every place where files can be added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import gradio as gr

from ui.i18n import h, known, t
from ui.parts import Parts
from ui.upload import FileUpdate, add_files

STEPS = {
    "Reading pages": "upload.step_pages",
    "Recognising text": "upload.step_ocr",
    "embed": "upload.step_embed",
}


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
        named = [(file["path"], file.get("orig_name") or "") for file in files or ()]
        for states in add_files(parts, named):
            yield progress_view(states, lang), gr.skip()
            if any(state.state == "done" for state in states):
                changed = time.time()
        yield gr.skip(), changed

    button.upload(
        add,
        [button, language],
        [progress, documents_changed],
        # Gradio still checks that the path is an upload of its own; preprocessing would only lose
        # the file's name and leave an empty temporary file behind.
        preprocess=False,
        concurrency_id="upload",
        concurrency_limit=2,
        api_visibility="private",
        show_progress="hidden",
    )


def progress_view(files: Sequence[FileUpdate], language: str) -> str:
    """One line a file, with a bar while it is being read."""
    lines = "".join(_line(file, language) for file in files)
    return f'<ul class="uploads" aria-live="polite">{lines}</ul>'


def _line(file: FileUpdate, language: str) -> str:
    bar = ""
    if file.state == "working":
        share = f' value="{file.done}" max="{file.total}"' if file.total else ""
        bar = f"<progress{share}></progress>"
    role = ' role="alert"' if file.state == "failed" else ""
    sentence = h(language, file.key, **file.values, **_details(file, language))
    return f'<li class="{file.state}"{role}>{sentence}{bar}</li>'


def _details(file: FileUpdate, language: str) -> dict[str, str]:
    """What `rag` says in English, in the page's language."""
    if file.state == "failed":
        key = f"upload.error_{file.code}"
        if (language == "en" and file.reason) or not known(key):
            return {"reason": file.reason}
        return {"reason": t(language, key)}
    key = STEPS.get(file.label, "")
    return {"label": t(language, key) if key else file.label}
