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
from ui.page import ACT, QUICK, Shell
from ui.parts import Parts
from ui.upload_button import wire_upload

# After a redraw the keyboard goes where the person was: to the question, or back to its button.
FOCUS = """
watch("value", () => element.querySelector("[data-focus]")?.focus());
"""


@dataclass(frozen=True)
class Page:
    """The components that events of this page fill."""

    parts: Parts
    listing: gr.HTML
    preview: gr.HTML
    choice: gr.State  # Choice
    shown: gr.State  # how many passages of the open document are drawn
    changed: gr.State

    def draw_list(self, choice: Choice, language: str) -> dict[Any, Any]:
        documents = self.parts.store.documents()
        return {self.listing: list_html(documents, language, choice), self.choice: choice}

    def draw_preview(self, choice: Choice, shown: int, language: str) -> dict[Any, Any]:
        document = self._find(choice.open)
        passages = self.parts.store.passages(choice.open) if document else []
        html = preview_html(document, passages, self._count_tokens, language, shown)
        return {self.preview: html, self.shown: shown}

    def act(self, choice: Choice, shown: int, language: str, event: gr.EventData) -> dict[Any, Any]:
        """A button of the list or of the preview; its data come from the browser."""
        act, document = str(event.act), str(getattr(event, "document", ""))
        choice = choice._replace(removing="", focus="")
        match act:
            case "preview":
                choice = choice._replace(open=document)
                return self.draw_list(choice, language) | self.draw_preview(
                    choice, PREVIEW_STEP, language
                )
            case "more":
                return self.draw_preview(choice, shown + PREVIEW_STEP, language)
            case "remove":
                return self.draw_list(choice._replace(removing=document), language)
            case "keep":
                return self.draw_list(choice._replace(focus=document), language)
            case "confirm":
                self.parts.store.remove(document)
                if choice.open == document:
                    choice = choice._replace(open="")
                return (
                    self.draw_list(choice, language)
                    | self.draw_preview(choice, PREVIEW_STEP, language)
                    | {self.changed: time.time()}
                )
        return {}

    def _find(self, document_id: str) -> StoredDocument | None:
        documents = self.parts.store.documents()
        return next((d for d in documents if d.id == document_id), None)

    def _count_tokens(self, text: str) -> int:
        return len(self.parts.embedder.token_spans(text))


def build(shell: Shell) -> None:
    words, language = shell.words, shell.language
    with gr.Row(elem_id="documents-page"):
        with gr.Column(elem_id="documents-main", min_width=0):
            with gr.Row(elem_id="documents-bar"):
                wanted = words.add(
                    gr.Textbox(elem_id="documents-filter", container=False, max_lines=1),
                    label="documents.filter",
                    placeholder="documents.filter",
                )
                upload = gr.UploadButton(
                    elem_id="documents-upload", file_count="multiple", variant="primary"
                )
                words.add(upload, label="rail.add")
            progress = gr.HTML(elem_id="documents-progress", apply_default_css=False)
            listing = gr.HTML(
                elem_id="documents-list", apply_default_css=False, js_on_load=ACT + FOCUS
            )
        with gr.Column(elem_id="documents-preview", min_width=0):
            preview = gr.HTML(apply_default_css=False, js_on_load=ACT)
    choice, shown = gr.State(Choice()), gr.State(PREVIEW_STEP)
    page = Page(shell.parts, listing, preview, choice, shown, shell.documents_changed)
    _wire(page, wanted, language)
    wire_upload(upload, progress, shell.parts, language, shell.documents_changed)


def _wire(page: Page, wanted: gr.Textbox, language: gr.State) -> None:
    state = [page.choice, page.shown, language]
    outputs = [page.listing, page.preview, page.choice, page.shown, page.changed]

    def draw(choice: Choice, shown: int, lang: str) -> dict[Any, Any]:
        return page.draw_list(choice, lang) | page.draw_preview(choice, shown, lang)

    def narrow(choice: Choice, lang: str, text: str) -> dict[Any, Any]:
        return page.draw_list(choice._replace(wanted=text, removing="", focus=""), lang)

    for component in (page.listing, page.preview):
        component.act(page.act, state, outputs, **QUICK)
    drawn = outputs[:-1]
    gr.on([language.change, page.changed.change], draw, state, drawn, **QUICK)
    wanted.change(
        narrow,
        [page.choice, language, wanted],
        [page.listing, page.choice],
        trigger_mode="always_last",
        **QUICK,
    )
