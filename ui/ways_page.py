"""The page "Four ways to write": one question, written in four ways, each with what it took.

An adapter between Gradio components and `ui.ways.write_ways`; what is drawn comes from
`ui.ways_view`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from ui import ways_view as view
from ui.decoding_controls import problem_html
from ui.i18n import h
from ui.pacing import next_sentences, paced
from ui.page import GENERATION, QUICK, Shell
from ui.plain_text import typed
from ui.retrieval_controls import RetrievalControls
from ui.running import Running
from ui.settings import read_retrieval
from ui.ways import (
    DEFAULT_TOKENS,
    LEAST_TOKENS,
    MAX_TEMPLATE,
    MOST_TOKENS,
    default_template,
    is_default_template,
    write_ways,
)
from ui.ways_update import WaysUpdate

MAX_QUESTION = 40_000  # characters; what fits the model is counted in tokens, by rag.prompt


@dataclass(frozen=True)
class _Page:
    """The components that a run fills, and what they need to be drawn."""

    shell: Shell
    running: Running
    question: gr.Textbox
    template: gr.Textbox
    run: gr.Button
    stop: gr.Button
    status: gr.HTML
    announcer: gr.HTML
    cards: dict[str, gr.HTML]
    shown: gr.State
    names: tuple[str, ...]  # of the options of retrieval, in the order of the event's arguments

    @property
    def outputs(self) -> list[Any]:
        changing = [self.template, self.run, self.stop, self.status, self.announcer, self.shown]
        return [*changing, *self.cards.values()]

    def on_run(
        self,
        question: str | None,  # None until something was typed
        template: str | None,
        tokens: int | None,
        language: str,
        request: gr.Request,
        *values: Any,
    ) -> Iterator[dict[Any, Any]]:
        """A generator over the states of one run."""
        question, template = typed(question), template or ""
        if not question:
            yield {self.status: _welcome_html(language)}
            return
        try:
            retrieval = read_retrieval(dict(zip(self.names, values, strict=True)))
        except ValueError as error:
            yield {self.status: problem_html(error, language)}
            return
        if is_default_template(template):
            template = default_template(question)
        yield {self.template: template, self.run: _visible(False), self.stop: _visible(True)}
        session = request.session_hash or ""
        with self.running.run(session) as flag:
            updates = write_ways(
                self.shell.parts,
                question,
                template,
                tokens if tokens is not None else DEFAULT_TOKENS,
                retrieval,
                should_stop=flag.is_set,
                session=session,
            )
            drawn, said, way = dict[str, str](), 0, None
            with closing(updates):
                for update in paced(updates):
                    said = said if update.writing == way else 0
                    way = update.writing
                    frame, drawn = self._frame(update, language, drawn)
                    sentence, said = next_sentences(view.being_written(update), said)
                    if sentence:
                        frame[self.announcer] = _announcement(sentence)
                    yield frame
            yield {
                self.run: _visible(True),
                self.stop: _visible(False),
                self.shown: update,
                self.announcer: _announcement(view.status_text(update, language)),
            }

    def on_stop(self, request: gr.Request) -> None:
        self.running.stop(request.session_hash or "")

    def on_question(self, question: str | None, template: str | None, language: str) -> Any:
        """A template that nobody has changed follows the language of the question."""
        if not is_default_template(template or ""):
            return gr.skip()
        return default_template(question or "", language)

    def on_language(
        self, update: WaysUpdate | None, question: str | None, template: str | None, language: str
    ) -> dict[Any, Any]:
        fitting = self.on_question(question, template, language)
        if update is None:
            return {self.status: _welcome_html(language), self.template: fitting}
        return {**self._frame(update, language, {})[0], self.template: fitting}

    def _frame(
        self, update: WaysUpdate, language: str, drawn: dict[str, str]
    ) -> tuple[dict[Any, Any], dict[str, str]]:
        """The cards that look otherwise than `drawn`, and all of them as they look now."""
        cards = {name: view.card_html(name, update, language) for name in self.cards}
        frame: dict[Any, Any] = {
            self.cards[name]: html for name, html in cards.items() if drawn.get(name) != html
        }
        return {self.status: _status_html(update, language), **frame}, cards


def build(shell: Shell) -> None:
    """Called inside the page's tab."""
    words = shell.words
    with gr.Column(elem_id="ways-page", min_width=0):
        with gr.Column(elem_id="ways-form", min_width=0):
            question = gr.Textbox(
                elem_id="ways-question",
                lines=1,
                max_lines=5,
                max_length=MAX_QUESTION,
                container=False,
            )
            words.add(question, label="ways.question", placeholder="ways.placeholder")
            with gr.Row(elem_id="ways-controls"):
                template = gr.Textbox(
                    default_template(""),
                    elem_id="ways-template",
                    lines=3,
                    max_lines=8,
                    max_length=MAX_TEMPLATE,
                    min_width=0,
                )
                words.add(template, label="ways.template_label", info="ways.template_info")
                tokens = gr.Number(
                    DEFAULT_TOKENS,
                    elem_id="ways-tokens",
                    precision=0,
                    minimum=LEAST_TOKENS,
                    maximum=MOST_TOKENS,
                    min_width=0,
                )
                words.add(tokens, label="ways.n")
                run = gr.Button(variant="primary", elem_id="ways-run", size="md")
                words.add(run, value="ways.run")
                stop = gr.Button(visible=False, elem_id="ways-stop", size="md")
                words.add(stop, value="chat.stop")
            retrieval = RetrievalControls(shell.parts.store, words)
            retrieval.build_panel(passages=True)
        status = gr.HTML(_welcome_html("en"), elem_id="ways-status", apply_default_css=False)
        with gr.Column(elem_id="ways-cards", min_width=0):
            cards = {
                name: gr.HTML(elem_id=f"ways-card-{name}", apply_default_css=False)
                for name in view.CARDS
            }
        announcer = gr.HTML(elem_id="ways-announcer", apply_default_css=False)
    shown, names = gr.State(None), tuple(retrieval.fields)
    page = _Page(
        shell, Running(), question, template, run, stop, status, announcer, cards, shown, names
    )
    inputs = [question, template, tokens, shell.language, *retrieval.fields.values()]
    retrieval.wire_documents(shell.documents_changed)
    gr.on([run.click, question.submit], page.on_run, inputs, page.outputs, **GENERATION)
    stop.click(page.on_stop, **QUICK)
    question.input(
        page.on_question,
        [question, template, shell.language],
        template,
        trigger_mode="always_last",
        **QUICK,
    )
    shell.language.change(
        page.on_language,
        [page.shown, question, template, shell.language],
        page.outputs,
        **QUICK,
    )


def _visible(visible: bool) -> Any:
    return gr.update(visible=visible)


def _status_html(update: WaysUpdate, language: str) -> str:
    text = escape(view.status_text(update, language))
    if update.problem is not None:
        return f'<p class="problem" role="alert">{text}</p>'
    return f'<p class="hint">{text}</p>' if text else ""


def _announcement(text: str) -> str:
    return f'<div class="sr" aria-live="polite">{escape(text.strip())}</div>'


def _welcome_html(language: str) -> str:
    return f'<p class="hint">{h(language, "ways.welcome")}</p>'
