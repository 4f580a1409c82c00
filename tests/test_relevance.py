"""`rag.relevance`: thresholds that go with the language and the size of the collection."""

import pytest

from rag.relevance import allowance, threshold


@pytest.mark.parametrize("script", ["han", "other"])
def test_the_more_is_searched_the_more_it_takes(script):
    sizes = [threshold(script, considered) for considered in (0, 1, 2, 100, 10_000)]
    assert sizes == sorted(sizes)
    assert sizes[0] == sizes[1]
    assert 0.8 < sizes[0] < sizes[-1] < 0.95


def test_cosines_between_chinese_texts_are_higher():
    assert threshold("han", 100) > threshold("other", 100)


def test_a_passage_in_another_language_counts_by_what_it_exceeds_the_usual_cosine():
    extra = allowance("han", 0.9, mean_cosine=0.75, passages=1000, answered=False)
    assert 0.75 + 0.05 + extra < 0.9 < 0.75 + 0.07 + extra


def test_it_takes_more_where_ones_own_language_has_an_answer():
    one, other = (
        allowance("other", 0.86, mean_cosine=0.72, passages=100, answered=answered)
        for answered in (True, False)
    )
    assert one < other


def test_a_few_passages_do_not_say_what_is_usual():
    """One passage, exactly what was asked for, is its own mean."""
    extra = allowance("han", 0.85, mean_cosine=0.85, passages=1, answered=False)
    assert 0.85 + extra > 0.85
