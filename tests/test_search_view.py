"""What was searched for, and how much was looked at: said where it matters, escaped, bilingual."""

import pytest

from rag.follow_up import Origin, SearchQuestion
from tests.ui_fakes import passage, retrieval
from ui.i18n import LANGUAGES, h
from ui.search_view import MOST_REPLY, is_about_all, scope, searched_for

NASTY = "<img src=x onerror=alert(1)>"


def test_a_question_that_was_searched_for_as_it_is_needs_no_words():
    assert searched_for(None, "en") == ""
    assert searched_for(SearchQuestion("How long?"), "en") == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_completed_question_is_shown_with_who_completed_it_and_how_to_change_that(language):
    carried = searched_for(SearchQuestion("A? B?", Origin.CARRIED), language)
    assert "A? B?" in carried
    assert h(language, "search.carried") in carried
    assert 'data-panel="retrieval"' in carried
    rewritten = searched_for(SearchQuestion("B of A?", Origin.REWRITTEN, seconds=1.25), language)
    assert h(language, "search.rewritten", seconds="1.2") in rewritten


def test_what_the_model_wrote_in_vain_is_shown_short_and_as_text():
    search = SearchQuestion(NASTY, Origin.CARRIED, refused=NASTY + "x" * 200, seconds=1)
    shown = searched_for(search, "en")
    assert "<img" not in shown
    assert "x" * MOST_REPLY not in shown and "…" in shown


def test_it_says_how_many_passages_of_how_many_were_read():
    assert "read 2 of the 1,234 passages" in scope(retrieval(considered=1234), 2, "Why?", "en")


def test_it_says_so_more_plainly_where_a_question_is_about_all():
    found = retrieval(passage(1), considered=500)
    said = h("en", "passages.counting")
    assert said in scope(found, 4, "How many records are there?", "en")
    assert said not in scope(found, 4, "Who signed it?", "en")


def test_nothing_is_said_where_everything_was_read_or_nothing():
    assert scope(retrieval(considered=2), 2, "How many?", "en") == ""
    assert scope(retrieval(considered=9), 0, "How many?", "en") == ""


@pytest.mark.parametrize(
    "question",
    ["How many records are there?", "List all rows", "What is the total of the orders?",
     "一共有多少条记录？", "列出所有文件", "平均价格是多少？"],
)  # fmt: skip
def test_questions_about_all_are_recognised(question):
    assert is_about_all(question)


@pytest.mark.parametrize(
    "question", ["Who signed the lease?", "What is a total order?", "谁签的？"]
)
def test_other_questions_are_not(question):
    assert not is_about_all(question)
