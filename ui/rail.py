"""The left rail: new chat, this session's chats, the documents, and adding files.

Gradio components and pure functions for what they show.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import gradio as gr

from rag.records import StoredDocument
from ui.i18n import Words, h
from ui.page import QUICK, Rail, acts, close_button
from ui.parts import Parts
from ui.turns import Chats
from ui.upload_button import wire_upload

SHOWN_DOCUMENTS = 6


def build(parts: Parts, words: Words, language: gr.State, documents_changed: gr.State) -> Rail:
    """Called inside the rail's column."""
    brand = gr.HTML(elem_id="brand", apply_default_css=False)
    words.add_dynamic(brand, lambda lang: {"value": brand_view(lang)})
    new_chat = words.add(gr.Button(elem_id="new-chat", size="md"), value="rail.new_chat")
    chats = gr.HTML(elem_id="chats", apply_default_css=False, js_on_load=acts("open"))
    documents = gr.HTML(elem_id="rail-documents", apply_default_css=False)
    words.add_dynamic(
        documents, lambda lang: {"value": documents_view(parts.store.documents(), lang)}
    )
    upload = gr.UploadButton(elem_id="upload", file_count="multiple", size="md")
    words.add(upload, label="rail.add")
    folder = gr.Button(elem_id="upload-folder", size="md")  # page.js hands its files to `upload`
    words.add(folder, value="rail.add_folder")
    cancel = gr.Button(elem_id="upload-cancel", size="md", visible=False)
    words.add(cancel, value="upload.cancel")
    progress = gr.HTML(elem_id="upload-progress", apply_default_css=False)
    show_all = words.add(gr.Button(elem_id="show-documents", size="md"), value="rail.show_all")

    wire_upload(upload, cancel, progress, parts, language, documents_changed)
    documents_changed.change(
        lambda lang: documents_view(parts.store.documents(), lang), language, documents, **QUICK
    )
    return Rail(new_chat, chats, documents, show_all)


def brand_view(language: str) -> str:
    """The name, what skips the rail, and what closes it where it is a drawer."""
    skip = f'<a class="skip" href="#question">{h(language, "shell.skip")}</a>'
    return f'{skip}<div class="brand"><i></i><b>Glassbox</b>{close_button(language, "rail")}</div>'


def chats_view(chats: Chats, language: str) -> str:
    """This session's conversations, once there are any; the open one is marked."""
    rows = "".join(
        f'<li><button type="button" data-act="open" data-chat="{escape(chat.id)}"'
        f"{' aria-current=true' if chat is chats.chat else ''}>"
        f"<bdi>{escape(chat.title)}</bdi></button></li>"
        for chat in chats.chats
        if chat.turns
    )
    return f'<h3 class="label">{h(language, "rail.chats")}</h3><ul>{rows}</ul>' if rows else ""


def documents_view(documents: Sequence[StoredDocument], language: str) -> str:
    """The newest documents by name, with how many passages each has."""
    title = h(language, "rail.documents", count=len(documents))
    if not documents:
        hint = h(language, "rail.no_documents")
        return f'<h3 class="label">{title}</h3><p class="hint">{hint}</p>'
    rows = "".join(
        f'<li title="{escape(d.name)}"><bdi>{escape(d.name)}</bdi>'
        f'<small title="{h(language, "rail.passages", count=d.passages)}">{d.passages}</small></li>'
        for d in list(documents)[::-1][:SHOWN_DOCUMENTS]
    )
    return f'<h3 class="label">{title}</h3><ul>{rows}</ul>'
