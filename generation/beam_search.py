"""Beam search: keep the k most probable texts, extend all of them by one token, keep k again.

Uses the same `prefill` and `decode_step` as the plain loop: the prompt is read once, then the k
texts are the k rows of one batch. Streaming is possible because every step has a best text so far;
it can still be replaced by another one, so a page shows it as a draft until the search ends.

The procedure, the scoring (sum of log-probabilities / length ** length_penalty) and the stopping
rules are those of transformers' `generate(num_beams=k)`, to which the tests hold it token by token.
With `num_beam_groups` the beams are divided into groups that avoid each other's tokens (diverse
beam search, Vijayakumar et al. 2018); with a temperature above 0 extensions are drawn without
replacement instead of taken from the top (beam sampling).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from generation import sampling
from generation.chooser import check_finite
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
    parent: int = 0  # which live hypothesis of its group, in the step before, it extends
    finish_reason: FinishReason | None = None

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass(frozen=True, slots=True)
class BeamUpdate:
    """The state of the search after one step; each tuple is sorted, best score first."""

    live: tuple[BeamHypothesis, ...]  # being extended
    finished: tuple[BeamHypothesis, ...]  # ended; when done, the n best texts, n = num_beams
    pruned: tuple[BeamHypothesis, ...]  # considered in this step and dropped
    done: bool

    @property
    def best(self) -> BeamHypothesis:
        """The answer so far; once the search is done, the best finished hypothesis."""
        if self.done:
            return self.finished[0]
        return max((*self.live, *self.finished), key=lambda h: h.score)


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
        self._generator = torch.Generator(device=lm.device).manual_seed(config.seed)
        width = config.num_beams // config.num_beam_groups
        self._groups = [BeamGroup(width, config, limit) for _ in range(config.num_beam_groups)]

    @torch.inference_mode()
    def advance(self, logits: Tensor) -> tuple[list[int], list[int], BeamUpdate]:
        """Extend every live hypothesis, given logits `(rows, V)` for its next token.

        All groups' live hypotheses stand one after another; before the first step, all groups share
        the one row of the prompt. Returns, for each new live hypothesis, the old row it extends and
        its last token.
        """
        model = sampling.logits_to_logprobs(logits)  # (rows, V)
        check_finite(model)
        rows: list[int] = []
        chosen: list[int] = []  # by the groups before, in this step
        pruned: list[BeamHypothesis] = []
        start = 0
        for group in self._groups:
            if group.done:
                continue
            own = slice(start, start + len(group.live)) if group.started else slice(0, 1)
            parents, dropped = group.advance(self._best_extensions(group, model[own], chosen))
            rows += [own.start + parent for parent in parents]
            chosen += [h.token_ids[-1] for h in group.live]
            pruned += dropped
            start = own.stop
        live = [h for group in self._groups for h in group.live]
        finished = [h for group in self._groups for h in group.finished]
        update = BeamUpdate(
            live=_best_first(live),
            finished=_best_first(finished),
            pruned=_best_first(pruned),
            done=all(group.done for group in self._groups),
        )
        return rows, [h.token_ids[-1] for h in live], update

    def _best_extensions(
        self, group: BeamGroup, model: Tensor, avoid: Sequence[int]
    ) -> list[BeamHypothesis]:
        """The extensions of a group's live hypotheses that compete for its beams, best first.

        model `(rows, V)`: log-probabilities. There are enough extensions that the group keeps its
        width even if all the others end their text.
        """
        texts = [self._ids + list(h.token_ids) for h in group.live]
        scores = sampling.adjust(model, texts, len(self._ids), self._config, self._lm.end_ids)
        if avoid:
            # Hamming diversity: one penalty for each time an earlier group chose the token.
            counts = torch.bincount(torch.tensor(avoid), minlength=scores.shape[-1])
            scores = scores - self._config.diversity_penalty * counts.to(scores)
        if self._config.temperature > 0:
            scores = sampling.warp(scores, self._config)
        totals = scores + torch.tensor([[h.logprob] for h in group.live], device=model.device)
        wanted = max(2, 1 + len(self._lm.end_ids)) * group.width
        flat = totals.flatten()  # (rows * V,)
        if self._config.temperature > 0:
            flat = sampling.keep_drawn(flat, wanted, self._generator)
        top = flat.topk(min(wanted, int(flat.isfinite().sum())))
        places = top.indices.tolist()
        logprobs = model.flatten()[top.indices].tolist()
        width = totals.shape[-1]
        return [
            self._extend(
                group, group.live[place // width], place // width, place % width, lp, total
            )
            for place, lp, total in zip(places, logprobs, top.values.tolist(), strict=True)
        ]

    def _extend(
        self,
        group: BeamGroup,
        parent: BeamHypothesis,
        row: int,
        token_id: int,
        logprob: float,
        total: float,
    ) -> BeamHypothesis:
        token_ids = (*parent.token_ids, token_id)
        text = self._lm.decode([i for i in token_ids if i not in self._lm.end_ids])
        hypothesis = BeamHypothesis(
            token_ids=token_ids,
            logprobs=(*parent.logprobs, logprob),
            logprob=total,
            score=total / len(token_ids) ** self._config.length_penalty,
            text=text,
            parent=row,
        )
        return replace(hypothesis, finish_reason=self._finish_reason(hypothesis, group.limit))

    def _finish_reason(self, hypothesis: BeamHypothesis, limit: int) -> FinishReason | None:
        if hypothesis.token_ids[-1] in self._lm.end_ids:
            return FinishReason.EOS
        if any(stop in hypothesis.text for stop in self._config.stop):
            return FinishReason.STOP_STRING
        if len(hypothesis.token_ids) == limit:
            fits = limit == self._config.max_new_tokens
            return FinishReason.LENGTH if fits else FinishReason.CONTEXT_FULL
        return None


class BeamGroup:
    """The beams that compete with one another: all of them, or one of several groups."""

    def __init__(self, width: int, config: GenerationConfig, limit: int) -> None:
        self.width = width
        self.limit = limit  # tokens that a text may have
        self.live = [BeamHypothesis((), (), 0.0, 0.0, "")]
        self.finished: list[BeamHypothesis] = []
        self.started = False
        self.done = False
        self._config = config

    def advance(
        self, extensions: Sequence[BeamHypothesis]
    ) -> tuple[list[int], list[BeamHypothesis]]:
        """Choose the next live hypotheses among `extensions`, which are sorted, best first.

        Returns the parents of those now live, and what was pruned.
        """
        live: list[BeamHypothesis] = []
        pruned: list[BeamHypothesis] = []
        for order, extension in enumerate(extensions):
            if extension.finished:
                # Past the first `width` an ended text is dropped: it did not make the beam.
                (self.finished if order < self.width else pruned).append(extension)
            elif len(live) < self.width:
                live.append(extension)
            else:
                pruned.append(extension)
        ranked = _best_first(self.finished)
        self.finished = list(ranked[: self.width])
        pruned += ranked[self.width :]
        self.started = True
        self.live = live
        self.done = self._is_done()
        if self.done:
            pruned += live
            self.live = []
        return [h.parent for h in self.live], pruned

    def _is_done(self) -> bool:
        """Nothing left to extend, or the beam is full of ended texts that no live one can beat."""
        if not self.live:
            return True
        if len(self.finished) < self.width:
            return False
        if self._config.early_stopping is True:
            return True
        length = len(self.live[0].token_ids)
        if self._config.early_stopping == "never" and self._config.length_penalty > 0:
            length = self.limit  # a longer text might still get there
        best_possible = self.live[0].logprob / length**self._config.length_penalty
        return best_possible <= self.finished[-1].score


def _best_first(hypotheses: Sequence[BeamHypothesis]) -> tuple[BeamHypothesis, ...]:
    return tuple(sorted(hypotheses, key=lambda h: -h.score))
