"""Context-aware decoding against its definition, computed without a cache."""

from __future__ import annotations

import math

import pytest
import torch

from generation.config import GenerationConfig
from generation.context_aware import generate_context_aware, reweigh
from generation.decoding import generate
from generation.step import FinishReason, PromptTooLong
from tests.tiny import ARCHITECTURES, tiny_lm

WITH = list(range(40, 60))
WITHOUT = list(range(52, 60))
GREEDY = GenerationConfig(max_new_tokens=24)


def token_ids(steps) -> list[int]:
    return [step.token_id for step in steps]


@torch.no_grad()
def reweighed(lm, answer, alpha):
    """`(V,)` logits of both sides mixed as the paper's equation says, after an answer so far."""
    sides = [lm.hf_model(torch.tensor([ids + answer])).logits[0, -1] for ids in (WITH, WITHOUT)]
    return (1 + alpha) * sides[0] - alpha * sides[1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_greedy_tokens_are_those_of_the_definition(architecture, alpha):
    lm = tiny_lm(architecture, seed=1)
    answer = []
    while len(answer) < 24 and not (answer and answer[-1] in lm.end_ids):
        answer.append(int(reweighed(lm, answer, alpha).argmax()))
    assert token_ids(generate_context_aware(lm, WITH, WITHOUT, GREEDY, alpha=alpha)) == answer


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_step_keeps_the_model_apart_from_the_reweighed_distribution(architecture):
    lm = tiny_lm(architecture, seed=2, end_ids=frozenset({256}))
    config = GenerationConfig(max_new_tokens=10, temperature=0.8, top_k=5, seed=3)
    answer = []
    for step in generate_context_aware(lm, WITH, WITHOUT, config, alpha=0.5):
        with torch.no_grad():
            model = lm.hf_model(torch.tensor([WITH + answer])).logits[0, -1].log_softmax(-1)
        kept = (reweighed(lm, answer, 0.5) / 0.8).topk(5)
        values = kept.values.log_softmax(-1).tolist()
        sampler = dict(zip(kept.indices.tolist(), values, strict=True))
        assert step.position == len(WITH) + len(answer)
        assert step.logprob == pytest.approx(model[step.token_id].item(), abs=1e-4)
        assert step.rank == int((model > model[step.token_id]).sum()) + 1
        assert step.end_prob == pytest.approx(model[256].exp().item(), abs=1e-6)
        assert step.sampler_logprob == pytest.approx(sampler[step.token_id], abs=1e-3)
        for candidate in step.candidates:
            expected = sampler.get(candidate.token_id, -math.inf)
            assert candidate.sampler_logprob == pytest.approx(expected, abs=1e-3)
            assert candidate.logprob == pytest.approx(model[candidate.token_id].item(), abs=1e-4)
        answer.append(step.token_id)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 1.0, "seed": 5}, {"temperature": 0.7, "top_p": 0.8, "min_p": 0.05}],
    ids=str,
)
def test_alpha_zero_is_the_plain_loop(architecture, options):
    lm = tiny_lm(architecture)
    config = GenerationConfig(max_new_tokens=40, repetition_penalty=1.1, **options)
    plain = list(generate(lm, WITH, config))
    ours = list(generate_context_aware(lm, WITH, WITHOUT, config, alpha=0.0))
    assert token_ids(ours) == token_ids(plain)
    for one, other in zip(ours, plain, strict=True):
        assert (one.logprob, one.sampler_logprob) == (other.logprob, other.sampler_logprob)
        assert one.finish_reason is other.finish_reason


def test_equal_contexts_have_nothing_to_amplify():
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=30)
    assert token_ids(generate_context_aware(lm, WITH, WITH, config, alpha=1.0)) == token_ids(
        generate(lm, WITH, config)
    )


def test_the_context_changes_the_text_here():
    lm = tiny_lm(end_ids=frozenset())
    assert token_ids(generate_context_aware(lm, WITH, WITHOUT, GREEDY)) != token_ids(
        generate(lm, WITH, GREEDY)
    )


def test_reweighing_two_numbers_by_hand():
    mixed = reweigh(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 0.0, -1.0]]), 0.5)
    assert mixed.tolist() == [[1.5, 1.5, 0.5]]


def test_a_token_that_the_model_masks_stays_impossible():
    masked = torch.tensor([[1.0, -math.inf, -math.inf]])
    mixed = reweigh(masked, torch.tensor([[1.0, -math.inf, 2.0]]), 0.5)
    assert mixed.tolist() == [[1.0, -math.inf, -math.inf]]


@pytest.mark.parametrize("side", [0, 1])
def test_numbers_that_are_not_finite_are_reported(side):
    logits = [torch.zeros(1, 5), torch.zeros(1, 5)]
    logits[side][0, 2] = math.nan
    with pytest.raises(FloatingPointError, match="finite"):
        reweigh(*logits, 0.5)


# How a run ends


def test_it_ends_at_the_length_limit_and_at_an_end_token():
    free = list(generate_context_aware(tiny_lm(end_ids=frozenset()), WITH, WITHOUT, GREEDY))
    assert len(free) == 24
    assert free[-1].finish_reason is FinishReason.LENGTH
    end = free[5].token_id
    lm = tiny_lm(end_ids=frozenset({end}))
    ended = list(generate_context_aware(lm, WITH, WITHOUT, GREEDY))
    assert token_ids(ended) == token_ids(free)[: token_ids(free).index(end) + 1]
    assert ended[-1].finish_reason is FinishReason.EOS


@pytest.mark.parametrize("sides", [(WITH, WITHOUT), (WITHOUT, WITH)], ids=["with", "without"])
def test_it_ends_when_the_longer_side_fills_the_window(sides):
    lm = tiny_lm(context=30, end_ids=frozenset())
    steps = list(generate_context_aware(lm, *sides, GREEDY))
    assert len(steps) == 30 - len(WITH)
    assert steps[-1].finish_reason is FinishReason.CONTEXT_FULL
    assert all(step.finish_reason is None for step in steps[:-1])


def test_should_stop_is_asked_before_each_prompt_and_after_each_token():
    lm = tiny_lm(end_ids=frozenset())
    for asked, written in [(0, 0), (1, 0), (2, 1), (3, 2)]:
        answers = iter([False] * asked + [True])
        run = generate_context_aware(
            lm, WITH, WITHOUT, GREEDY, should_stop=lambda answers=answers: next(answers)
        )
        assert [step.finish_reason for step in run] == [None] * written


# Options


@pytest.mark.parametrize("value", [-1, -1e-9, 11, math.nan, math.inf, "1", None, True], ids=repr)
def test_an_odd_alpha_is_refused_by_name_and_range(value):
    with pytest.raises(ValueError, match="alpha must be a number from 0 to 10"):
        next(generate_context_aware(tiny_lm(), WITH, WITHOUT, GREEDY, alpha=value))


def test_beams_are_refused():
    with pytest.raises(ValueError, match="num_beams"):
        next(generate_context_aware(tiny_lm(), WITH, WITHOUT, GenerationConfig(num_beams=2)))


@pytest.mark.parametrize("position", [0, 1])
def test_both_prompts_must_be_there_and_fit(position):
    lm = tiny_lm(context=64)
    for ids, error in [([], ValueError), ([50] * 64, PromptTooLong)]:
        sides = [WITH, WITHOUT]
        sides[position] = ids
        with pytest.raises(error):
            next(generate_context_aware(lm, *sides, GREEDY))
