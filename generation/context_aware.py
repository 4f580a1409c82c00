"""Context-aware decoding: write what the context makes more probable than it was without it.

Shi et al. 2023, "Trusting Your Evidence: Hallucinate Less with Context-aware Decoding". The same
question is read twice, with the passages and without them, and each token is chosen from

    softmax((1 + alpha) * logits with context  -  alpha * logits without context)

so a token gains by how much the context raised it, and loses what the model says anyway.

This is the one control that DOES change how text is generated. Everywhere else retrieval only puts
other tokens into the prompt and the loop stays the same; here the choice of each token depends on
the difference between two contexts, and each token costs two passes. alpha = 0 is the plain loop.

Knows two lists of token ids; knows nothing of retrieval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from generation.chooser import Chooser, check_finite
from generation.config import GenerationConfig, check_number
from generation.decoding import ShouldStop, check_prompt, decode_step, new_cache, prefill
from generation.sampling import logits_to_logprobs
from generation.step import FinishReason, Step

if TYPE_CHECKING:
    from generation.model import LanguageModel


def generate_context_aware(
    lm: LanguageModel,
    with_ids: Sequence[int],
    without_ids: Sequence[int],
    config: GenerationConfig,
    *,
    alpha: float = 0.5,
    should_stop: ShouldStop | None = None,
) -> Iterator[Step]:
    """Continue both prompts with the same tokens, one `Step` at a time.

    alpha: 0 to 10, how much the difference that the context makes is amplified; the paper uses 0.5
    to 1. Penalties, temperature and filters of `config` act on the reweighed logits. In a Step,
    `logprob`, `rank`, `entropy` and `end_prob` are the model's with the context, as in `generate`;
    `sampler_logprob` is of the reweighed distribution, and `position` counts from `with_ids`.

    The run also ends as `context_full` when the text without context fills the window. Closing the
    generator stops the work; `should_stop` is asked between the passes of prompts and of tokens.
    Raises PromptTooLong, and ValueError for an empty prompt, an alpha out of range or num_beams
    above 1.
    """
    check_number("alpha", alpha, 0.0, 10.0)
    if config.num_beams > 1:
        raise ValueError("num_beams must be 1: context-aware decoding follows one text")
    for ids in (with_ids, without_ids):
        check_prompt(lm, ids)
    with_cache, without_cache = (
        new_cache(lm, len(ids) + config.max_new_tokens) for ids in (with_ids, without_ids)
    )
    chooser = Chooser(lm, with_ids, config)
    stopped = should_stop or (lambda: False)

    started = perf_counter()
    with_logits = prefill(lm, with_cache, with_ids, stopped)
    without_logits = None
    if with_logits is not None:
        without_logits = prefill(lm, without_cache, without_ids, stopped)
    while with_logits is not None and without_logits is not None:
        reweighed = reweigh(with_logits, without_logits, alpha)  # (1, V)
        step = chooser.choose(with_logits, started, choose_from=reweighed)
        # The cache holds all but this token, which the window must have room for as well.
        if step.finish_reason is None and without_cache.length + 1 >= lm.context_length:
            step = replace(step, finish_reason=FinishReason.CONTEXT_FULL)
        yield step
        if step.finish_reason is not None or stopped():
            return
        started = perf_counter()
        token_ids = torch.tensor([[step.token_id]])
        with_logits = decode_step(lm, with_cache, token_ids)
        without_logits = decode_step(lm, without_cache, token_ids)


@torch.inference_mode()
def reweigh(with_logits: Tensor, without_logits: Tensor, alpha: float) -> Tensor:
    """(1 + alpha) * with - alpha * without, `(B, V)` each; what the context rules out stays out.

    Raises FloatingPointError when a side is not finite.
    """
    for logits in (with_logits, without_logits):
        check_finite(logits_to_logprobs(logits))
    mixed = (1 + alpha) * with_logits - alpha * without_logits
    # A token that the model masks has -inf on both sides, and their difference is not a number.
    return mixed.masked_fill(with_logits == -torch.inf, -torch.inf)
