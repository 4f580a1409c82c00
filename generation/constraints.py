"""Answers that must have a given form: a JSON schema or a regular expression.

A constraint says before every token which ones can still lead to an answer of that form; all others
get the logit -inf, and the loop goes on as ever. llguidance keeps the state of the grammar and
computes the mask over the vocabulary; here is only what fits it to the loop. Knows a tokenizer and
logits; knows nothing of sampling, and runs no model.

Whatever is written, the form is certain only once the answer has ended by itself: one that a length
limit or a stop string cut is the beginning of a text of that form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from llguidance import LLMatcher, LLTokenizer
from tokenizers import Tokenizer
from torch import Tensor

from generation.errors import ConstraintError

if TYPE_CHECKING:
    from generation.model import LanguageModel

# Between the signs of a JSON text: nothing, one space, or a new line with an indentation. A schema
# allows any amount of it, and a small model that has begun to indent may go on for ever.
JSON_WHITESPACE = r"(\x20|\n\x20{0,24})"


class Constraint(Protocol):
    """The form of one text, from its first token on; made anew for every run."""

    def allowed(self, logits: Tensor) -> Tensor:
        """Logits `(1, V)` with -inf for every token that cannot come next."""

    def accept(self, token_id: int) -> None:
        """Take the token that was chosen; not called for the end-of-text token."""

    @property
    def satisfied(self) -> bool:
        """Whether the text so far has the form, so that it may end here."""

    @property
    def finished(self) -> bool:
        """Whether it has the form and nothing can be added to it."""


class GrammarConstraint:
    """A `Constraint` by a grammar of llguidance. `described` names it in error messages."""

    def __init__(self, lm: LanguageModel, grammar: str, described: str) -> None:
        self._described = described
        self._end_ids = sorted(lm.end_ids)
        no_text = {*lm.end_ids, *lm.grammar_tokenizer.eos_tokens}
        self._no_text = sorted(token_id for token_id in no_text if token_id < lm.vocab_size)
        self._width = lm.vocab_size
        # log_level 0: nothing is written to stderr; errors are kept and asked for below.
        self._matcher = LLMatcher(lm.grammar_tokenizer, grammar, log_level=0)
        self._mask: Tensor | None = None
        self._raise_errors()
        self._next_mask()  # a form that no text has is noticed here

    def allowed(self, logits: Tensor) -> Tensor:
        """Logits `(1, V)` with -inf for every token that cannot come next.

        End-of-text tokens are left exactly when the form is satisfied.
        """
        return logits.masked_fill(~self._next_mask().to(logits.device), -torch.inf)

    def accept(self, token_id: int) -> None:
        """Take the token that was chosen; ConstraintError when it was not an allowed one."""
        self._matcher.consume_token(token_id)
        self._mask = None
        self._raise_errors()

    @property
    def satisfied(self) -> bool:
        return self._matcher.is_accepting()

    @property
    def finished(self) -> bool:
        return self.satisfied and int(self._next_mask().sum()) == len(self._end_ids)

    def _next_mask(self) -> Tensor:
        """Which tokens may come next, bool `(V,)`."""
        if self._mask is None:
            bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
            self._raise_errors()
            bools = np.unpackbits(bits, bitorder="little", count=self._width).view(np.bool_)
            self._mask = torch.from_numpy(bools)
            self._mask[self._no_text] = False
            self._mask[self._end_ids] = self.satisfied
            if not bool(self._mask.any()) and not self.satisfied:
                raise ConstraintError(f"{self._described} cannot be written by this model.")
        return self._mask

    def _raise_errors(self) -> None:
        if self._matcher.is_error():
            reason = _reason(self._matcher.get_error())
            raise ConstraintError(f"{self._described} cannot be followed: {reason}.")


def grammar_tokenizer(lm: LanguageModel) -> LLTokenizer:
    """The vocabulary as llguidance needs it: a second of work, so the model keeps it."""
    tokenizer = Tokenizer.from_str(lm.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    known = 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())
    end_ids = [token_id for token_id in sorted(lm.end_ids) if token_id < known]
    # The logits may be wider than the vocabulary, whose missing tokens are never allowed, or less.
    width = max(known, lm.vocab_size)
    return LLTokenizer(tokenizer.to_str(), n_vocab=width, eos_token=end_ids or None)


def regex_constraint(lm: LanguageModel, pattern: str) -> GrammarConstraint:
    """The whole answer matches `pattern`, in the syntax of Rust's regex crate.

    That is Python's without look-around and references back. `.` is no newline (`(?s:.)` is), `\\d`
    is a digit of any script (`[0-9]` is not), and `^` and `$` may stand at the ends, where they
    change nothing. Raises ConstraintError.
    """
    described = "The regular expression"
    if not isinstance(pattern, str):
        raise ConstraintError(f"{described} must be text, not {pattern!r}.")
    return GrammarConstraint(
        lm, _grammar(LLMatcher.grammar_from_regex, pattern, described), described
    )


def json_constraint(lm: LanguageModel, schema: str | bool | Mapping[str, Any]) -> GrammarConstraint:
    """The whole answer is one JSON value that the schema, a mapping or its JSON text, allows.

    Draft 2020-12, or an error for a keyword that cannot be followed, never a silently weaker form.
    Properties come in the order of the schema. Between the signs there is at most a space, or a new
    line and an indentation (`JSON_WHITESPACE`); `"x-guidance": {"whitespace_pattern": ...}` at the
    top of the schema changes that. Raises ConstraintError.
    """
    described = "The JSON schema"
    try:
        value = json.loads(schema) if isinstance(schema, str) else schema
        if not isinstance(value, bool | Mapping):
            raise ConstraintError(f"{described} must be an object, not {type(value).__name__}.")
        value = ({} if value else {"enum": []}) if isinstance(value, bool) else dict(value)
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except ConstraintError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise ConstraintError(f"{described} is no JSON: {_reason(str(error))}.") from None
    grammar = _grammar(_grammar_from_schema, text, described)
    return GrammarConstraint(lm, grammar, described)


def _grammar_from_schema(text: str) -> str:
    return LLMatcher.grammar_from_json_schema(
        text, defaults={"whitespace_pattern": JSON_WHITESPACE}
    )


def _grammar(make: Any, source: str, described: str) -> str:
    try:
        source.encode()
        return make(source)
    except UnicodeEncodeError:
        raise ConstraintError(f"{described} holds half a character (a lone surrogate).") from None
    except ValueError as error:
        raise ConstraintError(f"{described} cannot be read: {_reason(str(error))}.") from None


def _reason(message: str) -> str:
    """What is wrong, in one line, of a message that also draws where."""
    found = re.search(r"error: (.+)", message) or re.search(r"\(in regex\): ([^;\n]+)", message)
    line = found[1] if found else message.strip().splitlines()[0]
    return line.strip().rstrip(".")
