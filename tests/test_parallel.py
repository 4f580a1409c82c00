"""One pass and Jacobi iterations against the loop, and against the same written without a cache."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from generation.config import GenerationConfig
from generation.decoding import generate
from generation.parallel import jacobi_decode, one_shot
from generation.step import FinishReason, PromptTooLong
from tests.tiny import ARCHITECTURES, tiny_lm

PROMPT = list(range(40, 60))


@torch.no_grad()
def predict(lm, prompt, guess):
    """The most probable next token before each token of `guess`: one pass, no cache."""
    logits = lm.hf_model(torch.tensor([prompt + guess])).logits[0]
    return logits[len(prompt) - 1 : -1].argmax(-1).tolist()


def jacobi_reference(lm, prompt, guess):
    """Every pass over everything, until the guess predicts itself."""
    passes = []
    while (tokens := predict(lm, prompt, guess)) != guess:
        passes.append(tokens)
        guess = tokens
    return passes


def greedy(lm, prompt, n):
    steps = list(generate(lm, prompt, GenerationConfig(max_new_tokens=n)))
    return [step.token_id for step in steps], steps[-1].finish_reason


def forgetful_lm(architecture="llama", **options):
    """A model that hardly looks back: layers that add little to what the last embedding says.

    Some of its texts soon repeat a token, so that guesses are right now and then.
    """
    lm = tiny_lm(architecture, **options)
    with torch.no_grad():
        for name, parameter in lm.hf_model.named_parameters():
            if parameter.dim() > 1 and ("layers" in name or ".h." in name):
                parameter.mul_(0.1)
    return lm


# One pass


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("placeholder", [None, 0, 200])
def test_one_shot_reads_every_position_before_placeholders(architecture, placeholder):
    lm = tiny_lm(architecture)
    filler = PROMPT[-1] if placeholder is None else placeholder
    answer = one_shot(lm, PROMPT, 12, placeholder)
    assert list(answer.token_ids) == predict(lm, PROMPT, [filler] * 12)
    assert answer.text == lm.decode(answer.token_ids)
    with torch.no_grad():
        logits = lm.hf_model(torch.tensor([PROMPT + [filler] * 11])).logits[0, len(PROMPT) - 1 :]
    expected = logits.log_softmax(-1).amax(-1).tolist()
    assert answer.logprobs == pytest.approx(expected, abs=1e-4)


def test_one_shot_is_one_pass():
    lm = tiny_lm()
    shapes = []
    lm.hf_model.register_forward_pre_hook(
        lambda module, args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)),
        with_kwargs=True,
    )
    answer = one_shot(lm, PROMPT, 12)
    assert shapes == [(1, len(PROMPT) + 11)]
    assert answer.passes == 1


def test_only_the_first_token_of_one_shot_is_sure_to_be_the_greedy_one():
    lm = tiny_lm(end_ids=frozenset())
    guess, (text, _) = one_shot(lm, PROMPT, 12).token_ids, greedy(lm, PROMPT, 12)
    assert guess[0] == text[0]
    assert guess[1:] != tuple(text[1:])


# Jacobi iterations


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("make", [tiny_lm, forgetful_lm])
@pytest.mark.parametrize("seed", [2, 3, 8])
def test_the_fixed_point_is_the_greedy_text(architecture, make, seed):
    lm = make(architecture, seed=seed)
    *_, last = jacobi_decode(lm, PROMPT, 24)
    tokens, reason = greedy(lm, PROMPT, 24)
    assert list(last.token_ids) == tokens
    assert last.finish_reason is reason
    assert last.final == len(tokens)
    assert last.text == lm.decode(tokens)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("make", [tiny_lm, forgetful_lm])
@pytest.mark.parametrize(("seed", "placeholder"), [(8, None), (3, 7)])
def test_every_iteration_is_that_of_passes_over_everything(architecture, make, seed, placeholder):
    lm = make(architecture, seed=seed, end_ids=frozenset())
    guess = [PROMPT[-1] if placeholder is None else placeholder] * 16
    ours = list(jacobi_decode(lm, PROMPT, 16, placeholder=placeholder))
    passes = jacobi_reference(lm, PROMPT, guess)
    # We stop when all tokens are known to be final; the reference once more, when nothing changed.
    assert [list(i.token_ids) for i in ours[: len(passes)]] == passes
    assert len(ours) - len(passes) in (0, 1)
    answer = passes[-1] if passes else guess
    before = guess
    for iteration in ours:
        tokens = list(iteration.token_ids)
        assert tokens[: iteration.final] == answer[: iteration.final]
        assert iteration.changed == tuple(j for j in range(16) if tokens[j] != before[j])
        before = tokens


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_final_tokens_grow_with_each_iteration_and_are_not_computed_again(architecture):
    lm = tiny_lm(architecture, end_ids=frozenset())
    lengths = []
    lm.hf_model.register_forward_pre_hook(
        lambda module, args, kwargs: lengths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    iterations = list(jacobi_decode(lm, PROMPT, 16))
    finals = [0] + [i.final for i in iterations]
    assert all(a < b for a, b in pairwise(finals))
    assert [i.computed for i in iterations] == [16 - f for f in finals[:-1]]
    assert lengths == [len(PROMPT) + 15] + [i.computed for i in iterations[1:]]
    assert [i.number for i in iterations] == [i.passes for i in iterations]
    assert [i.number for i in iterations] == list(range(1, len(iterations) + 1))
    for iteration, final in zip(iterations, finals[:-1], strict=True):
        assert all(j >= final for j in iteration.changed)


def test_the_first_iteration_is_the_one_shot_answer():
    lm = tiny_lm(end_ids=frozenset())
    assert next(jacobi_decode(lm, PROMPT, 12)).token_ids == one_shot(lm, PROMPT, 12).token_ids


@pytest.mark.parametrize("seed", [2, 3, 33])
def test_right_guesses_save_passes(seed):
    lm = forgetful_lm("gpt2", seed=seed, end_ids=frozenset())
    *_, last = jacobi_decode(lm, PROMPT, 24)
    assert 1 < last.passes < 24
    assert list(last.token_ids) == greedy(lm, PROMPT, 24)[0]


@pytest.mark.parametrize("length", [1, 2, 6, 7, 8, 14, 20])
def test_a_long_prompt_is_read_in_chunks_that_are_counted(monkeypatch, length):
    monkeypatch.setattr("generation.decoding.PREFILL_CHUNK", 7)
    lm = tiny_lm(end_ids=frozenset())
    passes = 0

    def count(*_):
        nonlocal passes
        passes += 1

    handle = lm.hf_model.register_forward_hook(count)
    *_, last = jacobi_decode(lm, PROMPT[:length], 9)
    assert last.passes == passes == last.number + math.ceil(length / 7) - 1
    handle.remove()
    assert list(last.token_ids) == greedy(lm, PROMPT[:length], 9)[0]


@pytest.mark.parametrize("end_at", [0, 1, 5, 15])
def test_it_ends_at_an_end_token_once_that_is_final(end_at):
    free, _ = greedy(tiny_lm(end_ids=frozenset()), PROMPT, 16)
    end = free[end_at]
    lm = tiny_lm(end_ids=frozenset({end}))
    *before, last = jacobi_decode(lm, PROMPT, 16)
    assert list(last.token_ids) == free[: free.index(end) + 1]
    assert last.finish_reason is FinishReason.EOS
    assert all(i.finish_reason is None and len(i.token_ids) == 16 for i in before)


@pytest.mark.parametrize("n", [1, 11, 12, 13, 100])
def test_the_window_bounds_the_text(n):
    lm = tiny_lm(context=32, end_ids=frozenset())
    *_, last = jacobi_decode(lm, PROMPT, n)
    tokens, reason = greedy(lm, PROMPT, n)
    assert list(last.token_ids) == tokens
    assert last.finish_reason is reason
    assert len(one_shot(lm, PROMPT, n).token_ids) == min(n, 12)


def test_a_cancelled_run_has_no_last_iteration(monkeypatch):
    monkeypatch.setattr("generation.decoding.PREFILL_CHUNK", 8)
    lm = tiny_lm(end_ids=frozenset())
    for asked, iterations in [(0, 0), (2, 0), (3, 1), (5, 3)]:
        answers = iter([False] * asked + [True])
        run = jacobi_decode(lm, PROMPT, 16, should_stop=lambda answers=answers: next(answers))
        assert [i.finish_reason for i in run] == [None] * iterations


# Options

RUNS = [lambda *args, **options: next(jacobi_decode(*args, **options)), one_shot]


@pytest.mark.parametrize("run", RUNS, ids=["jacobi", "one_shot"])
def test_odd_options_and_prompts_are_refused(run):
    lm = tiny_lm(context=32)
    for n in (0, -1, 513, 1.5, math.nan, math.inf, "1", None, True):
        with pytest.raises(ValueError, match="n must be a whole number from 1 to 512"):
            run(lm, PROMPT, n)
    for placeholder in (-1, lm.vocab_size, math.nan, "1"):
        with pytest.raises(ValueError, match="placeholder must be a whole number from 0"):
            run(lm, PROMPT, 4, placeholder=placeholder)
    with pytest.raises(ValueError, match="empty"):
        run(lm, [], 4)
    with pytest.raises(PromptTooLong):
        run(lm, [50] * 32, 4)


@pytest.mark.parametrize("run", RUNS, ids=["jacobi", "one_shot"])
def test_numbers_that_are_not_finite_are_reported(run):
    lm = tiny_lm()
    with torch.no_grad():
        lm.hf_model.get_output_embeddings().weight[3] = math.nan
    with pytest.raises(FloatingPointError, match="finite"):
        run(lm, PROMPT, 4)
