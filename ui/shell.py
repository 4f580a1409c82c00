"""The frame around the pages: header, rail, tabs, theme. Building it is separate from launching it.

Knows which pages exist and nothing of what they do: each has `build(shell)` (see `ui.page`).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import gradio as gr

from ui import rail
from ui.i18n import LANGUAGES, Words, choose_language
from ui.page import QUICK, Shell
from ui.parts import Parts

HERE = Path(__file__).parent
FONTS = ["system-ui", "-apple-system", "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "sans-serif"]
MONOSPACE = ["ui-monospace", "SFMono-Regular", "DejaVu Sans Mono", "Noto Sans Mono CJK SC"]
PAGES = ("chat", "compare", "documents")


def build_demo(parts: Parts) -> gr.Blocks:
    """The whole app as Gradio blocks, not yet launched."""
    words = Words()
    with gr.Blocks(
        title="Glassbox", analytics_enabled=False, fill_width=True, delete_cache=(3600, 3600)
    ) as demo:
        language = gr.State("en")
        documents_changed = gr.State(0.0)
        with gr.Row(elem_id="app"):
            with gr.Column(elem_id="rail", min_width=0):
                the_rail = rail.build(parts, words, language, documents_changed)
            with gr.Column(elem_id="main", min_width=0):
                with gr.Tabs(elem_id="pages", selected="chat") as tabs:
                    shell = Shell(parts, words, language, documents_changed, tabs, the_rail)
                    for name in PAGES:
                        with words.add(gr.Tab(id=name, elem_id=name), label=f"{name}.tab"):
                            try:  # until every page has landed
                                page = importlib.import_module(f"ui.{name}")
                            except ModuleNotFoundError:
                                continue
                            page.build(shell)

        def load(request: gr.Request) -> str:
            return choose_language(
                request.headers.get("accept-language"), request.cookies.get("glassbox_language")
            )

        demo.load(load, outputs=language, **QUICK)
        language.change(words.updates, inputs=language, outputs=words.components, **QUICK)
    return demo


def launch_options() -> dict[str, Any]:
    """The look, and what must be off, as arguments for `launch` (or `mount_gradio_app`)."""
    return {
        "theme": gr.themes.Base(font=FONTS, font_mono=MONOSPACE),
        "css_paths": HERE / "theme.css",
        "js": (HERE / "page.js").read_text(encoding="utf-8"),
    }
