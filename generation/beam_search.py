"""Beam search: keep the k most probable texts, extend all of them by one token, keep k again.

Uses the same `prefill` and `decode_step` as the plain loop: the prompt is read once, then the k
texts are the k rows of one batch. Streaming is possible because every step has a best text so far;
it can still be replaced by another one, so a page shows it as a draft until the search ends.

The procedure, the scoring (sum of log-probabilities / length ** length_penalty) and the stopping
rule are those of transformers' `generate(num_beams=k, early_stopping=False)`, to which the tests
hold it token by token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from generation import sampling
from generation.config import GenerationConfig
from generation.decoding import ShouldStop, check_prompt, decode_step, new_cache, prefill
from generation.step import FinishReason

if TYPE_CHECKING:
    from generation.model import LanguageModel


@dataclass(frozen=True, slots=True)
class BeamHypothesis:
    """One text of the search: the generated tokens only, without the prompt."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]  # the model's, per token, natural logs
    logprob: float  # their sum, after any repetition penalty
    score: float  # logprob / length ** length_penalty
    text: str
    finish_reason: FinishReason | None = None

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass(frozen=True, slots=True)
class BeamUpdate:
    """The state of the search after one step."""

    live: tuple[BeamHypothesis, ...]  # being extended, best first
    finished: tuple[BeamHypothesis, ...]  # ended, best first, at most k
    pruned: tuple[BeamHypothesis, ...]  # considered in this step and dropped
    done: bool

    @property
    def best(self) -> BeamHypothesis:
        """The answer so far; once the search is done, the best finished hypothesis."""
        if self.done:
            return self.finished[0]
        return max((*self.live, *self.finished), key=lambda h: h.score)


@dataclass(frozen=True, slots=True)
class _Extension:
    """A candidate: hypothesis number `row` and one more token."""

    row: int
    token_id: int
    logprob: float  # of this token under the model
    total: float  # of the whole text


def beam_search(
    lm: LanguageModel,
    ids: Sequence[int],
    config: GenerationConfig,
    should_stop: ShouldStop | None = None,
) -> Iterator[BeamUpdate]:
    """Search with `config.num_beams` beams; one `BeamUpdate` per generated position.

    The last update is `done` and its `best` is the answer; a cancelled search has no such update.
    Raises PromptTooLong, and ValueError for an empty prompt.
    """
    check_prompt(lm, ids)
    limit = min(config.max_new_tokens, lm.context_length - len(ids))
    cache = new_cache(lm, len(ids) + limit)
    stopped = should_stop or (lambda: False)
    search = _Search(lm, ids, config, limit)

    logits = prefill(lm, cache, ids, stopped)
    while logits is not None:
        rows, token_ids, update = search.advance(logits)
        yield update
        if update.done or stopped():
            return
        cache.reorder(torch.tensor(rows))
        logits = decode_step(lm, cache, torch.tensor(token_ids).unsqueeze(1))


class _Search:
    """The bookkeeping of one search: no model in it, only hypotheses and numbers."""

    def __init__(
        self, lm: LanguageModel, ids: Sequence[int], config: GenerationConfig, limit: int
    ) -> None:
        self._lm = lm
        self._ids = list(ids)
        self._config = config
        self._limit = limit
        self._live = [BeamHypothesis((), (), 0.0, 0.0, "")]
        self._finished: list[BeamHypothesis] = []

    @torch.inference_mode()
    def advance(self, logits: Tensor) -> tuple[list[int], list[int], BeamUpdate]:
        """Extend every live hypothesis, given logits `(len(live), V)` for its next token.

        Returns, for each new live hypothesis, the old row it extends and its last token.
        """
        k = self._config.num_beams
        extensions = self._best_extensions(logits)
        live: list[tuple[int, BeamHypothesis]] = []
        pruned: list[BeamHypothesis] = []
        for order, extension in enumerate(extensions):
            hypothesis = self._extend(extension)
            if hypothesis.finished:
                # Past the first k an ended text is dropped: it did not make the beam.
                (self._finished if order < k else pruned).append(hypothesis)
            elif len(live) < k:
                live.append((extension.row, hypothesis))
            else:
                pruned.append(hypothesis)
        self._finished = sorted(self._finished, key=lambda h: -h.score)[:k]
        self._live = [hypothesis for _, hypothesis in live]
        update = BeamUpdate(
            tuple(self._live), tuple(self._finished), tuple(pruned), self._is_done()
        )
        return [row for row, _ in live], [h.token_ids[-1] for h in self._live], update

    def _best_extensions(self, logits: Tensor) -> list[_Extension]:
        """The most probable extensions of all rows together, best first.

        There are enough of them that k unfinished ones remain if the others all end their text.
        """
        model = sampling.logits_to_logprobs(logits)  # (k, V)
        texts = [self._ids + list(h.token_ids) for h in self._live]
        scores = sampling.adjust(model, texts, len(self._ids), self._config, self._lm.end_ids)
        totals = scores + torch.tensor(
            [[h.logprob] for h in self._live], device=model.device
        )  # (k, V)
        keep = max(2, 1 + len(self._lm.end_ids)) * self._config.num_beams
        top = totals.flatten().topk(min(keep, totals.numel()))
        width = totals.shape[-1]
        flat = top.indices.tolist()
        logprobs = model.flatten()[top.indices].tolist()
        columns = zip(flat, logprobs, top.values.tolist(), strict=True)
        return [_Extension(i // width, i % width, lp, total) for i, lp, total in columns]

    def _extend(self, extension: _Extension) -> BeamHypothesis:
        parent = self._live[extension.row]
        token_ids = (*parent.token_ids, extension.token_id)
        text_ids = [i for i in token_ids if i not in self._lm.end_ids]
        hypothesis = BeamHypothesis(
            token_ids=token_ids,
            logprobs=(*parent.logprobs, extension.logprob),
            logprob=extension.total,
            score=extension.total / len(token_ids) ** self._config.length_penalty,
            text=self._lm.decode(text_ids),
        )
        return replace(hypothesis, finish_reason=self._finish_reason(hypothesis))

    def _finish_reason(self, hypothesis: BeamHypothesis) -> FinishReason | None:
        if hypothesis.token_ids[-1] in self._lm.end_ids:
            return FinishReason.EOS
        if any(stop in hypothesis.text for stop in self._config.stop):
            return FinishReason.STOP_STRING
        if len(hypothesis.token_ids) == self._limit:
            fits = self._limit == self._config.max_new_tokens
            return FinishReason.LENGTH if fits else FinishReason.CONTEXT_FULL
        return None

    def _is_done(self) -> bool:
        """Nothing left to extend, or k texts ended and no live one can beat the worst of them."""
        if not self._live:
            return True
        if len(self._finished) < self._config.num_beams:
            return False
        length = len(self._live[0].token_ids)
        best_possible = self._live[0].logprob / length**self._config.length_penalty
        return best_possible <= self._finished[-1].score
