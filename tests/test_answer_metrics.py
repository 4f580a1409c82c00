"""`benchmarks.answer_metrics`: what counts as the same answer, and what does not."""

import pytest

from benchmarks import answer_metrics as metrics
from benchmarks.answer_metrics import Citation


@pytest.mark.parametrize(
    ("answer", "gold", "language", "expected"),
    [
        ("It was won by the Denver Broncos.", "Denver Broncos", "en", True),
        ("the DENVER broncos", "The Denver Broncos!", "en", True),
        ("It is 24–10.", "24-10", "en", True),
        ("In 1911.", "191", "en", False),  # whole words only
        ("A cart", "art", "en", False),
        ("二十个", "20", "zh", False),  # a number in words is another text
        ("塔高４１米。", "41 米", "zh", True),
        ("位于阿尔-穆瓦法克", "阿尔穆瓦法克", "zh", True),
        ("國王", "国王", "zh", False),
        ("", "x", "en", False),
    ],
)
def test_an_answer_contains_the_gold_one_in_whole_words_or_characters(
    answer, gold, language, expected
):
    assert metrics.contains(answer, ["something else entirely", gold], language) is expected


def test_exact_match_and_f1_are_those_of_squad():
    assert metrics.exact("The orchard.", ["orchard"], "en")
    assert not metrics.exact("An old orchard", ["orchard"], "en")
    assert metrics.f1("An old orchard", ["orchard"], "en") == pytest.approx(2 / 3)
    assert metrics.f1("old", ["orchard", "an old orchard"], "en") == pytest.approx(2 / 3)
    assert metrics.f1("四十一米高", ["四十一米"], "zh") == pytest.approx(8 / 9)
    assert metrics.f1("moon", ["orchard"], "en") == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The passages do not mention the moon.", True),
        ("I don't know.", True),
        ("以上段落没有提到月亮。", True),
        ("无法确定。", True),
        (" \n", True),
        ("The moon is not made of cheese.", False),
        ("It does not rain there.", False),
        ("他没有去学校。", False),
    ],
)
def test_declining_is_saying_that_the_passages_do_not_tell(answer, expected):
    assert metrics.declines(answer) is expected


def test_a_citation_is_right_when_it_holds_the_beginning_of_the_answer_in_its_paragraph():
    assert metrics.holds_gold(Citation(3, 10, 20), 3, [99, 10])
    assert not metrics.holds_gold(Citation(3, 10, 20), 3, [20])
    assert not metrics.holds_gold(Citation(2, 10, 20), 3, [15])


def test_the_language_is_that_of_most_questions():
    assert metrics.language_of(["是谁？", "KV?", "何时？"]) == "zh"
    assert metrics.language_of(["Who is 沈静澜?", "When?"]) == "en"
