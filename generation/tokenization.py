"""Text to token ids and back, with a hard line between our words and everybody else's.

Untrusted text can never become a control token: it is encoded by a copy of the tokenizer that has
no added tokens at all, and what comes out is checked. (`split_special_tokens=True` is not enough:
it still matches added tokens that are not marked special, such as Qwen's `<tool_call>`, and it is a
switch on a shared object, which another thread may be turning.)

Knows nothing of messages or templates.
"""

import json
from collections.abc import Iterable

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

REPLACEMENT = 0xFFFD  # U+FFFD, the replacement character


class TextEncoder:
    """A tokenizer's encodings, on copies that nobody changes: safe to share between threads."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self._opening = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._opening.no_truncation()
        self._opening.no_padding()
        # What it puts around a text by itself: for some models, a beginning-of-text token.
        self.bos_ids = self._opening.encode("", add_special_tokens=True).ids[:1]
        self._control = {
            token_id: token.content
            for token_id, token in self._opening.get_added_tokens_decoder().items()
            if token.special or token.content.strip()
        }
        self._unknown = _unknown_id(self._opening)

        normalizer, pre_tokenizer, has_prefix = _without_prefix_space(self._opening)
        self._continuing = self._opening
        if has_prefix:
            self._continuing = Tokenizer.from_str(self._opening.to_str())
            self._continuing.normalizer = normalizer
            self._continuing.pre_tokenizer = pre_tokenizer
        self._sayable = _Sayable(_missing_bytes(self._opening))
        self._plain = Tokenizer(self._opening.model)  # the same vocabulary, and no added tokens
        self._plain.normalizer = normalizer
        self._plain.pre_tokenizer = pre_tokenizer

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that no untrusted text yields: every added token but those made of blanks."""
        return frozenset(self._control)

    def encode_trusted(self, text: str, opening: bool = False) -> list[int]:
        """Ids of our own text, control tokens and all; `opening` when it begins the prompt."""
        tokenizer = self._opening if opening else self._continuing
        return tokenizer.encode(text, add_special_tokens=False).ids

    def encode_untrusted(self, text: str) -> list[int]:
        """Ids of any text, as the continuation of something; never a control token.

        Decoding them gives the text back, but for characters that cannot be said: lone surrogates,
        and what a byte-level vocabulary lacks the bytes for. Each becomes U+FFFD, not nothing.
        """
        return self._encode_plain(text.translate(self._sayable))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`, control tokens included, nothing cleaned up."""
        return self._opening.decode(list(ids), skip_special_tokens=False)

    def _encode_plain(self, text: str) -> list[int]:
        encoding = self._plain.encode(text, add_special_tokens=False)
        ids = encoding.ids
        cuts = [
            start + 1
            for token_id, (start, end) in zip(ids, encoding.offsets, strict=True)
            if self._is_control(token_id, text[start:end])
        ]
        if not cuts:
            return ids
        # The vocabulary itself spells a control token (merges rebuilt from it can do that): cut
        # inside each one and encode the pieces by themselves.
        if len(text) == 1:
            return []  # a control token of one character has no other spelling
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if a < b]
        return [token_id for piece in pieces for token_id in self._encode_plain(piece)]

    def _is_control(self, token_id: int, text: str) -> bool:
        if token_id not in self._control:
            return False
        # A character the vocabulary lacks gives the unknown token: no harm, unless spelled out.
        return token_id != self._unknown or text == self._control[token_id]


class _Sayable(dict[int, int]):
    """For `str.translate`: every code point to itself, or to U+FFFD where it cannot be encoded."""

    def __init__(self, missing: frozenset[int]):
        super().__init__()
        self._missing = missing

    def __missing__(self, code: int) -> int:
        surrogate = 0xD800 <= code <= 0xDFFF
        mapped = code
        if surrogate or not self._missing.isdisjoint(chr(code).encode()):
            mapped = REPLACEMENT
        if code < 0x20000:  # remember what text is made of, not all that could be thrown at us
            self[code] = mapped
        return mapped


def _missing_bytes(tokenizer: Tokenizer) -> frozenset[int]:
    """Bytes for which a byte-level vocabulary has no token: SmolLM2's has none for some controls.

    A character with such a byte would lose it silently.
    """
    steps = _steps(_state(tokenizer.pre_tokenizer), "pretokenizers")
    if not any(step["type"] == "ByteLevel" for step in steps):
        return frozenset()
    spelled = bytes_to_unicode().items()
    return frozenset(byte for byte, sign in spelled if tokenizer.model.token_to_id(sign) is None)


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """The id the model itself gives to what its vocabulary lacks."""
    if isinstance(tokenizer.model, models.Unigram):
        return json.loads(tokenizer.model.__getstate__())["unk_id"]
    return tokenizer.token_to_id(tokenizer.model.unk_token or "")


def _without_prefix_space(tokenizer: Tokenizer):
    """Its normalizer and pre-tokenizer, not putting a space before the text, and whether they did.

    Some tokenizers write a text's first word as if a space came before it; text that goes on from
    other text must not get one.
    """
    normalizer, pre_tokenizer = _state(tokenizer.normalizer), _state(tokenizer.pre_tokenizer)
    has_prefix = False
    for step in _steps(pre_tokenizer, "pretokenizers"):
        if step.get("prepend_scheme", "never") != "never":  # Metaspace
            step["prepend_scheme"], has_prefix = "never", True
        if step.get("add_prefix_space"):  # ByteLevel
            step["add_prefix_space"], has_prefix = False, True
    steps = _steps(normalizer, "normalizers")
    kept = [step for step in steps if step["type"] != "Prepend"]
    if len(kept) < len(steps):
        normalizer, has_prefix = {"type": "Sequence", "normalizers": kept}, True
    skeleton = json.loads(Tokenizer(models.BPE()).to_str())
    skeleton |= {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
    changed = Tokenizer.from_str(json.dumps(skeleton))
    return changed.normalizer, changed.pre_tokenizer, has_prefix


def _state(component) -> dict | None:
    return None if component is None else json.loads(component.__getstate__())


def _steps(component: dict | None, key: str) -> list[dict]:
    """The steps of a component, whether it is one step or a sequence of them."""
    if component is None:
        return []
    return component[key] if component["type"] == "Sequence" else [component]
