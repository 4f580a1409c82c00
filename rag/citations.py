"""Markers such as [1] in an answer to the passages that were shown, and only those.

`link_citations` reads the markers that the model wrote, `without_unsupported` takes out those whose
passage does not say what their sentence says, `support` finds what stands behind the others.
It goes by shared words: it says where to look, not what is true, nor which of two passages that
say the same was used. Measured attribution could say that, in the place of `_evidence`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.evidence import Evidence, Span, best_sentence, sentences
from rag.terms import content_terms, tokenize

# A fence that is still open runs to the end: while the answer is written, it may yet be closed.
_CODE = re.compile(r"(?ms)^[ >]*(```|~~~).*?(?:^[ >]*\1|\Z)|``[^\n]+?``|`[^`\n]+`")
_MARKER = re.compile(r"[\[［【]\s*\d{1,4}(?:\s*[,，、;；]\s*\d{1,4})*\s*[\]］】]")
_NUMBER = re.compile(r"\d+")
_LIST_MARK = re.compile(r"(?m)^\s*(?:\d{1,3}[.)、]|[-*+•])\s*")

# Share of a sentence's terms that must stand in one sentence of a passage. On XQuAD, with the
# best three passages: of answers found there all are aligned, 95 % with the very sentence (English
# and Chinese); of sentences from other articles none is.
SUPPORTED = 0.6


@dataclass(frozen=True)
class Segment:
    """A stretch of the answer; `citation` is the number of a passage, counted from 1, or None."""

    text: str
    citation: int | None = None


def link_citations(answer: str, count: int) -> list[Segment]:
    """Cut `answer` into plain text and citations of passages 1 to `count`.

    The segments' texts joined are the answer. `[1, 2]` becomes two segments; a number that no
    passage has is no citation, and neither is anything inside code.
    """
    segments: list[Segment] = []
    plain = 0
    for start, end in _markers(answer):
        cited = [
            number
            for number in _NUMBER.finditer(answer, start, end)
            if 1 <= int(number[0]) <= count
        ]
        if not cited:
            continue
        if plain < start:
            segments.append(Segment(answer[plain:start]))
        cuts = [start, *(number.start() for number in cited[1:]), end]
        for number, (left, right) in zip(cited, pairwise(cuts), strict=True):
            segments.append(Segment(answer[left:right], int(number[0])))
        plain = end
    if plain < len(answer):
        segments.append(Segment(answer[plain:]))
    return segments


def _markers(answer: str) -> list[tuple[int, int]]:
    """Spans of what looks like a marker, outside code."""
    code = [match.span() for match in _CODE.finditer(answer)]
    return [
        match.span()
        for match in _MARKER.finditer(answer)
        if not any(start <= match.start() < end for start, end in code)
    ]


@dataclass(frozen=True)
class Support:
    """Sentence `start` to `end` of the answer shares most of its words with `span` of a passage.

    `citation` counts passages from 1, as the markers do; `written` says that the model wrote it.
    """

    start: int
    end: int
    citation: int
    span: Span
    written: bool = False


@dataclass(frozen=True)
class CheckedAnswer:
    """`text` is the answer without markers that nothing supports; `supports` are spans of it."""

    text: str
    supports: tuple[Support, ...]


def without_unsupported(answer: str, passages: Sequence[str]) -> str:
    """`answer` without the markers whose passage does not say what their sentence says.

    A number that no passage has is text and stays. Costs nothing while there is no marker.
    """
    text, plain = "", 0
    for (start, end), sentence, numbers in _cited_sentences(answer, len(passages)):
        kept = [n for n in numbers if _evidence(answer[slice(*sentence)], [passages[n - 1]])]
        if kept == numbers:
            continue
        text += answer[plain:start] if kept else answer[plain:start].rstrip(" ")
        text += f"[{', '.join(map(str, kept))}]" if kept else ""
        plain = end
    return text + answer[plain:]


def check_citations(answer: str, passages: Sequence[str]) -> CheckedAnswer:
    """A complete answer, its unsupported markers taken out, with what supports each sentence."""
    text = without_unsupported(answer, passages)
    found = support(text, passages)
    for _, sentence, numbers in _cited_sentences(text, len(passages)):
        for number in numbers:
            evidence = _evidence(text[slice(*sentence)], [passages[number - 1]])
            if evidence is not None:
                found.append(Support(*sentence, number, evidence.span, written=True))
    found.sort(key=lambda one: (one.start, one.citation))
    return CheckedAnswer(text, tuple(dict.fromkeys(found)))


def support(answer: str, passages: Sequence[str]) -> list[Support]:
    """What stands behind the sentences of `answer` that carry no marker of their own.

    Rather none than a wrong one: a sentence of which too little, or a number of which, is not in
    the passage's sentence is left out, and so is all code.
    """
    found = []
    hidden = [match.span() for match in _CODE.finditer(answer)]
    marked = {sentence for _, sentence, _ in _cited_sentences(answer, len(passages))}
    for start, end in sentences(answer):
        if any(left < end and start < right for left, right in hidden):
            continue
        if (start, end) in marked or not _says_something(answer[start:end]):
            continue
        best = _evidence(answer[start:end], passages)
        if best is not None:
            found.append(Support(start, end, best.text + 1, best.span))
    return found


def _evidence(sentence: str, passages: Sequence[str]) -> Evidence | None:
    """The sentence of `passages` that says most of what `sentence` says, numbers included."""
    wanted = content_terms(_LIST_MARK.sub(" ", _MARKER.sub(" ", sentence)))
    best = best_sentence(passages, wanted)
    if best is None or best.share < SUPPORTED:
        return None
    said = set(tokenize(passages[best.text][slice(*best.span)]))
    return best if {term for term in wanted if _NUMBER.search(term)} <= said else None


def _cited_sentences(answer: str, count: int) -> list[tuple[Span, Span, list[int]]]:
    """Each marker of passages 1 to `count`, the sentence that it belongs to, and its numbers.

    That is the sentence that it stands in, or the one before: "It is so. [1]" is cut after "so.".
    """
    markers = _markers(answer)
    if not markers or not count:
        return []
    spoken = [span for span in sentences(answer) if _says_something(answer[slice(*span)])]
    found = []
    for start, end in markers:
        numbers = [int(number[0]) for number in _NUMBER.finditer(answer, start, end)]
        cited = [number for number in numbers if 1 <= number <= count]
        if cited:
            found.append(((start, end), _sentence_of(start, answer, spoken), cited))
    return found


def _sentence_of(marker: int, answer: str, spoken: Sequence[Span]) -> Span:
    """The last sentence begun before `marker`, unless a line begins with the marker."""
    around = [(start, end) for start, end in spoken if start <= marker < end]
    before = [span for span in spoken if _says_something(answer[span[0] : marker])]
    if around and (not before or "\n" in answer[before[-1][1] : marker]):
        return around[0]
    return before[-1] if before else (marker, marker)


def _says_something(text: str) -> bool:
    return bool(tokenize(_MARKER.sub(" ", text)))
