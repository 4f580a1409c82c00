"""What is done beside the options of a `GenerationConfig`: one frozen record, checked when made.

Knows no model and no loop, so that a command line can be read without waiting for either.
"""

from __future__ import annotations

from dataclasses import dataclass

from generation.config import GenerationConfig, check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What is done beside the options of a `GenerationConfig`; the default is nothing.

    penalty_alpha above 0 is contrastive search over contrastive_top_k candidates; context_alpha
    above 0 is context-aware decoding, the one method that changes how a text with passages is
    generated; regex or json_schema (its JSON text) is a form that the answer must have.
    """

    penalty_alpha: float = 0.0  # 0 to 1; above 0 is contrastive search
    contrastive_top_k: int = 4  # 1 to 64; its candidates
    context_alpha: float = 0.0  # 0 to 10; above 0 is context-aware decoding
    regex: str = ""  # the answer matches this regular expression
    json_schema: str = ""  # the answer is JSON that this schema (JSON text) allows

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
