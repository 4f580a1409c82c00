"""From logits to a recorded choice: constraint, penalties, sampler, randomness, stopping rules.

Knows the options and the tokens of one text; runs no model. The loop hands it the logits of each
turn and appends the token it returns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from generation import sampling
from generation.config import GenerationConfig
from generation.repetition import RepetitionDetector
from generation.step import Candidate, FinishReason, Step
from generation.streaming import StopMatcher
from generation.threads import one_thread

if TYPE_CHECKING:
    from generation.constraints import Constraint
    from generation.model import LanguageModel


class Chooser:
    """Turns logits into Steps for one text: the sampler, its randomness, and the stopping rules."""

    def __init__(
        self,
        lm: LanguageModel,
        ids: Sequence[int],
        config: GenerationConfig,
        constraint: Constraint | None = None,
    ) -> None:
        self._lm = lm
        self._config = config
        self._constraint = constraint
        self._ids = list(ids)
        self._prompt_length = len(ids)
        self._generator = torch.Generator(device=lm.device).manual_seed(config.seed)
        self._matcher = StopMatcher(lm, config.stop) if config.stop else None
        self._loops = RepetitionDetector() if config.stop_on_repetition else None
        self._end_ids = torch.tensor(sorted(lm.end_ids), device=lm.device, dtype=torch.long)

    @torch.inference_mode()
    def choose(self, logits: Tensor, started: float, choose_from: Tensor | None = None) -> Step:
        """Choose from logits `(1, V)`, record the turn that began at `started`.

        `choose_from` `(1, V)`, when a strategy gives it, is handed to the sampler in their place;
        what the record says of the model is still said of `logits`.
        """
        with one_thread(self._lm.lean.torch_threads if self._lm.lean is not None else 1):
            return self._choose(logits, started, choose_from)

    def _choose(self, logits: Tensor, started: float, choose_from: Tensor | None) -> Step:
        model = sampling.logits_to_logprobs(logits)[0]  # (V,)
        check_finite(model)
        sampler_logits = self._sampler_logits(logits if choose_from is None else choose_from)
        sampler = sampling.logits_to_logprobs(sampler_logits)[0]  # (V,)
        if self._config.temperature == 0:
            token_id = int(sampler_logits.argmax(dim=-1))
        else:
            token_id = int(sampling.sample(sampler_logits, self._generator))
        position = len(self._ids)
        self._ids.append(token_id)
        if self._constraint is not None and token_id not in self._lm.end_ids:
            self._constraint.accept(token_id)
        step = Step(
            position=position,
            token_id=token_id,
            text=self._lm.decode([token_id]),
            logprob=float(model[token_id]),
            sampler_logprob=float(sampler[token_id]),
            rank=int((model > model[token_id]).sum()) + 1,
            entropy=entropy_bits(model),
            end_prob=float(model[self._end_ids].exp().sum()),
            candidates=self._candidates(model, sampler, token_id),
            finish_reason=self._finish_reason(token_id),
            seconds=perf_counter() - started,
        )
        if self._loops is not None and self._loops.push(step) and step.finish_reason is None:
            return replace(step, finish_reason=FinishReason.REPETITION)
        return step

    def adjust(self, logits: Tensor) -> Tensor:
        """What penalties and bans make of logits for the next token: `(1, V)` to `(1, V)`."""
        return sampling.adjust(
            logits,
            [self._ids],
            self._prompt_length,
            self._config,
            self._lm.end_ids,
            self._constraint.allowed if self._constraint is not None else None,
        )

    def _sampler_logits(self, logits: Tensor) -> Tensor:
        """What the choice is made from: `(1, V)` to `(1, V)`, impossible tokens at -inf."""
        logits = self.adjust(logits)
        if self._config.temperature == 0:
            return sampling.greedy(logits)
        return sampling.warp(logits, self._config)

    def _candidates(self, model: Tensor, sampler: Tensor, chosen: int) -> tuple[Candidate, ...]:
        top = model.topk(min(self._config.num_candidates, len(model)))
        token_ids = top.indices.tolist()
        if chosen not in token_ids:
            token_ids.append(chosen)
        columns = zip(
            token_ids, model[token_ids].tolist(), sampler[token_ids].tolist(), strict=True
        )
        return tuple(Candidate(i, self._lm.decode([i]), m, s) for i, m, s in columns)

    def _finish_reason(self, token_id: int) -> FinishReason | None:
        if token_id in self._lm.end_ids:
            return FinishReason.EOS
        if not self._lm.end_ids and self._constraint is not None and self._constraint.finished:
            return FinishReason.EOS  # complete, and the model has no token to say so
        if self._matcher is not None and self._matcher.push(token_id):
            return FinishReason.STOP_STRING
        if len(self._ids) - self._prompt_length == self._config.max_new_tokens:
            return FinishReason.LENGTH
        if len(self._ids) >= self._lm.context_length:
            return FinishReason.CONTEXT_FULL
        return None


def check_finite(logprobs: Tensor) -> None:
    """Raise FloatingPointError when the logits behind log-probabilities `(..., V)` had no sense."""
    # One NaN or +inf logit makes the log-probabilities of its whole row NaN.
    if not math.isfinite(float(logprobs.amax())):
        raise FloatingPointError(
            "The model returned numbers that are not finite, so no token can be chosen. "
            "Try --precision fp32."
        )


def entropy_bits(logprobs: Tensor) -> float:
    """Shannon entropy in bits of natural log-probabilities `(V,)`."""
    return float(torch.special.entr(logprobs.exp()).sum()) / math.log(2)
