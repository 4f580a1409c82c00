"""Two prompts, one decoder: the same weights, sampler and seed run over two contexts in lockstep.

Knows nothing of retrieval: "with" and "without" are two lists of token ids. Whatever differs in the
answers comes from what differs in these lists.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

from generation.config import GenerationConfig
from generation.decoding import ShouldStop
from generation.method import Method
from generation.step import Step
from generation.strategies import write

if TYPE_CHECKING:
    from generation.model import LanguageModel

Side = Literal["with", "without"]


def compare(
    lm: LanguageModel,
    with_ids: Sequence[int],
    without_ids: Sequence[int],
    config: GenerationConfig,
    should_stop: ShouldStop | None = None,
    method: Method = Method(),  # noqa: B008  (frozen)
) -> Generator[tuple[Side, Step], None, None]:
    """Run both sides one token each in turn; a side that has ended leaves the other going.

    Each side gives exactly the steps that `write` gives for it alone. Raises as it does, and
    ValueError for beams, which follow no one text, and for context-aware decoding, which would not
    be the same on both sides.
    """
    if config.num_beams > 1:
        raise ValueError(
            "num_beams must be 1 in a comparison: beams follow no one text, token by token"
        )
    if method.context_alpha:
        raise ValueError("context_alpha must be 0 in a comparison: only the context may differ")
    runs: dict[Side, Iterator[Step]] = {
        "with": write(lm, with_ids, config, method, should_stop),
        "without": write(lm, without_ids, config, method, should_stop),
    }
    while runs:
        for side in list(runs):
            step = next(runs[side], None)
            if step is None:
                del runs[side]
            else:
                yield side, step


def first_divergence(a: Sequence[int], b: Sequence[int]) -> int | None:
    """The first index at which two token sequences differ; None while one begins with the other.

    Two finished answers of different length always differ, since their last tokens do.
    """
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)


def differing_tokens(with_ids: Sequence[int], without_ids: Sequence[int]) -> tuple[int, int]:
    """How many tokens each prompt has that the other lacks, in a shortest-edit sense.

    Returns `(only in with_ids, only in without_ids)`.
    """
    matcher = SequenceMatcher(None, list(with_ids), list(without_ids), autojunk=False)
    equal = sum(block.size for block in matcher.get_matching_blocks())
    return len(with_ids) - equal, len(without_ids) - equal
