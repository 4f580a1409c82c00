"""Where two prompts differ, as escaped HTML: lines of one only are marked, the rest is as it was.

Pure functions on `rag.prompt.Prompt`. Who wrote a line is told apart as in `ui.prompt_view`.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from rag.prompt import Prompt
from ui.i18n import h


class Line(NamedTuple):
    """One line of one part of a message; equal lines are what the prompts share."""

    role: str
    trusted: bool
    text: str


class MarkedLine(NamedTuple):
    """`only` is "with" or "without" for a line that one prompt alone has, or empty."""

    line: Line
    only: str


def difference(with_prompt: Prompt, without_prompt: Prompt) -> list[MarkedLine]:
    """The lines of both prompts in reading order, those that only one has marked."""
    ours, theirs = prompt_lines(with_prompt), prompt_lines(without_prompt)
    marked: list[MarkedLine] = []
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            marked += [MarkedLine(line, "") for line in ours[a:a_end]]
        else:
            marked += [MarkedLine(line, "without") for line in theirs[b:b_end]]
            marked += [MarkedLine(line, "with") for line in ours[a:a_end]]
    return marked


def prompt_lines(prompt: Prompt) -> list[Line]:
    """A prompt as lines; each line knows its message's role and whether we wrote it."""
    lines = []
    for message in prompt.messages:
        content = message["content"]
        parts: list[dict[str, Any]] = content
        if isinstance(content, str):
            parts = [{"text": content, "trusted": False}]
        for part in parts:
            lines += [
                Line(message["role"], part["trusted"], text)
                for text in part["text"].splitlines(keepends=True)
            ]
    return lines


def difference_html(with_prompt: Prompt, without_prompt: Prompt, language: str) -> str:
    """Both prompts as one: what only the side with passages reads in amber, the other in slate."""
    messages = []
    marked = difference(with_prompt, without_prompt)
    for role, lines in groupby(marked, key=lambda m: m.line.role):
        spans = "".join(_span(line, language) for line in lines)
        heading = h(language, f"prompt.role_{role}")
        messages.append(f'<div class="message"><h4>{heading}</h4><pre>{spans}</pre></div>')
    return (
        f'<div class="card prompt"><p class="key">'
        f'<span class="only-with">{h(language, "compare.only_with")}</span> '
        f'<span class="only-without">{h(language, "compare.only_without")}</span> '
        f'<span class="ours">{h(language, "prompt.legend")}</span> '
        f'<span class="theirs">{h(language, "prompt.legend_untrusted")}</span></p>'
        f'<div translate="no">{"".join(messages)}</div></div>'
    )


def _span(marked: MarkedLine, language: str) -> str:
    source = "ours" if marked.line.trusted else "theirs"
    only = f" only-{marked.only}" if marked.only else ""
    label = f' title="{h(language, f"compare.only_{marked.only}")}"' if marked.only else ""
    return f'<span class="{source}{only}"{label}>{escape(marked.line.text)}</span>'
