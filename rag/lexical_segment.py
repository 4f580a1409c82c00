"""One BM25 index (bm25s) over some passages: built once, saved as files, mapped from them.

bm25s stores what each word adds to each passage's score, by the counts of this segment alone. What
those numbers come from (how often a word is in a passage) can be read back from them, so a
collection of several segments can be scored as if it were one. Knows neither queries nor ids'
meaning; rag/lexical_index.py puts segments together.
"""

from collections.abc import Mapping
from pathlib import Path

import bm25s
import numpy as np
from numpy.typing import NDArray

K1, B = 1.5, 0.75  # bm25s's own, named because they are needed to read counts back
_IDS, _LENGTHS = "ids.npy", "lengths.npy"


def idf(passages_with_term: NDArray | int, passages: int) -> NDArray[np.float64]:
    """The weight that bm25s (method "lucene") gives a term: the most one occurrence can add."""
    return np.log1p((passages - passages_with_term + 0.5) / (passages_with_term + 0.5))


class Segment:
    """Passages `ids` (N,), rising, of `lengths` (N,) terms each. Only `alive` ever changes."""

    def __init__(
        self, bm25: bm25s.BM25, ids: NDArray[np.int64], lengths: NDArray[np.int32]
    ) -> None:
        self._bm25 = bm25
        self.ids, self.lengths = ids, lengths
        self.alive = np.ones(len(ids), bool)
        self.gone = 0
        self.terms = int(lengths.sum())  # of those alive
        self._mean = self.terms / max(1, len(ids))  # when it was built

    def __len__(self) -> int:
        return len(self.ids) - self.gone

    @classmethod
    def of(cls, tokens: Mapping[int, list[str]]) -> "Segment":
        """Of passages' terms by id."""
        ids = np.array(sorted(tokens), np.int64)
        vocabulary: dict[str, int] = {}
        numbers = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in tokens[id_]]
            for id_ in ids.tolist()
        ]
        bm25 = bm25s.BM25(method="lucene", k1=K1, b=B)
        if vocabulary:
            bm25.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
        else:
            bm25.vocab_dict = {}
        return cls(bm25, ids, np.array([len(n) for n in numbers], np.int32))

    def save(self, folder: Path) -> None:
        """Into an empty folder. Raises OSError."""
        np.save(folder / _IDS, self.ids)
        np.save(folder / _LENGTHS, self.lengths)
        if self._bm25.vocab_dict:
            self._bm25.save(folder, show_progress=False)

    @classmethod
    def load(cls, folder: Path) -> "Segment":
        """What `save` wrote, mapped into memory; it is for the caller to know the files are that.

        Raises OSError or ValueError when they are not.
        """
        ids, lengths = np.load(folder / _IDS, mmap_mode="r"), np.load(folder / _LENGTHS)
        if lengths.any():
            bm25 = bm25s.BM25.load(folder, mmap=True, show_progress=False)
            for name in ("data", "indices", "indptr"):  # as plain arrays they are sliced faster
                bm25.scores[name] = bm25.scores[name].view(np.ndarray)
        else:
            bm25 = bm25s.BM25(method="lucene", k1=K1, b=B)
            bm25.vocab_dict = {}
        return cls(bm25, ids.view(np.ndarray), lengths)

    def remove(self, ids: NDArray[np.int64]) -> int:
        places = self.places(ids)
        places = places[places >= 0]
        self.alive[places] = False
        self.gone += len(places)
        self.terms -= int(self.lengths[places].sum())
        return len(places)

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Where each of `ids` (n,), all different, stands; -1 where it is not."""
        if len(self.ids) == 0:
            return np.full(len(ids), -1)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where((self.ids[places] == ids) & self.alive[places], places, -1)

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Places (n,), rising, of the passages with `term`, gone or not, and what it adds there."""
        number = self._bm25.vocab_dict.get(term)
        if number is None:
            return np.empty(0, np.int32), np.empty(0, np.float32)
        start, end = self._bm25.scores["indptr"][number : number + 2].tolist()
        return self._bm25.scores["indices"][start:end], self._bm25.scores["data"][start:end]

    def passages_with(self, term: str) -> int:
        places, _ = self.postings(term)
        return int(np.count_nonzero(self.alive[places])) if self.gone else len(places)

    def weight(self, passages_with_term: int) -> float:
        """What the additions of a term in so many of these passages are multiples of."""
        return float(idf(passages_with_term, len(self.ids)))

    def counts(self, term: str, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """How often `term` is in each of the passages at `places` (n,)."""
        there, added = self.postings(term)
        if len(there) == 0:
            return np.zeros(len(places))
        at = np.minimum(np.searchsorted(there, places), len(there) - 1)  # (n,)
        share = np.where(there[at] == places, added[at], 0.0) / self.weight(len(there))
        return np.rint(share / (1 - share) * self.norm(self.lengths[places], self._mean))

    @staticmethod
    def norm(lengths: NDArray, mean: float) -> NDArray[np.float64]:
        """BM25: `count / (count + norm)` of the term's weight is what it adds to a passage."""
        return K1 * (1 - B + B * lengths / max(mean, 1e-9))

    def tokens(self) -> dict[int, list[str]]:
        """The terms of the passages that are not gone, by id, in no particular order."""
        terms = np.array(list(self._bm25.vocab_dict), object)  # (V,), by number
        if len(terms) == 0:
            return {id_: [] for id_ in self.ids[self.alive].tolist()}
        scores = self._bm25.scores
        having = np.diff(scores["indptr"])  # (V,) passages with the term
        number = np.repeat(np.arange(len(terms)), having)  # (P,) of each posting
        share = scores["data"] / idf(having, len(self.ids))[number]
        norm = self.norm(self.lengths, self._mean)[scores["indices"]]
        counts = np.rint(share / (1 - share) * norm).astype(np.intp)  # (P,)
        order = np.argsort(scores["indices"], kind="stable")
        said = np.repeat(terms[number[order]], counts[order])  # (sum of lengths,)
        parts = np.split(said, np.cumsum(self.lengths)[:-1])
        kept = np.flatnonzero(self.alive)
        return {int(self.ids[at]): parts[at].tolist() for at in kept}
