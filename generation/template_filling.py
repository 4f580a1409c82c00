"""Fill a form: the fixed text is read, and only its slots are written, by the same loop.

Of a form "Name: {{name}}\\nIn writing: {{written|choices=yes,no}}" the model writes two short
texts. The fixed text before a slot is read in one pass, as a prompt is, not in one per token; the
text after the last slot is not read at all. So a form takes far fewer passes than writing it out,
and it is always filled in the given form. Each slot goes on from everything before it.

A slot ends at a new line, at the fixed text that follows it, at a stop string, where the model ends
its text, or, with choices or an expression, when nothing can follow. Where tokens and the borders
of slots do not agree: spaces at the end of a fixed text are left to the slot's first token, which
usually begins with one, and what a last token holds beyond the slot is taken back and read again
together with the fixed text. Fixed text, like all text of others, never becomes control tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from generation import decoding
from generation.config import GenerationConfig
from generation.decoding import ShouldStop, check_prompt, generate, new_cache
from generation.slots import SlotForm
from generation.step import FinishReason, PromptTooLong, Step
from generation.template_syntax import Template, parse_template

if TYPE_CHECKING:
    from generation.model import LanguageModel

BORDER = 4  # tokens kept free at each border, where text may be tokenized anew


@dataclass(frozen=True, slots=True)
class FilledSlot:
    """What was written into one slot. A reason of `length` says that it was cut."""

    name: str
    text: str
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class TemplateUpdate:
    """The form after one more token; the last update is `done`, with the whole text and no step."""

    text: str  # the fixed text and the slots so far
    slots: tuple[FilledSlot, ...]  # those that are complete
    passes: int  # over the model so far
    slot: str | None = None  # the one that the step wrote
    step: Step | None = None  # with a finish reason on the last step of its slot

    @property
    def done(self) -> bool:
        return self.step is None

    @property
    def values(self) -> dict[str, str]:
        return {slot.name: slot.text for slot in self.slots}


def fill_template(
    lm: LanguageModel,
    ids: Sequence[int],
    template: str,
    config: GenerationConfig,
    should_stop: ShouldStop | None = None,
) -> Iterator[TemplateUpdate]:
    """Continue the prompt `ids` with `template`, one `TemplateUpdate` per written token.

    `config` holds for every slot: `max_new_tokens` for those without a `max_tokens`, `stop` as more
    strings that end a slot, `seed` counted on from slot to slot. A cancelled run has no `done`
    update; closing the generator stops the work.

    Raises, before the model runs, TemplateError (a ValueError that says what is wrong in which
    line or slot), PromptTooLong, and ValueError for an empty prompt or num_beams above 1.
    """
    if config.num_beams > 1:
        raise ValueError("num_beams must be 1: a template is filled one text at a time")
    check_prompt(lm, ids)
    parsed = parse_template(template)
    filling = _Filling(lm, ids, parsed, config, should_stop)
    return filling.run()


class _Filling:
    """One run: the tokens and the text so far, and the cache that has read them."""

    def __init__(
        self,
        lm: LanguageModel,
        ids: Sequence[int],
        template: Template,
        config: GenerationConfig,
        should_stop: ShouldStop | None,
    ) -> None:
        self._lm = lm
        self._config = config
        self._should_stop = should_stop
        self._template = template
        following = [*template.before[1:], template.ending]
        self._forms = [
            SlotForm(lm, slot, before, after, config.stop)
            for slot, before, after in zip(template.slots, template.before, following, strict=True)
        ]
        self._ids = list(ids)
        self._text = ""
        self._carried = ""  # text of a slot that no whole token of it holds
        self._filled: tuple[FilledSlot, ...] = ()
        self._passes = 0
        fixed = [len(lm.encode(text)) + BORDER for text in template.before]
        # What must stay free for the slots after each one: their fixed text and a token each.
        self._reserved = [sum(fixed[n + 1 :]) + len(fixed) - n - 1 for n in range(len(fixed))]
        if len(ids) + sum(fixed) + len(fixed) > lm.context_length:
            raise PromptTooLong(
                f"The prompt ({len(ids)} tokens) and the template ({sum(fixed)} tokens) leave no "
                f"room for its slots: the model's window holds {lm.context_length}."
            )
        written = sum(slot.max_tokens or config.max_new_tokens for slot in template.slots)
        self._cache = new_cache(lm, len(ids) + sum(fixed) + written)

    def run(self) -> Iterator[TemplateUpdate]:
        for n, form in enumerate(self._forms):
            self._read(form)
            yield from self._write(n, form)
            if len(self._filled) == n:
                return  # cancelled
        yield TemplateUpdate(self._text + self._template.ending, self._filled, self._passes)

    def _read(self, form: SlotForm) -> None:
        """Append the fixed text before a slot, to be read by the run that writes the slot."""
        self._text += form.before
        self._ids += self._lm.encode(self._carried + form.before)
        self._carried = ""
        self._forget_from(len(self._ids) - 1)  # one token at least is read, to predict the next
        unread = len(self._ids) - self._cache.length
        self._passes += math.ceil(unread / decoding.PREFILL_CHUNK) - 1

    def _write(self, n: int, form: SlotForm) -> Iterator[TemplateUpdate]:
        slot = self._template.slots[n]
        wanted = slot.max_tokens or self._config.max_new_tokens
        room = self._lm.context_length - len(self._ids) - self._reserved[n]
        limit = max(1, min(wanted, room))
        config = replace(
            self._config,
            max_new_tokens=limit,
            min_new_tokens=min(self._config.min_new_tokens, limit),
            seed=(self._config.seed + n) % 2**63,
            stop=(),
        )
        steps = generate(
            self._lm, self._ids, config, self._cache, self._should_stop, form.constraint
        )
        written: list[int] = []
        for step in steps:
            self._passes += 1
            reason = None
            if step.token_id not in self._lm.end_ids:
                written.append(step.token_id)
                reason = form.accept(step.token_id, self._decode(written))
            if reason is None and step.finish_reason is not None:
                reason = step.finish_reason
                form.finish()
            if reason is FinishReason.LENGTH and limit < wanted:
                reason = FinishReason.CONTEXT_FULL
            text = self._text + form.lead + form.value
            if reason is not None:
                self._keep(form, written)
                self._filled += (FilledSlot(slot.name, form.value, reason),)
                step = replace(step, finish_reason=reason)
            yield TemplateUpdate(text, self._filled, self._passes, slot.name, step)
            if reason is not None:
                return

    def _keep(self, form: SlotForm, written: Sequence[int]) -> None:
        """Keep the tokens of a slot that lie within its value; carry the rest of it as text."""
        value = form.lead + form.value
        whole = len(written)
        while whole and not value.startswith(self._decode(written[:whole])):
            whole -= 1
        self._carried = value[len(self._decode(written[:whole])) :]
        self._forget_from(len(self._ids) + whole)
        self._ids += written[:whole]
        self._text += value

    def _forget_from(self, length: int) -> None:
        if self._cache.length > length:
            self._cache.crop(length - self._cache.length)

    def _decode(self, written: Sequence[int]) -> str:
        """The text of tokens after those before: by themselves they may lose a leading space."""
        context = self._ids[-BORDER:]
        return self._lm.decode([*context, *written])[len(self._lm.decode(context)) :]
