"""The settings of an answer: three chips that open panels with every number in view.

Gradio components only; `ui.settings` turns their values into a `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import gradio as gr

from rag.store import DocumentStore
from ui.decoding_controls import DecodingControls, problem_html
from ui.decoding_text import chip_text
from ui.i18n import Words, t
from ui.page import QUICK
from ui.retrieval_controls import RetrievalControls
from ui.settings import Settings, read_settings

PANELS = ("retrieval", "decoding", "documents")


class Controls:
    """The components, in one order for events (`inputs`), and how to read them back."""

    def __init__(self, store: DocumentStore, words: Words, language: gr.State) -> None:
        self._words = words
        self._fields: dict[str, Any] = {}
        self.chips = gr.HTML(elem_id="chips", apply_default_css=False)
        with gr.Column(elem_id="panel-retrieval", elem_classes="popover", min_width=0):
            keys = {"label": "controls.retrieval", "info": "controls.retrieval_info"}
            self._fields["use_retrieval"] = words.add(gr.Checkbox(True), **keys)
            self.retrieval = RetrievalControls(store, words, self._fields)
            self.retrieval.build_passages()
            self.retrieval.build_follow_up()
            with words.add(
                gr.Accordion(open=False, elem_classes="all-options"), label="controls.spread"
            ):
                self.retrieval.build_spread()
        with gr.Column(elem_id="panel-decoding", elem_classes="popover", min_width=0):
            self._problem = gr.HTML(elem_classes="panel-problem", apply_default_css=False)
            decoding = DecodingControls(words, self._fields)
            decoding.build_first()
            with words.add(
                gr.Accordion(open=False, elem_classes="all-options"), label="controls.all"
            ):
                decoding.build_all()
        with gr.Column(elem_id="panel-documents", elem_classes="popover", min_width=0):
            self.retrieval.build_documents()
        words.add_dynamic(self.chips, lambda lang: {"value": self._draw_chips(lang, {})})
        self._wire(language)

    @property
    def inputs(self) -> list[Any]:
        return list(self._fields.values())

    def read(self, values: Sequence[Any]) -> Settings:
        """The values of `inputs`; raises ValueError for numbers that make no sense."""
        return read_settings(dict(zip(self._fields, values, strict=True)))

    def _wire(self, language: gr.State) -> None:
        def draw(lang: str, *values: Any) -> tuple[str, str]:
            form = dict(zip(self._fields, values, strict=True))
            return self._draw_chips(lang, form), problem_html(_read(form)[1], lang)

        gr.on(
            [*(c.change for c in self.inputs), language.change],
            draw,
            [language, *self.inputs],
            [self.chips, self._problem],
            trigger_mode="always_last",
            **QUICK,
        )

    def _draw_chips(self, language: str, values: Mapping[str, Any]) -> str:
        initial = {name: getattr(c, "value", None) for name, c in self._fields.items()}
        chosen = {**initial, **values}
        texts = (
            _retrieval_text(chosen, language),
            chip_text(chosen, _read(chosen)[0], language),
            _documents_text(chosen, language),
        )
        return "".join(
            f'<button type="button" class="chip chip-{panel}" data-panel="{panel}" '
            f'aria-expanded="false" aria-controls="panel-{panel}"><i></i>{escape(text)}</button>'
            for panel, text in zip(PANELS, texts, strict=True)
        )


def _read(form: Mapping[str, Any]) -> tuple[Settings | None, ValueError | None]:
    try:
        return read_settings(form), None
    except ValueError as error:
        return None, error


def _retrieval_text(chosen: Mapping[str, Any], language: str) -> str:
    if not chosen["use_retrieval"]:
        return t(language, "chip.retrieval_off")
    return t(language, "chip.retrieval_on", count=chosen["passages"])


def _documents_text(chosen: Mapping[str, Any], language: str) -> str:
    count = len(chosen["document_ids"] or ())
    key = "chip.some_documents" if count else "chip.all_documents"
    return t(language, key, count=count)
