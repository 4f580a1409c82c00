"""What a page is shown of what a model writes, and what is said aloud."""

import pytest

from ui.pacing import next_sentences, paced
from ui.session import AnswerUpdate


def updates(count):
    yield AnswerUpdate("reading")
    for number in range(1, count + 1):
        yield AnswerUpdate("writing", text="x" * number, tokens=number)
    yield AnswerUpdate("done", text="x" * count, tokens=count)


def test_the_first_token_and_the_end_always_come_and_the_rest_in_their_time():
    ticks = iter(number / 100 for number in range(1000))
    shown = list(paced(updates(100), seconds=0.1, clock=lambda: next(ticks)))
    assert shown[0].stage == "reading"
    assert shown[1].tokens == 1
    assert shown[-1] == AnswerUpdate("done", text="x" * 100, tokens=100)
    assert 10 <= len(shown) <= 13


def test_a_slow_model_is_shown_token_by_token():
    ticks = iter(range(1000))
    assert len(list(paced(updates(20), seconds=0.1, clock=lambda: next(ticks)))) == 22


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One. Two. Thr", "One. Two."),
        ("No end yet", ""),
        ("3.14 is pi", ""),
        ("第一句。第二句！第三", "第一句。第二句！"),
        ("A line\nand", "A line"),
    ],
)
def test_whole_sentences_are_announced(text, said):
    assert next_sentences(text, 0)[0] == said


def test_a_sentence_is_announced_once():
    said, end = next_sentences("One. Two", 0)
    assert next_sentences("One. Two. Three", end)[0] == "Two."
    assert said == "One."
