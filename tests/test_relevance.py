"""`rag.relevance`: what speaks for a passage, and how it adds up to a probability."""

import math

import pytest

from rag.relevance import (
    LEAST_PROBABILITY,
    Question,
    allowance,
    least_score,
    log_odds,
    probability,
    signals,
    usual_cosine,
)

ENGLISH = Question("other", considered=100, answered=False)
CHINESE = Question("han", considered=100, answered=False)


def chance(question: Question = ENGLISH, **changes) -> float:
    numbers = {"cosine": 0.82, "sentence": 0.82, "words": 0.1, "usual": None} | changes
    return probability(signals(question, **numbers))


def test_the_probability_is_the_logistic_function_of_the_signals_sum():
    found = signals(ENGLISH, cosine=0.85, sentence=0.86, words=0.2, usual=None)
    total = sum(signal.weight * (signal.value - signal.neutral) for signal in found)
    assert log_odds(found) == pytest.approx(total)
    assert probability(found) == pytest.approx(1 / (1 + math.exp(-total)))


def test_each_signal_speaks_for_a_passage():
    assert chance() < chance(cosine=0.83) < chance(cosine=0.83, sentence=0.83)
    assert chance() < chance(words=0.2)
    foreign = chance(usual=0.75)
    assert foreign < chance(usual=0.75, cosine=0.83)
    assert foreign < chance(usual=0.75, sentence=0.83)
    assert foreign < chance(usual=0.75, words=0.2)


def test_the_more_is_searched_the_more_it_takes():
    sizes = [chance(ENGLISH._replace(considered=n)) for n in (0, 1, 2, 100, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == sizes[1]
    least = [least_score("other", n) for n in (0, 1, 2, 100, 10_000)]
    assert least == sorted(least)


def test_cosines_between_chinese_texts_are_higher():
    assert chance(CHINESE) < chance(ENGLISH)
    assert least_score("han", 100) > least_score("other", 100)


def test_extreme_signals_give_a_probability_still():
    assert 0 < chance(cosine=-1.0, sentence=-1.0) < 1e-9
    assert 0.999 < chance(cosine=1.0, sentence=1.0, words=1.0) <= 1


def test_a_passage_in_another_language_counts_by_what_it_exceeds_the_usual_cosine():
    near = {"usual": 0.75, "words": 0.0}
    assert chance(cosine=0.79, sentence=0.79, **near) < LEAST_PROBABILITY
    assert chance(cosine=0.83, sentence=0.83, **near) > LEAST_PROBABILITY


def test_it_takes_more_where_ones_own_language_has_an_answer():
    assert chance(ENGLISH._replace(answered=True), usual=0.75) < chance(usual=0.75)
    assert allowance(0.86, 0.75, answered=True) < allowance(0.86, 0.75, answered=False)


def test_the_allowance_makes_a_score_comparable_with_the_least():
    extra = allowance(0.9, 0.75, answered=False)
    assert 0.75 + 0.05 + extra < 0.9 < 0.75 + 0.07 + extra


def test_a_few_passages_do_not_say_what_is_usual():
    """One passage, exactly what was asked for, is its own mean."""
    assert usual_cosine("han", 0.85, passages=1) < 0.75
    assert usual_cosine("han", 0.85, passages=10_000) == pytest.approx(0.85, abs=1e-3)
