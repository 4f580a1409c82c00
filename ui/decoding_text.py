"""How an answer is decoded, in words: the strategy, the chip, and the order in which options act.

Pure functions to plain text. Knows nothing of Gradio; what the options do is generation's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generation.sampling import ORDER
from ui.i18n import t
from ui.settings import Settings, matching_preset


def strategy_text(name: str, language: str) -> str:
    """What `generation.strategies.strategy_name` says, in the person's language."""
    key = name.replace(" ", "_").replace("-", "_")
    return t(language, f"strategy.{key}") if name else ""


def order_text(language: str) -> str:
    """The options that act on one token's scores, in the order in which they do."""
    return " → ".join(t(language, f"order.{name}") for name in ORDER)


def chip_text(form: Mapping[str, Any], settings: Settings | None, language: str) -> str:
    """The preset, the strategy and what shapes it; settings is None when they make no sense."""
    preset = matching_preset(form) or "custom"
    if settings is None:
        return "⚠ " + t(language, f"controls.{preset}")
    config = settings.config
    facts = [t(language, f"controls.{preset}")]
    if settings.strategy != "sampling":
        facts.append(strategy_text(settings.strategy, language))
    facts += [t(language, "chip.beams", count=config.num_beams)] if config.num_beams > 1 else []
    facts += sampling_facts(settings.config)
    return " · ".join(facts)


def sampling_facts(config: Any) -> list[str]:
    """The numbers of sampling that act; none when nothing is drawn."""
    if config.temperature == 0:
        return []
    facts = [f"T {config.temperature:g}"]
    facts += [f"top-k {config.top_k}"] if config.top_k else []
    facts += [f"top-p {config.top_p:g}"] if config.top_p < 1 else []
    facts += [f"min-p {config.min_p:g}"] if config.min_p else []
    facts += [f"typical-p {config.typical_p:g}"] if config.typical_p < 1 else []
    return facts
