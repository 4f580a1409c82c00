"""From a question to passages, with the chat before it: over generation on a tiny model."""

import pytest

from generation.config import GenerationConfig
from generation.step import FinishReason
from rag.follow_up import MAX_TOKENS, Origin
from rag.retrieval_config import FollowUp, RetrievalConfig
from tests.ui_fakes import parts
from ui import searching, session
from ui.session import answer

CHAT = [
    {"role": "user", "content": "What is the KV cache?"},
    {"role": "assistant", "content": "A store of keys and values."},
]
SHORT = GenerationConfig(max_new_tokens=4)
MODEL = RetrievalConfig(follow_up=FollowUp.MODEL)


def run(question, retrieval, made=None, **options):
    made = made or parts(end_ids=frozenset())
    return made, list(answer(made, question, CHAT, SHORT, retrieval, **options))


@pytest.fixture
def naming(monkeypatch):
    """The tiny model cannot name anything; what it says is replaced, that it runs is not."""

    def say(name):
        monkeypatch.setattr(searching.follow_up, "judge", lambda *_: name)

    return say


def test_every_option_reaches_the_retriever():
    made, _ = run("How?", RetrievalConfig(2, ("d",), 0.5, 3))
    assert made.retriever.asked[1:] == (2, ("d",))
    assert made.retriever.options == {"diversity": 0.5, "neighbours": 3}


def test_a_follow_up_is_searched_for_with_the_question_before_and_asked_as_it_is():
    made, updates = run("How big is it?", RetrievalConfig())
    assert made.retriever.asked[0] == "What is the KV cache? How big is it?"
    assert updates[-1].search.origin is Origin.CARRIED
    asked = [part["text"] for part in updates[-1].prompt.messages[-1]["content"]]
    assert "How big is it?" in asked  # the prompt has the person's own words
    assert not any("What is the KV cache?" in text for text in asked)
    assert "rewriting" not in [update.stage for update in updates]


def test_switched_off_or_standing_by_itself_it_is_searched_for_as_it_was_asked():
    made, updates = run("How big is it?", RetrievalConfig(follow_up=FollowUp.OFF))
    assert made.retriever.asked[0] == "How big is it?"
    assert updates[-1].search.origin is Origin.AS_ASKED
    for config in (RetrievalConfig(), MODEL):
        made, updates = run("What is perplexity?", config)
        assert made.retriever.asked[0] == "What is perplexity?"
        assert "rewriting" not in [update.stage for update in updates]


def test_the_model_s_turn_comes_before_the_search(naming):
    naming("the KV cache")
    made, updates = run("How big is it?", MODEL)
    stages = list(dict.fromkeys(update.stage for update in updates))
    assert stages == ["waiting", "rewriting", "retrieving", "reading", "writing", "done"]
    assert made.retriever.asked[0] == "How big is the KV cache?"
    search = updates[-1].search
    assert search.origin is Origin.REWRITTEN
    assert updates[-1].seconds.rewriting == search.seconds > 0
    assert updates[-1].seconds.first_token > search.seconds


def test_what_the_model_says_in_vain_is_kept_and_the_question_before_carried():
    made, updates = run("How big is it?", MODEL)
    search = updates[-1].search
    assert search.origin is Origin.CARRIED
    assert search.refused
    assert made.retriever.asked[0] == "What is the KV cache? How big is it?"


def test_rewriting_is_greedy_and_no_longer_than_it_may_be(monkeypatch):
    lm = parts(end_ids=frozenset()).model
    asked = []
    real = searching.generate

    def watching(lm, ids, config, **options):
        asked.append(config)
        return real(lm, ids, config, **options)

    monkeypatch.setattr(searching, "generate", watching)
    first, second = (
        searching.rewritten(lm, "How big is it?", CHAT, lambda: False) for _ in range(2)
    )
    assert first.refused == second.refused
    assert asked == [GenerationConfig(max_new_tokens=MAX_TOKENS)] * 2  # temperature 0


def test_stopping_while_the_model_reads_the_chat_ends_the_turn_and_searches_nothing():
    stages = []
    made = parts(end_ids=frozenset())
    stop = lambda: "rewriting" in stages  # noqa: E731
    for update in answer(made, "How big is it?", CHAT, SHORT, MODEL, should_stop=stop):
        stages.append(update.stage)
    assert update.finish_reason is FinishReason.CANCELLED
    assert made.retriever.asked is None
    with made.scheduler.turn(""):
        pass


def test_closing_while_the_model_reads_the_chat_gives_the_turn_back():
    made = parts(end_ids=frozenset())
    updates = answer(made, "How big is it?", CHAT, SHORT, MODEL, session="a")
    while next(updates).stage != "rewriting":
        pass
    updates.close()
    with made.scheduler.turn("a"):
        pass


def test_an_error_while_rewriting_is_one_sentence(monkeypatch):
    monkeypatch.setattr(session, "rewritten", lambda *_: 1 / 0)
    _, updates = run("How big is it?", MODEL)
    assert updates[-1].problem.key == "error.unknown"
