"""Contrastive search: the probable token that least repeats what the text already says.

Su et al. 2022, "A Contrastive Framework for Neural Text Generation" (NeurIPS), equation 5. Greedy
text falls into loops, and in a loop the hidden states of the last layer repeat. So each of the k
most probable tokens v is tried, and the one with the highest

    (1 - alpha) * p(v)  -  alpha * max over the text of cos(h(v), h(x_j))

is kept. The second term is the degeneration penalty: h(v) is the hidden state the model has after
reading v, and x_j runs over every position so far, prompt and answer. Nothing is drawn at random.

Knows a model and token ids; knows no pages. The k candidates are k rows of one batch, so a token
costs one pass over k rows, and that pass already predicts the token after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import normalize

from generation.chooser import Chooser
from generation.config import GenerationConfig, check_number
from generation.decoding import (
    PREFILL_CHUNK,
    ShouldStop,
    check_prompt,
    forward_with_hidden,
    new_cache,
)
from generation.kv_cache import KVCache
from generation.step import Step

if TYPE_CHECKING:
    from generation.model import LanguageModel


@dataclass(frozen=True, slots=True)
class ContrastiveCandidate:
    """One of the k tokens that were tried."""

    token_id: int
    text: str
    prob: float  # the model's, after any penalties of the config
    similarity: float  # highest cosine to an earlier position, -1 to 1: the degeneration penalty
    similar_to: int  # that position, counted from the first token of the prompt
    score: float  # (1 - alpha) * prob - alpha * similarity; -inf when the config bans the token


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastiveStep(Step):
    """A Step with the candidates that were tried, most probable first.

    The choice is certain, so `sampler_logprob` is 0 for the chosen token and -inf for all others,
    as in a greedy step. The first of `tried` is the token that greedy would have written.
    """

    tried: tuple[ContrastiveCandidate, ...]


def contrastive_search(
    lm: LanguageModel,
    ids: Sequence[int],
    config: GenerationConfig,
    *,
    top_k: int = 4,
    penalty_alpha: float = 0.6,
    cache: KVCache | None = None,
    should_stop: ShouldStop | None = None,
) -> Iterator[ContrastiveStep]:
    """Continue the prompt `ids`, one `ContrastiveStep` at a time.

    top_k: how many candidates are tried, 1 to 64. penalty_alpha: the weight of the degeneration
    penalty, 0 to 1; 0 (or top_k=1) writes the greedy text. `config` gives the lengths, the stop
    strings and the penalties on single tokens, which act before the candidates are picked; its
    temperature must be 0.

    `cache`, when given, is emptied first: the hidden states of what it holds are not in it. At each
    step it holds the text up to the token of that step.

    Closing the generator stops the work; `should_stop` is asked between passes. Raises
    PromptTooLong, and ValueError for an empty prompt or an option out of range.
    """
    check_number("top_k", top_k, 1, 64, whole=True)
    check_number("penalty_alpha", penalty_alpha, 0.0, 1.0)
    if config.temperature > 0 or config.num_beams > 1:
        raise ValueError(
            "temperature must be 0 and num_beams 1: contrastive search draws nothing and follows "
            "one text"
        )
    check_prompt(lm, ids)
    if cache is None:
        cache = new_cache(lm, len(ids) + config.max_new_tokens)
    cache.crop(-cache.length)
    chooser = Chooser(lm, ids, config)
    stopped = should_stop or (lambda: False)

    started = perf_counter()
    logits, seen = _read_prompt(lm, cache, ids, stopped)  # (1, V), (T, D)
    while logits is not None and not stopped():
        trial = _try_candidates(lm, cache, chooser.adjust(logits), seen, top_k, penalty_alpha)
        step = chooser.choose(logits, started, choose_from=trial.choice)
        yield ContrastiveStep(
            **{field.name: getattr(step, field.name) for field in fields(step)},
            tried=trial.candidates,
        )
        if step.finish_reason is not None:
            return
        started = perf_counter()
        logits = trial.next_logits
        seen = torch.cat([seen, trial.hidden])


def _read_prompt(
    lm: LanguageModel, cache: KVCache, ids: Sequence[int], should_stop: ShouldStop
) -> tuple[Tensor | None, Tensor]:
    """As `prefill`, also the unit hidden states `(T, D)` of the whole prompt."""
    tokens = torch.as_tensor(ids, dtype=torch.long).unsqueeze(0)  # (1, T)
    logits, seen = None, []
    for chunk in tokens.split(PREFILL_CHUNK, dim=1):
        if should_stop():
            return None, torch.empty(0)
        logits, hidden = forward_with_hidden(lm, cache, chunk)
        seen.append(normalize(hidden[0], dim=-1))
    return logits, torch.cat(seen)


@dataclass(frozen=True, slots=True)
class _Trial:
    candidates: tuple[ContrastiveCandidate, ...]
    choice: Tensor  # (1, V): 0 for the chosen token, -inf for the others
    next_logits: Tensor  # (1, V) after the chosen token
    hidden: Tensor  # (1, D) of the chosen token, of unit length


@torch.inference_mode()
def _try_candidates(
    lm: LanguageModel, cache: KVCache, logits: Tensor, seen: Tensor, top_k: int, alpha: float
) -> _Trial:
    """Read the k best tokens of `logits` `(1, V)` as k rows; leave the best one's row in the cache.

    seen `(T, D)`: unit hidden states of the text so far.
    """
    top = logits[0].topk(min(top_k, logits.shape[-1]))
    token_ids = top.indices  # (k,)
    probs = logits[0].softmax(dim=-1)[token_ids]  # (k,)

    cache.reorder(torch.zeros_like(token_ids))  # the text, k times
    next_logits, hidden = forward_with_hidden(
        lm, cache, token_ids.unsqueeze(1)
    )  # (k, V), (k, 1, D)
    hidden = normalize(hidden[:, 0], dim=-1)  # (k, D)
    nearest = (hidden @ seen.T).max(dim=-1)  # over T: (k,)
    scores = (1 - alpha) * probs - alpha * nearest.values  # (k,)
    scores = scores.masked_fill(top.values == -torch.inf, -torch.inf)
    best = int(scores.argmax())
    cache.reorder(torch.tensor([best]))

    columns = zip(
        token_ids.tolist(),
        probs.tolist(),
        nearest.values.tolist(),
        nearest.indices.tolist(),
        scores.tolist(),
        strict=True,
    )
    return _Trial(
        candidates=tuple(ContrastiveCandidate(i, lm.decode([i]), *rest) for i, *rest in columns),
        choice=torch.full_like(logits, -torch.inf).index_fill(-1, token_ids[best], 0.0),
        next_logits=next_logits[best : best + 1],
        hidden=hidden[best : best + 1],
    )
