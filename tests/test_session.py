"""One question to one answer, over real generation on a tiny model."""

import pytest

from generation.config import GenerationConfig
from generation.scheduler import Scheduler
from generation.step import FinishReason
from generation.strategies import Method
from rag.database import StoreError
from rag.embedding import EmbeddingError
from rag.retrieval_config import RetrievalConfig
from tests.ui_fakes import parts, passage, retrieval
from ui import session
from ui.i18n import t
from ui.session import answer

SHORT = GenerationConfig(max_new_tokens=8)


def texts(prompt):
    return "".join(part["text"] for m in prompt.messages for part in m["content"])


def test_the_stages_come_in_order_and_every_token_is_an_update():
    updates = list(answer(parts(end_ids=frozenset()), "How long?", config=SHORT))
    stages = [update.stage for update in updates]
    assert stages == ["retrieving", "waiting", "reading", *["writing"] * 8, "done"]
    assert [update.tokens for update in updates[3:-1]] == list(range(1, 9))
    assert updates[-1].finish_reason is FinishReason.LENGTH


def test_the_text_is_the_decoding_of_the_steps():
    lm = parts(end_ids=frozenset())
    last = list(answer(lm, "How long?", config=SHORT))[-1]
    assert last.text == lm.model.decode([step.token_id for step in last.steps])


def test_passages_are_in_the_prompt_when_they_are_relevant():
    last = list(answer(parts(), "How long?", config=SHORT))[-1]
    assert "[1] lease.pdf" in texts(last.prompt)
    assert len(last.prompt.used) == 2


@pytest.mark.parametrize("question", ["hi", "How do I make pizza?", "", "???"])
def test_nothing_relevant_puts_nothing_into_the_prompt(question):
    found = retrieval(passage(1), relevant=False)
    last = list(answer(parts(found), question, config=SHORT))[-1]
    assert not last.prompt.used
    assert "lease" not in texts(last.prompt)
    assert last.problem is None


def test_without_retrieval_nothing_is_looked_up():
    made = parts()
    last = list(answer(made, "How long?", config=SHORT, retrieval=None))[-1]
    assert last.retrieval is None
    assert made.retriever.asked is None


def test_the_filter_and_the_number_of_passages_reach_the_retriever():
    made = parts()
    list(answer(made, "How long?", config=SHORT, retrieval=RetrievalConfig(2, ("d",))))
    assert made.retriever.asked == ("How long?", 2, ("d",))


def test_stopping_keeps_the_text_and_says_so():
    written = []
    updates = answer(parts(end_ids=frozenset()), "How long?", should_stop=lambda: len(written) >= 3)
    for update in updates:
        if update.stage == "writing":
            written.append(update.text)
    assert len(written) == 3
    assert update.text == written[-1]
    assert update.finish_reason is FinishReason.CANCELLED


def test_closing_gives_the_turn_back_at_once():
    made = parts(end_ids=frozenset())
    updates = answer(made, "How long?", session="a")
    while next(updates).stage != "writing":
        pass
    updates.close()
    with made.scheduler.turn("a"):
        pass


def test_a_session_that_is_answering_is_told_so_in_one_sentence():
    made = parts()
    with made.scheduler.turn("a"):
        last = list(answer(made, "How long?", session="a"))[-1]
    assert last.problem.key == "error.busy"


def test_giving_up_while_waiting_is_a_stop_and_no_error():
    made = parts()
    with made.scheduler.turn("somebody else"):
        last = list(answer(made, "How long?", session="a", should_stop=lambda: True))[-1]
    assert last.finish_reason is FinishReason.CANCELLED
    assert last.problem is None


def test_a_full_queue_is_told_so():
    made = parts()
    object.__setattr__(made, "scheduler", Scheduler(max_waiting=0))
    with made.scheduler.turn("somebody else"):
        last = list(answer(made, "How long?", session="a"))[-1]
    assert last.problem.key == "error.busy"


def test_a_question_that_does_not_fit_says_what_to_do():
    last = list(answer(parts(context=512), "long " * 400, config=SHORT))[-1]
    assert last.problem.key == "error.too_long"
    assert last.problem.values == {"budget": "504"}


