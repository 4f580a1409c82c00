"""Bytes to text when nobody says which encoding they are in.

A byte order mark or strict UTF-8 settles most files. What remains is usually Chinese in GB18030
or Big5, which general detectors get wrong on short texts, so those two are judged here by how
ordinary the characters are that they would give. Everything else is left to charset-normalizer.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

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
_COMMON_ENOUGH = 0.1  # of the characters; wrong guesses stay near 0.02


def decode(data: bytes, declared: str | None = None, warn: Callable[[str], None] = print) -> str:
    """The text of `data`, without its byte order mark.

    Args:
        declared: the encoding the file claims, as HTML does; believed only if it fits.
        warn: told in a sentence when some bytes fit no encoding.

    Raises:
        DocumentError: "binary" if this is not text at all.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            text = data.decode(name, "replace")
            if "\ufffd" in text:
                warn("Some characters could not be decoded and are shown as \ufffd.")
            return text
    if _looks_binary(data):
        raise DocumentError(
            "binary",
            "This file holds binary data, not text. "
            "Open it in the program it was made with and save it as PDF, DOCX or plain text.",
        )
    for name in ("utf-8", _known(declared)):
        if name and (text_or_none := _strict(data, name)) is not None:
            return text_or_none
    name = _chinese(data) or _detected(data)
    if name and (text_or_none := _strict(data, name)) is not None:
        return text_or_none
    return _mostly(data, name, warn)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _known(declared: str | None) -> str | None:
    """The codec for a declared name; GBK and GB2312 are read as GB18030, which holds both."""
    try:
        name = codecs.lookup(declared or "").name
    except (LookupError, ValueError):
        return None
    return "gb18030" if name in ("gb2312", "gbk", "gb18030") else name


def _looks_binary(data: bytes) -> bool:
    """Whether control bytes, rare in any text and every tenth of random bytes, pass 5 %."""
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls > 4 and controls > 0.05 * len(sample)


_CONTROL_BYTES = bytes([*range(9), *range(14, 27), *range(28, 32), 127])  # not \t \n \v \f \r ESC


def _chinese(data: bytes) -> str | None:
    """"gb18030" or "big5hkscs" if the bytes read as ordinary Chinese in one of them."""
    sample = data[:_SAMPLE]
    scores: dict[str, tuple[float, float]] = {}
    for name, usual in (("gb18030", _GB2312), ("big5hkscs", _BIG5_USUAL)):
        text = sample.decode(name, "ignore" if len(data) > _SAMPLE else "replace")
        wide = [c for c in text if c > "\x7f"]
        if not wide or text.count("\ufffd") > 0.02 * len(wide):
            continue
        hanzi = [c for c in wide if "\u3400" <= c <= "\u9fff"] or wide
        common = sum(c in _COMMON for c in hanzi) / len(hanzi)
        pairs = usual.findall(sample)
        scores[name] = (common, 2 * sum(map(len, pairs)) / 2 / (2 * len(wide)))
    if not scores:
        return None
    best = max(scores, key=lambda name: scores[name])
    common, usual_share = scores[best]
    return best if common >= _COMMON_ENOUGH or usual_share > 0.95 else None


_GB2312 = re.compile(rb"(?:[\xa1-\xa3\xb0-\xf7][\xa1-\xfe])+")
_BIG5_USUAL = re.compile(rb"(?:[\xa1-\xc6][\x40-\x7e\xa1-\xfe])+")


def _detected(data: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    return best.encoding if best else None


def _mostly(data: bytes, guess: str | None, warn: Callable[[str], None]) -> str:
    """Text with a few bad bytes in it, or "binary" if there are many."""
    texts = [data.decode(name, "replace") for name in ("utf-8", guess or "utf-8")]
    text = min(texts, key=lambda text: text.count("\ufffd"))
    if text.count("\ufffd") > 0.05 * len(text):
        raise DocumentError(
            "binary",
            "The encoding of this text could not be recognised. "
            "Open it in a text editor and save it as UTF-8.",
        )
    warn("Some characters could not be decoded and are shown as \ufffd.")
    return text
