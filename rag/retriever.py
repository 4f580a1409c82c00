"""A question to the passages that may answer it, with the numbers that chose them.

Two searches, by meaning (vectors) and by words (BM25); every passage that either finds is scored by
both (rag/relevance.py), and one is handed on only if its score reaches the threshold. Does not know
how passages were made, nor what is done with them: no prompt, no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rag import relevance
from rag.embedding import Embedder
from rag.evidence import Span, best_sentence, statements
from rag.hybrid_search import Scores, search
from rag.indexes import Indexes
from rag.records import StoredPassage
from rag.store import DocumentStore
from rag.terms import content_terms, script_of


@dataclass(frozen=True)
class RetrievedPassage:
    """`text` is the document's text from `start` to `end`.

    `score` is what decides (rag/relevance.py), `dense_score` the cosine, `lexical_score` the share
    of BM25. Ranks are those of the two searches, from 1; None where that search did not find it.
    `highlight` is the sentence, within `text`, that shares most with the question.
    """

    passage_id: int
    document_id: str
    document: str
    page: int | None
    heading: tuple[str, ...]
    start: int
    end: int
    text: str
    score: float
    dense_score: float
    dense_rank: int | None
    lexical_score: float
    lexical_rank: int | None
    highlight: Span | None


@dataclass(frozen=True)
class Retrieval:
    """`passages` reach the threshold, best first, and may be cited; `rejected` come next.

    `considered` counts the passages that were searched. `signals` are numbers of the best one.
    """

    passages: tuple[RetrievedPassage, ...]
    relevant: bool
    signals: dict[str, float]
    threshold: float
    seconds: float
    considered: int
    rejected: tuple[RetrievedPassage, ...] = ()


class Retriever:
    """Searches one store. May be called by any thread."""

    def __init__(self, store: DocumentStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._indexes = Indexes(store)

    def retrieve(
        self, query: str, k: int = 4, document_ids: Sequence[str] | None = None
    ) -> Retrieval:
        """The best passages for `query`, at most `k`, of all documents or of `document_ids`.

        A query that is about nothing, such as "hi" or "???", finds nothing.
        """
        started = perf_counter()
        index = self._indexes.current()
        allowed = None if document_ids is None else self._store.passage_ids(document_ids)
        considered = len(index.vectors if allowed is None else index.vectors.ids & allowed)
        threshold = relevance.threshold(script_of(query), considered)
        best: list[RetrievedPassage] = []
        signals: dict[str, float] = {}
        if content_terms(query) and considered:
            vector = self._embedder.embed_query(query)  # (D,)
            numbers = search(query, vector, threshold, index, allowed)
            ranked = sorted(numbers, key=lambda id_: (-numbers[id_].score, id_))[:k]
            places = {id_: place for place, id_ in enumerate(ranked)}
            stored = sorted(self._store.passages_by_id(ranked), key=lambda p: places[p.id])
            best = [self._retrieved(p, numbers[p.id], query, vector, threshold) for p in stored]
            signals = _signals(numbers[best[0].passage_id]) if best else {}
        passages = tuple(passage for passage in best if passage.score >= threshold)
        return Retrieval(
            passages=passages,
            relevant=bool(passages),
            signals=signals,
            threshold=threshold,
            seconds=perf_counter() - started,
            considered=considered,
            rejected=tuple(best[len(passages) :]),
        )

    def _retrieved(
        self,
        passage: StoredPassage,
        numbers: Scores,
        query: str,
        vector: NDArray[np.float32],
        threshold: float,
    ) -> RetrievedPassage:
        evidence = best_sentence([passage.text], content_terms(query), passage.heading)
        highlight = evidence.span if evidence else None
        if highlight is None and numbers.score >= threshold:
            highlight = self._nearest_sentence(passage, vector)
        return RetrievedPassage(
            passage_id=passage.id,
            document_id=passage.document_id,
            document=passage.document,
            page=passage.page,
            heading=passage.heading,
            start=passage.start,
            end=passage.end,
            text=passage.text,
            score=numbers.score,
            dense_score=numbers.cosine,
            dense_rank=numbers.dense_rank,
            lexical_score=numbers.words,
            lexical_rank=numbers.lexical_rank,
            highlight=highlight,
        )

    def _nearest_sentence(self, passage: StoredPassage, vector: NDArray[np.float32]) -> Span | None:
        """Where no word is shared, as between languages: right for .73 of XQuAD's questions."""
        spans = statements(passage.text, passage.heading)
        texts = [passage.text[start:end] for start, end in spans]
        vectors = self._embedder.embed_passages(texts)  # (N, D)
        return spans[int(np.argmax(vectors @ vector))] if spans else None


def _signals(best: Scores) -> dict[str, float]:
    """What the page shows of the decision: the best passage's score and what it is the sum of."""
    signals = {"score": best.score, "cosine": best.cosine, "words": best.words}
    return signals | ({"other language": best.allowance} if best.allowance else {})
