"""How good an answer is, beside gold answers: SQuAD's figures, and what its citations are worth.

English is normalised as SQuAD's own evaluation does: case, punctuation and articles do not count,
and words are compared. Chinese as CMRC 2018's does: case, punctuation and spaces do not count, and
characters are compared. Full-width digits and letters equal the ordinary ones; nothing else is
made equal: no traditional for simplified characters, no 三 for 3. Knows no model and no data set.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag.terms import has_han

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# What a model says that does not answer; small models seldom do.
_DECLINES = re.compile(
    r"(?i)\b(?:do|does|did|is|are|was|were|can|could)(?:n't|n’t| not|not) "
    r"(?:explicitly |directly |specifically )?(?:mention|provide|state|specif|say|contain|answer|"
    r"determine|possible to (?:answer|determine)|enough information)|\bI don['’]t know\b"
    r"|没有(?:直接|明确|具体)?(?:提到|提及|提供|说明|给出|足够)|未(?:提到|提及|提供|说明|给出)"
    r"|无法(?:回答|确定|得知)|不(?:知道|清楚|确定)"
)


@dataclass(frozen=True)
class Citation:
    """Characters `start` to `end` of paragraph number `paragraph`, pointed at by an answer."""

    paragraph: int
    start: int
    end: int


def normalise(text: str, language: str) -> list[str]:
    """The words of an English text, the characters of a Chinese one, that are compared."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = "".join(c for c in text if unicodedata.category(c)[0] not in "PS")
    if language == "zh":
        return [character for character in text if not character.isspace()]
    return _ARTICLES.sub(" ", text).split()


def contains(answer: str, golds: Sequence[str], language: str) -> bool:
    """Whether a gold answer stands in `answer`, in whole words or characters."""
    said = _joined(normalise(answer, language))
    return any(_joined(normalise(gold, language)) in said for gold in golds)


def exact(answer: str, golds: Sequence[str], language: str) -> bool:
    return any(normalise(answer, language) == normalise(gold, language) for gold in golds)


def f1(answer: str, golds: Sequence[str], language: str) -> float:
    """Of the words (characters in Chinese) that answer and gold share; the best gold counts."""
    return max(_f1(normalise(answer, language), normalise(gold, language)) for gold in golds)


def declines(answer: str) -> bool:
    """Whether the answer is none: empty, or says that the passages do not tell."""
    return not answer.strip() or _DECLINES.search(answer) is not None


def holds_gold(citation: Citation, paragraph: int, starts: Sequence[int]) -> bool:
    """Whether what is pointed at holds the beginning of a gold answer, `starts` in `paragraph`."""
    return citation.paragraph == paragraph and any(
        citation.start <= start < citation.end for start in starts
    )


def language_of(questions: Sequence[str]) -> str:
    return "zh" if 2 * sum(map(has_han, questions)) > len(questions) else "en"


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "


def _f1(said: Sequence[str], gold: Sequence[str]) -> float:
    shared = sum((Counter(said) & Counter(gold)).values())
    return 2 * shared / (len(said) + len(gold)) if shared else 0.0
