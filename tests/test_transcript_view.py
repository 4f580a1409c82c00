"""A conversation as HTML: citations, how an answer ended, what is said when something is off."""

from dataclasses import replace

import pytest

from generation.step import FinishReason
from tests.ui_fakes import passage, retrieval, turn
from ui.i18n import h, t
from ui.session import Problem
from ui.transcript_view import transcript, turn_view, welcome


def test_a_citation_is_a_button_that_names_its_passage():
    html = turn_view(turn("Three months. [1]"), 2, "en")
    assert 'data-act="cite" data-turn="2" data-passage="1"' in html
    assert 'aria-label="Passage 1: lease.pdf"' in html


def test_a_file_name_cannot_leave_its_attribute():
    found = retrieval(passage(1, document='"><img src=x onerror=alert(1)>'))
    assert "<img" not in turn_view(turn("Yes. [1]", found), 0, "en")


def test_a_question_is_text():
    html = turn_view(replace(turn(), question="<b>x</b>\n**y**"), 0, "en")
    assert "&lt;b&gt;x&lt;/b&gt;\n**y**" in html


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("reason", list(FinishReason))
def test_how_it_ended_is_said_in_words(reason, language):
    html = turn_view(turn(finish_reason=reason), 0, language)
    assert h(language, f"finish.{reason.value}") in html


def test_the_numbers_of_this_run_are_under_the_answer():
    html = turn_view(turn(), 0, "en")
    for fact in ("first token 0.25 s", "10 tokens/s", "5 tokens"):
        assert fact in html


def test_nothing_relevant_is_said_above_the_answer():
    html = turn_view(turn("Flour.", retrieval(passage(1), relevant=False)), 0, "en")
    notice = h("en", "chat.nothing_relevant")
    assert html.index(notice) < html.index("Flour.")


def test_citations_of_an_answer_without_passages_stay_text():
    html = turn_view(turn("See [1].", retrieval(passage(1), relevant=False)), 0, "en")
    assert "See [1]." in html


def test_while_it_is_written_there_is_a_cursor_and_nothing_to_press():
    html = turn_view(turn(stage="writing", finish_reason=None), 0, "en")
    assert 'class="cursor"' in html
    assert "retry" not in html and "edit" not in html
    assert t("en", "chat.writing", count=5) in html


def test_a_wait_is_visible():
    html = turn_view(turn("", stage="waiting", ahead=3), 0, "en")
    assert h("en", "chat.waiting", ahead=3) in html


def test_a_problem_is_one_sentence_and_the_text_so_far_is_kept():
    html = turn_view(turn("Three mon", problem=Problem("error.memory")), 0, "en")
    assert h("en", "error.memory") in html
    assert "Three mon" in html
    assert 'data-act="retry"' in html


def test_turns_are_numbered_from_zero_and_the_edited_one_is_marked():
    html = transcript([turn(), turn()], "en", editing=1)
    assert html.count("<article") == 2
    assert 'class="turn editing" data-turn="1"' in html


def test_the_notice_of_the_model_is_on_the_empty_page():
    assert "smaller &lt;model&gt;" in welcome("en", "smaller <model>")
