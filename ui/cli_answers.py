"""How answers and passages are printed: streamed text for a person, or one JSON object.

Drains `ui.session.answer` and `ui.comparing.compare_answers`; knows neither retrieval nor models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generation.config import GenerationConfig
from generation.method import Method
from rag.retrieval_config import RetrievalConfig
from ui.cli_passages import print_passages, print_scope
from ui.compare_view import divergence_text, run_facts
from ui.comparing import SIDES, ComparisonUpdate, SideRun, compare_answers
from ui.decoding_text import strategy_text
from ui.i18n import t
from ui.parts import Parts
from ui.plain_text import json_text, printable
from ui.records import answer_record, passage_record
from ui.session import AnswerUpdate, Problem, answer
from ui.token_view import mean_logprob

SESSION = "command line"


class AnswerError(Exception):
    """The answer ended in a problem; the message is its sentence."""


def ask(
    parts: Parts,
    question: str,
    config: GenerationConfig,
    method: Method = Method(),  # noqa: B008  (frozen)
    *,
    retrieval: RetrievalConfig | None,
    language: str,
    as_json: bool,
    history: Sequence[dict[str, str]] = (),
) -> None:
    """Stream the answer, then its passages and how it ended; or print JSON when it is complete.

    Raises AnswerError.
    """
    update = AnswerUpdate("retrieving")
    write = Typewriter()
    streamed = not as_json and config.num_beams == 1  # a beam's text may still be replaced
    answers = answer(
        parts, question, history, config, retrieval, language, session=SESSION, method=method
    )
    for update in answers:
        if streamed:
            write(update.text)
    if as_json:
        _raise_problem(update.problem, language)
        print(json_text(answer_record(update)))
        return
    write(update.text)
    print()
    _raise_problem(update.problem, language)
    if update.search is not None and update.search.text != question:
        print(f"{t(language, 'search.searched')} {printable(update.search.text)}")
    used = update.prompt.used if update.prompt else ()
    print_passages(used)
    if update.retrieval is not None:
        print_scope(len(used), update.retrieval)
    print(f"\n{_ending(update, language)}")


def compare(
    parts: Parts,
    question: str,
    config: GenerationConfig,
    method: Method = Method(),  # noqa: B008  (frozen)
    *,
    retrieval: RetrievalConfig,
    language: str,
    as_json: bool,
) -> None:
    """Both answers; the one with retrieval streams meanwhile. Raises AnswerError."""
    update = ComparisonUpdate("retrieving", question, config, method)
    write = Typewriter()
    if not as_json:
        print(f"{t(language, 'compare.with')}:")
    answers = compare_answers(
        parts, question, config, retrieval, language, session=SESSION, method=method
    )
    for update in answers:
        if not as_json and update.runs:
            write(update.runs["with"].text)
    if as_json:
        _raise_problem(update.problem, language)
        print(json_text(comparison_record(update)))
        return
    print()
    _raise_problem(update.problem, language)
    print(f"  {_run_line(update.runs['with'], language)}\n\n{t(language, 'compare.without')}:")
    print(printable(update.runs["without"].text))
    print(f"  {_run_line(update.runs['without'], language)}\n")
    print(divergence_text(update, language))
    print_passages(update.runs["with"].prompt.used)


def comparison_record(update: ComparisonUpdate) -> dict[str, Any]:
    """Both answers as plain data; `first_difference` counts tokens from 0."""
    return {
        "first_difference": update.divergence,
        "prompt_tokens_differing": update.differing,
        **{side: _run_record(update.runs[side]) for side in SIDES},
        "passages": [passage_record(passage) for passage in update.runs["with"].prompt.used],
    }


class Typewriter:
    """Prints a growing text: each call prints what was added since the last one."""

    def __init__(self) -> None:
        self._printed = 0

    def __call__(self, text: str) -> None:
        print(printable(text[self._printed :]), end="", flush=True)
        self._printed = len(text)


def _run_record(run: SideRun) -> dict[str, Any]:
    return {
        "answer": run.text,
        "finish_reason": run.finish_reason and str(run.finish_reason),
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": len(run.steps),
        "mean_logprob": mean_logprob(run.steps),
    }


def _ending(update: AnswerUpdate, language: str) -> str:
    parts = [
        t(language, f"finish.{update.finish_reason}"),
        strategy_text(update.strategy, language),
        t(language, "chat.tokens", count=update.tokens),
    ]
    if update.tokens_per_second:
        parts.append(t(language, "chat.rate", rate=f"{update.tokens_per_second:.1f}"))
    return " · ".join(parts)


def _run_line(run: SideRun, language: str) -> str:
    return " · ".join(run_facts(run, language))


def _raise_problem(problem: Problem | None, language: str) -> None:
    if problem is not None:
        raise AnswerError(t(language, problem.key, **problem.values))
