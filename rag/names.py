"""File names as something to look at. A display name never decides where anything is stored."""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 120  # characters
_LONGEST_EXTENSION = 12


def display_name(name: str) -> str:
    """The last part of `name` in one line, safe to show, at most 120 characters.

    Control characters, direction overrides and undecodable bytes become U+FFFD, spaces are
    collapsed, and a long name keeps its extension.
    """
    name = re.split(r"[/\\]", name)[-1]
    name = "".join(map(_visible, unicodedata.normalize("NFC", name)))
    name = " ".join(name.split())
    if name.strip(". \ufffd") == "":
        return "unnamed"
    if len(name) > _LONGEST:
        stem, dot, extension = name.rpartition(".")
        if not dot or len(extension) > _LONGEST_EXTENSION:
            stem, dot, extension = name, "", ""
        name = stem[: _LONGEST - len(dot + extension) - 1] + "…" + dot + extension
    return name


def display_path(name: str, folder: str = "") -> str:
    """`display_name` below a folder, each part of whose way is shown as safely: `notes/a.md`.

    A long way keeps its end. Still nothing but data to show.
    """
    parts = [display_name(part) for part in re.split(r"[/\\]", folder) if part]
    way = "/".join(parts)
    if len(way) > _LONGEST:
        way = "…" + way[1 - _LONGEST :]
    return f"{way}/{display_name(name)}" if way else display_name(name)


def _visible(character: str) -> str:
    if character in "\u200c\u200d":  # joiners inside emoji and some scripts
        return character
    category = unicodedata.category(character)
    if category in ("Zs", "Zl", "Zp") or character in "\t\r\n":
        return " "
    return "\ufffd" if category in ("Cc", "Cf", "Cs", "Cn", "Co") else character
