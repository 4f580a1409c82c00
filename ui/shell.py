"""The frame around the pages: header, rail, tabs, theme. Building it is separate from launching it.

Knows which pages exist and nothing of what they do: each has `build(shell)` (see `ui.page`).
"""

from __future__ import annotations

import time
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from ui import chat, compare, documents, rail, ways_page
from ui.i18n import Words, choose_language, h
from ui.look import style_sheets, theme
from ui.page import QUICK, Shell, acts
from ui.parts import Parts

HERE = Path(__file__).parent
PAGES = {"chat": chat, "compare": compare, "ways": ways_page, "documents": documents}
MAX_FILE_SIZE = "50mb"


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
                header = gr.HTML(
                    elem_id="header", apply_default_css=False, js_on_load=acts("language")
                )
                words.add_dynamic(header, lambda lang: {"value": header_view(parts, lang)})
                tabs = gr.Tabs(elem_id="pages", selected="chat")
                shell = Shell(parts, words, language, documents_changed, tabs, the_rail)
                with tabs:
                    for name, page in PAGES.items():
                        tab = gr.Tab(id=name, elem_id=f"page-{name}")
                        with words.add(tab, label=f"{name}.tab"):
                            page.build(shell)

        demo.load(_on_load, None, [language, documents_changed], **QUICK)
        header.language(_other_language, language, language, **QUICK)
        language.change(words.updates, language, words.components, **QUICK)
        the_rail.show_documents.click(lambda: gr.Tabs(selected="documents"), None, tabs, **QUICK)
    return demo


def launch_options() -> dict[str, Any]:
    """The look, and what stays off, as arguments for `Blocks.launch`."""
    return {
        "theme": theme(),
        "css_paths": style_sheets(),
        "js": (HERE / "page.js").read_text(encoding="utf-8"),
        "favicon_path": HERE / "favicon.png",
        "footer_links": [],
        "share": False,
        "ssr_mode": False,
        "run_history": False,
        "enable_monitoring": False,
        "max_file_size": MAX_FILE_SIZE,
    }


def header_view(parts: Parts, language: str) -> str:
    """What writes here, and the switches for menu, language, light and passages."""
    model = parts.model
    name = escape(" · ".join((model.name, model.precision, model.device.type.upper())))

    def switch(attribute: str, key: str, face: str) -> str:
        label = h(language, key)
        return (
            f'<button type="button" class="switch" {attribute} aria-label="{label}" '
            f'title="{label}">{face}</button>'
        )

    return (
        f'<div class="header" data-language="{language}">'
        f"{switch('data-sheet=rail', 'rail.open', '☰')}"
        f'<span class="model" translate="no">{name}</span>'
        f"{switch('data-sheet=side', 'passages.title_none', '❏')}"
        f"{switch('data-act=language', 'shell.language', '文/A')}"
        f"{switch('data-theme', 'shell.theme', '◐')}</div>"
    )


def _on_load(request: gr.Request) -> tuple[str, float]:
    """The person's language, and a look at the documents as they are now."""
    chosen = request.cookies.get("glassbox_language")
    return choose_language(request.headers.get("accept-language"), chosen), time.time()


def _other_language(language: str) -> str:
    return "en" if language == "zh" else "zh"
