"""The Documents page: what there is, adding and removing it, and how it was cut into passages.

An adapter between Gradio components and the store; what is drawn comes from `ui.documents_view`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import gradio as gr

from rag.records import StoredDocument
from ui.documents_view import PREVIEW_STEP, Choice, list_html, preview_html
from ui.page import QUICK, Shell, acts
from ui.parts import Parts
from ui.upload_button import wire_upload

ACTS = ("preview", "remove", "keep", "confirm")
# After a redraw the keyboard goes where the person was: to the question, or back to its button.
FOCUS = """
watch("value", () => element.querySelector("[data-focus]")?.focus());
"""
Changes = dict[Any, Any]


@dataclass(frozen=True)
class Page:
    """The components that events of this page fill, and what each event does to them.

    Ids come from the browser: one that is not in the store opens and removes nothing.
    """

    parts: Parts
    listing: gr.HTML
    preview: gr.HTML
    choice: gr.State  # Choice
    shown: gr.State  # how many passages of the open document are drawn
    documents_changed: gr.State

    def on_preview(self, choice: Choice, language: str, event: gr.EventData) -> Changes:
        choice = choice._replace(open=_document(event), removing="", focus="")
        return self._draw_list(choice, language) | self._draw_preview(choice, language)

    def on_remove(self, choice: Choice, language: str, event: gr.EventData) -> Changes:
        """Ask first."""
        return self._draw_list(choice._replace(removing=_document(event), focus=""), language)

    def on_keep(self, choice: Choice, language: str, event: gr.EventData) -> Changes:
        return self._draw_list(choice._replace(removing="", focus=_document(event)), language)

    def on_confirm(self, choice: Choice, language: str, event: gr.EventData) -> Changes:
        self.parts.store.remove(_document(event))
        choice = choice._replace(removing="", focus="")
        return self._draw_list(choice, language) | {self.documents_changed: time.time()}

    def on_more(self, choice: Choice, language: str, shown: int) -> Changes:
        return self._draw_preview(choice, language, shown + PREVIEW_STEP)

    def on_filter(self, choice: Choice, language: str, wanted: str) -> Changes:
        return self._draw_list(choice._replace(wanted=wanted, removing="", focus=""), language)

    def on_change(self, choice: Choice, language: str, shown: int) -> Changes:
        """Documents came or went, here or elsewhere, or the language changed."""
        return self._draw_list(choice, language) | self._draw_preview(choice, language, shown)

    def _draw_list(self, choice: Choice, language: str) -> Changes:
        documents = self.parts.store.documents()
        return {self.listing: list_html(documents, language, choice), self.choice: choice}

    def _draw_preview(self, choice: Choice, language: str, shown: int = PREVIEW_STEP) -> Changes:
        document = self._find(choice.open)
        passages = self.parts.store.passages(choice.open) if document else []
        html = preview_html(document, passages, self._count_tokens, language, shown)
        return {self.preview: html, self.shown: shown}

    def _find(self, document_id: str) -> StoredDocument | None:
        documents = self.parts.store.documents()
        return next((d for d in documents if d.id == document_id), None)

    def _count_tokens(self, text: str) -> int:
        return len(self.parts.embedder.token_spans(text))


def build(shell: Shell) -> None:
    """Called inside the page's tab."""
    words, language = shell.words, shell.language
    choice, shown = gr.State(Choice()), gr.State(PREVIEW_STEP)
    with gr.Row(elem_id="documents-page"):
        with gr.Column(elem_id="documents-main", min_width=0):
            with gr.Row(elem_id="documents-bar"):
                wanted = gr.Textbox(elem_id="documents-filter", container=False, max_lines=1)
                words.add(wanted, label="documents.filter", placeholder="documents.filter")
                upload = gr.UploadButton(
                    elem_id="documents-upload", file_count="multiple", variant="primary", size="md"
                )
                words.add(upload, label="rail.add")
                cancel = gr.Button(elem_id="documents-cancel", size="md", visible=False)
                words.add(cancel, value="upload.cancel")
            progress = gr.HTML(elem_id="documents-progress", apply_default_css=False)
            listing = gr.HTML(
                list_html(shell.parts.store.documents(), "en", Choice()),
                elem_id="documents-list",
                apply_default_css=False,
                js_on_load=acts(*ACTS) + FOCUS,
            )
        with gr.Column(elem_id="documents-preview", min_width=0):
            preview = gr.HTML(
                preview_html(None, (), len, "en"), apply_default_css=False, js_on_load=acts("more")
            )
    page = Page(shell.parts, listing, preview, choice, shown, shell.documents_changed)
    _wire(page, wanted, language)
    wire_upload(upload, cancel, progress, shell.parts, language, shell.documents_changed)


def _wire(page: Page, wanted: gr.Textbox, language: gr.State) -> None:
    listed = [page.listing, page.choice]
    drawn = [*listed, page.preview, page.shown]
    for act in ACTS:
        outputs = [*drawn, page.documents_changed]
        on_act = getattr(page, f"on_{act}")
        getattr(page.listing, act)(on_act, [page.choice, language], outputs, **QUICK)
    state = [page.choice, language, page.shown]
    page.preview.more(page.on_more, state, drawn, **QUICK)
    gr.on([language.change, page.documents_changed.change], page.on_change, state, drawn, **QUICK)
    typed = [page.choice, language, wanted]
    wanted.change(page.on_filter, typed, listed, trigger_mode="always_last", **QUICK)


def _document(event: gr.EventData) -> str:
    return str((event._data or {}).get("document", ""))
