"""One name for each way to write a text token by token, so that page, terminal and API agree.

Chooses between loops that live elsewhere; decodes nothing itself. What can be combined is decided
here, once, and said in a sentence when it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generation.config import GenerationConfig, check_number
from generation.constraints import Constraint, json_constraint, regex_constraint
from generation.context_aware import generate_context_aware
from generation.contrastive_search import contrastive_search
from generation.decoding import ShouldStop, generate
from generation.step import Step

if TYPE_CHECKING:
    from generation.model import LanguageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What is done beside the options of a `GenerationConfig`; the default is nothing.

    penalty_alpha above 0 is contrastive search over contrastive_top_k candidates; context_alpha
    above 0 is context-aware decoding, the one method that changes how a text with passages is
    generated; regex or json_schema (its JSON text) is a form that the answer must have.
    """

    penalty_alpha: float = 0.0
    contrastive_top_k: int = 4
    context_alpha: float = 0.0
    regex: str = ""
    json_schema: str = ""

    def __post_init__(self) -> None:
        check_number("penalty_alpha", self.penalty_alpha, 0.0, 1.0)
        check_number("contrastive_top_k", self.contrastive_top_k, 1, 64, whole=True)
        check_number("context_alpha", self.context_alpha, 0.0, 10.0)
        for name in ("regex", "json_schema"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be text, not {getattr(self, name)!r}")
        chosen = [
            name
            for name in ("penalty_alpha", "context_alpha", "regex", "json_schema")
            if getattr(self, name)
        ]
        if len(chosen) > 1:
            raise ValueError(f"{' and '.join(chosen)} cannot be combined: choose one of them")

    @property
    def is_plain(self) -> bool:
        return self == Method()

    def check_with(self, config: GenerationConfig) -> None:
        """Raise ValueError, naming the option, when this method cannot use `config`."""
        if not self.is_plain and config.num_beams > 1:
            raise ValueError(
                "num_beams must be 1 with contrastive, context-aware or formed answers"
            )
        if self.penalty_alpha and config.temperature > 0:
            raise ValueError("temperature must be 0 with penalty_alpha: nothing is drawn at random")


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
    method: Method = Method(),
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
