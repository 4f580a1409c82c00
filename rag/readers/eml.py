"""E-mails (.eml) to blocks: the subject as heading, who wrote to whom and when, then the text.

Of a text and an HTML form of the same message the text is read unless it is empty. E-mails that are
attached or forwarded whole are read in place, under their own subject. Other attachments are not
read; their names stand below the header lines, so that an e-mail can be found by them, and in a
warning that says to add them by themselves.
"""

from __future__ import annotations

import email
import re
from collections.abc import Callable, Iterator
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage, Message
from email.policy import default
from email.utils import parsedate_to_datetime
from typing import Any

from rag.names import display_name
from rag.readers.blocks import Block, DocumentError, Source, clean
from rag.readers.encodings import decode
from rag.readers.html import declared_charset, page_blocks, parse_page
from rag.readers.office import reading

_HEADERS = ("From", "To", "Cc", "Date")
_SIGNATURES = (
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
    "application/pgp-signature",
)
_DEEPEST = 20  # parts within parts
_MOST_PARTS = 1_000
_SPACES = re.compile(r"\s+")
_PARAGRAPH_END = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read_eml(source: Source) -> Iterator[Block]:
    """The header lines that people read, and the text.

    Raises:
        DocumentError: "damaged" if it is no e-mail, "unsafe" if its HTML declares entities.
    """
    with reading("e-mail"):
        message: Message = email.message_from_bytes(source.data, policy=default)
        mail = _Mail(source)
        blocks = list(mail.message(message, 0))
    if mail.encrypted and not mail.has_text:
        raise DocumentError(
            "encrypted",
            "This e-mail is encrypted. Open it in your e-mail program and save its text.",
        )
    yield from blocks
    if mail.attachments:
        names = ", ".join(mail.attachments[:10]) + (", …" if len(mail.attachments) > 10 else "")
        source.warn(f"Attachments were not read: {names}. Save them and add them by themselves.")


class _Mail:
    """One pass over the parts of an e-mail and of those within it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parts = 0
        self.attachments: list[str] = []
        self.encrypted = False
        self.has_text = False

    def message(self, message: Message, depth: int) -> Iterator[Block]:
        """A whole e-mail: its headers and its text."""
        known = len(self.attachments)
        body = list(self._part(message, depth))
        subject = _header(message, "Subject")
        level = min(6, 1 + depth)
        if subject:
            yield Block(subject, level)
        elif depth == 0:
            body = [_below(block) for block in body]
        lines = [f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))]
        if attached := self.attachments[known:]:
            lines.append(f"Attachments: {', '.join(attached)}")
        if lines:
            yield Block("\n".join(lines))
        yield from body

    def _part(self, part: Message, depth: int) -> Iterator[Block]:
        """The text of a part and of those within it, in order."""
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise DocumentError(
                "damaged", "This e-mail has more parts within parts than any program writes."
            )
        kind = _asked(part.get_content_type) or "text/plain"
        if kind == "message/rfc822":
            for inner in _parts(part):
                yield from self.message(inner, depth + 1)
        elif kind in ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"):
            self.encrypted = True
        elif kind == "multipart/alternative":
            yield from self._alternative(_parts(part), depth)
        elif part.is_multipart():
            for inner in _parts(part):
                yield from self._part(inner, depth + 1)
        elif kind.startswith("multipart/"):  # whose parts could not be found
            yield from self._text(part, "text/plain")
        elif _is_attached(part) or not kind.startswith("text/"):
            self._name_attachment(part, kind)
        else:
            yield from self._text(part, kind)

    def _alternative(self, parts: list[Message], depth: int) -> Iterator[Block]:
        """The plain text if there is any, else the last form that has some."""
        plain = [part for part in parts if part.get_content_type() == "text/plain"]
        for part in (*plain, *reversed(parts)):
            blocks = list(self._part(part, depth + 1))
            if any(block.text.strip() for block in blocks):
                yield from blocks
                return

    def _text(self, part: Message, kind: str) -> Iterator[Block]:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        if data.strip():
            try:
                yield from self._decoded(part, kind, data)
            except DocumentError as error:
                if error.code != "binary":
                    raise
                self._source.warn("A part of this e-mail is no text and was left out.")

    def _decoded(self, part: Message, kind: str, data: bytes) -> Iterator[Block]:
        charset = _asked(part.get_content_charset)
        if kind == "text/html":
            soup = parse_page(data, charset or declared_charset(data), self._source.warn)
            blocks = [_below(block) for block in page_blocks(soup)]
        else:
            text = clean(decode(data, charset, self._source.warn)).strip()
            blocks = [Block(paragraph) for paragraph in _PARAGRAPH_END.split(text) if paragraph]
        self.has_text |= bool(blocks)
        yield from blocks

    def _name_attachment(self, part: Message, kind: str) -> None:
        name = _asked(part.get_filename) or ""
        is_picture_of_text = kind.startswith("image/") and part.get("Content-ID")
        if kind in _SIGNATURES or (is_picture_of_text and not _is_attached(part)):
            return
        if name or _is_attached(part):
            self.attachments.append(display_name(_repaired(name)) if name else kind)


def _is_attached(part: Message) -> bool:
    return _asked(part.get_content_disposition) == "attachment"


def _asked(question: Callable[[], str | None]) -> str | None:
    """What a part says of itself; None where its headers are too broken to say."""
    try:
        return question()
    except MemoryError:
        raise
    except Exception:  # the standard library's parsers of headers may raise anything
        return None


def _below(block: Block) -> Block:
    """A block of a page within an e-mail: its headings are part of the text, not of the outline."""
    return Block(block.text, separator=block.separator)


def _parts(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [inner for inner in payload if isinstance(inner, Message)] if part.is_multipart() else []


def _header(message: Message, name: str) -> str:
    """The text of a header; "" if there is none."""
    raw = _raw_header(message, name)
    if name == "Date":
        return _date(raw)
    if raw.isascii() and isinstance(message, EmailMessage):
        text = _asked(lambda: str(message[name] or ""))
        if text is not None:
            return _one_line(text)
    try:
        return _one_line(str(make_header(decode_header(_repaired(raw)))))
    except (ValueError, LookupError, MessageError):
        return _one_line(_repaired(raw))


def _raw_header(message: Message, name: str) -> str:
    for key, value in message.raw_items():
        if key.lower() == name.lower():
            return str(value)
    return ""


def _repaired(text: str) -> str:
    """Bytes that a header holds without saying their encoding, as text."""
    if text.isascii():
        return text
    try:
        return decode(text.encode("utf-8", "surrogateescape"))
    except (DocumentError, UnicodeEncodeError):
        return text


def _date(raw: str) -> str:
    """Date, time and distance from UTC in ISO order; as it stands if it is no date."""
    try:
        return parsedate_to_datetime(raw).isoformat(sep=" ", timespec="minutes")
    except (ValueError, TypeError, IndexError, OverflowError):
        return _one_line(raw)


def _one_line(text: Any) -> str:
    return _SPACES.sub(" ", clean(text)).strip()
