"""A request body of the HTTP API, checked: OpenAI's names and ours to a question and its options.

Knows JSON values; knows no HTTP. An option that is not known is refused by its name rather than
ignored, because a client that asked for it would believe it was followed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from generation.config import GenerationConfig
from generation.strategies import Method
from rag.retrieval_config import RetrievalConfig

RENAMED = {
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    "k": "passages",
}
CONFIG_NAMES = frozenset(f.name for f in fields(GenerationConfig))
METHOD_NAMES = frozenset(f.name for f in fields(Method))
RETRIEVAL_NAMES = frozenset(f.name for f in fields(RetrievalConfig))
IGNORED = frozenset({"user", "metadata", "stream_options", "store"})  # change no token


class BadRequest(ValueError):
    """The request makes no sense; the message names what to change."""


@dataclass(frozen=True)
class ChatRequest:
    """A checked request body."""

    question: str
    history: list[dict[str, str]]
    system: str | None
    config: GenerationConfig
    method: Method
    stream: bool
    logprobs: bool
    retrieval: RetrievalConfig | None


def parse(body: Any) -> ChatRequest:
    """Check a decoded JSON body. Raises BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    options: dict[str, Any] = {RENAMED.get(str(n), str(n)): v for n, v in body.items()}
    messages = options.pop("messages", None)
    question, history, system = _conversation(messages)
    stream, logprobs = bool(options.pop("stream", False)), bool(options.pop("logprobs", False))
    retrieval = options.pop("retrieval", True)
    if options.pop("n", 1) != 1:
        raise BadRequest("n must be 1; for several texts use num_beams.")
    if not isinstance(retrieval, bool):
        raise BadRequest("retrieval must be true or false.")
    searching = retrieval_options(options)
    options.pop("model", None)  # one model is loaded; /v1/models says which
    options["num_candidates"] = options.pop("top_logprobs", None) or 10
    if isinstance(options.get("stop"), str):
        options["stop"] = (options["stop"],)
    if isinstance(options.get("logit_bias"), dict):
        options["logit_bias"] = _integer_keys(options["logit_bias"])
    _response_format(options)
    unknown = sorted(set(options) - CONFIG_NAMES - METHOD_NAMES - IGNORED)
    if unknown:
        raise BadRequest(f"There is no option {', '.join(unknown)}.")
    given = {name: value for name, value in options.items() if value is not None}
    try:
        config = GenerationConfig(**{n: v for n, v in given.items() if n in CONFIG_NAMES})
        method = Method(**{n: v for n, v in given.items() if n in METHOD_NAMES})
        method.check_with(config)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{error}.") from None
    wanted = searching if retrieval else None
    return ChatRequest(question, history, system, config, method, stream, logprobs, wanted)


def retrieval_options(options: dict[str, Any]) -> RetrievalConfig:
    """Take what is a field of `RetrievalConfig` out of `options`. Raises BadRequest."""
    given = {name: options.pop(name) for name in RETRIEVAL_NAMES & options.keys()}
    try:
        return RetrievalConfig(**{n: value for n, value in given.items() if value is not None})
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{error}.") from None


def _conversation(messages: Any) -> tuple[str, list[dict[str, str]], str | None]:
    """The last user message, what was said before it, and the system message."""
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message.")
    turns = [{"role": _role(m), "content": _content(m)} for m in messages]
    system = turns.pop(0)["content"] if turns[0]["role"] == "system" else None
    if not turns or turns[-1]["role"] != "user":
        raise BadRequest("The last message must be the user's.")
    if any(turn["role"] == "system" for turn in turns):
        raise BadRequest("Only the first message can be the system's.")
    return turns[-1]["content"], turns[:-1], system


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    if role == "developer":
        return "system"
    if role not in ("system", "user", "assistant"):
        raise BadRequest("A message's role must be system, user or assistant.")
    return role


def _content(message: dict) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(p, dict) and p.get("type") == "text" and isinstance(p.get("text"), str)
        for p in content
    ):
        return "".join(part["text"] for part in content)
    raise BadRequest("A message's content must be text, or a list of text parts.")


def _response_format(options: dict[str, Any]) -> None:
    """OpenAI's `response_format` as our `json_schema`."""
    wanted = options.pop("response_format", None)
    if wanted is None or wanted == {"type": "text"}:
        return
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "json_object":
        options["json_schema"] = '{"type": "object"}'
    elif kind == "json_schema" and isinstance(wanted.get("json_schema"), dict):
        options["json_schema"] = json.dumps(wanted["json_schema"].get("schema", {}))
    else:
        raise BadRequest("response_format must be text, json_object, or json_schema with a schema.")


def _integer_keys(bias: dict[str, Any]) -> dict[int, Any]:
    try:
        return {int(token_id): value for token_id, value in bias.items()}
    except ValueError:
        raise BadRequest("logit_bias must map token ids to numbers.") from None
