"""The loop against its oracles: transformers' `generate`, and the loop without a cache."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch

from generation.config import GenerationConfig
from generation.decoding import generate, generate_without_cache, new_cache, prefill
from generation.step import FinishReason, PromptTooLong, Step
from tests.tiny import ARCHITECTURES, tiny_lm

PROMPT = list(range(40, 60))


def token_ids(steps) -> list[int]:
    return [step.token_id for step in steps]


def reference_ids(lm, prompt, **options) -> list[int]:
    """What transformers' own `generate` writes after the prompt."""
    output = lm.hf_model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        eos_token_id=sorted(lm.end_ids) or None,
        pad_token_id=0,
        **options,
    )
    return output[0, len(prompt) :].tolist()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("seed", range(3))
def test_greedy_tokens_equal_those_of_transformers(architecture, seed):
    lm = tiny_lm(architecture, seed=seed)
    ours = token_ids(generate(lm, PROMPT, GenerationConfig(max_new_tokens=60)))
    assert ours == reference_ids(lm, PROMPT, do_sample=False, max_new_tokens=60)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_repetition_penalty_gives_the_tokens_of_transformers(architecture):
    lm = tiny_lm(architecture, seed=1)
    config = GenerationConfig(max_new_tokens=60, repetition_penalty=1.3)
    theirs = reference_ids(lm, PROMPT, do_sample=False, max_new_tokens=60, repetition_penalty=1.3)
    assert token_ids(generate(lm, PROMPT, config)) == theirs


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_cache_changes_no_token(architecture, temperature):
    lm = tiny_lm(architecture)
    config = GenerationConfig(max_new_tokens=40, temperature=temperature, seed=7)
    cached = list(generate(lm, PROMPT, config))
    uncached = list(generate_without_cache(lm, PROMPT, config))
    assert token_ids(cached) == token_ids(uncached)
    for one, other in zip(cached, uncached, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


def test_a_cache_that_holds_a_prefix_gives_the_same_tokens():
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=30)
    cache = new_cache(lm, 100)
    prefill(lm, cache, PROMPT[:15])
    assert token_ids(generate(lm, PROMPT, config, cache=cache)) == token_ids(
        generate(lm, PROMPT, config)
    )


def test_a_prompt_read_in_chunks_gives_the_tokens_of_one_pass(monkeypatch):
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=30)
    whole = token_ids(generate(lm, PROMPT, config))
    monkeypatch.setattr("generation.decoding.PREFILL_CHUNK", 7)
    assert token_ids(generate(lm, PROMPT, config)) == whole


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others():
    lm = tiny_lm()

    def draw(seed):
        torch.manual_seed(seed * 31)  # the global generator must not matter
        config = GenerationConfig(max_new_tokens=40, temperature=1.0, seed=seed)
        return token_ids(generate(lm, PROMPT, config))

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_one_candidate_left_by_top_k_is_greedy():
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=30, temperature=0.8, top_k=1, seed=3)
    assert token_ids(generate(lm, PROMPT, config)) == token_ids(
        generate(lm, PROMPT, GenerationConfig(max_new_tokens=30))
    )


def test_a_step_records_what_the_model_predicted():
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=1, temperature=0.7, top_k=3, num_candidates=5)
    (step,) = generate(lm, PROMPT, config)
    with torch.no_grad():
        logits = lm.hf_model(torch.tensor([PROMPT])).logits[0, -1].double()
    probs = logits.softmax(-1)
    kept = (logits / 0.7).topk(3)
    sampler = dict(zip(kept.indices.tolist(), kept.values.log_softmax(-1).tolist(), strict=True))

    assert step.position == len(PROMPT)
    assert step.logprob == pytest.approx(probs[step.token_id].log().item(), abs=1e-4)
    assert step.sampler_logprob == pytest.approx(sampler[step.token_id], abs=1e-4)
    assert step.rank == int((probs > probs[step.token_id]).sum()) + 1
    assert step.entropy == pytest.approx(-(probs * probs.log2()).sum().item(), abs=1e-4)
    assert step.end_prob == pytest.approx(probs[sorted(lm.end_ids)].sum().item(), abs=1e-6)
    assert [c.token_id for c in step.candidates] == probs.topk(5).indices.tolist()
    for candidate in step.candidates:
        expected = sampler.get(candidate.token_id, -math.inf)
        assert candidate.sampler_logprob == pytest.approx(expected, abs=1e-4)


def test_a_chosen_token_outside_the_top_is_among_its_candidates():
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=60, temperature=3.0, num_candidates=2)
    steps = list(generate(lm, PROMPT, config))
    assert any(step.rank > 2 for step in steps)
    for step in steps:
        assert step.token_id in [c.token_id for c in step.candidates]


# How a run ends


