"""Contrastive search against its definition, computed without a cache and one candidate a time."""

from __future__ import annotations

import math

import pytest
import torch

from generation.config import GenerationConfig
from generation.contrastive_search import contrastive_search
from generation.decoding import generate, new_cache, prefill
from generation.step import FinishReason, PromptTooLong
from tests.tiny import ARCHITECTURES, tiny_lm

PROMPT = list(range(40, 52))
GREEDY = GenerationConfig(max_new_tokens=24)


def token_ids(steps) -> list[int]:
    return [step.token_id for step in steps]


@torch.no_grad()
def hidden_states(lm, sequence):
    """Of the last layer at every position, `(T, D)`."""
    return lm.hf_model.base_model(torch.tensor([sequence])).last_hidden_state[0]


@torch.no_grad()
def reference(lm, prompt, length, k, alpha):
    """Equation 5 word for word: tokens, and per step `(token, p, penalty, score)` of each v."""
    text, record = list(prompt), []
    while len(text) - len(prompt) < length:
        probs = lm.hf_model(torch.tensor([text])).logits[0, -1].softmax(-1)
        scored = []
        for v in probs.topk(k).indices.tolist():
            *earlier, of_v = hidden_states(lm, [*text, v])
            penalty = max(torch.cosine_similarity(of_v, h, dim=0).item() for h in earlier)
            p = probs[v].item()
            scored.append((v, p, penalty, (1 - alpha) * p - alpha * penalty))
        record.append(scored)
        text.append(max(scored, key=lambda s: s[3])[0])
        if text[-1] in lm.end_ids:
            break
    return text[len(prompt) :], record


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("k", "alpha"), [(4, 0.6), (2, 0.3), (7, 1.0)])
def test_tokens_and_scores_are_those_of_the_definition(architecture, k, alpha):
    lm = tiny_lm(architecture, seed=k)
    steps = list(contrastive_search(lm, PROMPT, GREEDY, top_k=k, penalty_alpha=alpha))
    tokens, record = reference(lm, PROMPT, 24, k, alpha)
    assert token_ids(steps) == tokens
    for step, scored in zip(steps, record, strict=True):
        assert [c.token_id for c in step.tried] == [s[0] for s in scored]
        for candidate, (_, *expected) in zip(step.tried, scored, strict=True):
            found = [candidate.prob, candidate.similarity, candidate.score]
            assert found == pytest.approx(expected, abs=1e-4)


