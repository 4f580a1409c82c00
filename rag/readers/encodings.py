"""Bytes to text when nobody says which encoding they are in.

A byte order mark or strict UTF-8 settles most files. What remains is usually Chinese in GB18030
or Big5, which general detectors get wrong on short texts, so those two are judged here by how
ordinary the characters are that they would give. Everything else is left to charset-normalizer.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from functools import cache

from rag.readers.blocks import DocumentError

_MARKS = (  # longest first: the mark of UTF-32 LE begins with that of UTF-16 LE
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 100_000  # bytes looked at when encodings are compared

# The commonest characters of written Chinese, in both scripts: about two thirds of any text.
_COMMON = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道"
    "行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意"
    "无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什"
    "二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义"
    "各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金"
    "指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求"
    "据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运请谢您吧吗呢好早晚上午"
    "這個們來為國說時會對過發後裡裏種經麼學當沒動還進樣從實軍無與長機關點業將兩間問並應戰頭體見產話給門兒東聲"
    "員論處義幾條氣題爾別變神總電數報結場計資許統區隊決馬書則聽達強難權設記類據邊張該規萬術領確師觀讓識帶導爭"
    "運請謝嗎麗灣臺測試檔案開買賣車錢醫藥廣讀寫語號"
)
_CHINESE = {  # encoding: lead bytes of its more common half of characters
    "gb18030": range(0xB0, 0xD8),
    "big5hkscs": range(0xA4, 0xC7),
}
_CONTROL_BYTES = bytes({*range(32), 127} - set(b"\t\n\v\f\r\x1b"))
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_LONE_HIGH_BYTES = re.compile(rb"(?<![\x80-\xff])[\x80-\xff]{1,2}(?![\x80-\xff])")


def decode(
    data: bytes, declared: str | None = None, warn: Callable[[str], None] | None = None
) -> str:
    """The text of `data`, without its byte order mark.

    Args:
        declared: the encoding the file claims, as HTML does; believed only if it fits.
        warn: told in a sentence when some bytes fit no encoding.

    Raises:
        DocumentError: "binary" if this is not text at all.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            if (text := _decode_as(name, data, 0.05, warn, spare=1)) is not None:
                return text
            raise _unknown_encoding()
    if _looks_binary(data):
        raise DocumentError(
            "binary",
            "This file holds binary data, not text. "
            "Open it in the program it was made with and save it as PDF, DOCX or plain text.",
        )
    for encoding, tolerance in _guesses(_telling_part(data), declared):
        if (text := _decode_as(encoding, data, tolerance, warn)) is not None:
            return text
    raise _unknown_encoding()


def _decode_as(
    encoding: str,
    data: bytes,
    tolerance: float,
    warn: Callable[[str], None] | None,
    spare: int = 0,
) -> str | None:
    """The text, if at most this share of the characters beyond ASCII cannot be decoded.

    Args:
        spare: how many characters may be bad in the shortest text.
    """
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
    bad = text.count("\ufffd")
    if bad > max(spare, tolerance * (len(text) - len(text.encode("ascii", "ignore")))):
        return None
    if warn:
        warn(f"{bad:,} characters could not be decoded and are shown as \ufffd.")
    return text


def _unknown_encoding() -> DocumentError:
    return DocumentError(
        "binary",
        "The encoding of this text could not be recognised. "
        "Open it in a text editor and save it as UTF-8.",
    )


def _guesses(part: bytes, declared: str | None) -> Iterator[tuple[str, float]]:
    """(encoding, share of characters beyond ASCII that may be bad), the most telling first.

    A file that was cut off or put together from others is mostly right in one encoding and
    entirely right, as gibberish, in another.
    """
    yield "utf-8", 0.02
    if declared and (name := _python_name(declared)):
        yield name, 0.02
    if name := _chinese(part):
        yield name, 0.02
    if _is_western(part):
        yield "cp1252", 0
    from charset_normalizer import from_bytes

    if best := from_bytes(part).best():
        yield best.encoding, 0


def _telling_part(data: bytes) -> bytes:
    """A stretch from the first byte beyond ASCII on: what comes before tells nothing."""
    first = _HIGH_BYTE.search(data)
    start = max(0, first.start() - 100) if first else 0
    return data[start : start + _SAMPLE]


def _python_name(declared: str) -> str | None:
    """The text encoding of that name; GBK and GB2312 are read as GB18030, which holds both."""
    try:
        info = codecs.lookup(declared)
    except (LookupError, ValueError):
        return None
    if info.name in ("gb2312", "gbk"):
        return "gb18030"
    return info.name if getattr(info, "_is_text_encoding", True) else None


def _looks_binary(data: bytes) -> bool:
    """Whether control bytes, rare in any text and every tenth of random bytes, pass 5 %."""
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls > 4 and controls > 0.05 * len(sample)


def _chinese(part: bytes) -> str | None:
    """The Chinese encoding in which these bytes are ordinary Chinese, if there is one."""
    scores: dict[str, float] = {}
    for name in _CHINESE:
        wide = [c for c in part.decode(name, "replace") if c > "\x7f"]
        if not wide:
            continue
        common = sum(c in _COMMON for c in wide) / len(wide)
        if len(wide) < 20 or common > 0.2:  # of long texts in other languages, under 0.1
            scores[name] = sum(_ordinary(c, _usual(name)) for c in wide) / len(wide)
    best = max(scores, key=lambda name: scores[name], default=None)
    return best if best and scores[best] > 0 else None


def _ordinary(character: str, usual: frozenset[str]) -> float:
    """How much a character speaks for Chinese (positive) or for a wrong guess."""
    if character in _COMMON:
        return 3
    if character in usual or character in "“”‘’…—·" or "\u3000" <= character <= "\u3011":
        return 1
    if "\uff01" <= character <= "\uff5e":
        return 1
    if "\ue000" <= character <= "\uf8ff" or character == "\ufffd":
        return -4
    return -1


@cache
def _usual(encoding: str) -> frozenset[str]:
    """The more common half of an encoding's Chinese characters."""
    pairs = bytes(b for lead in _CHINESE[encoding] for trail in _TRAILS for b in (lead, trail))
    return frozenset(c for c in pairs.decode(encoding, "ignore") if "\u4e00" <= c <= "\u9fff")


_TRAILS = (*range(0x40, 0x7F), *range(0xA1, 0xFF))


def _is_western(part: bytes) -> bool:
    """Whether bytes beyond ASCII stand alone among ASCII letters, as accents do."""
    high = len(_HIGH_BYTE.findall(part))
    lone = sum(map(len, _LONE_HIGH_BYTES.findall(part)))
    return high <= 0.5 * len(part) and lone > 0.9 * high
