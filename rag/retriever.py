"""A question to the passages that may answer it, with the numbers that chose them.

Two searches, by meaning (vectors) and by words (BM25); every passage that either finds is scored by
both, and handed on only if it is probable enough that it answers (rag/relevance.py). Does not know
how passages were made, nor what is done with them: no prompt, no model.
"""

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rag import relevance
from rag.embedding import Embedder
from rag.evidence import Span, best_sentence, statements
from rag.hybrid_search import Scores, search
from rag.indexes import Indexes
from rag.records import StoredPassage
from rag.retrieved import Dropped, Retrieval, RetrievedPassage
from rag.store import DocumentStore
from rag.terms import content_terms, script_of


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
        considered = index.count(allowed)
        best: list[RetrievedPassage] = []
        if content_terms(query) and considered:
            vector = self._embedder.embed_query(query)  # (D,)
            least = relevance.threshold(script_of(query), considered)
            numbers = search(query, vector, least, index, allowed)
            ranked = sorted(numbers, key=lambda id_: (-numbers[id_].score, id_))[:k]
            places = {id_: place for place, id_ in enumerate(ranked, start=1)}
            stored = sorted(self._store.passages_by_id(ranked), key=lambda p: places[p.id])
            best = [
                self._retrieved(p, places[p.id], numbers[p.id], query, vector, least)
                for p in stored
            ]
        passages = tuple(passage for passage in best if passage.dropped is None)
        return Retrieval(
            passages=passages,
            relevant=bool(passages),
            signals={s.name: s.value for s in best[0].signals} if best else {},
            threshold=relevance.LEAST_PROBABILITY,
            seconds=perf_counter() - started,
            considered=considered,
            rejected=tuple(passage for passage in best if passage.dropped is not None),
        )

    def _retrieved(
        self,
        passage: StoredPassage,
        rank: int,
        numbers: Scores,
        query: str,
        vector: NDArray[np.float32],
        least: float,
    ) -> RetrievedPassage:
        signals = relevance.signals(numbers.score, least)
        probability = relevance.probability(signals)
        cited = probability >= relevance.LEAST_PROBABILITY
        evidence = best_sentence([passage.text], content_terms(query), passage.heading)
        highlight = evidence.span if evidence else None
        if highlight is None and cited:
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
            rank=rank,
            probability=probability,
            signals=signals,
            dropped=None if cited else Dropped.BELOW_THRESHOLD,
        )

    def _nearest_sentence(self, passage: StoredPassage, vector: NDArray[np.float32]) -> Span | None:
        """Where no word is shared, as between languages: right for .73 of XQuAD's questions."""
        spans = statements(passage.text, passage.heading)
        texts = [passage.text[start:end] for start, end in spans]
        vectors = self._embedder.embed_passages(texts)  # (N, D)
        return spans[int(np.argmax(vectors @ vector))] if spans else None
