"""The controls of decoding, for the chat and the comparison: presets, a first level, the rest.

Gradio components only: one under the name of each field of `GenerationConfig` and `Method`, which
`ui.settings` reads. What cannot be compared in lockstep has no control where two texts are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import gradio as gr

from ui.decoding_text import order_text
from ui.i18n import Words, h, t
from ui.page import QUICK
from ui.settings import EARLY_STOPPING, FORMS, METHODS, PRESETS, SAMPLING, STARTS, matching_preset

# (name, least, most, step, default)
Slider = tuple[str, float, float, float, float]
FIRST: tuple[Slider, ...] = (
    ("temperature", 0.0, 2.0, 0.05, 0.0),
    ("top_k", 0, 200, 1, 0),
    ("top_p", 0.05, 1.0, 0.05, 1.0),
    ("min_p", 0.0, 0.5, 0.01, 0.0),
)
LENGTH: tuple[Slider, ...] = (("max_new_tokens", 16, 2048, 16, 256),)
PENALTIES: tuple[Slider, ...] = (
    ("repetition_penalty", 1.0, 2.0, 0.05, 1.0),
    ("presence_penalty", -2.0, 2.0, 0.1, 0.0),
    ("frequency_penalty", -2.0, 2.0, 0.1, 0.0),
    ("no_repeat_ngram_size", 0, 20, 1, 0),
)
END: tuple[Slider, ...] = (("min_new_tokens", 0, 512, 1, 0),)
FILTERS: tuple[Slider, ...] = (("typical_p", 0.05, 1.0, 0.05, 1.0),)
METHOD: tuple[Slider, ...] = (
    ("penalty_alpha", 0.0, 1.0, 0.05, STARTS["penalty_alpha"]),
    ("contrastive_top_k", 1, 64, 1, 4),
    ("context_alpha", 0.0, 3.0, 0.05, STARTS["context_alpha"]),
)
BEAMS: tuple[Slider, ...] = (
    ("num_beams", 1, 16, 1, 1),
    ("length_penalty", -2.0, 4.0, 0.1, 1.0),
    ("num_beam_groups", 1, 16, 1, 1),
    ("diversity_penalty", 0.0, 5.0, 0.1, 0.0),
)
RECORD: tuple[Slider, ...] = (("num_candidates", 1, 50, 1, 10),)


class DecodingControls:
    """`fields` in one order for events; `preset` is no field, but sets some of them."""

    def __init__(self, words: Words, fields: dict[str, Any] | None = None) -> None:
        self._words = words
        self.fields: dict[str, Any] = {} if fields is None else fields
        self.preset = gr.Radio(value="precise", type="value")
        words.add_dynamic(self.preset, _preset_choices)

    def build_first(self, whole: bool = True) -> None:
        """The sampling numbers and stop strings; when `whole`, length, seed, instructions too."""
        with gr.Row(elem_classes="numbers"):
            self._sliders(FIRST)
            if whole:
                self._sliders(LENGTH)
                self._add("seed", gr.Number(0, precision=0, minimum=0))
            self._add("stop", gr.Textbox(lines=2, max_lines=4))
        if whole:
            self._add("system", gr.Textbox(lines=2, max_lines=6))
        self._wire_preset()

    def build_all(self, lockstep: bool = False) -> None:
        """The rest, grouped in the order in which they act; `lockstep` leaves out beams."""
        order = gr.HTML(elem_classes="order", apply_default_css=False)
        self._words.add_dynamic(order, lambda lang: {"value": _order_html(lang)})
        with self._group("tokens"):
            self._add("logit_bias", gr.Textbox(max_lines=3, elem_classes="wide"))
        with self._group("form"):
            self._choice("form", FORMS)
            self._add("regex", gr.Textbox(max_lines=3, visible=False, elem_classes="wide"))
            self._add(
                "json_schema", gr.Textbox(lines=4, max_lines=12, visible=False, elem_classes="wide")
            )
        with self._group("penalties"):
            self._sliders(PENALTIES)
        with self._group("end"):
            self._sliders(END)
            self._add("stop_on_repetition", gr.Checkbox(False))
        with self._group("filters"):
            self._sliders(FILTERS)
        methods = {n: f for n, f in METHODS.items() if not (lockstep and "context_alpha" in f)}
        with self._group("method"):
            self._choice("method", methods)
            self._sliders([s for s in METHOD if any(s[0] in f for f in methods.values())], False)
        if not lockstep:
            with self._group("beams"):
                self._sliders(BEAMS)
                early = gr.Radio(value="no", elem_classes="choice")
                self._words.add_dynamic(early, _choices("early_stopping", "early", EARLY_STOPPING))
                self.fields["early_stopping"] = early
        with self._group("record"):
            self._sliders(RECORD)
        self._wire_choice("form", FORMS)
        self._wire_choice("method", methods)

    def _group(self, name: str) -> gr.Row:
        title = gr.HTML(elem_classes="group-title", apply_default_css=False)
        key = f"controls.group_{name}"
        self._words.add_dynamic(
            title, lambda lang: {"value": f'<h4 class="label">{h(lang, key)}</h4>'}
        )
        return gr.Row(elem_classes="numbers")

    def _add(self, name: str, component: Any) -> None:
        label, info = f"controls.{name}", f"controls.{name}_info"
        self.fields[name] = self._words.add(component, label=label, info=info)

    def _sliders(self, sliders: Any, visible: bool = True) -> None:
        for name, least, most, step, default in sliders:
            self._add(name, gr.Slider(least, most, default, step=step, visible=visible))

    def _choice(self, name: str, options: Mapping[str, Any]) -> None:
        component = gr.Radio(value=next(iter(options)), elem_classes="choice")
        self._words.add_dynamic(component, _choices(name, name, options))
        self.fields[name] = component

    def _wire_choice(self, name: str, options: Mapping[str, tuple[str, ...]]) -> None:
        """What belongs to a choice is shown when it is chosen."""
        belonging = {field: option for option, names in options.items() for field in names}

        def show(chosen: str) -> list[Any]:
            return [gr.update(visible=option == chosen) for option in belonging.values()]

        shown = [self.fields[field] for field in belonging]
        self.fields[name].change(show, self.fields[name], shown, **QUICK)

    def _wire_preset(self) -> None:
        sampled = [self.fields[name] for name in SAMPLING]
        self.preset.input(lambda name: [*PRESETS[name].values()], self.preset, sampled, **QUICK)
        for slider in sampled:
            slider.input(
                lambda *numbers: matching_preset(dict(zip(SAMPLING, numbers, strict=True))),
                sampled,
                self.preset,
                **QUICK,
            )


def problem_html(error: ValueError | None, language: str) -> str:
    """The sentence of options that make no sense, to stand in the panel; empty when they do."""
    if error is None:
        return ""
    sentence = h(language, "error.setting", message=str(error))
    return f'<p class="problem" role="alert">{sentence}</p>'


def _preset_choices(language: str) -> dict[str, Any]:
    return {
        "choices": [(t(language, f"controls.{name}"), name) for name in PRESETS],
        "label": t(language, "controls.preset"),
    }


def _choices(name: str, prefix: str, options: Mapping[str, Any]) -> Callable[[str], dict[str, Any]]:
    def properties(language: str) -> dict[str, Any]:
        return {
            "choices": [(t(language, f"controls.{prefix}_{option}"), option) for option in options],
            "label": t(language, f"controls.{name}"),
            "info": t(language, f"controls.{name}_info"),
        }

    return properties


def _order_html(language: str) -> str:
    return f"<p>{h(language, 'controls.order')} <b>{escape(order_text(language))}</b></p>"
