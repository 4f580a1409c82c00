"""The contrast to one token at a time: all positions at once, and what it takes to make that right.

`one_shot` predicts n tokens in a single pass. `jacobi_decode` repeats such passes, each fed with
the tokens of the one before, until nothing changes: Jacobi iteration on the system of equations

    y_j = argmax p(. | prompt, y_1 .. y_(j-1))      for j = 1 .. n

whose only solution is the greedy text. Song et al. 2021, "Accelerating Feedforward Computation via
Parallel Nonlinear Equation Solving"; Santilli et al. 2023, "Accelerating Transformer Inference for
Translation via Parallel Decoding".

Knows a model and token ids; draws nothing at random and knows no penalties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from generation import decoding
from generation.chooser import check_finite
from generation.config import check_number
from generation.decoding import ShouldStop, check_prompt, forward, new_cache, prefill
from generation.kv_cache import KVCache
from generation.sampling import logits_to_logprobs
from generation.step import FinishReason

if TYPE_CHECKING:
    from generation.model import LanguageModel

MAX_POSITIONS = 512  # logits held at once: 512 x 151,936 x 4 bytes = 297 MiB


@dataclass(frozen=True, slots=True)
class OneShot:
    """n tokens predicted at the same time."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]  # of each token where it stands, before placeholders; natural logs
    text: str
    seconds: float
    passes: int = 1


@dataclass(frozen=True, slots=True)
class JacobiIteration:
    """The text after one more pass."""

    number: int  # 1 is the guess, the answer of `one_shot`
    token_ids: tuple[int, ...]  # all n of them; on the last iteration the answer, cut at its end
    text: str
    final: int  # the first `final` tokens are those of the greedy text and change no more
    changed: tuple[int, ...]  # indices of tokens that differ from those fed into this pass
    computed: int  # answer positions that this pass computed; the final ones before were not
    passes: int  # over the model so far: iterations, and earlier chunks of a long prompt
    seconds: float  # this iteration; the first one includes reading the prompt
    finish_reason: FinishReason | None = None  # on the last iteration; a cancelled run has none


def one_shot(
    lm: LanguageModel, ids: Sequence[int], n: int, placeholder: int | None = None
) -> OneShot:
    """Predict the n tokens after the prompt `ids` in a single pass.

    What stands at the n - 1 positions before the last is not known yet, so they are filled with
    `placeholder` (the prompt's last token unless another id is given), and the most probable next
    token is read off at every position. Only the first one is what the loop would have written.
    The others do not agree with each other: each is predicted from the prompt and placeholders, not
    from the tokens chosen at the same moment to its left. Where "New York" and "Los Angeles" are
    both likely, "New Angeles" can come out. Making them agree takes as many steps as there are
    dependencies between them, which is what `jacobi_decode` shows.

    n: 1 to 512, cut to what the window has room for. End-of-text tokens end nothing here.
    Raises PromptTooLong, and ValueError for an empty prompt or an n or placeholder out of range.
    """
    guess = _placeholders(lm, ids, n, placeholder)
    started = perf_counter()
    cache = new_cache(lm, len(ids) + len(guess))
    token_ids, logprobs = _predict(lm, cache, [*ids, *guess[:-1]], len(guess))
    return OneShot(
        token_ids=tuple(token_ids),
        logprobs=tuple(logprobs),
        text=lm.decode(token_ids),
        seconds=perf_counter() - started,
    )


def jacobi_decode(
    lm: LanguageModel,
    ids: Sequence[int],
    n: int,
    should_stop: ShouldStop | None = None,
    *,
    placeholder: int | None = None,
) -> Iterator[JacobiIteration]:
    """From the guess of `one_shot` to the greedy text, one pass at a time.

    A token is final once all tokens to its left were final when it was predicted. Every pass makes
    at least one more final, so there are at most n, and fewer when a guess was right: that is the
    whole gain over the loop. In fp32 the tokens are exactly the greedy ones; in bf16 a pass over
    many positions may round otherwise than a pass over one, and decide a near tie differently.

    Keys and values of the prompt and of final tokens are kept; those of tokens that were wrong are
    cropped after each pass, so a pass computes only what is still open. Ends when all n tokens are
    final or when a final one ends the text. Options and errors are those of `one_shot`; closing the
    generator stops the work, and `should_stop` is asked between passes.
    """
    tokens = list(_placeholders(lm, ids, n, placeholder))
    at_length = FinishReason.LENGTH if len(tokens) == n else FinishReason.CONTEXT_FULL
    cache = new_cache(lm, len(ids) + len(tokens))
    stopped = should_stop or (lambda: False)

    started = perf_counter()
    # The last part of the prompt, at least one token, is read in the same pass as the first guess.
    tail = (len(ids) - 1) % decoding.PREFILL_CHUNK + 1
    if tail < len(ids) and prefill(lm, cache, ids[:-tail], stopped) is None:
        return
    earlier_passes = (len(ids) - tail) // decoding.PREFILL_CHUNK
    known, final, number = list(ids[-tail:]), 0, 0
    while not stopped():
        computed = len(tokens) - final
        fed = list(tokens)
        tokens[final:], _ = _predict(lm, cache, [*known, *fed[final:-1]], computed)
        # The first open token was predicted from final ones only. If it is also what was fed in its
        # place, then so was the next one, and so on.
        right = final
        while right < len(tokens) - 1 and tokens[right] == fed[right]:
            right += 1
        end = next((j for j in range(final, right + 1) if tokens[j] in lm.end_ids), None)
        final = right + 1
        reason = at_length if final == len(tokens) else None
        if end is not None:
            del tokens[end + 1 :]
            final, reason = len(tokens), FinishReason.EOS
        number += 1
        yield JacobiIteration(
            number=number,
            token_ids=tuple(tokens),
            text=lm.decode(tokens),
            final=final,
            changed=tuple(j for j, (a, b) in enumerate(zip(tokens, fed, strict=False)) if a != b),
            computed=computed,
            passes=earlier_passes + number,
            seconds=perf_counter() - started,
            finish_reason=reason,
        )
        if reason is not None:
            return
        started = perf_counter()
        known = [tokens[final - 1]]
        cache.crop(len(ids) + final - 1 - cache.length)


def _placeholders(
    lm: LanguageModel, ids: Sequence[int], n: int, placeholder: int | None
) -> list[int]:
    """The first guess: n placeholders, or as many as the window has room for after the prompt."""
    check_number("n", n, 1, MAX_POSITIONS, whole=True)
    check_prompt(lm, ids)
    if placeholder is None:
        placeholder = ids[-1]
    check_number("placeholder", placeholder, 0, lm.vocab_size - 1, whole=True)
    return [placeholder] * min(n, lm.context_length - len(ids))


@torch.inference_mode()
def _predict(
    lm: LanguageModel, cache: KVCache, token_ids: list[int], keep: int
) -> tuple[list[int], list[float]]:
    """The most probable next token, and its log-probability, at each of the last `keep` tokens."""
    logits = forward(lm, cache, torch.tensor([token_ids]), keep=keep)[0]  # (keep, V)
    logprobs = logits_to_logprobs(logits)  # (keep, V)
    check_finite(logprobs)
    best = logprobs.max(dim=-1)
    return logits.argmax(dim=-1).tolist(), best.values.tolist()
