"""The Compare page: one question, answered with and without retrieval, streamed side by side.

An adapter between Gradio components and `ui.comparing.compare_answers`; what is drawn comes from
`ui.compare_view`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from ui import compare_view as view
from ui.comparing import ComparisonUpdate, compare_answers
from ui.decoding_controls import DecodingControls, problem_html
from ui.i18n import h
from ui.pacing import paced
from ui.page import GENERATION, QUICK, Shell
from ui.parts import Parts
from ui.plain_text import typed
from ui.retrieval_controls import RetrievalControls
from ui.running import Running
from ui.settings import read_decoding, read_retrieval
from ui.shift_view import shift_html

# (key of its label, default, least, most), in the order of the event's arguments
NUMBERS = (
    ("passages", 4, 1, 10),
    ("max_new_tokens", 128, 1, 2048),
    ("seed", 0, 0, 2**31 - 1),
)
# On a narrow screen one answer is shown at a time. Both lie in the same grid cell, so the page does
# not move when they change places, and what was in view stays in view.
SWITCH_JS = """
const page = document.getElementById('compare-page');
function sync() {
  for (const button of element.querySelectorAll('[data-show]'))
    button.setAttribute('aria-pressed', button.dataset.show === (page.dataset.shown || 'with'));
}
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-show]');
  if (!button) return;
  page.dataset.shown = button.dataset.show;
  sync();
});
watch('value', sync);
sync();
"""


@dataclass(frozen=True)
class Page:
    """The components that a comparison fills."""

    run: gr.Button
    stop: gr.Button
    problem: gr.HTML
    status: gr.HTML
    receipt: gr.HTML
    columns: gr.HTML
    shift: gr.HTML
    passages: gr.HTML
    shown: gr.State

    @property
    def all(self) -> list[Any]:
        return [*vars(self).values()]

    def draw(self, update: ComparisonUpdate, language: str, whole: bool) -> dict[Any, Any]:
        """Updates for one state of a comparison; what cannot have changed only when `whole`."""
        changes: dict[Any, Any] = {
            self.status: _status_html(update, language),
            self.columns: view.columns_html(update, language),
        }
        if whole:
            running = update.stage != "done"
            changes |= {
                self.run: gr.update(visible=not running),
                self.stop: gr.update(visible=running),
                self.problem: "",
                self.receipt: view.receipt_html(update, language),
                self.shift: shift_html(view.shifts_of(update), language),
                self.passages: view.passages_html(update, language),
                self.shown: update if not running else None,
            }
        return changes


def build(shell: Shell) -> None:
    words = shell.words
    with gr.Column(elem_id="compare-page", min_width=0):
        with gr.Column(elem_id="compare-form", min_width=0):
            question = gr.Textbox(lines=1, max_lines=5, elem_id="compare-question", container=False)
            words.add(question, label="compare.question", placeholder="compare.placeholder")
            with gr.Row(elem_id="compare-controls"):
                decoding = DecodingControls(words)
                numbers = [
                    words.add(
                        gr.Number(default, precision=0, minimum=least, maximum=most, min_width=0),
                        label=f"controls.{key}",
                    )
                    for key, default, least, most in NUMBERS
                ]
                run = words.add(
                    gr.Button(variant="primary", elem_id="compare-run", size="md"),
                    value="compare.run",
                )
                stop = gr.Button(visible=False, elem_id="compare-stop", size="md")
                words.add(stop, value="chat.stop")
            problem = gr.HTML(elem_classes="panel-problem", apply_default_css=False)
            retrieval = RetrievalControls(shell.parts.store, words)
            retrieval.build_panel(passages=False)
            with words.add(
                gr.Accordion(open=False, elem_classes="all-options"),
                label="controls.compare_options",
            ):
                refused = gr.HTML(elem_classes="order", apply_default_css=False)
                words.add_dynamic(refused, lambda language: {"value": _refused_html(language)})
                decoding.build_first(whole=False)
                decoding.build_all(lockstep=True)
        status = gr.HTML(_welcome_html("en"), elem_id="compare-status", apply_default_css=False)
        receipt = gr.HTML(elem_id="compare-receipt", apply_default_css=False)
        switch = gr.HTML(elem_id="compare-switch", apply_default_css=False, js_on_load=SWITCH_JS)
        words.add_dynamic(switch, lambda language: {"value": _switch_html(language)})
        columns = gr.HTML(elem_id="compare-columns", apply_default_css=False)
        shift = gr.HTML(elem_id="compare-shift", apply_default_css=False)
        passages = gr.HTML(elem_id="compare-passages", apply_default_css=False)
    page = Page(run, stop, problem, status, receipt, columns, shift, passages, gr.State(None))
    running = Running()
    fields = {**retrieval.fields, **decoding.fields}
    compare = _comparison(page, shell.parts, running, [*fields])
    inputs = [question, *numbers, shell.language, *fields.values()]
    retrieval.wire_documents(shell.documents_changed)
    gr.on([run.click, question.submit], compare, inputs, page.all, **GENERATION)
    stop.click(_stopping(running), **QUICK)
    shell.language.change(
        lambda update, language: _redraw(page, update, language),
        [page.shown, shell.language],
        page.all,
        **QUICK,
    )


def _comparison(page: Page, parts: Parts, running: Running, names: Sequence[str]):
    """The event of the run button: a generator over the states of one comparison."""

    def compare(
        request: gr.Request,
        question: str,
        k: int | None,
        length: int | None,
        seed: int | None,
        language: str,
        *values: Any,
    ) -> Iterator[dict[Any, Any]]:
        question = typed(question)
        if not question:
            yield {page.status: _welcome_html(language)}
            return
        session = _session(request)
        form = dict(zip(names, values, strict=True))
        try:
            retrieval = read_retrieval(form | {"passages": k})
            config, method = read_decoding(form | {"max_new_tokens": length, "seed": seed})
        except ValueError as error:
            yield {page.problem: problem_html(error, language)}
            return
        with running.run(session) as stop:
            answers = compare_answers(
                parts,
                question,
                config,
                retrieval,
                language,
                should_stop=stop.is_set,
                session=session,
                method=method,
            )
            with closing(answers):
                stage = None
                for update in paced(answers):
                    yield page.draw(update, language, whole=update.stage != stage)
                    stage = update.stage

    return compare


def _stopping(running: Running):
    def stop(request: gr.Request) -> None:
        running.stop(_session(request))

    return stop


def _redraw(page: Page, update: ComparisonUpdate | None, language: str) -> dict[Any, Any]:
    if update is None:
        return {page.status: _welcome_html(language)}
    return page.draw(update, language, whole=True)


def _session(request: gr.Request) -> str:
    return request.session_hash or ""


def _status_html(update: ComparisonUpdate, language: str) -> str:
    text = escape(view.status_text(update, language))
    if update.problem is not None:
        return f'<p class="problem" role="alert">{text}</p>'
    return f'<p class="hint" role="status">{text}</p>' if text else ""


def _welcome_html(language: str) -> str:
    return f'<p class="hint">{h(language, "compare.welcome")}</p>'


def _switch_html(language: str) -> str:
    buttons = "".join(
        f'<button type="button" data-show="{side}">{h(language, f"compare.{side}")}</button>'
        for side in ("with", "without")
    )
    return f'<div class="sides" role="group">{buttons}</div>'


def _refused_html(language: str) -> str:
    return f"<p>{h(language, 'controls.compare_refused')}</p>"
