"""The loop: read what is there, predict, choose one token, append it, again.

This is the only place where tokens are generated one after another. Text, chat, comparison, batch
and HTTP all drain `generate`; beam search is built on the same `prefill` and `decode_step`. Knows a
model and token ids; knows nothing of documents, retrieval or pages, so whatever is in the prompt,
retrieved or not, is continued in exactly the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from generation.chooser import Chooser
from generation.config import GenerationConfig
from generation.kv_cache import KVCache
from generation.lean import MAX_ROWS
from generation.step import PromptTooLong, Step

if TYPE_CHECKING:
    from generation.constraints import Constraint
    from generation.model import LanguageModel

PREFILL_CHUNK = 512  # tokens per pass: what bounds how long a long prompt can go on after "stop"

ShouldStop = Callable[[], bool]


def generate(
    lm: LanguageModel,
    ids: Sequence[int],
    config: GenerationConfig,
    cache: KVCache | None = None,
    should_stop: ShouldStop | None = None,
    constraint: Constraint | None = None,
) -> Iterator[Step]:
    """Continue the prompt `ids`, one `Step` at a time.

    Closing the generator stops the work; `should_stop` is asked between the passes over the model,
    also while a long prompt is being read. `cache`, when given, already holds the first
    `cache.length` tokens of `ids`, which are then not read again. `constraint`, made for this run,
    leaves only tokens that lead to an answer of its form; the end is allowed when it has that form.

    Raises PromptTooLong, and ValueError for an empty prompt or for num_beams above 1.
    """
    if config.num_beams > 1:
        raise ValueError("generate() follows one text; use beam_search() for num_beams above 1")
    check_prompt(lm, ids)
    if cache is None:
        cache = new_cache(lm, len(ids) + config.max_new_tokens)
    chooser = Chooser(lm, ids, config, constraint)
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

    Returns float32 logits `(B, keep, V)` for the last `keep` positions. A few tokens go through
    compiled code where the model has it; it reads and appends to the same cache.
    """
    if lm.lean is not None and token_ids.numel() <= MAX_ROWS:
        return lm.lean.step(cache, token_ids, keep)
    if lm.lean is not None:
        torch.set_num_threads(lm.lean.torch_threads)  # see generation/threads.py
    output = lm.hf_model(
        input_ids=token_ids.to(lm.device), cache=cache, use_cache=True, logits_to_keep=keep
    )
    return output.logits.float()


@torch.inference_mode()
def forward_with_hidden(
    lm: LanguageModel, cache: KVCache, token_ids: Tensor
) -> tuple[Tensor, Tensor]:
    """One pass over tokens `(B, T)`, as `forward`, that also shows what the logits are read from.

    Returns float32 logits `(B, V)` of the last position and the float32 hidden states `(B, T, D)`
    of all T positions after the last layer.
    """
    output = lm.hf_model(
        input_ids=token_ids.to(lm.device),
        cache=cache,
        use_cache=True,
        logits_to_keep=1,
        output_hidden_states=True,
    )
    return output.logits[:, -1].float(), output.hidden_states[-1].float()


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
