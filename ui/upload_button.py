"""Wires an upload button: files go into the store, what happens to each is shown.

An adapter between Gradio and `ui.upload.add_files`, shared by every place where files can be added.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import gradio as gr

from ui.i18n import h, known, t
from ui.page import QUICK
from ui.parts import Parts
from ui.running import Running
from ui.upload import FileUpdate, add_files

STEPS = {
    "Reading pages": "upload.step_pages",
    "Reading slides": "upload.step_slides",
    "Reading sheets": "upload.step_sheets",
    "Reading chapters": "upload.step_chapters",
    "Recognising text": "upload.step_ocr",
    "embed": "upload.step_embed",
}
SHOWN_FILES = 60  # lines at once
DRAW_SECONDS = 0.1  # between two drawings: thousands of small files would be more than can be seen


def wire_upload(
    button: gr.UploadButton,
    cancel: gr.Button,
    progress: gr.HTML,
    parts: Parts,
    language: gr.State,
    documents_changed: gr.State,
) -> None:
    """`progress` shows a line for each file; `documents_changed` is told when any was added.

    `cancel` is there while files are read and ends what this session is adding here.
    """
    running = Running()

    def add(
        files: Sequence[dict[str, Any]] | None, lang: str, request: gr.Request
    ) -> Iterator[Any]:
        changed: Any = gr.skip()
        named = [(file["path"], file.get("orig_name") or "") for file in files or ()]
        with running.run(request.session_hash or "") as flag:
            yield gr.skip(), gr.update(visible=True), gr.skip()
            states: Sequence[FileUpdate] = ()
            drawn = 0.0
            for states in add_files(parts, named, flag.is_set):
                if time.monotonic() - drawn >= DRAW_SECONDS:
                    drawn = time.monotonic()
                    yield progress_view(states, lang), gr.skip(), gr.skip()
            if any(state.state == "done" for state in states):
                changed = time.time()
        yield progress_view(states, lang), gr.update(visible=False), changed

    def on_cancel(request: gr.Request) -> None:
        running.stop(request.session_hash or "")

    cancel.click(on_cancel, **QUICK)
    button.upload(
        add,
        [button, language],
        [progress, cancel, documents_changed],
        # Gradio still checks that the path is an upload of its own; preprocessing would only lose
        # the file's name and leave an empty temporary file behind.
        preprocess=False,
        concurrency_id="upload",
        concurrency_limit=2,
        api_visibility="private",
        show_progress="hidden",
    )


def progress_view(files: Sequence[FileUpdate], language: str) -> str:
    """One line a file, with a bar while it is being read; of very many, the most telling."""
    shown = _most_telling(files)
    lines = "".join(_line(file, language) for file in shown)
    if len(shown) < len(files):
        left_out = Counter(file.state for file in files)
        left_out.subtract(file.state for file in shown)
        counts = {state: left_out[state] for state in ("done", "failed")}
        lines += f"<li>{h(language, 'upload.more', count=len(files) - len(shown), **counts)}</li>"
    return f'<ul class="uploads" aria-live="polite">{lines}</ul>'


def _most_telling(files: Sequence[FileUpdate]) -> Sequence[FileUpdate]:
    """In their order: what goes on and archives first of all, then what failed, then the latest."""
    if len(files) <= SHOWN_FILES:
        return files

    def weight(index: int) -> tuple[bool, bool, bool, int]:
        file = files[index]
        going_on = file.state == "working" and file.key != "upload.waiting"
        is_archive = file.key.startswith("upload.archive")
        return going_on, is_archive, file.state == "failed", index

    kept = sorted(range(len(files)), key=weight, reverse=True)[:SHOWN_FILES]
    return [files[index] for index in sorted(kept)]


def _line(file: FileUpdate, language: str) -> str:
    bar = ""
    if file.state == "working" and file.key != "upload.waiting":
        share = f' value="{file.done}" max="{file.total}"' if file.total else ""
        bar = f"<progress{share}></progress>"
    role = ' role="alert"' if file.state == "failed" else ""
    sentence = h(language, file.key, **file.values, **_details(file, language))
    return f'<li class="{file.state}"{role}>{sentence}{_time_left(file, language)}{bar}</li>'


def _time_left(file: FileUpdate, language: str) -> str:
    if file.seconds_left is None:
        return ""
    minutes = round(file.seconds_left / 60)
    if minutes > 1:
        return h(language, "upload.left_minutes", minutes=minutes)
    return h(language, "upload.left_seconds", seconds=max(1, round(file.seconds_left)))


def _details(file: FileUpdate, language: str) -> dict[str, str]:
    """What `rag` says in English, in the page's language."""
    if file.state == "failed":
        key = f"upload.error_{file.code}"
        if (language == "en" and file.reason) or not known(key):
            return {"reason": file.reason}
        return {"reason": t(language, key)}
    key = STEPS.get(file.label, "")
    return {"label": t(language, key) if key else file.label}