def ends_with(steps: list[Step], reason: FinishReason) -> bool:
    return steps[-1].finish_reason is reason and all(s.finish_reason is None for s in steps[:-1])


def test_it_ends_at_the_length_limit():
    steps = list(generate(tiny_lm(end_ids=frozenset()), PROMPT, GenerationConfig(max_new_tokens=9)))
    assert len(steps) == 9
    assert ends_with(steps, FinishReason.LENGTH)


def test_it_ends_at_any_of_the_end_tokens():
    greedy = GenerationConfig(max_new_tokens=60)
    free = token_ids(generate(tiny_lm(end_ids=frozenset()), PROMPT, greedy))
    end = free[5]
    steps = list(generate(tiny_lm(end_ids=frozenset({257, end})), PROMPT, greedy))
    assert token_ids(steps) == free[: free.index(end) + 1]
    assert ends_with(steps, FinishReason.EOS)


def test_it_ends_when_the_window_is_full():
    lm = tiny_lm(context=32, end_ids=frozenset())
    steps = list(generate(lm, PROMPT, GenerationConfig(max_new_tokens=100)))
    assert len(PROMPT) + len(steps) == 32
    assert ends_with(steps, FinishReason.CONTEXT_FULL)


def test_it_ends_at_a_stop_string_that_lies_across_tokens():
    lm = tiny_lm(end_ids=frozenset())
    free = list(generate(lm, PROMPT, GenerationConfig(max_new_tokens=60)))
    printable = [
        n for n in range(5, 58) if all(33 <= ord(s.text[0]) < 127 for s in free[n : n + 2])
    ]
    at = printable[0]
    stop = free[at].text + free[at + 1].text
    config = GenerationConfig(max_new_tokens=60, stop=("never this", stop))
    steps = list(generate(lm, PROMPT, config))
    assert token_ids(steps) == token_ids(free[: len(steps)])
    assert lm.decode(token_ids(steps)).endswith(stop)
    assert lm.decode(token_ids(steps)).count(stop) == 1
    assert ends_with(steps, FinishReason.STOP_STRING)


def test_closing_the_generator_ends_the_work():
    lm = tiny_lm(end_ids=frozenset())
    passes = 0

    def count(*_):
        nonlocal passes
        passes += 1

    lm.hf_model.register_forward_hook(count)
    run = generate(lm, PROMPT, GenerationConfig(max_new_tokens=100))
    next(run)
    next(run)
    run.close()
    assert passes == 2


def test_a_long_prompt_can_be_stopped_while_it_is_read(monkeypatch):
    monkeypatch.setattr("generation.decoding.PREFILL_CHUNK", 4)
    lm = tiny_lm()
    asked = iter([False, False, True])
    cache = new_cache(lm, 100)
    config = GenerationConfig(max_new_tokens=5)
    steps = list(generate(lm, PROMPT, config, cache=cache, should_stop=lambda: next(asked)))
    assert steps == []
    assert cache.length == 8


@pytest.mark.parametrize(("length", "fits"), [(31, True), (32, False), (33, False)])
def test_a_prompt_must_leave_room_for_one_token(length, fits):
    lm = tiny_lm(context=32)
    run = generate(lm, [50] * length, GenerationConfig(max_new_tokens=5))
    if fits:
        assert len(list(run)) == 1
    else:
        with pytest.raises(PromptTooLong, match=str(length)):
            next(run)


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="empty"):
        next(generate(tiny_lm(), [], GenerationConfig()))


def test_numbers_that_are_not_finite_are_reported_and_never_chosen():
    lm = tiny_lm()
    with torch.no_grad():
        lm.hf_model.get_output_embeddings().weight[3] = math.nan
    for temperature in (0.0, 1.0):
        config = GenerationConfig(temperature=temperature)
        with pytest.raises(FloatingPointError, match="finite"):
            next(generate(lm, PROMPT, config))


# Options

NUMBERS = [f.name for f in fields(GenerationConfig) if f.name != "stop"]
ODD = [0, 1e-4, 1, -1, math.nan, math.inf, -math.inf, 1e300, "1", None, True, [1]]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_an_odd_value_is_refused_by_name_or_works(name, value):
    lm = tiny_lm()
    options = {"temperature": 1.0, "max_new_tokens": 3}
    try:
        config = GenerationConfig(**{**options, name: value})
    except ValueError as error:
        assert name in str(error)
        return
    if config.num_beams == 1:
        for step in generate(lm, PROMPT, config):
            assert math.isfinite(step.logprob)
            assert math.isfinite(step.sampler_logprob)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError):
        GenerationConfig(temprature=1.0)


@pytest.mark.parametrize("stop", ["abc", ("",), (1,), ("a", None)])
def test_stop_strings_must_be_strings_with_text(stop):
    with pytest.raises(ValueError, match="stop"):
        GenerationConfig(stop=stop)
