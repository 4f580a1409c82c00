"""What a person chose for an answer: from the values of a form to a checked `Settings`, and back.

No Gradio in it. What the options mean and which are valid is `generation`'s and `rag`'s business. A
form has values under the names of the fields of `GenerationConfig`, `Method` and `RetrievalConfig`;
its `method` and `form` say which fields of `Method` count, `use_retrieval` whether any is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from generation.config import GenerationConfig
from generation.strategies import Method, strategy_name
from rag.retrieval_config import RetrievalConfig
from ui.plain_text import typed

T = TypeVar("T")
# The sampling numbers that a preset sets, in the order of the form; the others stay as they are.
PRESETS: Mapping[str, Mapping[str, float]] = {
    "precise": {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
    "balanced": {"temperature": 0.7, "top_k": 0, "top_p": 0.9, "min_p": 0.0},
    "inventive": {"temperature": 1.1, "top_k": 0, "top_p": 1.0, "min_p": 0.05},
}

SAMPLING = tuple(PRESETS["precise"])
# What a choice of the form makes of the fields of `Method`: only those of the chosen one count.
METHODS: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "contrastive": ("penalty_alpha", "contrastive_top_k"),
    "context_aware": ("context_alpha",),
}
FORMS: Mapping[str, tuple[str, ...]] = {"free": (), "regex": ("regex",), "json": ("json_schema",)}
# Where a chosen method starts; 0, the default of the fields, is not to choose it.
STARTS = {"penalty_alpha": 0.6, "context_alpha": 0.5}
EARLY_STOPPING: Mapping[str, bool | str] = {"no": False, "yes": True, "never": "never"}


@dataclass(frozen=True)
class Settings:
    """Everything an answer depends on beside the question, the history and the documents."""

    config: GenerationConfig = GenerationConfig()  # noqa: RUF009  (frozen)
    method: Method = Method()  # noqa: RUF009  (frozen)
    retrieval: RetrievalConfig | None = RetrievalConfig()  # noqa: RUF009  (frozen)
    system: str | None = None

    @property
    def strategy(self) -> str:
        return strategy_name(self.config, self.method)


def read_settings(form: Mapping[str, Any]) -> Settings:
    """Raises ValueError, naming the option, for what makes no sense or cannot go together."""
    retrieval = read_retrieval(form)
    config, method = read_decoding(form)
    return Settings(
        config=config,
        method=method,
        retrieval=retrieval if form["use_retrieval"] else None,
        system=typed(form["system"]) or None,
    )


def read_retrieval(form: Mapping[str, Any]) -> RetrievalConfig:
    """The retrieval part of a form; fields that it lacks keep their defaults. Raises ValueError."""
    values = {f.name: _whole(form[f.name]) for f in fields(RetrievalConfig) if f.name in form}
    values["document_ids"] = values.get("document_ids") or None  # none chosen: all are searched
    return RetrievalConfig(**values)


def read_decoding(form: Mapping[str, Any]) -> tuple[GenerationConfig, Method]:
    """The decoding part of a form; fields that it lacks keep their defaults. Raises ValueError."""
    values: dict[str, Any] = {
        field.name: _whole(form[field.name])
        for field in fields(GenerationConfig)
        if field.name in form
    }
    if "stop" in values:
        values["stop"] = tuple(ln for ln in (values["stop"] or "").splitlines() if ln.strip())
    if "logit_bias" in values:
        values["logit_bias"] = parse_logit_bias(values["logit_bias"] or "")
    if "early_stopping" in values:
        values["early_stopping"] = EARLY_STOPPING.get(values["early_stopping"])
    written_form = _chosen(form, "form", FORMS)
    for name in written_form:
        if not (form[name] or "").strip():
            raise ValueError(f"{name} is chosen as the form of the answer, so it must not be empty")
    chosen = (*_chosen(form, "method", METHODS), *written_form)
    method = Method(**{name: _whole(form[name]) for name in chosen})
    config = GenerationConfig(**values)
    method.check_with(config)
    return config, method


def decoding_form(config: GenerationConfig, method: Method) -> dict[str, Any]:
    """The values of a form that `read_decoding` makes these of."""
    method_values = asdict(method)
    return {
        **{field.name: getattr(config, field.name) for field in fields(config)},
        "stop": "\n".join(config.stop),
        "logit_bias": ", ".join(f"{token_id}:{bias:g}" for token_id, bias in config.logit_bias),
        "early_stopping": {v: k for k, v in EARLY_STOPPING.items()}[config.early_stopping],
        **method_values,
        **{name: method_values[name] or start for name, start in STARTS.items()},
        "method": next((n for n, f in METHODS.items() if f and method_values[f[0]]), "plain"),
        "form": next((n for n, f in FORMS.items() if f and method_values[f[0]]), "free"),
    }


def parse_logit_bias(text: str) -> tuple[tuple[int, float], ...]:
    """`123:5, 456:-100` as pairs of a token id and what its logit gets. Raises ValueError."""
    pairs = []
    for pair in filter(None, (part.strip() for part in text.replace("\n", ",").split(","))):
        token_id, _, bias = pair.partition(":")
        try:
            pairs.append((int(token_id), float(bias)))
        except ValueError:
            raise ValueError(
                f"logit_bias is written as 123:5, 456:-100 (token id, number), not {pair!r}"
            ) from None
    return tuple(pairs)


def _chosen(form: Mapping[str, Any], name: str, options: Mapping[str, T]) -> T:
    chosen = form.get(name) or next(iter(options))
    if chosen not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, not {chosen!r}")
    return options[chosen]


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 64.0 from a slider is 64. Anything else is to be refused."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def matching_preset(form: Mapping[str, Any]) -> str | None:
    """The preset whose numbers these are."""
    chosen = {name: form[name] for name in SAMPLING}
    return next((name for name, numbers in PRESETS.items() if numbers == chosen), None)
