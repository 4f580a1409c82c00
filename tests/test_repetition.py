"""Loops are reported as n-gram, repeats and growing probability; what looks like one is not."""

from __future__ import annotations

import math
import time

import pytest

from generation.config import GenerationConfig
from generation.decoding import generate
from generation.repetition import (
    LEAST_REPEATS,
    MOST_REPEATS,
    RepetitionDetector,
    find_repetition,
)
from generation.scoring import score
from generation.step import FinishReason, Step
from tests.tiny import tiny_lm


def step(position: int, text: str, logprob: float, token_id: int | None = None) -> Step:
    if token_id is None:
        token_id = sum(ord(sign) << (8 * n) for n, sign in enumerate(text))
    return Step(position, token_id, text, logprob, logprob, 1, 0.0, 0.0, (), 0.0)


def steps(texts: list[str], logprobs: list[float] | None = None, start: int = 7) -> list[Step]:
    """Steps whose probability grows all the time, unless it is said otherwise."""
    logprobs = logprobs or [-1 / (n + 1) for n in range(len(texts))]
    return [
        step(start + n, text, logprob)
        for n, (text, logprob) in enumerate(zip(texts, logprobs, strict=True))
    ]


def words(text: str) -> list[str]:
    """A crude tokenizer: words with the space before them, and every other sign by itself."""
    out: list[str] = []
    for sign in text:
        if out and sign.isalnum() and sign.isascii() and (out[-1][-1].isalnum() or out[-1] == " "):
            out[-1] += sign
        else:
            out.append(sign)
    return out


SENTENCE = [" I", " am", " not", " sure", " what", " to", " do", "."]


def test_a_sentence_over_and_over_is_reported_with_its_repeats():
    logprobs = [-2.0] * 3 + [-1.0] * 8 + [-0.5] * 8 + [-0.25] * 8 + [-0.1] * 8
    loop = find_repetition(steps([" Well", ",", " yes", *SENTENCE * 4], logprobs))
    assert loop is not None
    assert loop.text == "".join(SENTENCE)
    assert loop.repeats == 4
    assert loop.logprobs == pytest.approx((-1.0, -0.5, -0.25, -0.1))
    assert loop.position == 7 + 3
    assert len(loop.token_ids) == 8


def test_it_is_reported_as_long_as_it_lasts_and_no_longer():
    detector = RepetitionDetector()
    texts = [*SENTENCE * 6, " But", " then", *SENTENCE]
    reports = [detector.push(one) for one in steps(texts)]
    first = next(n for n, report in enumerate(reports) if report)
    assert first == LEAST_REPEATS * len(SENTENCE) - 1
    assert all(reports[first : 6 * len(SENTENCE)])
    assert not any(reports[6 * len(SENTENCE) :])
    assert max(report.repeats for report in reports if report) == 6
    assert {report.position for report in reports if report} == {7}


def test_the_shortest_n_gram_is_the_one_reported():
    loop = find_repetition(steps([" the"] * 60))
    assert loop is not None
    assert (loop.text, loop.repeats) == (" the", 60)


def test_a_character_spread_over_tokens_is_whole_when_it_can_be_decoded():
    lm = tiny_lm()
    ids = lm.encode("好的。" * 10)
    made = [step(n, lm.decode([i]), -1 / (n + 1), i) for n, i in enumerate(ids)]
    loop = find_repetition(made, lm.decode)
    assert loop is not None
    assert (loop.text, loop.repeats) == ("好的。", 10)
    assert find_repetition(made).text == "\ufffd" * 9


