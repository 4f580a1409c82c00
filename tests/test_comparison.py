"""Two runs in lockstep give what each gives alone."""

from __future__ import annotations

import pytest

from generation.comparison import compare, differing_tokens, first_divergence
from generation.config import GenerationConfig
from generation.decoding import generate
from generation.strategies import Method, write
from tests.tiny import tiny_lm

WITH = list(range(40, 70))
WITHOUT = list(range(40, 45)) + list(range(60, 70))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_each_side_gets_the_tokens_of_a_run_of_its_own(temperature):
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=30, temperature=temperature, seed=9)
    sides: dict[str, list[int]] = {"with": [], "without": []}
    for side, step in compare(lm, WITH, WITHOUT, config):
        sides[side].append(step.token_id)
    assert sides["with"] == [s.token_id for s in generate(lm, WITH, config)]
    assert sides["without"] == [s.token_id for s in generate(lm, WITHOUT, config)]


def test_the_sides_take_turns_and_the_longer_one_goes_on_alone():
    lm = tiny_lm(context=40, end_ids=frozenset())
    config = GenerationConfig(max_new_tokens=20)
    order = [side for side, _ in compare(lm, WITH, WITHOUT, config)]
    assert order[:20] == ["with", "without"] * 10
    assert order[20:] == ["without"] * 10


def test_equal_prompts_give_equal_answers():
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=20, temperature=1.0)
    sides: dict[str, list[int]] = {"with": [], "without": []}
    for side, step in compare(lm, WITH, WITH, config):
        sides[side].append(step.token_id)
    assert sides["with"] == sides["without"]
    assert first_divergence(sides["with"], sides["without"]) is None


def test_the_first_divergence_is_the_first_index_that_differs():
    assert first_divergence([1, 2, 3], [1, 9, 3]) == 1
    assert first_divergence([1, 2], [1, 2, 3]) is None
    assert first_divergence([], [1]) is None


def test_the_tokens_only_one_prompt_has_are_counted():
    assert differing_tokens(WITH, WITHOUT) == (15, 0)
    assert differing_tokens([1, 2, 3], [1, 5, 3]) == (1, 1)


@pytest.mark.parametrize(
    ("config", "method", "named"),
    [
        (GenerationConfig(num_beams=2), Method(), "num_beams"),
        (GenerationConfig(), Method(context_alpha=0.5), "context_alpha"),
    ],
)
def test_what_would_not_be_the_same_on_both_sides_is_refused(config, method, named):
    with pytest.raises(ValueError, match=named):
        next(compare(tiny_lm(), [1, 2], [1], config, method=method))


def test_both_sides_use_the_method():
    lm, config, method = tiny_lm(), GenerationConfig(max_new_tokens=6), Method(penalty_alpha=0.6)
    both = list(compare(lm, [5, 6, 7], [7], config, method=method))
    for side, ids in (("with", [5, 6, 7]), ("without", [7])):
        alone = [step.token_id for step in write(lm, ids, config, method)]
        assert [step.token_id for s, step in both if s == side] == alone
