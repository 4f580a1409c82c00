"""What a reader is given and what it gives back: the bytes of one file in, blocks of text out.

Knows nothing of any file format, nor of how blocks become a document (`rag.documents`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str, int, int], None]

MEGABYTE = 2**20


class DocumentError(Exception):
    """A file that cannot be read. The message tells the person what happened and what to do.

    `code` is a short stable word for programs and translations. What readers give: "archive_bomb",
    "binary", "damaged", "empty", "encrypted", "no_text", "scanned", "too_big", "too_many_pages",
    "too_much_text", "unrecognised", "unsafe", "unsupported"; the sandbox adds "cancelled",
    "crashed", "timeout" and "too_much_memory".
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Limits:
    """How much one file may cost. Everything is inclusive: at the limit is still allowed."""

    file_bytes: int = 50 * MEGABYTE
    pages: int = 1_000
    text_bytes: int = 10 * MEGABYTE  # of UTF-8
    seconds: float = 60.0  # of CPU time and of wall time, only in the sandbox
    memory_bytes: int = 1024 * MEGABYTE  # of address space, only in the sandbox
    ocr_seconds: float = 1_800.0  # more of wall time, once text must be recognised in pictures
    ocr_pages: int = 500  # in which text is recognised; the others are named in a warning
    archive_entries: int = 10_000
    archive_bytes: int = 200 * MEGABYTE  # really inflated, not as declared
    archive_ratio: int = 300  # of one entry, once it is larger than a megabyte

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"{name} must be positive, not {value!r}")


@dataclass(frozen=True)
class Source:
    """One file being read.

    Attributes:
        data: the whole file; its size has been checked.
        warn: takes a sentence for the person, about something that was read but not well.
        progress: called as (label, done, total), by page where there are pages.
        more_time: asks for seconds above `limits.seconds`, at most once; see `Limits.ocr_seconds`.
    """

    data: bytes
    limits: Limits
    warn: Callable[[str], None]
    progress: Progress
    more_time: Callable[[float], None] = lambda seconds: None


@dataclass(frozen=True)
class Block:
    """A stretch of text that belongs together: a paragraph, a heading, a row of a table.

    Attributes:
        level: 1 to 6 for a heading, 0 for body text.
        title: how a heading is called where it is referred to, if not by its text.
        separator: what stands between the block before and this one. Readers of plain text,
            where every character is kept, put nothing there.
        ends_headings: what came under the headings before is over, as on a slide without a title.
    """

    text: str
    level: int = 0
    title: str = ""
    page: int | None = None
    separator: str = "\n\n"
    ends_headings: bool = False


_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Text that every later step can encode and store.

    Line ends become a newline, control characters (NUL first of all) are dropped, halves of a
    surrogate pair are joined, and a half without its other half becomes U+FFFD.
    """
    text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
