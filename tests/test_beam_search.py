"""Beam search against transformers' own, and its properties."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from scipy.stats import chisquare

from generation import sampling
from generation.beam_search import beam_search
from generation.config import GenerationConfig
from generation.decoding import generate
from generation.step import FinishReason
from tests.tiny import ARCHITECTURES, tiny_lm

PROMPT = list(range(40, 52))


def reference(lm, prompt, **options):
    """Tokens and score of the best text by transformers' `generate`."""
    output = lm.hf_model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        eos_token_id=sorted(lm.end_ids) or None,
        pad_token_id=0,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    return output.sequences[0, len(prompt) :].tolist(), output.sequences_scores[0].item()


def final(lm, config):
    updates = list(beam_search(lm, PROMPT, config))
    assert updates[-1].done
    return updates[-1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("num_beams", [2, 3, 4])
@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.0, 2.0, -1.0])
def test_the_best_text_equals_that_of_transformers(architecture, num_beams, length_penalty):
    # Several end tokens make texts end often, which is where beam searches differ.
    lm = tiny_lm(architecture, seed=num_beams, end_ids=frozenset(range(0, 256, 9)))
    config = GenerationConfig(num_beams=num_beams, length_penalty=length_penalty, max_new_tokens=24)
    tokens, score = reference(
        lm, PROMPT, num_beams=num_beams, length_penalty=length_penalty, max_new_tokens=24
    )
    best = final(lm, config).best
    assert list(best.token_ids) == tokens
    assert best.score == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("num_beams", [2, 4])
def test_texts_that_never_end_equal_those_of_transformers(architecture, num_beams):
    lm = tiny_lm(architecture, end_ids=frozenset())
    config = GenerationConfig(num_beams=num_beams, max_new_tokens=20, repetition_penalty=1.2)
    tokens, _ = reference(
        lm, PROMPT, num_beams=num_beams, max_new_tokens=20, repetition_penalty=1.2
    )
    best = final(lm, config).best
    assert list(best.token_ids) == tokens
    assert best.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("early_stopping", [True, "never"])
@pytest.mark.parametrize("length_penalty", [0.5, 1.5])
def test_the_stopping_rules_are_those_of_transformers(early_stopping, length_penalty):
    lm = tiny_lm(seed=3, end_ids=frozenset(range(0, 256, 9)))
    options = dict(
        num_beams=3,
        early_stopping=early_stopping,
        length_penalty=length_penalty,
        max_new_tokens=16,
    )
    tokens, _ = reference(lm, PROMPT, **options)
    assert list(final(lm, GenerationConfig(**options)).best.token_ids) == tokens


@pytest.mark.parametrize("option", [dict(min_new_tokens=6), dict(no_repeat_ngram_size=2)])
def test_penalties_act_in_beams_as_in_transformers(option):
    lm = tiny_lm(seed=1, end_ids=frozenset(range(0, 256, 9)))
    options = dict(num_beams=3, max_new_tokens=16, **option)
    tokens, _ = reference(lm, PROMPT, **options)
    assert list(final(lm, GenerationConfig(**options)).best.token_ids) == tokens


def diverse_reference(lm, groups, width, diversity, length):
    """Diverse beam search by its definition (Vijayakumar et al. 2018), without a cache or ends."""
    beams = [[((), 0.0)] for _ in range(groups)]
    for _ in range(length):
        chosen: list[int] = []
        for g in range(groups):
            candidates = []
            for tokens, total in beams[g]:
                with torch.no_grad():
                    logits = lm.hf_model(torch.tensor([[*PROMPT, *tokens]])).logits[0, -1]
                for token, logprob in enumerate(logits.log_softmax(-1).tolist()):
                    score = total + logprob - diversity * chosen.count(token)
                    candidates.append(((*tokens, token), score))
            beams[g] = sorted(candidates, key=lambda c: -c[1])[:width]
            chosen += [tokens[-1] for tokens, _ in beams[g]]
    return sorted((beam for group in beams for beam in group), key=lambda c: -c[1])


@pytest.mark.parametrize(("groups", "width"), [(2, 1), (2, 2), (3, 2)])
def test_groups_follow_the_procedure_of_their_paper(groups, width):
    lm = tiny_lm(end_ids=frozenset())
    config = GenerationConfig(
        num_beams=groups * width,
        num_beam_groups=groups,
        diversity_penalty=1.5,
        length_penalty=0.0,
        max_new_tokens=6,
    )
    ours = final(lm, config).finished
    theirs = diverse_reference(lm, groups, width, 1.5, 6)
    assert [h.token_ids for h in ours] == [tokens for tokens, _ in theirs]
    for hypothesis, (_, score) in zip(ours, theirs, strict=True):
        assert hypothesis.logprob == pytest.approx(score, abs=1e-3)


