"""Text from outside made safe for a terminal: it cannot move, hide or reorder what is shown.

And what a person typed made text that can be sent on. Knows nothing of HTML; the page escapes in
its own views.
"""

from __future__ import annotations

import json
import re
from typing import Any

# C0 and C1 controls, DEL, bidirectional marks, line separators, BOM, lone surrogates, tags.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile(r"[\r\n\t]+")


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def typed(text: str | None) -> str:
    """What was typed into a field, without white space around it.

    A browser that cuts at a field's limit may leave half an emoji; no answer can carry that, so it
    becomes U+FFFD.
    """
    return _SURROGATE.sub("\ufffd", text or "").strip()


def printable(text: str) -> str:
    r"""`text` with every unsafe character written as ``\uXXXX``; newlines and tabs stay."""
    return _UNSAFE.sub(_escape, text)


def one_line(text: str, width: int | None = None) -> str:
    """`printable`, on a single line, cut with an ellipsis at `width` characters."""
    line = printable(_BREAKS.sub(" ", text)).strip()
    return line if width is None or len(line) <= width else line[: max(1, width - 1)] + "…"


def json_text(value: Any) -> str:
    r"""`value` as JSON with Chinese left readable; ``\uXXXX`` is JSON's own escape, so no harm."""
    return printable(json.dumps(value, ensure_ascii=False, indent=2))