def test_what_becomes_less_probable_each_time_is_no_loop():
    falling = [-0.1 * (n // 8 + 1) ** 2 for n in range(48)]
    assert find_repetition(steps(SENTENCE * 6, falling)) is None


def test_what_is_certain_from_the_first_repeat_on_is_a_loop():
    wavering = [-0.001 if n % 3 else -0.002 for n in range(48)]
    assert find_repetition(steps(SENTENCE * 6, wavering)) is not None


def test_a_long_loop_stays_cheap():
    detector = RepetitionDetector()
    started = time.process_time()
    for n in range(20_000):
        report = detector.push(step(n, " the", -1e-3, 5))
    assert time.process_time() - started < 20
    assert report.repeats == 20_000
    assert len(report.logprobs) == MOST_REPEATS


# What is no loop, even if it were ever more probable

HARMLESS = {
    "a numbered list": "".join(f"{n}. fruit\n" for n in range(1, 30)),
    "a list with one item four times": "- milk\n" * 4,
    "the same item in a shopping list": "- milk\n- bread\n" * 3,
    "a table": "| name | days |\n| --- | --- |\n"
    + "".join(f"| clause {n} | {30 * n} |\n" for n in range(20)),
    "the rule of a wide table": "|" + " --- |" * 14,
    "an empty table": ("|  |  |  |  |\n") * 8,
    "a table of zeros": ("| 0 | 0 | 0 |\n") * 10,
    "code, deeply indented": "".join(
        " " * 4 * depth + f"if x{depth}:\n" for depth in [*range(9), *range(9)]
    ),
    "a line under a heading": "Title\n" + "=" * 80 + "\n",
    "a row of dots": "Contents" + "." * 120 + "4",
    "blank lines": "end\n" + "\n" * 40,
    "看看": "你看看这个，再想想那个，慢慢来，好好学习，天天向上。高高兴兴上班，平平安安回家。",
    "laughter": "哈哈哈哈哈哈哈哈哈哈！ ha ha ha ha ha ha ha ha ha ha",
    "a third": "1/3 = 0." + "3" * 100,
    "a refrain": "Row, row, row your boat, gently down the stream. " * 3,
    "no": "No, no, no, no, no, no, no! ",
    "a list in Chinese": "".join(f"第{n}条、租客应按时交租。\n" for n in "一二三四五六七八九十"),
    "JSON": "".join(f'    {{\n        "id": {n},\n        "ok": true\n    }},\n' for n in range(9)),
}


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("tokens", [words, list], ids=["words", "signs"])
def test_lists_tables_code_and_doubled_words_are_no_loops(name, tokens):
    assert find_repetition(steps(tokens(HARMLESS[name]))) is None


def test_texts_that_people_write_are_no_loops_by_the_probabilities_of_the_real_model(smollm2):
    before = smollm2.encode("\n")
    for name in list(HARMLESS)[:9]:
        scores = score(smollm2, before, smollm2.encode(HARMLESS[name])[:200])
        made = [step(n, s.text, s.logprob, s.token_id) for n, s in enumerate(scores)]
        assert find_repetition(made) is None, name


# In the loop that generates


def test_a_run_stops_at_a_loop_only_when_asked(smollm2):
    prompt = smollm2.encode("I don't know what to do.")
    free = list(generate(smollm2, prompt, GenerationConfig(max_new_tokens=60)))
    loop = find_repetition(free, smollm2.decode)
    assert loop is not None
    assert len(free) == 60
    assert loop.logprobs[-1] > loop.logprobs[0]
    assert math.exp(loop.logprobs[-1]) > 0.5

    config = GenerationConfig(max_new_tokens=60, stop_on_repetition=True)
    stopped = list(generate(smollm2, prompt, config))
    assert [s.token_id for s in stopped] == [s.token_id for s in free[: len(stopped)]]
    assert len(stopped) < 60
    assert stopped[-1].finish_reason is FinishReason.REPETITION
    assert find_repetition(stopped) is not None
    assert find_repetition(stopped[:-1]) is None


@pytest.mark.parametrize("value", [1, 0, None, "yes"])
def test_stopping_is_asked_for_by_true_or_false(value):
    with pytest.raises(ValueError, match="stop_on_repetition"):
        GenerationConfig(stop_on_repetition=value)


def test_it_watches_one_text_and_no_beams():
    with pytest.raises(ValueError, match="num_beams"):
        GenerationConfig(stop_on_repetition=True, num_beams=2)
