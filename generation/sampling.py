"""Pure functions on logits `(B, V)`: what a decoding strategy does to the model's prediction.

Knows nothing of models, tokens as text, or loops. Nothing here is stateful; randomness comes from
a `torch.Generator` that is handed in. A removed token has logit -inf.

The order is fixed: penalties, then temperature, then top-k, top-p, min-p, then one draw. Each filter
sees the probabilities that the one before it left, renormalised.
"""

from __future__ import annotations

import torch
from torch import Tensor

NUCLEUS_HEAD = (
    512  # most nuclei are smaller; sorting 512 of 150,000 logits is ~20x cheaper than all
)


def logits_to_logprobs(logits: Tensor) -> Tensor:
    """Log-probabilities in float32, natural log. `(..., V)` to `(..., V)`."""
    return torch.log_softmax(logits.float(), dim=-1)


def apply_repetition_penalty(scores: Tensor, token_ids: Tensor, penalty: float) -> Tensor:
    """Make tokens that already occurred less likely (Keskar et al. 2019, CTRL, section 4.1).

    scores `(B, V)`: logits, or log-probabilities for beams. token_ids `(B, T)`: what occurred.
    penalty > 1 discourages, 1 changes nothing. Positive scores are divided, negative multiplied.
    """
    if penalty == 1.0:
        return scores
    seen = scores.gather(-1, token_ids)  # (B, T)
    seen = torch.where(seen < 0, seen * penalty, seen / penalty)
    return scores.scatter(-1, token_ids, seen)


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divide logits `(B, V)` by a temperature > 0: below 1 sharpens, above 1 flattens."""
    if temperature == 1.0:
        return logits
    # Shifting by the maximum changes no probability and keeps tiny temperatures from overflowing:
    # the best token stays at 0 while the others run towards -inf.
    return (logits - logits.amax(dim=-1, keepdim=True)) / temperature


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Keep the k most probable tokens of `(B, V)`; 0 keeps all. Ties with the k-th are kept."""
    if k == 0 or k >= logits.shape[-1]:
        return logits
    kth = logits.topk(k, dim=-1).values[..., -1:]  # (B, 1)
    return logits.masked_fill(logits < kth, -torch.inf)


def top_p_filter(logits: Tensor, p: float) -> Tensor:
    """Keep the nucleus: the fewest most probable tokens whose probability reaches p.

    Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration". 1 keeps all; the most
    probable token always stays. `(B, V)` to `(B, V)`.
    """
    if p >= 1.0:
        return logits
    probs = torch.softmax(logits.float(), dim=-1)
    head = min(NUCLEUS_HEAD, probs.shape[-1])
    values, order = probs.topk(head, dim=-1)  # (B, head), most probable first
    if head < probs.shape[-1] and bool((values.sum(dim=-1) < p).any()):
        values, order = probs.sort(dim=-1, descending=True)
    before = values.cumsum(dim=-1) - values  # the mass of all more probable tokens
    outside = before >= p
    outside[..., 0] = False
    kept = torch.zeros_like(probs, dtype=torch.bool).scatter(-1, order, ~outside)
    return logits.masked_fill(~kept, -torch.inf)


def min_p_filter(logits: Tensor, min_p: float) -> Tensor:
    """Keep tokens at least min_p times as probable as the best one; 0 keeps all.

    Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling". `(B, V)` to `(B, V)`.
    """
    if min_p == 0.0:
        return logits
    probs = torch.softmax(logits.float(), dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), -torch.inf)


def greedy(logits: Tensor) -> Tensor:
    """The distribution of greedy choice: everything on the best token. `(B, V)` to `(B, V)`."""
    best = logits.argmax(dim=-1, keepdim=True)
    return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)


def sample(logits: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one token per row in proportion to softmax(logits): `(B, V)` to `(B,)`."""
    probs = torch.softmax(logits.float(), dim=-1)
    return torch.multinomial(probs, num_samples=1, generator=generator).squeeze(-1)