def test_running_out_of_memory_keeps_the_text_and_the_next_question_works(monkeypatch):
    made = parts(end_ids=frozenset())
    real = session.write

    def failing(*arguments):
        for number, step in enumerate(real(*arguments)):
            if number == 3:
                raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
            yield step

    monkeypatch.setattr(session, "write", failing)
    last = list(answer(made, "How long?", config=SHORT, session="a"))[-1]
    assert last.problem.key == "error.memory"
    assert last.tokens == 3 and last.text
    monkeypatch.setattr(session, "write", real)
    assert list(answer(made, "How long?", config=SHORT, session="a"))[-1].problem is None


def test_an_unexpected_error_is_one_sentence_too(monkeypatch):
    monkeypatch.setattr(session, "build_messages", lambda *a, **k: 1 / 0)
    last = list(answer(parts(), "How long?"))[-1]
    assert last.problem.key == "error.unknown"
    assert last.problem.values == {"kind": "ZeroDivisionError"}


def test_beams_stream_a_draft_and_end():
    config = GenerationConfig(max_new_tokens=6, num_beams=3)
    updates = list(answer(parts(end_ids=frozenset()), "How long?", config=config))
    assert sum(update.stage == "writing" for update in updates) == 6
    assert updates[-1].finish_reason is FinishReason.LENGTH
    assert not updates[-1].steps


def test_times_are_measured():
    last = list(answer(parts(end_ids=frozenset()), "How long?", config=SHORT))[-1]
    seconds = last.seconds
    assert 0 < seconds.prefill <= seconds.first_token
    assert last.tokens_per_second == pytest.approx(7 / seconds.decode)


@pytest.mark.parametrize(
    "method",
    [
        Method(penalty_alpha=0.6),
        Method(context_alpha=1.0),
        Method(regex="(yes|no)"),
        Method(json_schema='{"enum": ["yes", "no"]}'),
    ],
    ids=["contrastive", "context-aware", "regex", "schema"],
)
def test_every_method_answers_through_the_same_door(method):
    last = list(answer(parts(), "How long?", config=SHORT, method=method))[-1]
    assert last.problem is None
    assert last.tokens == len(last.steps) > 0
    if method.regex or method.json_schema:
        assert last.text.strip('"') in ("yes", "no")


@pytest.mark.parametrize("method", [Method(regex="(a"), Method(json_schema="{"), Method(regex="a")])
def test_options_that_cannot_be_followed_are_a_sentence(method):
    config = GenerationConfig(num_beams=2) if method.regex == "a" else SHORT
    last = list(answer(parts(), "How long?", config=config, method=method))[-1]
    assert last.problem.key == "error.setting"
    assert last.problem.values["message"]


@pytest.mark.parametrize(
    ("method", "use_retrieval", "name"),
    [
        (Method(), True, "greedy"),
        (Method(penalty_alpha=0.5), True, "contrastive search"),
        (Method(context_alpha=0.5), True, "context-aware greedy"),
        (Method(context_alpha=0.5), False, "greedy"),  # nothing to amplify: the plain loop ran
    ],
)
def test_an_answer_says_how_it_was_written(method, use_retrieval, name):
    config = GenerationConfig(max_new_tokens=4)
    options = RetrievalConfig() if use_retrieval else None
    *_, last = answer(parts(), "How long?", config=config, retrieval=options, method=method)
    assert last.strategy == name


@pytest.mark.parametrize(
    "error",
    [
        StoreError("damaged", "The documents' file is damaged: restore a copy of it"),
        EmbeddingError("The embedding model returned a vector that is not finite."),
    ],
)
def test_documents_that_cannot_be_searched_are_said_to_be_in_words(error):
    made = parts()

    def fails(*_, **__):
        raise error

    made.retriever.retrieve = fails
    *_, last = answer(made, "How long?", config=SHORT)
    said = t("en", last.problem.key, **last.problem.values)
    assert str(error).rstrip(".") in said
    *_, last = answer(made, "How long?", config=SHORT, retrieval=None)
    assert last.problem is None and last.tokens