def test_groups_differ_more_than_beams_do():
    lm = tiny_lm(end_ids=frozenset())
    options = dict(num_beams=4, max_new_tokens=8)
    plain = final(lm, GenerationConfig(**options)).finished
    diverse = final(
        lm, GenerationConfig(**options, num_beam_groups=4, diversity_penalty=20.0)
    ).finished
    assert len({h.token_ids[0] for h in diverse}) == 4 > len({h.token_ids[0] for h in plain})


def test_beam_sampling_repeats_with_its_seed_and_scores_what_it_drew():
    lm = tiny_lm(end_ids=frozenset())

    def run(seed):
        return final(
            lm, GenerationConfig(num_beams=2, temperature=1.0, max_new_tokens=8, seed=seed)
        ).best

    assert run(1) == run(1)
    assert len({run(seed).token_ids for seed in range(4)}) > 1
    assert run(1).logprob == pytest.approx(sum(run(1).logprobs), abs=1e-4)


def test_beam_sampling_draws_pairs_in_proportion_to_their_probability():
    """Drawing two without replacement: P({a, b}) = pa pb / (1 - pa) + pa pb / (1 - pb)."""
    logits = torch.tensor([1.5, 1.0, 0.2, -0.5])
    probs = logits.double().softmax(-1).tolist()
    generator = torch.Generator().manual_seed(5)
    draws = 4000
    counts: dict[tuple[int, int], int] = dict.fromkeys(combinations(range(4), 2), 0)
    for _ in range(draws):
        kept = sampling.keep_drawn(logits, 2, generator).isfinite().nonzero()[:, 0].tolist()
        counts[tuple(kept)] += 1
    expected = [
        draws * probs[a] * probs[b] * (1 / (1 - probs[a]) + 1 / (1 - probs[b])) for a, b in counts
    ]
    assert chisquare(list(counts.values()), expected).pvalue > 1e-3


def test_the_log_probabilities_of_a_text_are_those_of_the_model():
    lm = tiny_lm(end_ids=frozenset())
    best = final(lm, GenerationConfig(num_beams=3, max_new_tokens=10)).best
    sequence = torch.tensor([PROMPT + list(best.token_ids)])
    with torch.no_grad():
        logprobs = lm.hf_model(sequence).logits[0].log_softmax(-1)
    for n, token_id in enumerate(best.token_ids):
        expected = logprobs[len(PROMPT) + n - 1, token_id].item()
        assert best.logprobs[n] == pytest.approx(expected, abs=1e-4)
    assert best.logprob == pytest.approx(sum(best.logprobs), abs=1e-4)


def test_more_beams_find_a_text_at_least_as_probable_as_greedy_here():
    lm = tiny_lm(seed=5, end_ids=frozenset())
    greedy = sum(s.logprob for s in generate(lm, PROMPT, GenerationConfig(max_new_tokens=12)))
    best = final(lm, GenerationConfig(num_beams=4, max_new_tokens=12)).best
    assert best.logprob >= greedy - 1e-4


def test_every_step_streams_k_live_texts_best_first():
    lm = tiny_lm(end_ids=frozenset())
    updates = list(beam_search(lm, PROMPT, GenerationConfig(num_beams=3, max_new_tokens=8)))
    assert len(updates) == 8
    for n, update in enumerate(updates[:-1], start=1):
        assert [len(h.token_ids) for h in update.live] == [n] * 3
        scores = [h.score for h in update.live]
        assert scores == sorted(scores, reverse=True)
        assert len({h.token_ids for h in (*update.live, *update.pruned)}) == 6
        assert not update.done
    assert updates[-1].live == ()
    assert len(updates[-1].finished) == 3


def test_a_stop_string_ends_a_beam():
    lm = tiny_lm(end_ids=frozenset())
    best = final(lm, GenerationConfig(num_beams=2, max_new_tokens=20)).best
    at = next(n for n in range(3, 19) if best.text[n].isascii() and best.text[n].isprintable())
    stop = best.text[at]
    stopped = final(lm, GenerationConfig(num_beams=2, max_new_tokens=20, stop=(stop,)))
    assert any(h.finish_reason is FinishReason.STOP_STRING for h in stopped.finished)


def test_it_ends_when_the_window_is_full():
    lm = tiny_lm(context=20, end_ids=frozenset())
    best = final(lm, GenerationConfig(num_beams=2, max_new_tokens=100)).best
    assert len(PROMPT) + len(best.token_ids) == 20
    assert best.finish_reason is FinishReason.CONTEXT_FULL


def test_a_cancelled_search_has_no_last_word():
    lm = tiny_lm(end_ids=frozenset())
    asked = iter([False, False, True])
    config = GenerationConfig(num_beams=2, max_new_tokens=20)
    updates = list(beam_search(lm, PROMPT, config, should_stop=lambda: next(asked)))
    assert len(updates) == 2
    assert not updates[-1].done
    assert updates[-1].best.text
