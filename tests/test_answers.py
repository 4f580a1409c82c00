"""`benchmarks.answers`: which questions are asked, and what its figures are means of."""

import pytest

from benchmarks.answer_metrics import Citation
from benchmarks.answers import Answered, drawn, figures, held
from benchmarks.xquad import DataSet, Question

QUESTIONS = [
    Question(f"Q{article}.{number}", article, article, "gold", 5, ("gold",), (5,))
    for article in range(10)
    for number in range(3)
]


def answered(question: Question, text: str, *citations: Citation, found: bool = True) -> Answered:
    return Answered(question, text, found, citations, prompt_tokens=100, seconds=1.0)


def test_the_halves_share_no_article_and_the_same_questions_are_drawn_again():
    dev, test = (drawn(QUESTIONS, 99, split) for split in ("dev", "test"))
    assert not {q.article for q in dev} & {q.article for q in test}
    assert len(dev) + len(test) == len(QUESTIONS)
    assert drawn(QUESTIONS, 7, "dev") == dev[:7]


def test_every_article_is_asked_about_before_one_is_asked_about_again():
    asked = [question.article for question in drawn(QUESTIONS, 20, "all")]
    assert sorted(asked[:10]) == sorted(asked[10:]) == list(range(10))


def test_of_a_large_data_set_those_asked_about_are_held():
    data = DataSet([f"paragraph {place}" for place in range(1000)], [0] * 1000, [])
    kept = held(data, [Question("Q", 999, 0, "gold", 0)])
    assert len(kept) == 300 and kept[999] == "paragraph 999"


def test_the_figures_are_means_over_answers_and_over_citations():
    right, wrong = Citation(0, 0, 10), Citation(0, 10, 20)
    row = figures(
        [
            answered(QUESTIONS[0], "It is gold.", right, wrong),
            answered(QUESTIONS[1], "Gold", wrong, wrong),
            answered(QUESTIONS[2], "It is not mentioned.", found=False),
            answered(QUESTIONS[2], "silver"),
        ],
        passages=3,
        language="en",
    )
    assert row["contains"] == 1 / 2 and row["exact"] == 1 / 4
    assert row["precision"] == 1 / 4 and row["recall"] == 1 / 2
    assert row["nothing"] == row["declined"] == 1 / 4
    assert row["f1"] == pytest.approx((1 / 2 + 1) / 4)


def test_without_passages_there_is_nothing_to_cite():
    row = figures([answered(QUESTIONS[0], "gold", found=False)], passages=0, language="en")
    assert row["precision"] is row["recall"] is row["nothing"] is None
