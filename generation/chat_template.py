"""Messages to token ids in a model's own chat format, so that untrusted text stays text.

The template (a program by the model's author) is rendered in transformers' sandbox with a random
placeholder for every part, so it never sees the parts and nobody can guess where they will stand.
The rendering is then cut at the placeholders. Our words go back into the text around them;
each untrusted part is encoded by itself, and ids are joined, never text.

Knows nothing of retrieval: who wrote a part is said by its `trusted`.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerFast

from generation.errors import ChatTemplateError
from generation.tokenization import TextEncoder

ROLES = ("system", "user", "assistant")

# For models that come without a template (GPT-2): plain words, which text can imitate.
FALLBACK_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role != 'system' %}{{ message.role | capitalize }}: {% endif %}"
    "{{ message.content + '\n\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)

Message = Mapping[str, Any]  # {"role": str, "content": str | [{"type", "text", "trusted"}]}


def encode_chat(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    add_generation_prompt: bool = True,
    encoder: TextEncoder | None = None,
) -> list[int]:
    """Token ids of `messages`, ready for the model to go on from.

    A content that is a plain string is one untrusted part. Raises ChatTemplateError when the
    template cannot express the messages, ValueError when they are not messages. `encoder` saves
    building one for every call.
    """
    encoder = encoder or TextEncoder(tokenizer)
    conversation = [_as_parts(message) for message in messages]
    if not any(parts.texts for parts in conversation):
        raise ValueError("There is no message to encode.")
    rendered, placed = _render(tokenizer, conversation, add_generation_prompt)
    ids: list[int] = []
    trusted = ""  # our text since the last untrusted part
    for piece in re.split(f"({'|'.join(placed)})", rendered):
        part = placed.get(piece)
        if part is None:
            trusted += piece
        elif part.trusted:
            trusted += part.text
        else:
            # A space before a part belongs to its first word, as it does in ordinary text.
            words = trusted.removesuffix(" ")
            ids += encoder.encode_trusted(words, opening=not ids) if words else []
            ids += encoder.encode_untrusted(trusted[len(words) :] + part.text)
            trusted = ""
    ids += encoder.encode_trusted(trusted, opening=not ids) if trusted else []
    return _with_one_bos(ids, encoder.bos_ids, tokenizer.bos_token_id)


@dataclass(frozen=True)
class _Part:
    text: str
    trusted: bool


@dataclass(frozen=True)
class _Turn:
    role: str
    texts: tuple[_Part, ...]


def _as_parts(message: Message) -> _Turn:
    """Check a message; a role is as much a way into the template as a text is."""
    if message["role"] not in ROLES:
        raise ValueError(f"A message's role is one of {', '.join(ROLES)}, not {message['role']!r}.")
    content = message["content"]
    if isinstance(content, str):
        return _Turn(message["role"], (_Part(content, trusted=False),))
    for part in content:
        if part.get("type", "text") != "text":
            raise ValueError(f"Only parts of type 'text' can be encoded, not {part['type']!r}.")
    parts = (_Part(part["text"], part.get("trusted") is True) for part in content)
    return _Turn(message["role"], tuple(part for part in parts if part.text))


def _render(
    tokenizer: PreTrainedTokenizerFast, conversation: Sequence[_Turn], add_generation_prompt: bool
) -> tuple[str, dict[str, _Part]]:
    """The template's text with placeholders in it, and what each placeholder stands for.

    A template without a system role refuses it or drops it; the system message then goes in front
    of the first user turn.
    """
    try:
        return _render_as_given(tokenizer, conversation, add_generation_prompt)
    except ChatTemplateError:
        folded = _fold_system(conversation)
        if folded is None:
            raise
        return _render_as_given(tokenizer, folded, add_generation_prompt)


def _render_as_given(
    tokenizer: PreTrainedTokenizerFast, conversation: Sequence[_Turn], add_generation_prompt: bool
) -> tuple[str, dict[str, _Part]]:
    placed: dict[str, _Part] = {}
    messages = []
    for turn in conversation:
        placeholders = [secrets.token_hex(16) for _ in turn.texts]
        placed.update(zip(placeholders, turn.texts, strict=True))
        messages.append({"role": turn.role, "content": "".join(placeholders)})
    try:
        rendered: Any = tokenizer.apply_chat_template(
            messages,
            chat_template=None if tokenizer.chat_template else FALLBACK_TEMPLATE,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
        )
    except Exception as error:  # a template is a program: it can fail in any way
        raise ChatTemplateError(f"The model's chat template refused: {error}.") from error
    if any(rendered.count(placeholder) != 1 for placeholder in placed):
        raise ChatTemplateError("The model's chat template drops, repeats or changes messages.")
    return rendered, placed


def _fold_system(conversation: Sequence[_Turn]) -> list[_Turn] | None:
    """The turns with the system's words in front of the first user turn; None if that cannot be."""
    system = [turn for turn in conversation if turn.role == "system"]
    others = [turn for turn in conversation if turn.role != "system"]
    if not system or not others or others[0].role != "user":
        return None
    words = [part for turn in system for part in (*turn.texts, _Part("\n\n", trusted=True))]
    return [_Turn("user", (*words, *others[0].texts)), *others[1:]]


def _with_one_bos(ids: list[int], added: list[int], bos: int | None) -> list[int]:
    """Exactly one beginning-of-text token where the tokenizer adds one; never two in any case."""
    start = 0
    while bos is not None and start < len(ids) and ids[start] == bos:
        start += 1
    if added and added[0] == bos:
        return added + ids[start:]
    return ids[max(start - 1, 0) :]
