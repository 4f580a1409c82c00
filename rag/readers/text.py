"""Plain text and Markdown, kept as they are but for line ends, control characters and tables.

The rows of a long table are far from its headings, so each gets them (`rag.readers.tables`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag.readers.blocks import Block, clean
from rag.readers.tables import Cell, table_lines

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_TABLE_RULE = re.compile(r" {0,3}\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?$")
_BAR = re.compile(r"(?<!\\)\|")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")


def read_text(text: str) -> Iterator[Block]:
    """The whole text as one block."""
    yield Block(clean(text), separator="")


def read_markdown(text: str) -> Iterator[Block]:
    """The text cut at its headings; the blocks joined are the text, but for the rows of tables.

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
            height = 0 if fence or mark else _table_height(lines, index)
            body.extend(
                _table(lines[index : index + height]) if height else lines[index : index + 1]
            )
            height = max(1, height)
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


def _table_height(lines: list[str], index: int) -> int:
    """How many lines the table has that starts here; 0 if none does."""
    if "|" not in lines[index] or index + 1 == len(lines):
        return 0
    rule = lines[index + 1].rstrip("\n")
    if not _TABLE_RULE.match(rule) or len(_row(rule)) != len(_row(lines[index])):
        return 0
    height = 2
    while index + height < len(lines) and "|" in lines[index + height]:
        height += 1
    return height


def _table(lines: list[str]) -> Iterator[str]:
    rows = (map(Cell, _row(line)) for line in (lines[0], *lines[2:]))
    for line in table_lines(rows, first_row_is_header=True):
        yield line + "\n"


def _row(line: str) -> list[str]:
    """The cells of a row, whose outer bars may be left out."""
    line = line.strip().removeprefix("|")
    cells = _BAR.split(line.removesuffix("|") if not line.endswith("\\|") else line)
    return [cell.strip().replace("\\|", "|") for cell in cells]
