"""Text to the terms that are compared when searching by words, in any language.

A run of Chinese or Japanese characters becomes overlapping pairs of characters, which needs no
dictionary and finds what a word segmenter finds (recall@5 on XQuAD .991 with either); everything
else becomes case-folded words. Scripts that are written without spaces and are not listed here
(Thai, Khmer, ...) come out as long terms that rarely match. Knows no index and no weights.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

Script = Literal["han", "other"]
SCRIPTS: tuple[Script, ...] = ("han", "other")

_HAN = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ACCENTS = "\u0300-\u036f"  # a letter and its accent written apart are still one letter
_PIECE = re.compile(rf"([{_HAN}]+)|((?:(?![{_HAN}_])[\w{_ACCENTS}])+)")
_ANY_HAN = re.compile(f"[{_HAN}]")
_HAN_RUN = re.compile(f"[{_HAN}]+")
_LETTER = re.compile(r"[^\W\d_]")

# Words that a question has because it is one. A passage that shares only these answers nothing.
_ENGLISH_FUNCTION_WORDS = """
    a an the this that these those there here it its they them their theirs he him his she her
    hers we us our ours i me my mine you your yours who whom whose which what when where why how
    is are was were be been being am do does did doing done have has had having can could will
    would shall should may might must of in on at by for from to with without about against into
    onto over under between among during before after above below up down off out through and or
    but nor so yet if then than as because while until though not no yes too very also just only
    same such own both each any some all most more few many much other another again once ever
    now s t d ll m re ve don doesn didn isn aren wasn weren won couldn shouldn wouldn hasn haven
    please tell ok okay thanks thank hi hello hey bye goodbye
"""
_CHINESE_FUNCTION_WORDS = re.compile(
    "[是有]?(?:为什么|什么样|什么|怎么样|怎么办|怎么|怎样|如何|哪里|哪儿|哪些|哪个|多少|谁)[是的]?"
    rf"|是不是|有没有|你好|您好|谢谢|再见|好的|请问|^请|吗(?![{_HAN}])|[呢吧](?=[?？])"
    rf"|(?<![{_HAN}])[是的了好有对嗯](?![{_HAN}])"
)


def tokenize(text: str) -> list[str]:
    """The terms of `text` in order: Chinese pairs, other words; NFKC and case folded."""
    found: list[str] = []
    for run, word in _PIECE.findall(text):
        if word:
            found.append(word.casefold() if word.isascii() else _fold(word))
        elif len(run) == 1:
            found.append(_fold(run))
        else:
            found += [_fold(first + second) for first, second in pairwise(run)]
    return found


def content_terms(question: str) -> list[str]:
    """The distinct terms of a question without its function words: what it is about."""
    bare = _CHINESE_FUNCTION_WORDS.sub(" ", question)
    function_words = set(_ENGLISH_FUNCTION_WORDS.split())
    return [term for term in dict.fromkeys(tokenize(bare)) if term not in function_words]


def has_han(text: str) -> bool:
    """Whether any of `text` is written in Chinese characters or Japanese kana."""
    return _ANY_HAN.search(text) is not None


def script_of(text: str) -> Script:
    """ "han" for Chinese and Japanese text, also with some foreign words in it, else "other"."""
    return "han" if share_in("han", text) > 0.5 else "other"


def share_in(script: Script, text: str) -> float:
    """How much of `text` is in `script`, 0 to 1; 0 where there is no letter.

    A Han character counts as three letters: it says about as much.
    """
    han = sum(len(run) for run in _HAN_RUN.findall(text))
    letters = len(_LETTER.findall(text)) - han
    inside = 3 * han if script == "han" else letters
    return inside / max(1, 3 * han + letters)


def scripts_of(passages: Sequence[str]) -> list[Script]:
    """The script of each passage of one document.

    All passages of a Chinese document count as Chinese, also its tables and references: they stand
    under its headings, and their vectors lie near those of its other passages.
    """
    if script_of("\n".join(passages)) == "han":
        return ["han"] * len(passages)
    return [script_of(passage) for passage in passages]


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
