"""The settings of an answer: three chips that open panels with every number in view.

Gradio components only; `ui.settings` turns their values into a `Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import gradio as gr

from rag.store import DocumentStore
from ui.i18n import Words, t
from ui.page import QUICK
from ui.settings import MOST_PASSAGES, PRESETS, SAMPLING, Settings, matching_preset, read_settings

# (name, least, most, step, default)
SLIDERS = (
    ("temperature", 0.0, 2.0, 0.05, 0.0),
    ("top_k", 0, 200, 1, 0),
    ("top_p", 0.05, 1.0, 0.05, 1.0),
    ("min_p", 0.0, 0.5, 0.01, 0.0),
    ("repetition_penalty", 1.0, 2.0, 0.05, 1.0),
    ("max_new_tokens", 16, 2048, 16, 256),
    ("num_beams", 1, 8, 1, 1),
    ("length_penalty", 0.0, 2.0, 0.1, 1.0),
)
PANELS = ("retrieval", "decoding", "documents")


class Controls:
    """The components, in one order for events (`inputs`), and how to read them back."""

    def __init__(self, store: DocumentStore, words: Words, language: gr.State) -> None:
        self._store = store
        self._words = words
        self._fields: dict[str, Any] = {}
        self.chips = gr.HTML(elem_id="chips", apply_default_css=False)
        with gr.Column(elem_id="panel-retrieval", elem_classes="popover", min_width=0):
            self._add("use_retrieval", gr.Checkbox(True), "retrieval", info=True)
            self._add("k", gr.Slider(1, MOST_PASSAGES, 4, step=1), "passages")
        with gr.Column(elem_id="panel-decoding", elem_classes="popover", min_width=0):
            self.preset = gr.Radio(value="precise", type="value")
            words.add_dynamic(self.preset, _preset_choices)
            self._build_numbers()
        with gr.Column(elem_id="panel-documents", elem_classes="popover", min_width=0):
            self.documents = gr.Dropdown([], value=[], multiselect=True)
            self._add("documents", self.documents, "documents", info=True)
        words.add_dynamic(self.chips, lambda lang: {"value": self._draw_chips(lang, {})})
        self._wire(language)

    @property
    def inputs(self) -> list[Any]:
        return list(self._fields.values())

    def read(self, values: Sequence[Any]) -> Settings:
        """The values of `inputs`; raises ValueError for numbers that make no sense."""
        return read_settings(dict(zip(self._fields, values, strict=True)))

    def document_choices(self) -> dict[str, Any]:
        """An update of the document filter after documents came or went."""
        choices = [(d.name, d.id) for d in self._store.documents()]
        return gr.update(choices=choices)

    def _add(self, name: str, component: Any, key: str, info: bool = False) -> None:
        keys = {"label": f"controls.{key}"} | ({"info": f"controls.{key}_info"} if info else {})
        self._fields[name] = self._words.add(component, **keys)

    def _build_numbers(self) -> None:
        with gr.Row(elem_classes="numbers"):
            for name, least, most, step, default in SLIDERS:
                self._add(name, gr.Slider(least, most, default, step=step), name, info=True)
            self._add("seed", gr.Number(0, precision=0, minimum=0), "seed", info=True)
            self._add("stop", gr.Textbox(lines=2, max_lines=4), "stop", info=True)
        self._add("system", gr.Textbox(lines=2, max_lines=6), "system", info=True)

    def _wire(self, language: gr.State) -> None:
        sampled = [self._fields[name] for name in SAMPLING]
        self.preset.input(lambda name: [*PRESETS[name].values()], self.preset, sampled, **QUICK)
        for slider in sampled:
            slider.input(
                lambda *numbers: matching_preset(dict(zip(SAMPLING, numbers, strict=True))),
                sampled,
                self.preset,
                **QUICK,
            )

        def draw(lang: str, *values: Any) -> str:
            return self._draw_chips(lang, dict(zip(self._fields, values, strict=True)))

        gr.on(
            [*(c.change for c in self.inputs), language.change],
            draw,
            [language, *self.inputs],
            self.chips,
            trigger_mode="always_last",
            **QUICK,
        )

    def _draw_chips(self, language: str, values: Mapping[str, Any]) -> str:
        initial = {name: getattr(c, "value", None) for name, c in self._fields.items()}
        chosen = {**initial, **values}
        texts = (
            _retrieval_text(chosen, language),
            _decoding_text(chosen, language),
            _documents_text(chosen, language),
        )
        return "".join(
            f'<button type="button" class="chip chip-{panel}" data-panel="{panel}" '
            f'aria-expanded="false" aria-controls="panel-{panel}"><i></i>{escape(text)}</button>'
            for panel, text in zip(PANELS, texts, strict=True)
        )


def _preset_choices(language: str) -> dict[str, Any]:
    return {
        "choices": [(t(language, f"controls.{name}"), name) for name in PRESETS],
        "label": t(language, "controls.preset"),
    }


def _retrieval_text(chosen: Mapping[str, Any], language: str) -> str:
    if not chosen["use_retrieval"]:
        return t(language, "chip.retrieval_off")
    return t(language, "chip.retrieval_on", count=chosen["k"])


def _decoding_text(chosen: Mapping[str, Any], language: str) -> str:
    if chosen["num_beams"] > 1:
        return t(language, "chip.beams", count=chosen["num_beams"])
    preset = matching_preset(chosen) or "custom"
    facts = [t(language, f"controls.{preset}")]
    if chosen["temperature"] == 0:
        facts.append(t(language, "chip.greedy"))
    else:
        facts.append(f"T {chosen['temperature']:g}")
        facts += [f"top-k {chosen['top_k']:g}"] if chosen["top_k"] else []
        facts += [f"top-p {chosen['top_p']:g}"] if chosen["top_p"] < 1 else []
        facts += [f"min-p {chosen['min_p']:g}"] if chosen["min_p"] else []
    return " · ".join(facts)


def _documents_text(chosen: Mapping[str, Any], language: str) -> str:
    count = len(chosen["documents"] or ())
    key = "chip.some_documents" if count else "chip.all_documents"
    return t(language, key, count=count)
