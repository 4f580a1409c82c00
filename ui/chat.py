"""The chat page: a question box, the conversation, and the passages behind the answer.

Gradio components and the adapters that drain `ui.asking.ask` into them. What to write is decided by
rag and generation, how it looks by the view modules; nothing of either is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import gradio as gr

from ui import passage_view, transcript_view
from ui.asking import ask
from ui.controls import Controls
from ui.i18n import h
from ui.meter import meter
from ui.pacing import next_sentences
from ui.page import GENERATION, QUICK, Shell, acts, close_button, integer
from ui.plain_text import typed
from ui.rail import chats_view
from ui.running import Running
from ui.session import AnswerUpdate, Problem
from ui.turns import Chats, Turn

MAX_QUESTION = 40_000  # characters; what fits the model is counted in tokens, by rag.prompt
HALT_SECONDS = 20.0  # how long opening another chat waits for the answer being written to end
Frame = dict[Any, Any]  # component to new value: what one yield shows


def build(shell: Shell) -> None:
    """Called inside the page's tab."""
    _ChatPage(shell)


class _ChatPage:
    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._parts = shell.parts
        self._running = Running()
        self._chats = gr.State(Chats())
        with gr.Row(elem_id="chat-page"):
            with gr.Column(elem_id="talk", min_width=0):
                self._build_transcript()
                self._build_composer()
            with gr.Column(elem_id="side", min_width=0):
                close = gr.HTML(apply_default_css=False)
                words = shell.words
                words.add_dynamic(close, lambda lang: {"value": close_button(lang, "side")})
                side = passage_view.panel(None, 0, "en")
                self._side = gr.HTML(side, elem_id="passages", apply_default_css=False)
        self._wire()

    def _build_transcript(self) -> None:
        on_click = acts("cite", "show", "edit", "retry")
        looks: dict[str, Any] = {"apply_default_css": False, "js_on_load": on_click}
        with gr.Column(elem_id="transcript", min_width=0):
            self._past = gr.HTML(elem_id="past", **looks)
            welcome = transcript_view.welcome("en", self._parts.notice)
            self._live = gr.HTML(welcome, elem_id="live", **looks)
        self._announcer = gr.HTML(elem_id="announcer", apply_default_css=False)

    def _build_composer(self) -> None:
        words = self._shell.words
        empty = meter(None, self._parts.model.context_length, "en")
        with gr.Column(elem_id="composer", min_width=0, scale=0):
            self._banner = gr.HTML(
                elem_id="banner", apply_default_css=False, js_on_load=acts("cancel_edit")
            )
            self._question = gr.Textbox(
                elem_id="question", lines=1, max_lines=8, max_length=MAX_QUESTION, container=False
            )
            words.add(self._question, label="chat.question", placeholder="chat.ask")
            self._meter = gr.HTML(empty, elem_id="meter", apply_default_css=False)
            with gr.Row(elem_id="composer-row"):
                self._controls = Controls(self._parts.store, words, self._shell.language)
                self._send = words.add(gr.Button(elem_id="send", size="md"), value="chat.send")
                self._stop = gr.Button(elem_id="stop", size="md", visible=False)
                words.add(self._stop, value="chat.stop")

    def _wire(self) -> None:
        shell, rail = self._shell, self._shell.rail
        state = [self._chats, shell.language]
        form = self._controls.inputs
        drawn = [self._past, self._live, self._side, self._meter, self._banner, rail.chats]
        changed = [self._chats, self._question, *drawn]
        answering = [*changed, self._send, self._stop, self._announcer]

        asks = [self._question.submit, self._send.click]
        gr.on(asks, self._on_ask, [self._question, *state, *form], answering, **GENERATION)
        self._stop.click(self._on_stop, **QUICK)
        for html in (self._past, self._live):
            html.retry(self._on_retry, [*state, *form], answering, **GENERATION)
            html.cite(self._on_show, state, self._side, **QUICK)
            html.show(self._on_show, state, self._side, **QUICK)
            html.edit(self._on_edit, state, changed, **QUICK)
        self._banner.cancel_edit(self._on_cancel_edit, state, changed, **QUICK)

        # Another conversation is opened only after the answer being written has ended.
        opened = gr.State("")
        for event in (rail.new_chat.click, rail.chats.open):
            event(self._halt, None, opened, **QUICK).then(
                self._on_open, [opened, *state], [*changed, shell.tabs], **QUICK
            )
        shell.language.change(self._draw, state, drawn, **QUICK)
        self._controls.retrieval.wire_documents(shell.documents_changed)

    # Answering

    def _on_ask(
        self, request: gr.Request, question: str, chats: Chats, language: str, *form: Any
    ) -> Iterator[Frame]:
        if question := typed(question):
            yield {self._question: ""}
            kept = chats if chats.editing is None else chats.cut(chats.editing)
            yield from self._answer(request, question, kept, language, form)

    def _on_retry(
        self, request: gr.Request, event: gr.EventData, chats: Chats, language: str, *form: Any
    ) -> Iterator[Frame]:
        number = integer(event, "turn")
        if number is not None and number < len(chats.turns):
            question = chats.turns[number].question
            yield from self._answer(request, question, chats.cut(number), language, form)

    def _answer(
        self,
        request: gr.Request,
        question: str,
        chats: Chats,
        language: str,
        form: Sequence[Any],
    ) -> Iterator[Frame]:
        """One question to its end. The turn is kept whatever happened to it."""
        number, said, shown = len(chats.turns), 0, None
        yield {
            self._past: transcript_view.transcript(chats.turns, language),
            self._banner: "",
            self._send: gr.update(visible=False),
            self._stop: gr.update(visible=True),
        }
        with self._running.run(request.session_hash or "") as flag:
            for turn in self._turns(request, question, chats, language, form, flag.is_set):
                frame: Frame = {self._live: transcript_view.turn_view(turn, number, language)}
                parts = (turn.update.retrieval is None, turn.context is None, turn.done)
                if parts != shown:
                    shown = parts
                    frame[self._side] = passage_view.panel(turn, number, language)
                    frame[self._meter] = self._draw_meter(turn, language)
                sentence, said = next_sentences(turn.update.text, said)
                if sentence:
                    frame[self._announcer] = _announcement(sentence)
                yield frame
            chats = chats.add(turn)
            ending = transcript_view.stage_words(turn.update, language)
            yield {
                self._chats: chats,
                self._shell.rail.chats: chats_view(chats, language),
                self._announcer: _announcement(f"{turn.update.text[said:]} {ending}"),
                self._send: gr.update(visible=True),
                self._stop: gr.update(visible=False),
            }

    def _turns(
        self,
        request: gr.Request,
        question: str,
        chats: Chats,
        language: str,
        form: Sequence[Any],
        should_stop: Any,
    ) -> Iterator[Turn]:
        try:
            settings = self._controls.read(form)
        except ValueError as error:
            problem = Problem("error.setting", {"message": str(error)})
            return iter([Turn(question, AnswerUpdate("done", problem=problem))])
        session = request.session_hash or ""
        return ask(self._parts, question, chats.turns, settings, language, session, should_stop)

    def _on_stop(self, request: gr.Request) -> None:
        self._running.stop(request.session_hash or "")

    # The conversation

    def _on_show(self, event: gr.EventData, chats: Chats, language: str) -> Any:
        number = integer(event, "turn")
        if number is None or number >= len(chats.turns):
            return gr.skip()  # the answer still being written, whose passages are on view
        return passage_view.panel(chats.turns[number], number, language)

    def _on_edit(
        self, request: gr.Request, event: gr.EventData, chats: Chats, language: str
    ) -> Frame:
        number = integer(event, "turn")
        if number is None or self._running.active(request.session_hash or ""):
            return {self._banner: gr.skip()}
        chats = chats.edit(number)
        question = "" if chats.editing is None else chats.turns[chats.editing].question
        return {self._chats: chats, self._question: question, **self._draw(chats, language)}

    def _on_cancel_edit(self, chats: Chats, language: str) -> Frame:
        chats = chats.edit(None)
        return {self._chats: chats, self._question: "", **self._draw(chats, language)}

    def _halt(self, request: gr.Request, event: gr.EventData) -> str:
        """Ends a running answer; passes on which chat to open, "" for a new one."""
        self._running.stop(request.session_hash or "", wait=HALT_SECONDS)
        data = event._data
        return str(data.get("chat", "")) if isinstance(data, dict) else ""

    def _on_open(self, chat_id: str, chats: Chats, language: str) -> Frame:
        chats = chats.open(chat_id) if chat_id else chats.new()
        tabs = {self._shell.tabs: gr.Tabs(selected="chat")}
        return {self._chats: chats, **tabs, **self._draw(chats, language)}

    # Drawing

    def _draw(self, chats: Chats, language: str) -> Frame:
        """Everything that depends on the open conversation."""
        *past, last = chats.turns or (None,)
        number = len(past)
        if last is None:
            live = transcript_view.welcome(language, self._parts.notice)
        else:
            live = transcript_view.turn_view(last, number, language, chats.editing == number)
        return {
            self._past: transcript_view.transcript(past, language, chats.editing),
            self._live: live,
            self._side: passage_view.panel(last, number, language),
            self._meter: self._draw_meter(last, language),
            self._banner: _editing_banner(language) if chats.editing is not None else "",
            self._shell.rail.chats: chats_view(chats, language),
        }

    def _draw_meter(self, turn: Turn | None, language: str) -> str:
        context = turn.context if turn is not None else None
        return meter(context, self._parts.model.context_length, language)


def _announcement(text: str) -> str:
    return f'<div class="sr" aria-live="polite">{escape(text.strip())}</div>'


def _editing_banner(language: str) -> str:
    return (
        f"<p>{h(language, 'chat.editing')} "
        f'<button type="button" class="quiet" data-act="cancel_edit">'
        f"{h(language, 'chat.cancel_edit')}</button></p>"
    )
