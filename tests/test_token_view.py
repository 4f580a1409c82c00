"""Tokens drawn as HTML: escaped, shaded on one scale, and always readable without colour."""

import math
import re
from dataclasses import dataclass

import pytest

from ui import token_view


@dataclass(frozen=True)
class FakeToken:
    text: str
    logprob: float = 0.0
    rank: int = 1


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>',
    "' onmouseover='alert(1)",
    "&lt;b&gt;",
    "\u202egnp.exe",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("draw", [token_view.tokens_html, token_view.token_table])
def test_no_token_text_becomes_markup(draw, text):
    html = draw([FakeToken(text)])
    tags = re.findall(r"<(/?\w+)", html)
    assert set(tags) <= set(re.findall(r"<(/?\w+)", draw([FakeToken("plain")])))
    assert "\u202e" not in html
    assert not re.search(r"onmouseover=(?!&#x27;)", html)


@pytest.mark.parametrize(
    ("probability", "level"),
    [(1.0, 0), (0.9, 0), (0.89, 1), (0.5, 2), (0.3, 3), (0.1, 4), (0.04, 5), (1e-30, 5)],
)
def test_less_probable_tokens_are_shaded_more(probability, level):
    assert token_view.shade(math.log(probability)) == level


def test_a_probability_rounded_above_one_or_at_minus_infinity_is_still_drawn():
    assert token_view.shade(1e-9) == 0
    assert token_view.shade(-math.inf) == 5
    assert token_view.probability_text(-math.inf) == "< 0.01 %"
    assert token_view.probability_text(1e-9) == "100 %"


def test_each_token_says_its_text_probability_and_rank():
    html = token_view.tokens_html([FakeToken(" quarter", math.log(0.41), 3)])
    assert html.count("“ quarter” · probability 41 % · rank 3") == 1
    assert 'translate="no"' in html


def test_a_line_break_token_is_seen_and_breaks_the_line():
    html = token_view.tokens_html([FakeToken("a\n\n\n"), FakeToken("b")])
    assert "a↵↵↵" in html
    assert html.count("<br>") == 2


def test_the_divergence_is_marked_once_before_its_token():
    tokens = [FakeToken("same"), FakeToken("other"), FakeToken("more")]
    html = token_view.tokens_html(tokens, divergence=1)
    assert html.count('"diverge"') == 1
    assert html.index("same</span>") < html.index('"diverge"') < html.index("other</span>")
    assert '"diverge"' not in token_view.tokens_html(tokens, divergence=7)


def test_the_table_has_one_row_for_every_token_and_says_where_answers_part():
    tokens = [FakeToken(str(i), -0.5 * i, i + 1) for i in range(4)]
    table = token_view.token_table(tokens, "en", divergence=2)
    assert table.count("<tr>") == len(tokens) + 1
    assert table.count("Here the two answers part") == 1


def test_chinese_words_are_used_in_the_chinese_page():
    assert "概率" in token_view.token_table([FakeToken("词")], "zh")


def test_the_mean_log_probability_of_nothing_is_none():
    assert token_view.mean_logprob([]) is None
    assert token_view.mean_logprob([FakeToken("a", -1.0), FakeToken("b", -3.0)]) == -2.0
