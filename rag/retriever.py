"""A question to the passages that may answer it, with the numbers that chose them.

Two searches, by meaning (vectors) and by words (BM25), are fused into one score a passage, and that
score also says when nothing is relevant. Does not know how passages were made, nor what is done
with them: no prompt, no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from rag.embedding import Embedder
from rag.indexes import Indexes
from rag.store import DocumentStore
from rag.terms import tokenize

LEXICAL_WEIGHT = 0.3
THRESHOLD = 0.86
POOL = 100


@dataclass(frozen=True)
class RetrievedPassage:
    """`text` is the document's text from `start` to `end`; ranks count from 1, None = not found."""

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
    highlight: tuple[int, int] | None


@dataclass(frozen=True)
class Retrieval:
    """`passages` are to be cited, best first, none unless `relevant`; `rejected` were not enough.

    `considered` counts the passages that were searched.
    """

    passages: tuple[RetrievedPassage, ...]
    relevant: bool
    signals: dict[str, float]
    threshold: float
    seconds: float
    considered: int
    rejected: tuple[RetrievedPassage, ...] = ()


class Retriever:
    def __init__(self, store: DocumentStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._indexes = Indexes(store)

    def retrieve(
        self, query: str, k: int = 4, document_ids: Sequence[str] | None = None
    ) -> Retrieval:
        """The `k` best passages for `query`, of all documents or of `document_ids`."""
        started = perf_counter()
        index = self._indexes.current()
        allowed = None if document_ids is None else self._store.passage_ids(document_ids)
        considered = len(index.vectors) if allowed is None else len(allowed)
        if not tokenize(query) or not considered:
            return Retrieval((), False, {}, THRESHOLD, perf_counter() - started, considered)
        vector = self._embedder.embed_query(query)  # (D,)
        dense = index.vectors.search(vector, POOL, allowed)
        lexical = index.words.search(query, POOL, allowed)
        union = {*dense.ids.tolist(), *lexical.ids.tolist()}
        cosine = index.vectors.search(vector, len(union), union).by_id()
        share = index.words.search(query, len(union), union).by_id()
        dense_rank = {id_: rank for rank, id_ in enumerate(dense.ids.tolist(), 1)}
        lexical_rank = {id_: rank for rank, id_ in enumerate(lexical.ids.tolist(), 1)}
        found = [
            RetrievedPassage(
                passage_id=p.id,
                document_id=p.document_id,
                document=p.document,
                page=p.page,
                heading=p.heading,
                start=p.start,
                end=p.end,
                text=p.text,
                score=cosine.get(p.id, 0.0) + LEXICAL_WEIGHT * share.get(p.id, 0.0),
                dense_score=cosine.get(p.id, 0.0),
                dense_rank=dense_rank.get(p.id),
                lexical_score=share.get(p.id, 0.0),
                lexical_rank=lexical_rank.get(p.id),
                highlight=None,
            )
            for p in self._store.passages_by_id(union)
        ]
        found.sort(key=lambda passage: (-passage.score, passage.passage_id))
        best = tuple(found[:k])
        relevant = bool(best) and best[0].score >= THRESHOLD
        signals = {"score": best[0].score} if best else {}
        return Retrieval(
            best if relevant else (),
            relevant,
            signals,
            THRESHOLD,
            perf_counter() - started,
            considered,
            () if relevant else best,
        )
