"""The controls of retrieval: one under the name of each field of `RetrievalConfig`.

Gradio components only, for the chat, the comparison and the four ways; `ui.settings` reads them.
Follow-up questions have a control where there is a chat that they can follow.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from rag.retrieval_config import MOST_NEIGHBOURS, FollowUp, RetrievalConfig
from rag.store import DocumentStore
from ui.i18n import Words, t
from ui.page import QUICK

MOST_PASSAGES = 10  # on a slider; the command line and the API go further
DEFAULT = RetrievalConfig()


class RetrievalControls:
    """`fields` in one order for events. Each builder is called where its controls shall stand."""

    def __init__(
        self, store: DocumentStore, words: Words, fields: dict[str, Any] | None = None
    ) -> None:
        self._store = store
        self._words = words
        self.fields: dict[str, Any] = {} if fields is None else fields

    def build_panel(self, passages: bool) -> None:
        """A closed panel of what else chooses passages; `passages` too unless shown elsewhere."""
        with (
            self._words.add(
                gr.Accordion(open=False, elem_classes="all-options"),
                label="controls.retrieval_options",
            ),
            gr.Row(elem_classes="numbers"),
        ):
            if passages:
                self.build_passages()
            self.build_documents()
            self.build_spread()

    def build_passages(self) -> None:
        self._add("passages", gr.Slider(1, MOST_PASSAGES, DEFAULT.passages, step=1))

    def build_spread(self) -> None:
        """How unlike one another passages are, and how much of their documents comes along."""
        self._add("diversity", gr.Slider(0.0, 1.0, DEFAULT.diversity, step=0.05))
        self._add("neighbours", gr.Slider(0, MOST_NEIGHBOURS, DEFAULT.neighbours, step=1))

    def build_follow_up(self) -> None:
        component = gr.Radio(value=DEFAULT.follow_up.value, elem_classes="choice")
        self._words.add_dynamic(component, _ways_to_follow_up)
        self.fields["follow_up"] = component

    def build_documents(self) -> None:
        """A name can be typed to find it; none chosen means all."""
        self._add("document_ids", gr.Dropdown([], value=[], multiselect=True))

    def wire_documents(self, changed: gr.State) -> None:
        """Follow what comes and goes: a document that was removed is no longer chosen."""
        documents = self.fields["document_ids"]
        changed.change(self.document_choices, documents, documents, **QUICK)

    def document_choices(self, chosen: list[str] | None) -> Any:
        """An update of the document filter after documents came or went."""
        choices = [(document.name, document.id) for document in self._store.documents()]
        there = {id_ for _, id_ in choices}
        return gr.update(choices=choices, value=[id_ for id_ in chosen or () if id_ in there])

    def _add(self, name: str, component: Any) -> None:
        label, info = f"controls.{name}", f"controls.{name}_info"
        self.fields[name] = self._words.add(component, label=label, info=info)


def _ways_to_follow_up(language: str) -> dict[str, Any]:
    return {
        "choices": [(t(language, f"controls.follow_up_{way}"), way.value) for way in FollowUp],
        "label": t(language, "controls.follow_up"),
        "info": t(language, "controls.follow_up_info"),
    }
