"""The loop: read what is there, predict, choose one token, append it, again.

This is the only place where tokens are generated one after another. Text, chat, comparison, batch
and HTTP all drain `generate`; beam search is built on the same `prefill` and `decode_step`. Knows a
model and token ids; knows nothing of documents, retrieval or pages, so whatever is in the prompt,
retrieved or not, is continued in exactly the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from generation import sampling
from generation.config import GenerationConfig
from generation.kv_cache import KVCache
from generation.streaming import StopMatcher

if TYPE_CHECKING:
    from generation.model import LanguageModel

PREFILL_CHUNK = 512  # tokens per pass: what bounds how long a long prompt can go on after "stop"

ShouldStop = Callable[[], bool]


class FinishReason(StrEnum):
    """Why an answer ended."""

    EOS = "eos"  # the model chose an end-of-text token
    LENGTH = "length"  # max_new_tokens reached
    STOP_STRING = "stop_string"  # a stop string was written
    CONTEXT_FULL = "context_full"  # prompt and answer fill the model's window
    CANCELLED = "cancelled"  # the consumer stopped


class PromptTooLong(ValueError):
    """The prompt leaves no room in the model's context window for one new token."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could have been chosen. Log-probabilities are natural logs."""

    token_id: int
    text: str
    logprob: float  # the model's
    sampler_logprob: float  # after the sampler; -inf when it was cut


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the loop. Log-probabilities are natural logs, entropy is in bits."""

    position: int  # of this token, counted from the first token of the prompt
    token_id: int
    text: str  # of this token by itself; U+FFFD where it holds only part of a character
    logprob: float  # under the model
    sampler_logprob: float  # under the distribution the choice was made from
    rank: int  # 1 is the model's most probable token
    entropy: float  # of the model's distribution
    end_prob: float  # probability that the model gave to ending here
    candidates: tuple[Candidate, ...]  # the model's most probable tokens, and the chosen one
    seconds: float  # this turn; the first one includes reading the prompt
    finish_reason: FinishReason | None = None  # on the last step; a cancelled run has none


def generate(
    lm: LanguageModel,
    ids: Sequence[int],
    config: GenerationConfig,
    cache: KVCache | None = None,
    should_stop: ShouldStop | None = None,
) -> Iterator[Step]:
    """Continue the prompt `ids`, one `Step` at a time.

    Closing the generator stops the work; `should_stop` is asked between the passes over the model,
    also while a long prompt is being read. `cache`, when given, already holds the first
    `cache.length` tokens of `ids`, which are then not read again.

    Raises PromptTooLong, and ValueError for an empty prompt or for num_beams above 1.
    """
    if config.num_beams > 1:
        raise ValueError("generate() follows one text; use beam_search() for num_beams above 1")
    check_prompt(lm, ids)
    if cache is None:
        cache = new_cache(lm, len(ids) + config.max_new_tokens)
    chooser = Chooser(lm, ids, config)
    stopped = should_stop or (lambda: False)

    started = perf_counter()
    logits = prefill(lm, cache, ids[cache.length :], stopped)
    while logits is not None:
        step = chooser.choose(logits, started)
        yield step
        if step.finish_reason is not None or stopped():
            return
        started = perf_counter()
        logits = decode_step(lm, cache, torch.tensor([[step.token_id]]))


def check_prompt(lm: LanguageModel, ids: Sequence[int]) -> None:
    """Raise unless `ids` holds at least one token and leaves room for one more."""
    if not ids:
        raise ValueError("The prompt is empty: there is nothing to continue.")
    if len(ids) >= lm.context_length:
        raise PromptTooLong(
            f"The prompt has {len(ids)} tokens and the model's window holds {lm.context_length}, "
            "so there is no room for an answer. Shorten the question or use fewer passages."
        )


def new_cache(lm: LanguageModel, tokens: int) -> KVCache:
    """A cache with room for `tokens`, or for the whole window where that is less."""
    return KVCache.for_config(lm.hf_model.config, min(tokens, lm.context_length))


def prefill(
    lm: LanguageModel,
    cache: KVCache,
    ids: Sequence[int],
    should_stop: ShouldStop = lambda: False,
) -> Tensor | None:
    """Read a prompt `(T,)` into the cache; the logits `(1, V)` after its last token.

    All positions of a chunk are computed at once. None when `should_stop` said so in between.
    """
    tokens = torch.as_tensor(ids, dtype=torch.long).unsqueeze(0)  # (1, T)
    logits = None
    for chunk in tokens.split(PREFILL_CHUNK, dim=1):
        if should_stop():
            return None
        logits = forward(lm, cache, chunk)[:, -1]  # (1, V)
    return logits


def decode_step(lm: LanguageModel, cache: KVCache, token_ids: Tensor) -> Tensor:
    """Append one token per row, `(B, 1)`; the logits `(B, V)` for the next one."""
    return forward(lm, cache, token_ids)[:, -1]


@torch.inference_mode()
def forward(lm: LanguageModel, cache: KVCache, token_ids: Tensor, keep: int = 1) -> Tensor:
    """One pass over tokens `(B, T)` after what the cache holds.

    Returns float32 logits `(B, keep, V)` for the last `keep` positions.
    """
    output = lm.hf_model(
        input_ids=token_ids.to(lm.device), cache=cache, use_cache=True, logits_to_keep=keep
    )
    return output.logits.float()


class Chooser:
    """Turns logits into Steps for one text: the sampler, its randomness, and the stopping rules."""

    def __init__(self, lm: LanguageModel, ids: Sequence[int], config: GenerationConfig) -> None:
        self._lm = lm
        self._config = config
        self._ids = list(ids)
        self._prompt_length = len(ids)
        self._generator = torch.Generator(device=lm.device).manual_seed(config.seed)
        self._matcher = StopMatcher(lm, config.stop) if config.stop else None
        self._end_ids = torch.tensor(sorted(lm.end_ids), device=lm.device, dtype=torch.long)

    @torch.inference_mode()
    def choose(self, logits: Tensor, started: float) -> Step:
        """Choose from logits `(1, V)`, record the turn that began at `started`."""
        model = sampling.logits_to_logprobs(logits)[0]  # (V,)
        if not math.isfinite(float(model.amax())):  # one NaN or +inf logit makes all of them NaN
            raise FloatingPointError(
                "The model returned numbers that are not finite, so no token can be chosen. "
                "Try --precision fp32."
            )
        sampler_logits = self._sampler_logits(logits)  # (1, V)
        sampler = sampling.logits_to_logprobs(sampler_logits)[0]  # (V,)
        if self._config.temperature == 0:
            token_id = int(sampler_logits.argmax(dim=-1))
        else:
            token_id = int(sampling.sample(sampler_logits, self._generator))
        position = len(self._ids)
        self._ids.append(token_id)
        return Step(
            position=position,
            token_id=token_id,
            text=self._lm.token_text(token_id),
            logprob=float(model[token_id]),
            sampler_logprob=float(sampler[token_id]),
            rank=int((model > model[token_id]).sum()) + 1,
            entropy=entropy_bits(model),
            end_prob=float(model[self._end_ids].exp().sum()),
            candidates=self._candidates(model, sampler, token_id),
            finish_reason=self._finish_reason(token_id),
            seconds=perf_counter() - started,
        )

    def _sampler_logits(self, logits: Tensor) -> Tensor:
        config = self._config
        if config.repetition_penalty != 1.0:
            seen = torch.tensor([self._ids], device=logits.device)  # (1, T)
            logits = sampling.apply_repetition_penalty(logits, seen, config.repetition_penalty)
        if config.temperature == 0:
            return sampling.greedy(logits)
        logits = sampling.apply_temperature(logits, config.temperature)
        logits = sampling.top_k_filter(logits, config.top_k)
        logits = sampling.top_p_filter(logits, config.top_p)
        return sampling.min_p_filter(logits, config.min_p)

    def _candidates(self, model: Tensor, sampler: Tensor, chosen: int) -> tuple[Candidate, ...]:
        top = model.topk(min(self._config.num_candidates, len(model)))
        token_ids = top.indices.tolist()
        if chosen not in token_ids:
            token_ids.append(chosen)
        columns = zip(
            token_ids, model[token_ids].tolist(), sampler[token_ids].tolist(), strict=True
        )
        return tuple(Candidate(i, self._lm.token_text(i), m, s) for i, m, s in columns)

    def _finish_reason(self, token_id: int) -> FinishReason | None:
        if token_id in self._lm.end_ids:
            return FinishReason.EOS
        if self._matcher is not None and self._matcher.push(token_id):
            return FinishReason.STOP_STRING
        if len(self._ids) - self._prompt_length == self._config.max_new_tokens:
            return FinishReason.LENGTH
        if len(self._ids) >= self._lm.context_length:
            return FinishReason.CONTEXT_FULL
        return None


def entropy_bits(logprobs: Tensor) -> float:
    """Shannon entropy in bits of natural log-probabilities `(V,)`."""
    return float(torch.special.entr(logprobs.exp()).sum()) / math.log(2)


def generate_without_cache(
    lm: LanguageModel, ids: Sequence[int], config: GenerationConfig
) -> Iterator[Step]:
    """The same loop reading everything again for every token: slow, and so simple it is the oracle.

    Tests and the cache race compare `generate` with it. Use `generate` for anything else.
    """
    check_prompt(lm, ids)
    chooser = Chooser(lm, ids, config)
    sequence = torch.tensor([list(ids)])  # (1, T)
    while True:
        started = perf_counter()
        with torch.inference_mode():
            output = lm.hf_model(
                input_ids=sequence.to(lm.device), use_cache=False, logits_to_keep=1
            )
        step = chooser.choose(output.logits[:, -1].float(), started)
        yield step
        if step.finish_reason is not None:
            return
        sequence = torch.cat([sequence, torch.tensor([[step.token_id]])], dim=1)
