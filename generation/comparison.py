"""Two prompts, one decoder: the same weights, sampler and seed run over two contexts in lockstep.

Knows nothing of retrieval: "with" and "without" are two lists of token ids. Whatever differs in the
answers comes from what differs in these lists.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

from generation.config import GenerationConfig
from generation.decoding import ShouldStop, Step, generate

if TYPE_CHECKING:
    from generation.model import LanguageModel

Side = Literal["with", "without"]


def compare(
    lm: LanguageModel,
    with_ids: Sequence[int],
    without_ids: Sequence[int],
    config: GenerationConfig,
    should_stop: ShouldStop | None = None,
) -> Generator[tuple[Side, Step], None, None]:
    """Run both sides one token each in turn; a side that has ended leaves the other going.

    Each side gives exactly the steps that `generate` gives for it alone. Raises as `generate`.
    """
    runs: dict[Side, Iterator[Step]] = {
        "with": generate(lm, with_ids, config, should_stop=should_stop),
        "without": generate(lm, without_ids, config, should_stop=should_stop),
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
