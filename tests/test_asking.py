"""From a question to the turn of a conversation."""

from generation.config import GenerationConfig
from rag.citations import check_citations
from tests.ui_fakes import parts, passage, retrieval
from ui import asking
from ui.settings import Settings

SHORT = Settings(config=GenerationConfig(max_new_tokens=6))


def ask(made, earlier=(), settings=SHORT):
    return list(asking.ask(made, "How long?", earlier, settings, "en", "me", lambda: False))


def test_the_context_is_measured_once_the_prompt_is_known_and_adds_up():
    turns = ask(parts(end_ids=frozenset()))
    assert turns[0].context is None
    last = turns[-1]
    assert last.done
    assert last.context.used == last.update.prompt.tokens
    assert last.context.room == 6


def test_what_stands_behind_an_answer_is_looked_up_when_it_is_complete(monkeypatch):
    looked = []

    def look(text, texts):
        looked.append(texts)
        return check_citations(text, texts)

    monkeypatch.setattr(asking, "check_citations", look)
    ask(parts(end_ids=frozenset()))
    assert looked == [[passage(1).text, passage(2).text]]


def test_without_passages_nothing_stands_behind_it():
    (*_, last) = ask(parts(retrieval(passage(1), relevant=False), end_ids=frozenset()))
    assert last.supports == ()
