"""The passages behind an answer: what is shown, what is said about it, and that it stays text."""

from dataclasses import replace

import pytest

from rag.citations import Support
from tests.ui_fakes import passage, retrieval, turn
from ui.i18n import h
from ui.passage_view import (
    EXCERPT,
    cited_numbers,
    panel,
    passage_card,
    share,
    window,
)

NASTY = "<img src=x onerror=alert(1)>"


def test_a_passage_shows_its_number_name_page_and_supporting_span():
    card = passage_card(passage(1), 1, "en", retrieval(passage(1)), [(0, 53)])
    assert '<span class="number">1</span>' in card
    assert ">lease.pdf</bdi>" in card
    assert "p. 4" in card
    assert "<mark>Either party may terminate with three months&#x27; notice.</mark>" in card


def test_everything_from_a_document_is_escaped():
    found = passage(1, document=NASTY, text=NASTY + "x" * 400, heading=(NASTY,), page=None)
    shown = panel(turn(found=retrieval(found, passage(2, document=NASTY))), 0, "en")
    assert NASTY not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown


@pytest.mark.parametrize("span", [(0, 10), (503, 560), (950, 1000)])
def test_what_is_shown_holds_the_whole_mark_begins_at_a_word_and_is_short(span):
    text = "".join(chr(97 + i % 26) if i % 7 else " " for i in range(1000))
    start, end = window(text, [span])
    assert start <= span[0] and span[1] <= end
    assert end - start <= EXCERPT
    assert start in (0, span[0]) or text[start - 1] == " "


def test_a_mark_longer_than_the_room_is_shown_whole():
    assert window("x" * 1000, [(100, 800)]) == (100, 800)


def test_without_a_mark_it_begins_after_the_headings():
    text = "# Lease\n\n## Notice\n\nThree months."
    assert text[slice(*window(text, []))] == "Three months."
    assert window("# Only a heading", []) == (0, 16)


def test_a_heading_can_be_marked_itself():
    assert window("# Notice\n\nThree months.", [(0, 8)])[0] == 0


def test_the_whole_passage_can_be_opened_when_it_was_cut():
    long = passage(1, text="word " * 200, highlight=None)
    assert "<details>" in passage_card(long, 1, "en", retrieval(long))
    assert "<details>" not in passage_card(passage(1), 1, "en", retrieval(passage(1)))


def test_a_passage_that_the_answer_does_not_cite_says_so():
    shown = panel(turn("Three months. [1]"), 0, "en")
    assert shown.count(h("en", "passages.not_cited")) == 1
    assert cited_numbers("a [2] b [9]", 2) == {2}


def test_what_stands_behind_the_answer_is_marked_and_used():
    found = (Support(0, 10, 2, (54, 88)), Support(11, 15, 2, (0, 53)), Support(16, 20, 2, (0, 53)))
    shown = panel(replace(turn("No marker."), supports=found), 0, "en")
    assert "<mark>Keys are returned on the last day.</mark>" in shown
    assert shown.count("<mark>Either party") == 2  # once here, once for the question
    assert shown.count(h("en", "passages.not_cited")) == 1


def test_what_was_not_close_enough_is_counted_and_shown_as_such():
    found = replace(retrieval(passage(1)), rejected=(passage(2), passage(3)))
    shown = panel(turn(found=found), 0, "en")
    assert h("en", "passages.title", used=1, found=3) in shown
    assert h("en", "passages.too_far", count=2) in shown


def test_the_threshold_is_the_middle_of_the_bar():
    found = retrieval(passage(1))
    assert share(passage(1, probability=1.0), found) == 1.0
    assert share(passage(1, probability=found.threshold), found) == 0.5
    assert 0 < share(passage(1, probability=0.01), found) < 0.1


def test_nothing_relevant_cites_nothing_and_shows_what_was_nearest():
    shown = panel(turn("No idea.", retrieval(passage(1), relevant=False)), 0, "en")
    assert h("en", "passages.none_relevant") in shown
    assert ">lease.pdf</bdi>" in shown
    assert 'class="number"' not in shown


def test_what_did_not_fit_is_shown_as_left_out():
    done = turn()
    prompt = replace(done.update.prompt, used=(passage(1),), dropped=(passage(2),))
    shown = panel(replace(done, update=replace(done.update, prompt=prompt)), 0, "en")
    assert h("en", "passages.dropped", count=1) in shown


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_empty_states_say_what_will_be_here(language):
    assert h(language, "passages.empty") in panel(None, 0, language)
    empty = turn("x", retrieval(relevant=False, considered=0))
    assert h(language, "passages.no_documents") in panel(empty, 0, language)
    off = turn("x")
    off = replace(off, update=replace(off.update, retrieval=None))
    assert h(language, "passages.off") in panel(off, 0, language)
