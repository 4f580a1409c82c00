"""What a person chose for an answer: from the values of a form to a checked `Settings`.

No Gradio in it. What the numbers mean and which are valid is `generation.config`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generation.config import GenerationConfig

# The sampling numbers that a preset sets, in the order of the form; the others stay as they are.
PRESETS: Mapping[str, Mapping[str, float]] = {
    "precise": {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
    "balanced": {"temperature": 0.7, "top_k": 0, "top_p": 0.9, "min_p": 0.0},
    "inventive": {"temperature": 1.1, "top_k": 0, "top_p": 1.0, "min_p": 0.05},
}
SAMPLING = tuple(PRESETS["precise"])
MOST_PASSAGES = 10
WHOLE = ("top_k", "max_new_tokens", "num_beams", "seed")
NUMBERS = (*SAMPLING, "repetition_penalty", "max_new_tokens", "num_beams", "length_penalty", "seed")


@dataclass(frozen=True)
class Settings:
    """Everything an answer depends on beside the question, the history and the documents."""

    config: GenerationConfig = GenerationConfig()  # noqa: RUF009  (frozen)
    use_retrieval: bool = True
    k: int = 4
    document_ids: list[str] | None = None
    system: str | None = None


def read_settings(form: Mapping[str, Any]) -> Settings:
    """Raises ValueError, naming the parameter, for numbers that make no sense."""
    numbers = {name: _whole(form[name]) if name in WHOLE else form[name] for name in NUMBERS}
    k = _whole(form["k"])
    if not isinstance(k, int) or not 1 <= k <= MOST_PASSAGES:
        raise ValueError(f"k must be a whole number from 1 to {MOST_PASSAGES}, not {k!r}")
    if isinstance(numbers["num_beams"], int) and numbers["num_beams"] > 1:
        numbers["temperature"] = 0.0  # beams draw nothing; the form says so
    stop = tuple(line for line in (form["stop"] or "").splitlines() if line.strip())
    return Settings(
        config=GenerationConfig(**numbers, stop=stop),
        use_retrieval=bool(form["use_retrieval"]),
        k=k,
        document_ids=list(form["documents"] or ()) or None,
        system=(form["system"] or "").strip() or None,
    )


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 64.0 from a slider is 64. Anything else is left to be refused."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def matching_preset(form: Mapping[str, Any]) -> str | None:
    """The preset whose numbers these are."""
    chosen = {name: form[name] for name in SAMPLING}
    return next((name for name, numbers in PRESETS.items() if numbers == chosen), None)
