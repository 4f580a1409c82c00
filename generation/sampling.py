"""Pure functions on logits `(B, V)`: what a decoding strategy does to the model's prediction.

Knows nothing of models, tokens as text, or loops. Nothing here is stateful; randomness comes from
a `torch.Generator` that is handed in. A removed token has logit -inf.

The order is fixed (`ORDER`): what adjusts single tokens, then temperature, then the filters, then
one draw. Each filter sees the probabilities that the one before it left, renormalised. So order
matters where a filter sums probabilities: top-p and typical commute neither with temperature nor
with another filter. Top-k and min-p look only at ranks and at ratios to the best token, which no
renormalisation changes: they commute with each other, and top-k with temperature too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from generation.config import GenerationConfig

ORDER = (
    "logit_bias",
    "constraint",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "no_repeat_ngram_size",
    "min_new_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
)

# Most nuclei are smaller than this, and finding the best 512 of 150,000 costs far less than a sort.
NUCLEUS_HEAD = 512


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


def apply_logit_bias(scores: Tensor, bias: Sequence[tuple[int, float]]) -> Tensor:
    """Add a number to the scores `(B, V)` of single tokens: -100 all but bans one.

    Raises ValueError for a token that the vocabulary does not have.
    """
    if not bias:
        return scores
    token_ids = torch.tensor([token_id for token_id, _ in bias], device=scores.device)
    if int(token_ids.max()) >= scores.shape[-1]:
        raise ValueError(f"logit_bias names tokens from 0 to {scores.shape[-1] - 1}, not more")
    values = torch.tensor([value for _, value in bias], device=scores.device, dtype=scores.dtype)
    return scores.index_add(-1, token_ids, values.expand(scores.shape[0], -1))


def apply_presence_and_frequency_penalty(
    scores: Tensor, token_ids: Tensor, presence: float, frequency: float
) -> Tensor:
    """Subtract `presence` once and `frequency` per occurrence from tokens already generated.

    The two penalties of OpenAI's API. scores `(B, V)`; token_ids `(B, T)`: the generated tokens
    only, since a prompt that holds the facts should not make them less likely.
    """
    if (presence == 0.0 and frequency == 0.0) or token_ids.shape[-1] == 0:
        return scores
    counts = torch.zeros_like(scores).scatter_add(
        -1, token_ids, torch.ones_like(token_ids, dtype=scores.dtype)
    )
    return scores - presence * (counts > 0) - frequency * counts


def ban_repeated_ngrams(scores: Tensor, token_ids: Tensor, n: int) -> Tensor:
    """Ban every token that would complete an n-gram which occurred before; 0 bans none.

    scores `(B, V)`; token_ids `(B, T)`: prompt and generated tokens, as in transformers. So with a
    small n the passages in the prompt cannot be quoted word for word.
    """
    length = token_ids.shape[-1]
    if n == 0 or length < n:
        return scores
    windows = token_ids.unfold(-1, n, 1)  # (B, T - n + 1, n)
    last = token_ids[:, None, length - n + 1 :]  # (B, 1, n - 1): the beginning of the next n-gram
    seen = (windows[..., :-1] == last).all(dim=-1)  # (B, T - n + 1)
    banned = torch.zeros_like(scores, dtype=torch.bool)
    rows, places = seen.nonzero(as_tuple=True)
    banned[rows, windows[rows, places, -1]] = True
    return _unless_nothing_is_left(scores, scores.masked_fill(banned, -torch.inf))


def ban_tokens(scores: Tensor, token_ids: Iterable[int]) -> Tensor:
    """Make some tokens impossible: `(B, V)` to `(B, V)`."""
    index = torch.tensor(sorted(token_ids), device=scores.device, dtype=torch.long)
    return _unless_nothing_is_left(scores, scores.index_fill(-1, index, -torch.inf))


def _unless_nothing_is_left(before: Tensor, after: Tensor) -> Tensor:
    """`after` `(B, V)`, but rows in which it bans every token are as they were before.

    A constraint may leave a single token, which no ban can then take away.
    """
    return torch.where(after.isneginf().all(dim=-1, keepdim=True), before, after)


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


def typical_filter(logits: Tensor, p: float) -> Tensor:
    """Keep tokens whose surprise is closest to the entropy, until their probability reaches p.

    Locally typical sampling, Meister et al. 2023. 1 keeps all; one token always stays. `(B, V)`.
    """
    if p >= 1.0:
        return logits
    logprobs = logits_to_logprobs(logits)
    probs = logprobs.exp()
    entropy = torch.special.entr(probs).sum(dim=-1, keepdim=True)  # (B, 1), nats
    deviation = (-logprobs - entropy).abs()  # (B, V); inf for tokens that are already cut
    order = deviation.argsort(dim=-1)
    mass = probs.gather(-1, order).cumsum(dim=-1)
    outside = mass - probs.gather(-1, order) >= p
    outside[..., 0] = False
    kept = torch.zeros_like(probs, dtype=torch.bool).scatter(-1, order, ~outside)
    return logits.masked_fill(~kept, -torch.inf)


def greedy(logits: Tensor) -> Tensor:
    """The distribution of greedy choice: everything on the best token. `(B, V)` to `(B, V)`."""
    best = logits.argmax(dim=-1, keepdim=True)
    return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)


def adjust(
    scores: Tensor,
    texts: Sequence[Sequence[int]],
    prompt_length: int,
    config: GenerationConfig,
    end_ids: Iterable[int],
    constrain: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Everything that acts on single tokens because of the text so far, in the order of `ORDER`.

    scores `(B, V)`: logits, or log-probabilities for beams; texts: B rows of prompt and generated
    token ids, equally long; constrain: what puts tokens of a wrong form at -inf. Returns `scores`
    itself when no option asks for anything.
    """
    scores = apply_logit_bias(scores, config.logit_bias)
    if constrain is not None:
        scores = constrain(scores)
    if config.reads_history:
        token_ids = torch.tensor(texts, device=scores.device)  # (B, T)
        scores = apply_repetition_penalty(scores, token_ids, config.repetition_penalty)
        scores = apply_presence_and_frequency_penalty(
            scores,
            token_ids[:, prompt_length:],
            config.presence_penalty,
            config.frequency_penalty,
        )
        scores = ban_repeated_ngrams(scores, token_ids, config.no_repeat_ngram_size)
    if len(texts[0]) - prompt_length < config.min_new_tokens:
        scores = ban_tokens(scores, end_ids)
    return scores


def warp(logits: Tensor, config: GenerationConfig) -> Tensor:
    """Temperature and the filters, in the order of `ORDER`: `(B, V)` to `(B, V)`."""
    logits = apply_temperature(logits, config.temperature)
    logits = top_k_filter(logits, config.top_k)
    logits = top_p_filter(logits, config.top_p)
    logits = min_p_filter(logits, config.min_p)
    return typical_filter(logits, config.typical_p)


def keep_drawn(logits: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Draw n tokens without replacement from softmax(logits) `(V,)`; the others go to -inf."""
    probs = torch.softmax(logits, dim=-1)
    possible = int((probs > 0).sum())
    drawn = torch.multinomial(probs, min(n, possible), replacement=False, generator=generator)
    return torch.full_like(logits, -torch.inf).index_copy(0, drawn, logits[drawn])


def sample(logits: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one token per row in proportion to softmax(logits): `(B, V)` to `(B,)`."""
    probs = torch.softmax(logits.float(), dim=-1)
    return torch.multinomial(probs, num_samples=1, generator=generator).squeeze(-1)
