"""Every word on the page, in English and Chinese, and the components that carry them.

Knows the two string tables beside it and nothing of what the pages mean. A page writes
`words.add(gr.Button(), value="chat.send")`; when the language changes, `words.updates(language)`
relabels every component that was added. HTML drawn by a page takes its words from `t`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Literal, TypeVar, cast

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
C = TypeVar("C")


@cache
def strings(language: str) -> Mapping[str, str]:
    """The table of one language: flat keys such as `chat.send` to text with `{named}` slots."""
    path = files("ui") / "strings" / f"{language}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def t(language: str, key: str, **values: object) -> str:
    """The text for `key`; plain text, never HTML. An unknown key is a KeyError, not a blank.

    Where `count` is 1 and there is a text for `key` + "_one", it is that.
    """
    table = strings(language if language in LANGUAGES else "en")
    text = table.get(f"{key}_one", table[key]) if values.get("count") == 1 else table[key]
    return text.format(**values) if values else text


def known(key: str) -> bool:
    """Whether there is a text for `key`; for keys made from codes of other parts."""
    return key in strings("en")


def h(language: str, key: str, **values: object) -> str:
    """The text for `key`, escaped for HTML with everything filled into it."""
    return escape(t(language, key, **values))


def choose_language(accept_language: str | None, chosen: str | None = None) -> Language:
    """What the person chose before, or else the first of the browser's languages that we speak."""
    if chosen in LANGUAGES:
        return cast(Language, chosen)
    for wish in _by_preference(accept_language or ""):
        primary = wish.split("-")[0]
        if primary in LANGUAGES:
            return cast(Language, primary)
    return "en"


def _by_preference(accept_language: str) -> Iterable[str]:
    weighted: list[tuple[float, int, str]] = []
    for part in accept_language.lower().split(","):
        tag, _, parameters = part.strip().partition(";")
        try:
            weight = float(parameters.partition("q=")[2] or 1)
        except ValueError:
            weight = 0.0
        if tag and weight > 0:
            weighted.append((-weight, len(weighted), tag))
    return [tag for _, _, tag in sorted(weighted)]


class Words:
    """Remembers which property of which component carries which string."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Callable[[str], dict[str, Any]]]] = []

    def add(self, component: C, **keys: str) -> C:
        """`words.add(gr.Slider(...), label="controls.seed")`: property names to string keys."""

        def properties(language: str) -> dict[str, Any]:
            return {name: t(language, key) for name, key in keys.items()}

        return self.add_dynamic(component, properties)

    def add_dynamic(self, component: C, properties: Callable[[str], dict[str, Any]]) -> C:
        """For properties that are more than one string: choices, or HTML drawn from strings."""
        for name, value in properties("en").items():
            setattr(component, name, value)
        self._entries.append((component, properties))
        return component

    @property
    def components(self) -> list[Any]:
        """What `updates` answers for, in its order: the outputs of a language event."""
        return [component for component, _ in self._entries]

    def updates(self, language: str) -> list[dict[str, Any]]:
        """One Gradio update for each of `components`."""
        return [{**properties(language), "__type__": "update"} for _, properties in self._entries]
