"""One answer under two prompts, drawn: signs, sums and levels are those of the numbers."""

import math

import pytest

from ui.shift_view import Shift, factor, level, shift_html, signed, sum_text

SHIFTS = [Shift("Kon", -0.1, -6.1), Shift("wik", -0.2, -0.2), Shift(" Old", -1.0, -0.5)]


def test_the_sum_is_the_chain_rule_of_the_differences():
    assert sum_text(SHIFTS, "en") == (
        "Σ Δ log p = +5.5: the passages made this answer 244.7 times likelier"
    )


def test_an_answer_that_the_passages_made_less_likely_is_called_so():
    assert "2.7 times less likely" in sum_text([Shift("a", -2.0, -1.0)], "en")


@pytest.mark.parametrize(
    ("delta", "expected"), [(0.05, 0), (0.1, 1), (-0.8, 2), (2.31, 3), (-9.0, 3), (math.nan, 0)]
)
def test_levels_follow_the_size_of_the_change_whatever_its_sign(delta, expected):
    assert level(delta) == expected


def test_vast_factors_are_powers_of_e():
    assert factor(2.0) == "7.4"
    assert factor(31.4) == "e³¹"


def test_signs_are_typographic():
    assert signed(-0.55) == "−0.6"
    assert signed(0.5) == "+0.5"


def test_each_token_has_a_colour_a_bar_and_a_row():
    html = shift_html(SHIFTS, "en")
    assert 'class="tok with-3"' in html
    assert 'class="tok without-1"' in html
    assert html.count('class="up"') == 2
    assert html.count('class="down"') == 1
    assert html.count("<tr>") == len(SHIFTS) + 1


def test_bars_of_both_signs_share_one_scale():
    html = shift_html([Shift("a", 0.0, -6.0), Shift("b", -3.0, 0.0)], "en")
    assert "--size:0.667" in html
    assert "--size:0.333" in html
    assert "--zero:0.333" in html


def test_token_text_stays_text():
    html = shift_html([Shift('<img src=x onerror="alert(1)">', -1.0, -2.0)], "en")
    assert "<img" not in html


def test_nothing_scored_draws_nothing():
    assert shift_html([], "en") == ""
