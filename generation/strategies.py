"""One name for each way to write a text token by token, so that page, terminal and API agree.

Chooses between loops that live elsewhere; decodes nothing itself. What can be combined is decided
here, once, and said in a sentence when it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from generation.config import GenerationConfig
from generation.constraints import Constraint, json_constraint, regex_constraint
from generation.context_aware import generate_context_aware
from generation.contrastive_search import contrastive_search
from generation.decoding import ShouldStop, generate
from generation.method import Method
from generation.step import Step

if TYPE_CHECKING:
    from generation.model import LanguageModel


def strategy_name(config: GenerationConfig, method: Method) -> str:
    """What people call the combination, in English, such as for a receipt or a trace."""
    if method.penalty_alpha:
        return "contrastive search"
    if method.context_alpha:
        return f"context-aware {config.strategy}"
    return (
        f"constrained {config.strategy}" if method.regex or method.json_schema else config.strategy
    )


def write(
    lm: LanguageModel,
    ids: Sequence[int],
    config: GenerationConfig,
    method: Method = Method(),  # noqa: B008  (frozen)
    should_stop: ShouldStop | None = None,
    without_ids: Sequence[int] | None = None,
) -> Iterator[Step]:
    """The steps of the text that continues `ids`, by the chosen method.

    `without_ids` is the same prompt without its context; only context-aware decoding reads it, and
    without it (nothing was retrieved) there is no difference to amplify, so the plain loop runs.
    Raises as the loops do, and ValueError for options that cannot be combined.
    """
    method.check_with(config)
    if method.penalty_alpha:
        return contrastive_search(
            lm,
            ids,
            config,
            top_k=method.contrastive_top_k,
            penalty_alpha=method.penalty_alpha,
            should_stop=should_stop,
        )
    if method.context_alpha and without_ids is not None:
        return generate_context_aware(
            lm, ids, without_ids, config, alpha=method.context_alpha, should_stop=should_stop
        )
    return generate(lm, ids, config, should_stop=should_stop, constraint=constraint_of(lm, method))


def constraint_of(lm: LanguageModel, method: Method) -> Constraint | None:
    """The form that the answer must have, or None. Raises ConstraintError for a bad one."""
    if method.regex:
        return regex_constraint(lm, method.regex)
    return json_constraint(lm, method.json_schema) if method.json_schema else None
