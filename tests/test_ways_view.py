"""The four ways drawn: what is said of them, and untrusted text kept text."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from generation.config import GenerationConfig
from generation.step import FinishReason
from ui import ways_view as view
from ui.session import Problem
from ui.ways_update import Iteration, Piece, WaysUpdate, Written

HOSTILE = '<img src=x onerror="alert(1)"></section><script>alert(1)</script>'


def written(text="Paris.", ids=(1, 2, 3), passes=3, reason=FinishReason.EOS):
    return Written(20, text, ids, len(ids), passes, 0.25, reason)


def update(**changes):
    made = WaysUpdate(
        stage="done",
        question="Where?",
        config=GenerationConfig(max_new_tokens=3),
        prompt=SimpleNamespace(used=(), tokens=20),
        plain=written(),
        retrieved=written("Rome."),
        one_shot=written("Paaa", ids=(1, 9, 9), passes=1, reason=None),
        jacobi=written(passes=2),
        iterations=(
            Iteration(1, ("Pa", "a", "a"), 1, frozenset({0, 1}), 0.1),
            Iteration(2, ("Pa", "ris", "."), 3, frozenset({1, 2}), 0.1),
        ),
        template=written("City: Paris", passes=4),
        pieces=(Piece("City: "), Piece("Paris", "city")),
    )
    return replace(made, **changes)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_untrusted_text_stays_text(language):
    hostile = update(
        plain=written(HOSTILE),
        retrieved=written(HOSTILE),
        one_shot=written(HOSTILE),
        jacobi=written(HOSTILE),
        template=written(HOSTILE),
        iterations=(Iteration(1, (HOSTILE, HOSTILE), 1, frozenset({1}), 0.1),),
        pieces=(Piece(HOSTILE), Piece(HOSTILE, HOSTILE)),
    )
    html = "".join(view.card_html(card, hostile, language) for card in view.CARDS)
    assert "<img" not in html
    assert "<script" not in html
    assert html.count("</section>") == len(view.CARDS)
    assert 'onerror="' not in html


def test_every_way_says_its_passes_tokens_and_time():
    for card in view.CARDS:
        html = view.card_html(card, update(), "en")
        assert "3 tokens" in html
        assert "0.25 s" in html
    assert "<strong>1 pass</strong>" in view.card_html("parallel", update(), "en")
    assert "<strong>4 passes</strong>" in view.card_html("template", update(), "en")


def test_equality_is_said_only_of_equal_tokens():
    assert "equal to the greedy text" in view.agreement_text(update(), "en")
    other = update(jacobi=written(ids=(1, 2, 4)))
    assert "They part at token 3" in view.agreement_text(other, "en")
    shorter = update(jacobi=written(ids=(1, 2)))
    assert "They part at token 3" in view.agreement_text(shorter, "en")
    assert view.agreement_text(update(jacobi=None), "en") == ""
    running = update(jacobi=written(reason=None))
    assert view.agreement_text(running, "en") == ""


def test_where_they_part_the_probabilities_of_the_loop_are_said():
    loop = replace(written(), rivals=((0.9, 0.1), (0.8, 0.1), (0.314, 0.313)))
    text = view.agreement_text(update(plain=loop, jacobi=written(ids=(1, 2, 4))), "en")
    assert "31.4 %" in text
    assert "31.3 %" in text
    assert "fp32" in text


def test_a_text_that_was_cut_says_so():
    cut = replace(written(reason=FinishReason.LENGTH), rivals=((1.0, 0.0),) * 3)
    assert "cut at 3 tokens" in view.card_html("plain", update(plain=cut), "en")
    assert "cut" not in view.card_html("plain", update(), "en")


def test_an_iteration_shows_what_is_final_and_what_changed():
    html = view.iterations_html(update(), "en")
    first, second = html.split("<li>")[1:]
    assert '<span class="it-final">Pa</span><span class="it-changed">a</span>' in first
    assert '<span class="it-open">a</span>' in first
    assert "1/3" in first
    assert '<span class="it-final">Paris.</span>' in second


def test_only_the_last_passes_are_drawn_while_they_are_made():
    many = tuple(Iteration(n, ("a",), 0, frozenset(), 0.1) for n in range(1, 31))
    running = update(stage="writing", writing="jacobi", iterations=many)
    assert view.iterations_html(running, "en").count("<li>") == view.LAST_ITERATIONS
    assert view.iterations_html(update(iterations=many), "en").count("<li>") == 30


def test_the_slots_alone_are_marked():
    assert view.pieces_html(update(), "en") == (
        'City: <span class="form-slot" title="Slot city">Paris</span>'
    )


def test_what_has_not_begun_says_so():
    waiting = update(retrieved=None, one_shot=None, jacobi=None, template=None, iterations=())
    for card in view.CARDS[1:]:
        assert "Not begun yet" in view.card_html(card, waiting, "en")
    assert view.card_html("plain", update(prompt=None), "en") == ""


def test_the_status_says_which_way_is_written_and_how_it_ended():
    running = update(stage="writing", writing="jacobi")
    assert view.status_text(running, "en") == "Writing 3 of 4: Jacobi iteration…"
    assert "13 passes" in view.status_text(update(), "en")
    assert "Stopped" in view.status_text(update(stopped=True), "en")
    problem = Problem("ways.bad_template", {"message": "Line 1."})
    assert view.status_text(update(problem=problem), "zh") == "模板无法填写。Line 1."


def test_only_text_that_grows_is_read_out():
    assert view.being_written(update(writing="plain")) == "Paris."
    assert view.being_written(update(writing="jacobi")) == ""
    assert view.being_written(update()) == ""
