r"""The notation of a form: fixed text, and slots that the model fills.

    Name: {{name}}
    Notice period: {{period|max_tokens=12}}
    In writing: {{written|choices=yes,no}}
    From: {{start|regex=[0-9]{4}-[0-9]{2}}}

A slot is `{{name}}`, then any of `|max_tokens=N`, `|choices=a,b,c` and, as the last one, since it
takes all up to the closing braces, `|regex=...`. A slot's text is one line. Single braces are plain
text; `\{`, `\}` and `\\` stand for the second sign anywhere in the fixed text.

Knows text only. Nothing in it can become code or a control token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\\([\\{}])|\{\{([^\n]*?)\}\}(?!\})|(\{\{)")
_NAME = re.compile(r"[^\W\d]\w*")
_OPTIONS = ("max_tokens", "choices", "regex")


class TemplateError(ValueError):
    """A template that cannot be read, or filled, said in one sentence."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What the model writes at one place. At most one of `choices` and `regex` is given."""

    name: str
    max_tokens: int | None = None  # None: what the run's config says
    choices: tuple[str, ...] = ()
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """`before[i]` is the fixed text before `slots[i]`; `ending` comes after the last slot."""

    before: tuple[str, ...]
    slots: tuple[Slot, ...]
    ending: str


def parse_template(text: str) -> Template:
    """Read a template. Raises TemplateError, which names the line."""
    if not isinstance(text, str):
        raise TemplateError(f"A template is text, not {text!r}.")
    before: list[str] = []
    slots: list[Slot] = []
    fixed = ""
    done = 0
    for match in _TOKEN.finditer(text):
        fixed += text[done : match.start()]
        done = match.end()
        line = text.count("\n", 0, match.start()) + 1
        if match[1]:
            fixed += match[1]
            continue
        if match[3]:
            raise TemplateError(f"Line {line}: '{{{{' opens a slot that '}}}}' does not close.")
        slot = _slot(match[2], line)
        if slots and not fixed:
            raise TemplateError(
                f"Line {line}: there must be text between {slots[-1].name} and {slot.name}, or "
                "nothing says where one ends."
            )
        if any(slot.name == other.name for other in slots):
            raise TemplateError(f"Line {line}: there is a second slot {slot.name}.")
        before.append(fixed)
        slots.append(slot)
        fixed = ""
    if not slots:
        raise TemplateError("The template has no slot: write {{name}} where text is to be filled.")
    return Template(tuple(before), tuple(slots), fixed + text[done:])


def _slot(content: str, line: int) -> Slot:
    name, *rest = content.split("|", 1)
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise TemplateError(f"Line {line}: {name!r} is no name for a slot: use letters and digits.")
    values: dict[str, str] = {}
    while rest:
        key, equals, value = rest[0].partition("=")
        key = key.strip()
        if key not in _OPTIONS or not equals:
            raise TemplateError(
                f"Line {line}: {key!r} is no option of slot {name}: there is max_tokens=, choices= "
                "and regex=."
            )
        if key in values:
            raise TemplateError(f"Line {line}: slot {name} has {key} twice.")
        if key == "regex":
            rest = []
        else:
            value, *rest = value.split("|", 1)
        values[key] = value
    if "regex" in values and "choices" in values:
        raise TemplateError(f"Line {line}: slot {name} has choices and regex: keep one of them.")
    return Slot(
        name,
        max_tokens=_max_tokens(values.get("max_tokens"), name, line),
        choices=_choices(values.get("choices"), name, line),
        regex=values.get("regex"),
    )


def _max_tokens(value: str | None, name: str, line: int) -> int | None:
    if value is None:
        return None
    number = value.strip()
    if not re.fullmatch(r"[0-9]{1,6}", number) or int(number) == 0:
        raise TemplateError(
            f"Line {line}: max_tokens of slot {name} must be a whole number from 1 to 999999, not "
            f"{number!r}."
        )
    return int(number)


def _choices(value: str | None, name: str, line: int) -> tuple[str, ...]:
    if value is None:
        return ()
    choices = tuple(choice.strip() for choice in value.split(","))
    if not all(choices):
        raise TemplateError(f"Line {line}: one of the choices of slot {name} is empty.")
    return choices