def test_the_penalty_changes_the_text_here():
    lm = tiny_lm(seed=4, end_ids=frozenset())
    assert token_ids(contrastive_search(lm, PROMPT, GREEDY)) != token_ids(
        generate(lm, PROMPT, GREEDY)
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [{"penalty_alpha": 0.0}, {"top_k": 1}], ids=str)
def test_without_a_penalty_or_a_choice_it_is_greedy(architecture, options):
    lm = tiny_lm(architecture)
    config = GenerationConfig(max_new_tokens=30, repetition_penalty=1.2)
    ours = list(contrastive_search(lm, PROMPT, config, **options))
    greedy = list(generate(lm, PROMPT, config))
    assert token_ids(ours) == token_ids(greedy)
    for one, other in zip(ours, greedy, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert (one.position, one.rank) == (other.position, other.rank)
        assert one.finish_reason is other.finish_reason


def test_a_step_records_the_model_and_a_choice_that_is_certain():
    lm = tiny_lm(seed=4, end_ids=frozenset())
    steps = list(contrastive_search(lm, PROMPT, GREEDY))
    assert any(step.rank > 1 for step in steps)
    text = list(PROMPT)
    for step in steps:
        with torch.no_grad():
            logprobs = lm.hf_model(torch.tensor([text])).logits[0, -1].log_softmax(-1)
        assert step.logprob == pytest.approx(logprobs[step.token_id].item(), abs=1e-4)
        assert step.sampler_logprob == 0.0
        for candidate in step.candidates:
            chosen = candidate.token_id == step.token_id
            assert candidate.sampler_logprob == (0.0 if chosen else -math.inf)
        text.append(step.token_id)


def test_the_position_a_candidate_resembles_most_is_named():
    lm = tiny_lm()
    step = next(contrastive_search(lm, PROMPT, GREEDY))
    for candidate in step.tried:
        *earlier, of_v = hidden_states(lm, [*PROMPT, candidate.token_id])
        cosines = [torch.cosine_similarity(of_v, h, dim=0).item() for h in earlier]
        assert cosines.index(max(cosines)) == candidate.similar_to


def test_one_pass_a_token():
    lm = tiny_lm(end_ids=frozenset())
    shapes = []
    lm.hf_model.get_input_embeddings().register_forward_hook(
        lambda module, args, output: shapes.append(tuple(args[0].shape))
    )
    list(contrastive_search(lm, PROMPT, GenerationConfig(max_new_tokens=5), top_k=3))
    assert shapes == [(1, len(PROMPT))] + [(3, 1)] * 5


def test_a_cache_holds_the_text_of_the_steps_so_far_and_can_be_continued():
    lm = tiny_lm(end_ids=frozenset())
    cache = new_cache(lm, 100)
    prefill(lm, cache, [7, 8, 9])  # of another text: must not matter
    steps = []
    for step in contrastive_search(lm, PROMPT, GREEDY, cache=cache):
        steps.append(step)
        assert cache.length == len(PROMPT) + len(steps)
    assert token_ids(steps) == token_ids(contrastive_search(lm, PROMPT, GREEDY))
    text = [*PROMPT, *token_ids(steps), 65]
    assert token_ids(generate(lm, text, GREEDY, cache=cache)) == token_ids(
        generate(lm, text, GREEDY)
    )


def test_a_prompt_read_in_chunks_gives_the_tokens_of_one_pass(monkeypatch):
    lm = tiny_lm()
    whole = token_ids(contrastive_search(lm, PROMPT, GREEDY))
    monkeypatch.setattr("generation.contrastive_search.PREFILL_CHUNK", 5)
    assert token_ids(contrastive_search(lm, PROMPT, GREEDY)) == whole


def test_a_banned_token_is_never_chosen_however_little_it_resembles_the_text():
    lm = tiny_lm(vocabulary=259, seed=2, end_ids=frozenset(range(0, 259, 2)))
    config = GenerationConfig(max_new_tokens=12, min_new_tokens=12)
    # Nearly all of the vocabulary is tried, so half of the candidates are banned.
    steps = list(contrastive_search(lm, PROMPT, config, top_k=64, penalty_alpha=0.9))
    assert len(steps) == 12
    assert not set(token_ids(steps)) & lm.end_ids
    only_odd = {i: -100 for i in range(1, 259, 2) if i > 21}  # leaves eleven that are not banned
    config = GenerationConfig(max_new_tokens=3, min_new_tokens=3, logit_bias=only_odd)
    step = next(contrastive_search(lm, PROMPT, config, top_k=64, penalty_alpha=1.0))
    assert step.token_id not in lm.end_ids


# How a run ends


def test_it_ends_at_the_length_limit_and_at_the_window():
    lm = tiny_lm(end_ids=frozenset())
    *_, last = contrastive_search(lm, PROMPT, GenerationConfig(max_new_tokens=6))
    assert (last.position, last.finish_reason) == (len(PROMPT) + 5, FinishReason.LENGTH)
    lm = tiny_lm(context=20, end_ids=frozenset())
    *_, last = contrastive_search(lm, PROMPT, GREEDY)
    assert (last.position, last.finish_reason) == (19, FinishReason.CONTEXT_FULL)


def test_it_ends_at_an_end_token_and_at_a_stop_string():
    free = token_ids(contrastive_search(tiny_lm(end_ids=frozenset()), PROMPT, GREEDY))
    lm = tiny_lm(end_ids=frozenset({free[4]}))
    *_, last = contrastive_search(lm, PROMPT, GREEDY)
    assert last.finish_reason is FinishReason.EOS
    assert last.position - len(PROMPT) == free.index(free[4])
    lm = tiny_lm(end_ids=frozenset())
    at = next(n for n in range(3, 24) if 33 <= ord(lm.decode([free[n]])) < 127)
    config = GenerationConfig(max_new_tokens=24, stop=(lm.decode([free[at]]),))
    *_, last = contrastive_search(lm, PROMPT, config)
    assert last.finish_reason is FinishReason.STOP_STRING


def test_should_stop_is_asked_between_passes(monkeypatch):
    monkeypatch.setattr("generation.contrastive_search.PREFILL_CHUNK", 6)
    lm = tiny_lm(end_ids=frozenset())
    for asked, length, written in [(1, 6, 0), (2, 12, 0), (3, 13, 1)]:
        cache = new_cache(lm, 100)
        answers = iter([False] * asked + [True])
        run = contrastive_search(
            lm, PROMPT, GREEDY, cache=cache, should_stop=lambda answers=answers: next(answers)
        )
        steps = list(run)
        assert (cache.length, len(steps)) == (length, written)
        assert all(step.finish_reason is None for step in steps)


# Options

ODD = [-1, -1e-9, 1.5, 65, math.nan, math.inf, "1", None, True, [1]]


@pytest.mark.parametrize("name", ["top_k", "penalty_alpha"])
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_an_odd_option_is_refused_by_name_and_range(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .* from"):
        next(contrastive_search(tiny_lm(), PROMPT, GREEDY, **{name: value}))


@pytest.mark.parametrize("options", [{"temperature": 0.5}, {"num_beams": 2}], ids=str)
def test_other_strategies_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        next(contrastive_search(tiny_lm(), PROMPT, GenerationConfig(**options)))


def test_a_prompt_must_be_there_and_fit():
    with pytest.raises(ValueError, match="empty"):
        next(contrastive_search(tiny_lm(), [], GREEDY))
    with pytest.raises(PromptTooLong):
        next(contrastive_search(tiny_lm(context=12), PROMPT, GREEDY))
