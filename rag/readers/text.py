"""Plain text and Markdown, kept as they are: only line ends and control characters change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag.readers.blocks import Block, clean

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")


def read_text(text: str) -> Iterator[Block]:
    """The whole text as one block."""
    yield Block(clean(text), separator="")


def read_markdown(text: str) -> Iterator[Block]:
    """The text cut at its headings; the blocks joined are the text.

    Headings are lines that start with `#`, or a single line of text underlined with `=` or `-`.
    Inside a fenced block of code nothing is a heading.
    """
    lines = clean(text).splitlines(keepends=True)
    body: list[str] = []
    fence = ""
    index = 0
    while index < len(lines):
        level, height = (0, 1) if fence else _heading(lines, index)
        if level:
            if body:
                yield Block("".join(body), separator="")
                body = []
            title = lines[index].strip().strip("#").strip()
            yield Block("".join(lines[index : index + height]), level, title, separator="")
        else:
            mark = _FENCE.match(lines[index])
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1].startswith(fence) and not lines[index][mark.end() :].strip():
                fence = ""
            body.append(lines[index])
        index += height
    if body:
        yield Block("".join(body), separator="")


def _heading(lines: list[str], index: int) -> tuple[int, int]:
    """(level, lines taken) of the heading that starts here; level 0 if none does."""
    line = lines[index]
    if match := _ATX.match(line):
        return len(match[1]), 1
    text_line = bool(line.strip()) and line.lstrip()[0] not in "#>-*+|`~=" and line[0] != "\t"
    after_blank = index == 0 or not lines[index - 1].strip()
    if text_line and after_blank and index + 1 < len(lines):
        underline = _UNDERLINE.match(lines[index + 1])
        if underline:
            return (1 if underline[1][0] == "=" else 2), 2
    return 0, 1
