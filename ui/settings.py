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
    numbers = {name: form[name] for name in NUMBERS}
    for name in WHOLE:
        if numbers[name] is None or numbers[name] != int(numbers[name]):
            raise ValueError(f"{name} must be a whole number, not {numbers[name]!r}")
        numbers[name] = int(numbers[name])
    if numbers["num_beams"] > 1:
        numbers["temperature"] = 0.0  # the form says so
    stop = tuple(line for line in (form["stop"] or "").splitlines() if line.strip())
    return Settings(
        config=GenerationConfig(**numbers, stop=stop),
        use_retrieval=bool(form["use_retrieval"]),
        k=int(form["k"]),
        document_ids=list(form["documents"] or ()) or None,
        system=(form["system"] or "").strip() or None,
    )


def matching_preset(form: Mapping[str, Any]) -> str | None:
    """The preset whose numbers these are."""
    chosen = {name: form[name] for name in SAMPLING}
    return next((name for name, numbers in PRESETS.items() if numbers == chosen), None)
