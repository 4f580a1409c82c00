"""Markers such as [1] in an answer to the passages that were shown, and only those.

`link_citations` reads the markers that the model wrote, `without_unsupported` takes out those whose
passage does not say what their sentence says, `support` finds what stands behind the others.
It goes by shared words: it says where to look, not what is true, nor which of two passages that
say the same was used. Measured attribution could say that, in the place of `_evidence`.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from rag.evidence import Evidence, Span, best_sentence, sentences
from rag.terms import content_terms, tokenize

# Code and formulas. What is still open runs to the end (a formula to that of its paragraph): while
# the answer is written, it may yet be closed.
_CODE = re.compile(
    r"""(?msx) ^[ >]*(```|~~~).*?(?:^[ >]*\1|\Z) | ``[^\n]+?`` | `[^`\n]+`
      | \\\(.*?(?:\\\)|\n\n|\Z) | \\\[.*?(?:\\\]|\n\n|\Z) | \$\$.*?(?:\$\$|\n\n|\Z)"""
)
# Not [1](address), which is a link.
_MARKER = re.compile(r"[\[［【]\s*\d{1,4}(?:\s*[,，、;；]\s*\d{1,4})*\s*(?:\](?!\()|[］】])")
_BETWEEN_MARKERS = re.compile(r"\s*(?:[,，、;；]|and|和|及|与)?\s*")
_OPENS = re.compile(r"[(（\[【]\s*(?:(?:see|cf\.?|参?见)\s*)?\Z", re.IGNORECASE)
_CLOSES = re.compile(r"\s*[)）\]】]")
_Cited = tuple[Span, Span, list[int]]  # a marker, its sentence, and the passages it names
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
    while (shorter := _without_unsupported(answer, passages)) != answer:
        answer = shorter  # what was on both sides of a marker may be one now
    return answer


def _without_unsupported(answer: str, passages: Sequence[str]) -> str:
    supported = cache(lambda span, n: _evidence(answer[slice(*span)], [passages[n - 1]]))
    text, plain = "", 0
    for run in _runs(answer, _cited_sentences(answer, len(passages))):
        kept, left, whole = "", run[0][0][0], True
        for (start, end), sentence, numbers in run:
            good = [n for n in numbers if supported(sentence, n)]
            whole = whole and good == numbers
            if good:
                between = answer[left:start] if kept else ""
                marker = answer[start:end] if good == numbers else f"[{', '.join(map(str, good))}]"
                kept += between + marker
            left = end
        if whole:
            continue
        before, after = answer[plain : run[0][0][0]], run[-1][0][1]
        if not kept:
            before, after = _closed_up(before, answer, after)
        text, plain = text + before + kept, after
    return text + answer[plain:]


def _closed_up(before: str, answer: str, after: int) -> tuple[str, int]:
    """Text before markers that are gone, and where it goes on after them.

    Brackets that held nothing else go with them; the space goes on one side, and never the
    indentation of a line.
    """
    opening, closing = _OPENS.search(before), _CLOSES.match(answer, after)
    if opening and closing:
        before, after = before[: opening.start()], closing.end()
    shorter = before.rstrip(" ")
    if shorter and not shorter.endswith("\n"):
        return shorter, after
    return before, after + len(answer[after:]) - len(answer[after:].lstrip(" "))


def _runs(answer: str, cited: Sequence[_Cited]) -> list[list[_Cited]]:
    """Markers that stand side by side, as in "[1], [2] and [3]", together."""
    runs: list[list[_Cited]] = []
    for one in cited:
        last = runs[-1][-1][0][1] if runs else None
        if last is not None and _BETWEEN_MARKERS.fullmatch(answer, last, one[0][0]):
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


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


def _cited_sentences(answer: str, count: int) -> list[_Cited]:
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
    place = bisect_left(spoken, (marker, 0))  # of the first sentence that begins at or after it
    begun = spoken[max(0, place - 2) : place]
    if begun and not _says_something(answer[begun[-1][0] : marker]):
        begun = begun[:-1]  # only the last can hold the marker, and so say nothing before it
    around = [(start, end) for start, end in spoken[max(0, place - 1) : place + 1]]
    around = [(start, end) for start, end in around if start <= marker < end]
    if around and (not begun or "\n" in answer[begun[-1][1] : marker]):
        return around[0]
    return begun[-1] if begun else (marker, marker)


def _says_something(text: str) -> bool:
    return bool(tokenize(_MARKER.sub(" ", text)))
