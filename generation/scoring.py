"""Teacher forcing: how probable is a text that is already there?

The text is read, not written: at each position the model predicts the next token and the true one
is scored and fed, whatever the prediction was. That needs no loop over tokens, because all inputs
are known beforehand. Knows token ids and the model; makes no choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from generation.decoding import forward, new_cache, prefill
from generation.sampling import logits_to_logprobs

if TYPE_CHECKING:
    from generation.model import LanguageModel

SCORE_CHUNK = 64  # positions whose logits are held at once: 64 x 151,936 x 4 bytes = 37 MiB


@dataclass(frozen=True, slots=True)
class TokenScore:
    """One token of a given text. Log-probability is a natural log, entropy is in bits."""

    token_id: int
    text: str
    logprob: float
    rank: int  # 1: the model would have chosen it too
    entropy: float


@torch.inference_mode()
def score(
    lm: LanguageModel, prompt_ids: Sequence[int], target_ids: Sequence[int]
) -> list[TokenScore]:
    """Score each token of `target_ids` given the prompt and the target tokens before it.

    The logits of the last prompt token predict the first target token: inputs are the sequence
    without its last token, labels the same sequence without its first.

    Raises ValueError when the prompt is empty (then nothing predicts the first token) or when both
    together do not fit the model's window.
    """
    if not prompt_ids:
        raise ValueError("score() needs at least one prompt token to predict the first target from")
    total = len(prompt_ids) + len(target_ids)
    if total > lm.context_length:
        raise ValueError(f"{total} tokens do not fit the window of {lm.context_length}")
    if not target_ids:
        return []
    cache = new_cache(lm, total)
    if len(prompt_ids) > 1:
        prefill(lm, cache, prompt_ids[:-1])
    inputs = torch.tensor([[prompt_ids[-1], *target_ids[:-1]]])  # (1, T)
    labels = torch.tensor(list(target_ids), device=lm.device)  # (T,)
    scores: list[TokenScore] = []
    for chunk, wanted in zip(
        inputs.split(SCORE_CHUNK, dim=1), labels.split(SCORE_CHUNK), strict=True
    ):
        logits = forward(lm, cache, chunk, keep=chunk.shape[1])[0]  # (T, V)
        logprobs = logits_to_logprobs(logits)  # (T, V)
        of_label = logprobs.gather(-1, wanted.unsqueeze(-1))  # (T, 1)
        ranks = (logprobs > of_label).sum(dim=-1) + 1  # (T,)
        entropies = torch.special.entr(logprobs.exp()).sum(dim=-1) / math.log(2)  # (T,)
        columns = zip(
            wanted.tolist(),
            of_label[:, 0].tolist(),
            ranks.tolist(),
            entropies.tolist(),
            strict=True,
        )
        scores += [TokenScore(i, lm.decode([i]), lp, r, h) for i, lp, r, h in columns]
    return scores


def perplexity(scores: Sequence[TokenScore]) -> float:
    """exp of the mean negative log-probability: 1 is certainty, V is a uniform guess."""
    if not scores:
        raise ValueError("perplexity of no tokens is not defined")
    return math.exp(-sum(s.logprob for s in scores) / len(scores))
