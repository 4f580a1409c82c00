"""BM25 over passages (bm25s), in scores that compare across questions and collections.

A collection is some large segments, mapped from files, and small ones of what was added since.
Every score is what one index over all of them would give. Takes its terms from rag/terms.py; does
not know where texts come from, nor that vectors exist.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag.hits import Hits, best_first, no_hits
from rag.lexical_segment import Segment, idf
from rag.terms import content_terms, tokenize

_SMALL = 2_048  # passages of a segment that is still merged in memory: .15 s of one core
_FEW = 4_096  # allowed passages up to which scoring each is faster than reading whole postings


@dataclass(frozen=True)
class _Question:
    """Its terms that some passage has, their weights, and the numbers of the whole collection."""

    weights: dict[str, float]
    most: float  # what a passage would get with every term and one more that none has
    mean: float  # terms in a passage


class LexicalIndex:
    """Texts under ids of the caller's. Every method may be called by any thread.

    A removed passage is masked at once, and no longer counted, but its words stay in its segment
    until that is built anew.
    """

    def __init__(self, saved: Iterable[Segment] = ()) -> None:
        self._segments = list(saved)
        self._fixed = len(self._segments)  # of them, those that came from files
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return sum(len(segment) for segment in self._segments)

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids (N,), rising."""
        with self._lock:
            parts = [segment.ids[segment.alive] for segment in self._segments]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    @property
    def unsaved(self) -> int:
        """How many passages are in no file."""
        with self._lock:
            return sum(map(len, self._segments[self._fixed :]))

    @property
    def gone(self) -> int:
        """How many passages of the files are gone."""
        with self._lock:
            return sum(segment.gone for segment in self._segments[: self._fixed])

    def missing(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of `ids` (n,), all different, that are not there, in their order."""
        with self._lock:
            for segment in self._segments:
                ids = ids[segment.places(ids) < 0]
        return ids

    def add(self, texts: Mapping[int, str]) -> None:
        """Add texts by id. All or none; an id that is there is refused."""
        tokens = {id_: tokenize(text) for id_, text in texts.items()}
        ids = np.fromiter(tokens, np.int64, len(tokens))
        if len(self.missing(ids)) < len(ids):
            raise ValueError("an id may be added once; remove it before adding it again")
        if not tokens:
            return
        segments = [Segment.of(tokens)]
        with self._lock:
            while self._mergeable(segments[0]):
                segments.insert(0, self._segments.pop())
                segments = [Segment.of({**segments[0].tokens(), **segments[1].tokens()})]
            self._segments += segments

    def _mergeable(self, last: Segment) -> bool:
        """Sizes fall by half at least, so each passage is merged a few times, not every time."""
        if len(self._segments) == self._fixed:
            return False
        before = len(self._segments[-1])
        return before <= 2 * len(last) and before + len(last) <= _SMALL

    def remove(self, ids: ArrayLike) -> int:
        """Remove the ids that are there; returns how many."""
        wanted = np.unique(np.asarray(ids, np.int64))
        with self._lock:
            return sum(segment.remove(wanted) for segment in self._segments)

    def search(self, query: str, k: int, allowed: ArrayLike | None = None) -> Hits:
        """The `k` best passages of the index, or of `allowed`, that share a term with `query`.

        A score is BM25 as a share, in [0, 1), of what a passage would get that had every term of
        the question and one more that no passage has: so that a single word in common is not
        everything, and scores compare across questions and collections of any size. How rare a
        term is, is counted over the whole index even when only a part is `allowed`.

        Candidates are chosen with the mean length of their own segment's passages, then scored with
        that of all, twice as many and some more than are wanted.
        """
        if k < 1:
            return no_hits()
        segments = self._snapshot()
        question = _asked(query, segments)
        if question is None:
            return no_hits()
        wanted = None if allowed is None else np.unique(np.asarray(allowed, np.int64))
        found = []
        least = 0.0
        for segment in segments:
            places, scores = _candidates(segment, question, wanted, 2 * k + 32, least)
            if len(scores) >= 2 * k + 32:
                least = max(least, float(scores.min()))
            found.append((segment, places))
        ids = np.concatenate([segment.ids[places] for segment, places in found])
        exact = np.concatenate([_scores(segment, question, at) for segment, at in found])
        return best_first(ids[exact > 0], exact[exact > 0], k)

    def scores(self, query: str, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The score (n,) that `search` gives each of `ids` (n,); 0 where it finds none."""
        segments = self._snapshot()
        question = _asked(query, segments)
        found = np.zeros(len(ids), np.float32)
        if question is not None:
            for segment in segments:
                places = segment.places(ids)
                inside = places >= 0
                if inside.any():
                    found[inside] = _scores(segment, question, places[inside])
        return found

    def _snapshot(self) -> list[Segment]:
        with self._lock:
            return [segment for segment in self._segments if len(segment)]


def _asked(query: str, segments: list[Segment]) -> _Question | None:
    """None when no passage has any of its terms."""
    wanted = content_terms(query)
    passages = sum(len(segment) for segment in segments)
    having = {t: sum(segment.passages_with(t) for segment in segments) for t in wanted}
    weights = {t: float(idf(count, passages)) for t, count in having.items() if count}
    if not weights:
        return None
    unseen = float(idf(0, passages)) * (len(wanted) - len(weights) + 1)
    mean = sum(segment.terms for segment in segments) / passages
    return _Question(weights, sum(weights.values()) + unseen, mean)


def _candidates(
    segment: Segment,
    question: _Question,
    allowed: NDArray[np.int64] | None,
    count: int,
    least: float,
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Places and rough scores of up to `count` passages, best of those that exceed `least`."""
    if allowed is not None:
        places = segment.places(allowed)
        places = places[places >= 0]
        if len(places) <= _FEW:
            return places, np.zeros(0, np.float32)
    rough = np.zeros(len(segment.ids), np.float32)
    for term, weight in question.weights.items():
        there, added = segment.postings(term)
        if len(there):
            rough[there] += added * np.float32(weight / segment.weight(len(there)))
    if allowed is not None:
        mask = np.zeros(len(rough), bool)
        mask[places] = True
        rough *= mask
    elif segment.gone:
        rough *= segment.alive
    places = np.flatnonzero(rough > least)
    if len(places) > count:
        places = places[np.argpartition(-rough[places], count - 1)[:count]]
    return places, rough[places]


def _scores(segment: Segment, question: _Question, places: NDArray[np.intp]) -> NDArray[np.float32]:
    """Exact scores (n,) of the passages at `places` (n,)."""
    norm = segment.norm(segment.lengths[places], question.mean)  # (n,)
    total = np.zeros(len(places))
    for term, weight in question.weights.items():
        counts = segment.counts(term, places)  # (n,)
        total += weight * counts / (counts + norm)
    return (total / question.most).astype(np.float32)
