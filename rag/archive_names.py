"""Names in a ZIP as they were meant, where their bytes do not say which encoding they are in.

Windows writes Chinese names in GBK (or Big5) and marks them as nothing; others write UTF-8 and
forget the mark. All names of one archive come from one machine, so they are judged together.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence

_UTF8_MARKED = 0x800  # flag of an entry
_ENOUGH = 0.8  # of the characters must be common ones, or the guess is wrong
# Encoding to try, and the one that holds just the common characters of those who use it.
_CHINESE = (("gb18030", "gb2312"), ("big5", "big5"))


def entry_names(entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """The name of each entry, with "/" between its parts. Undecodable bytes never occur: where no
    guess fits, the names are as the format's own rules (code page 437) have them."""
    unmarked = [e.orig_filename.encode("cp437") for e in entries if not e.flag_bits & _UTF8_MARKED]
    encoding = _encoding(b"\n".join(unmarked))
    return [
        entry.orig_filename
        if entry.flag_bits & _UTF8_MARKED
        else entry.orig_filename.encode("cp437").decode(encoding)
        for entry in entries
    ]


def _encoding(names: bytes) -> str:
    if names.isascii():
        return "ascii"
    try:
        names.decode()
        return "utf-8"
    except UnicodeDecodeError:
        scores = {encoding: _share(names, encoding, common) for encoding, common in _CHINESE}
        best = max(scores, key=lambda encoding: scores[encoding])
        return best if scores[best] >= _ENOUGH else "cp437"


def _share(names: bytes, encoding: str, common: str) -> float:
    """The share of common ones among the characters that are not ASCII; 0 where bytes do not fit.

    In Big5 the common characters are those before the byte 0xC6.
    """
    try:
        text = [character for character in names.decode(encoding) if not character.isascii()]
    except UnicodeDecodeError:
        return 0.0
    fits = 0
    for character in text:
        try:
            code = character.encode(common)
        except UnicodeEncodeError:
            continue
        fits += common != "big5" or code[0] <= 0xC6
    return fits / max(1, len(text))
