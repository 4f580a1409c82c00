"""Messages to token ids; untrusted text never becomes a control token. Thin first version."""

import secrets
from collections.abc import Mapping, Sequence

from transformers import PreTrainedTokenizerFast


def encode_chat(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Mapping],
    add_generation_prompt: bool = True,
) -> list[int]:
    """Token ids of `messages` in the model's own chat format."""
    texts: dict[str, str] = {}
    rendered_messages = []
    for message in messages:
        content = message["content"]
        parts = [{"text": content, "trusted": False}] if isinstance(content, str) else content
        rendered = ""
        for part in parts:
            if part.get("trusted"):
                rendered += part["text"]
            else:
                key = secrets.token_hex(16)
                texts[key] = part["text"]
                rendered += key
        rendered_messages.append({"role": message["role"], "content": rendered})
    text = tokenizer.apply_chat_template(
        rendered_messages, tokenize=False, add_generation_prompt=add_generation_prompt
    )
    ids: list[int] = []
    for key, untrusted in texts.items():
        before, text = text.split(key, 1)
        ids += tokenizer.encode(before, add_special_tokens=False)
        ids += tokenizer.encode(untrusted, add_special_tokens=False, split_special_tokens=True)
    return ids + tokenizer.encode(text, add_special_tokens=False)
