"""Teacher forcing against a direct computation, and against what the loop recorded."""

from __future__ import annotations

import math

import pytest
import torch

from generation.config import GenerationConfig
from generation.decoding import generate
from generation.scoring import perplexity, score
from tests.tiny import ARCHITECTURES, tiny_lm

PROMPT = list(range(40, 60))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("length", [1, 64, 65, 150])
def test_scores_equal_a_direct_computation(architecture, length):
    lm = tiny_lm(architecture)
    target = [(7 * n) % 250 for n in range(length)]
    with torch.no_grad():
        logits = lm.hf_model(torch.tensor([PROMPT + target])).logits[0].double()
    logprobs = logits.log_softmax(-1)
    scores = score(lm, PROMPT, target)
    assert [s.token_id for s in scores] == target
    for n, one in enumerate(scores):
        row = logprobs[len(PROMPT) - 1 + n]
        assert one.logprob == pytest.approx(row[target[n]].item(), abs=1e-3)
        assert one.rank == int((row > row[target[n]]).sum()) + 1
        assert one.entropy == pytest.approx(-(row.exp() * row).sum().item() / math.log(2), abs=1e-3)


def test_scoring_an_answer_gives_the_log_probabilities_of_writing_it():
    lm = tiny_lm()
    config = GenerationConfig(max_new_tokens=50, temperature=1.0, seed=4)
    steps = list(generate(lm, PROMPT, config))
    scores = score(lm, PROMPT, [s.token_id for s in steps])
    for step, one in zip(steps, scores, strict=True):
        assert one.logprob == pytest.approx(step.logprob, abs=1e-4)
        assert one.entropy == pytest.approx(step.entropy, abs=1e-4)


def test_perplexity_is_the_exponential_of_the_mean_loss():
    lm = tiny_lm()
    scores = score(lm, PROMPT, [1, 2, 3])
    with torch.no_grad():
        ids = torch.tensor([[*PROMPT, 1, 2, 3]])
        labels = torch.tensor([[-100] * len(PROMPT) + [1, 2, 3]])
        loss = lm.hf_model(ids, labels=labels).loss.item()
    assert perplexity(scores) == pytest.approx(math.exp(loss), rel=1e-4)


def test_what_cannot_be_scored_is_refused():
    lm = tiny_lm(context=32)
    assert score(lm, PROMPT, []) == []
    with pytest.raises(ValueError, match="prompt"):
        score(lm, [], [1])
    with pytest.raises(ValueError, match="33"):
        score(lm, PROMPT, [1] * 13)
    with pytest.raises(ValueError, match="no tokens"):
        perplexity([])
