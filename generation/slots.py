"""One slot of a form: which tokens may come, what of them is its text, and where it ends.

Knows the text around the slot and a tokenizer; runs no model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from generation.choices import ChoiceConstraint
from generation.constraints import Constraint, regex_constraint
from generation.errors import ConstraintError
from generation.step import FinishReason
from generation.streaming import possible_stop_prefix
from generation.template_syntax import Slot, TemplateError

if TYPE_CHECKING:
    from generation.model import LanguageModel

REPLACEMENT = "\ufffd"
LINE = r"[^\s\p{Cc}]\P{Cc}*"  # a free slot: one line, no control characters, no blank at its start


class SlotForm:
    """The form of one slot while it is written; made anew for every run.

    `before` is the fixed text without the spaces at its end, which are `lead`: the slot's tokens
    begin with them.
    """

    def __init__(
        self, lm: LanguageModel, slot: Slot, before: str, after: str, stop: Sequence[str]
    ) -> None:
        self._lm = lm
        self.before = before.rstrip(" ")
        self.lead = before[len(self.before) :]
        self.value = ""  # the slot's text so far, without what may be the beginning of its end
        self._text = ""
        # The next fixed text up to its first new line; a new line itself ends any slot.
        self._ends = tuple(dict.fromkeys(("\n", *filter(None, (after.split("\n")[0],)), *stop)))
        self._choices = slot.choices
        self._pattern = _without_anchors(slot.regex)
        self._body: Constraint | None = None  # the slot's own form, while its tokens are in it
        try:
            self.constraint = self._make_constraint()
        except ConstraintError as error:
            raise TemplateError(f"Slot {slot.name}: {error}") from None

    def _make_constraint(self) -> Constraint:
        """The form of the slot, and behind it anything that begins with one of its ends."""
        if self._choices:
            texts = [self.lead + choice for choice in self._choices]
            self._body = ChoiceConstraint(self._lm, texts)
            return ChoiceConstraint(
                self._lm, [text + end for text in texts for end in ("", *self._ends)]
            )
        lead = re.escape(self.lead)
        if self._pattern is not None:
            regex_constraint(self._lm, self._pattern)  # a mistake in it is said without ours
            self._body = regex_constraint(self._lm, f"{lead}(?:{self._pattern})")
        ends = "|".join(map(re.escape, self._ends))
        body = LINE if self._pattern is None else self._pattern
        return regex_constraint(self._lm, f"{lead}(?:{body})((?:{ends})(?s:.*))?")

    @property
    def _is_free(self) -> bool:
        return not self._choices and self._pattern is None

    def accept(self, token_id: int, text: str) -> FinishReason | None:
        """Take one more token, given the text of all of them; why the slot ends here, if it does.

        Updates `value`.
        """
        text = text[len(self.lead) :].rstrip(REPLACEMENT)  # half a character may still become whole
        self._text = text
        end = self._end(text)
        if end is not None:
            self.value = self._tidy(text[:end])
            return FinishReason.STOP_STRING
        self.value = self._tidy(text[: len(text) - possible_stop_prefix(text, self._ends)])
        if self._body is not None:
            self._body = _after(self._body, token_id)
        if self._body is not None and self._body.finished:
            self.value = text
            return FinishReason.EOS  # complete, and nothing could follow but the end
        return None

    def finish(self) -> None:
        """Nothing more comes: what was held back belongs to the slot, unless its form says no."""
        if self._is_free or not self._has_form(self.value):
            self.value = self._tidy(self._text)

    def _end(self, text: str) -> int | None:
        """Where the slot ends: the first place of an end before which its form is complete."""
        places = {
            match.start() for end in self._ends for match in re.finditer(re.escape(end), text)
        }
        return next((at for at in sorted(places) if self._has_form(text[:at])), None)

    def _has_form(self, text: str) -> bool:
        if self._choices:
            return text in self._choices
        if self._pattern is None:
            return text != ""
        form: Constraint | None = regex_constraint(self._lm, self._pattern)
        for token_id in self._lm.encode(text):
            form = _after(form, token_id)
            if form is None:
                return False
        return form is not None and form.satisfied

    def _tidy(self, text: str) -> str:
        return text.rstrip() if self._is_free else text


def _without_anchors(regex: str | None) -> str | None:
    """`^` and `$` at the ends change nothing, and are not allowed inside a larger expression."""
    if regex is None:
        return None
    return re.sub(r"(?<!\\)((?:\\\\)*)\$$", r"\1", regex.removeprefix("^"))


def _after(form: Constraint | None, token_id: int) -> Constraint | None:
    """`form` with one more token; None once a token left it."""
    if form is None:
        return None
    try:
        form.accept(token_id)
    except ConstraintError:
        return None
    return form
