"""The sampler's pure functions: each against its definition, the draw against its distribution."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import (
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from generation import sampling
from generation.chooser import Chooser
from generation.config import GenerationConfig
from tests.tiny import tiny_lm

LOGITS = torch.tensor([[2.0, 1.0, 0.5, 0.0, -1.0, -3.0]])

rows = st.lists(st.floats(-20, 20, width=32), min_size=2, max_size=40, unique=True).map(
    lambda values: torch.tensor([values])
)


def kept(logits):
    return {i for i, value in enumerate(logits[0].tolist()) if value > -math.inf}


@given(rows, st.integers(1, 50))
def test_top_k_keeps_the_k_most_probable(logits, k):
    expected = set(logits[0].argsort(descending=True)[:k].tolist())
    assert kept(sampling.top_k_filter(logits, k)) == expected


@given(rows, st.floats(0.01, 0.999))
def test_top_p_keeps_the_smallest_set_that_reaches_p(logits, p):
    left = kept(sampling.top_p_filter(logits, p))
    probs = logits[0].double().softmax(-1)
    mass = sum(probs[i].item() for i in left)
    smallest = min(probs[i].item() for i in left)
    assert mass >= p - 1e-5
    assert mass - smallest < p + 1e-5
    outside = [probs[i].item() for i in range(len(probs)) if i not in left]
    assert smallest >= max(outside, default=0.0) - 1e-6  # ties in float32 are none in float64


@given(rows, st.floats(0.0, 1.0))
def test_min_p_keeps_what_is_within_a_factor_of_the_best(logits, min_p):
    probs = logits[0].softmax(-1)
    expected = {i for i, p in enumerate(probs.tolist()) if p >= min_p * probs.max().item()}
    assert kept(sampling.min_p_filter(logits, min_p)) == expected


def test_top_p_is_exact_when_the_nucleus_is_larger_than_its_fast_path():
    logits = torch.randn(2, 5000, generator=torch.Generator().manual_seed(0)) * 0.01
    for p in (0.05, 0.5, 0.95):
        theirs = TopPLogitsWarper(p)(None, logits)
        assert torch.equal(sampling.top_p_filter(logits, p), theirs)


@pytest.mark.parametrize("p", [1e-4, 0.3, 0.8, 0.97])
def test_filters_equal_those_of_transformers(p):
    logits = torch.randn(3, 1000, generator=torch.Generator().manual_seed(1)) * 4
    ids = torch.randint(0, 1000, (3, 20), generator=torch.Generator().manual_seed(2))
    assert torch.equal(sampling.top_p_filter(logits, p), TopPLogitsWarper(p)(ids, logits))
    assert torch.equal(sampling.top_k_filter(logits, 17), TopKLogitsWarper(17)(ids, logits))
    assert torch.equal(sampling.min_p_filter(logits, p), MinPLogitsWarper(p)(ids, logits))
    penalised = sampling.apply_repetition_penalty(logits, ids, 1.7)
    assert torch.equal(penalised, RepetitionPenaltyLogitsProcessor(1.7)(ids, logits))
    assert torch.equal(sampling.typical_filter(logits, p), TypicalLogitsWarper(p)(ids, logits))
    ours = sampling.apply_temperature(logits, 0.6).softmax(-1)
    theirs = TemperatureLogitsWarper(0.6)(ids, logits).softmax(-1)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("n", [1, 2, 3, 25])
def test_repeated_ngrams_are_banned_as_in_transformers(n):
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(0, 4, (3, 24), generator=generator)
    logits = torch.randn(3, 10, generator=generator)
    theirs = NoRepeatNGramLogitsProcessor(n)(ids, logits)
    assert torch.equal(sampling.ban_repeated_ngrams(logits, ids, n), theirs)


@pytest.mark.parametrize("generated", [0, 2, 3])
def test_no_end_token_before_the_least_length_as_in_transformers(generated):
    ids = [[5] * (4 + generated)]
    theirs = MinNewTokensLengthLogitsProcessor(4, 3, [1, 2])(torch.tensor(ids), LOGITS)
    config = GenerationConfig(min_new_tokens=3)
    assert torch.equal(sampling.adjust(LOGITS, ids, 4, config, {1, 2}), theirs)


def test_presence_and_frequency_penalties_count_the_generated_tokens_only():
    config = GenerationConfig(presence_penalty=0.5, frequency_penalty=0.25)
    ours = sampling.adjust(LOGITS, [[3, 3, 3, 0, 1, 1]], 3, config, set())
    expected = LOGITS - torch.tensor([[0.75, 1.0, 0, 0, 0, 0]])
    torch.testing.assert_close(ours, expected)


def test_a_bias_moves_the_token_it_names():
    config = GenerationConfig(logit_bias={1: 5.0, 0: -100})
    ours = sampling.adjust(LOGITS, [[0]], 1, config, set())
    torch.testing.assert_close(ours, LOGITS + torch.tensor([[-100.0, 5.0, 0, 0, 0, 0]]))
    with pytest.raises(ValueError, match="logit_bias"):
        sampling.adjust(LOGITS, [[0]], 1, GenerationConfig(logit_bias={6: 1}), set())


def test_every_option_of_the_order_is_an_option_and_they_act_in_that_order(monkeypatch):
    names = {f.name for f in fields(GenerationConfig)}
    assert set(sampling.ORDER) - {"constraint"} <= names  # which is an argument of its own
    acted = []
    functions = dict.fromkeys(
        ["apply_logit_bias", "constrain", "apply_repetition_penalty",
         "apply_presence_and_frequency_penalty", "ban_repeated_ngrams", "ban_tokens",
         "apply_temperature", "top_k_filter", "top_p_filter", "min_p_filter", "typical_filter"]
    )  # fmt: skip

    def constrain(scores):
        acted.append("constrain")
        return scores

    for name in functions.keys() - {"constrain"}:
        original = getattr(sampling, name)

        def spy(scores, *args, name=name, original=original):
            acted.append(name)
            return original(scores, *args)

        monkeypatch.setattr(sampling, name, spy)
    config = GenerationConfig(temperature=0.5, repetition_penalty=1.1, min_new_tokens=2)
    sampling.warp(sampling.adjust(LOGITS, [[0]], 1, config, {1}, constrain), config)
    assert acted == list(functions)


def test_a_ban_that_would_leave_nothing_is_not_applied():
    def only(*token_ids):
        cut = torch.full_like(LOGITS, -torch.inf)
        return lambda scores: cut.index_copy(-1, torch.tensor(token_ids), scores[:, token_ids])

    least = GenerationConfig(min_new_tokens=5)
    no_repeat = GenerationConfig(no_repeat_ngram_size=1)
    one = sampling.adjust(LOGITS, [[0, 2]], 1, least, {4}, only(4))
    assert one[0, 4] == LOGITS[0, 4]
    two = sampling.adjust(LOGITS, [[0, 2]], 1, no_repeat, {4}, only(2))
    assert two[0, 2] == LOGITS[0, 2]
    three = sampling.adjust(LOGITS, [[0, 2]], 1, no_repeat, {4}, only(2, 3))
    assert three.isfinite().nonzero()[:, 1].tolist() == [3]


@given(rows)
def test_neutral_settings_change_nothing(logits):
    ids = torch.zeros(1, 1, dtype=torch.long)
    assert torch.equal(sampling.top_k_filter(logits, 0), logits)
    assert torch.equal(sampling.top_p_filter(logits, 1.0), logits)
    assert torch.equal(sampling.min_p_filter(logits, 0.0), logits)
    assert torch.equal(sampling.typical_filter(logits, 1.0), logits)
    assert torch.equal(sampling.apply_temperature(logits, 1.0), logits)
    assert sampling.adjust(logits, [[0, 0]], 1, GenerationConfig(), {0}) is logits
    assert torch.equal(sampling.apply_repetition_penalty(logits, ids, 1.0), logits)


@given(rows, st.sampled_from([1e-30, 1e-4, 1e-2]))
def test_a_temperature_near_zero_is_greedy_and_never_nan(logits, temperature):
    gap = logits[0].topk(2).values
    probs = sampling.apply_temperature(logits, temperature).softmax(-1)
    assert not probs.isnan().any()
    if gap[0] - gap[1] > 40 * temperature:
        assert probs.argmax() == logits.argmax()
        assert probs.max() > 0.999


SAMPLERS = {
    "temperature 1": dict(temperature=1.0),
    "temperature 0.5": dict(temperature=0.5),
    "temperature 2": dict(temperature=2.0),
    "top-k 3": dict(temperature=1.0, top_k=3),
    "top-p 0.8": dict(temperature=1.0, top_p=0.8),
    "min-p 0.2": dict(temperature=1.0, min_p=0.2),
    "typical 0.6": dict(temperature=1.0, typical_p=0.6),
    "all of them": dict(temperature=1.5, top_k=5, top_p=0.9, min_p=0.05),
    "repetition penalty 1.5": dict(temperature=1.0, repetition_penalty=1.5),
}


def exact_distribution(
    logits,
    seen,
    *,
    temperature,
    top_k=0,
    top_p=1.0,
    min_p=0.0,
    typical_p=1.0,
    repetition_penalty=1.0,
):
    """The definition, one token at a time, in plain Python and double precision."""
    scores = {
        i: (x * repetition_penalty if x < 0 else x / repetition_penalty) if i in seen else x
        for i, x in enumerate(logits)
    }
    weights = {i: math.exp(x / temperature) for i, x in scores.items()}

    def normalised(w):
        total = sum(w.values())
        return dict(sorted(((i, v / total) for i, v in w.items()), key=lambda x: -x[1]))

    probs = normalised(weights)
    if top_k:
        probs = normalised(dict(list(probs.items())[:top_k]))
    nucleus, mass = {}, 0.0
    for i, p in probs.items():
        if nucleus and mass >= top_p:
            break
        nucleus[i] = p
        mass += p
    probs = normalised(nucleus)
    best = max(probs.values())
    probs = normalised({i: p for i, p in probs.items() if p >= min_p * best})
    entropy = -sum(p * math.log(p) for p in probs.values())
    typical, mass = {}, 0.0
    for i, p in sorted(probs.items(), key=lambda x: abs(-math.log(x[1]) - entropy)):
        if typical and mass >= typical_p:
            break
        typical[i] = p
        mass += p
    return normalised(typical)


@pytest.mark.parametrize("options", SAMPLERS.values(), ids=SAMPLERS.keys())
def test_draws_follow_the_exact_distribution(options):
    """Chi-square over 20,000 draws; the seed is fixed, so the test cannot fail by chance."""
    lm = tiny_lm(vocabulary=259)
    seen = [0, 2]
    chooser = Chooser(lm, seen, GenerationConfig(seed=11, **options))
    logits = chooser._sampler_logits(LOGITS)
    generator = torch.Generator().manual_seed(11)
    draws = sampling.sample(logits.expand(20_000, -1), generator)
    counts = draws.bincount(minlength=LOGITS.shape[1]).tolist()

    expected = exact_distribution(LOGITS[0].tolist(), seen, **options)
    assert sum(counts[i] for i in expected) == 20_000  # nothing that was cut is ever drawn
    if len(expected) > 1:
        observed = [counts[i] for i in expected]
        assert chisquare(observed, [20_000 * p for p in expected.values()]).pvalue > 1e-3


@settings(max_examples=50)
@given(rows, st.integers(0, 5), st.floats(0.05, 1.0), st.floats(0.0, 1.0), st.floats(0.1, 5.0))
def test_something_is_always_left_to_draw(logits, top_k, top_p, min_p, temperature):
    scores = sampling.apply_temperature(logits, temperature)
    scores = sampling.top_k_filter(scores, top_k)
    scores = sampling.top_p_filter(scores, top_p)
    scores = sampling.min_p_filter(scores, min_p)
    # Logits that round to the same probability are a tie, which any filter may break.
    left = kept(scores)
    assert left
    assert max(logits[0, i].item() for i in left) >= logits.max().item() - 1e-5


@given(rows, st.integers(1, 10), st.floats(0.0, 1.0), st.floats(0.1, 5.0))
def test_filters_that_look_at_ranks_and_ratios_commute(logits, k, min_p, temperature):
    by_rank = lambda x: sampling.top_k_filter(x, k)  # noqa: E731
    by_ratio = lambda x: sampling.min_p_filter(x, min_p)  # noqa: E731
    cooled = lambda x: sampling.apply_temperature(x, temperature)  # noqa: E731
    assert kept(by_rank(by_ratio(logits))) == kept(by_ratio(by_rank(logits)))
    left, right = cooled(by_rank(logits)), by_rank(cooled(logits))
    # Ties that rounding makes after division may widen the set, never narrow it.
    assert kept(left) <= kept(right)


def test_filters_that_sum_probabilities_do_not_commute():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    top_k_first = sampling.top_p_filter(sampling.top_k_filter(logits, 2), 0.55)
    top_p_first = sampling.top_k_filter(sampling.top_p_filter(logits, 0.55), 2)
    assert kept(top_k_first) == {0}  # .4 of the .7 that top-k left is .57
    assert kept(top_p_first) == {0, 1}
    hot_first = sampling.top_p_filter(sampling.apply_temperature(logits, 0.5), 0.5)
    hot_last = sampling.apply_temperature(sampling.top_p_filter(logits, 0.5), 0.5)
    assert (kept(hot_first), kept(hot_last)) == ({0}, {0, 1})


@given(st.lists(rows, min_size=2, max_size=4), st.floats(0.05, 1.0), st.integers(0, 5))
def test_a_batch_of_rows_is_filtered_as_each_row_alone(singles, p, k):
    width = min(row.shape[1] for row in singles)
    singles = [row[:, :width] for row in singles]
    config = GenerationConfig(temperature=0.7, top_k=k, top_p=p, min_p=0.01, typical_p=0.95)
    together = sampling.warp(torch.cat(singles), config)
    for number, row in enumerate(singles):
        assert kept(together[number : number + 1]) == kept(sampling.warp(row, config))
