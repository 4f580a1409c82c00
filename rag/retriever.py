"""A question to the passages that may answer it, with the numbers that chose them.

Two searches, by meaning (vectors) and by words (BM25); every passage that either finds is scored by
both, and handed on only if it is probable enough that it answers (rag/relevance.py). Does not know
how passages were made, nor what is done with them: no prompt, no model.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rag import relevance
from rag.diversity import marginal_relevance_order
from rag.embedding import Embedder
from rag.evidence import best_sentence
from rag.hybrid_search import Scores, search
from rag.indexes import Indexes, Searchable
from rag.neighbours import widen
from rag.records import StoredPassage
from rag.relevance import LEAST_PROBABILITY, Question
from rag.reranker import Reranker
from rag.retrieved import Retrieval, RetrievedPassage
from rag.selection import select, without_duplicates
from rag.sentence_search import NearestSentence, nearest_sentences
from rag.store import DocumentStore
from rag.terms import content_terms, script_of, share_in

_LEAST_CANDIDATES = 10  # so many are looked at, or twice as many as are wanted
# Log-odds between which a passage's sentences are embedded: on XQuAD the other questions come out
# the same with and without, and four in five need no sentence.
_IN_DOUBT = 4.0
_LONGEST = 16_000  # characters of a question: what a paste of megabytes asks is at its ends
_SAYS_SOMETHING = re.compile(r"[^\W_]")
_MIXED = 0.25  # of a passage in the question's script: its cosines are like those of that script


class Retriever:
    """Searches one store. May be called by any thread."""

    def __init__(
        self, store: DocumentStore, embedder: Embedder, reranker: Reranker | None = None
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._reranker = reranker
        self._indexes = Indexes(store)

    def retrieve(
        self,
        query: str,
        k: int = 4,
        document_ids: Sequence[str] | None = None,
        *,
        diversity: float = 0.0,
        neighbours: int = 0,
    ) -> Retrieval:
        """The best passages for `query`, at most `k`, of all documents or of `document_ids`.

        A query that is about nothing, such as "hi" or "???", finds nothing; a document that is not
        there (any more) has no passages. A passage without a letter or digit answers nothing. Of a
        query that is very long its beginning and its end are searched for.

        Args:
            diversity: 0 ranks by score alone; above, by maximal marginal relevance.
            neighbours: so many passages before and after each, under its heading, are joined to it.

        Raises ValueError when `diversity` is no number from 0 to 1, or `neighbours` is negative.
        """
        if not 0 <= diversity <= 1 or neighbours < 0:
            raise ValueError("diversity must be a number from 0 to 1, and neighbours at least 0")
        started = perf_counter()
        if len(query) > _LONGEST:
            query = f"{query[: _LONGEST // 2]} {query[-_LONGEST // 2 :]}"
        index = self._indexes.current()
        allowed = None if document_ids is None else self._store.passage_ids(document_ids)
        considered = index.count(allowed)
        found: list[RetrievedPassage] = []
        terms = content_terms(query)
        if terms and considered:
            vector = self._embedder.embed_query(query)  # (D,)
            script = script_of(query)
            least = relevance.least_score(script, considered)
            numbers = search(query, vector, least, index, allowed)
            question = Question(
                script,
                considered,
                any(s.usual is None and s.score >= least for s in numbers.values()),
            )
            found = self._assessed(terms, question, vector, numbers, k)
            if self._reranker is not None:
                found = self._reranker.reordered(query, found)
        kept, rejected = without_duplicates(found, LEAST_PROBABILITY)
        if diversity and kept:
            kept = _diverse(kept, index, diversity)
        text_of = lru_cache(maxsize=None)(self._text)
        passages, left = select(kept, k, text_of)
        if neighbours:
            passages = [self._widened(p, neighbours, text_of(p.document_id)) for p in passages]
        return Retrieval(
            passages=tuple(passages),
            relevant=bool(passages),
            signals={s.name: s.value for s in found[0].signals} if found else {},
            threshold=LEAST_PROBABILITY,
            seconds=perf_counter() - started,
            considered=considered,
            rejected=tuple(sorted([*left, *rejected], key=lambda p: p.rank)),
        )

    def _assessed(
        self,
        terms: Sequence[str],
        question: Question,
        vector: NDArray[np.float32],
        numbers: Mapping[int, Scores],
        k: int,
    ) -> list[RetrievedPassage]:
        """The candidates, best first, each with the probability that it answers."""
        best = sorted(numbers, key=lambda id_: (-numbers[id_].score, id_))
        stored = self._store.passages_by_id(best[: max(2 * k, _LEAST_CANDIDATES)])
        stored = [p for p in stored if _SAYS_SOMETHING.search(p.text)]
        numbers = {p.id: _in_its_language(numbers[p.id], p, question) for p in stored}
        stored.sort(key=lambda p: (-numbers[p.id].score, p.id))
        in_doubt = [p for p in stored if _is_in_doubt(question, numbers[p.id])]
        nearest = nearest_sentences(self._embedder, in_doubt, vector)
        found = [
            _retrieved(p, rank, question, numbers[p.id], terms, nearest.get(p.id))
            for rank, p in enumerate(stored, start=1)
        ]
        return self._pointed_at(found, stored, vector)

    def _pointed_at(
        self,
        found: Sequence[RetrievedPassage],
        stored: Sequence[StoredPassage],
        vector: NDArray[np.float32],
    ) -> list[RetrievedPassage]:
        """With a highlight in each that may be cited, also where it shares no word."""
        bare = {
            p.passage_id
            for p in found
            if p.highlight is None and p.probability >= LEAST_PROBABILITY
        }
        nearest = nearest_sentences(self._embedder, [p for p in stored if p.id in bare], vector)
        return [
            replace(p, highlight=nearest[p.passage_id].span) if p.passage_id in nearest else p
            for p in found
        ]

    def _text(self, document_id: str) -> str | None:
        """A document's whole text; None when it was removed meanwhile."""
        try:
            return self._store.document(document_id).text
        except KeyError:
            return None

    def _widened(
        self, passage: RetrievedPassage, neighbours: int, text: str | None
    ) -> RetrievedPassage:
        if text is None:
            return passage
        return widen(passage, self._store.passages(passage.document_id), neighbours, text)


def _in_its_language(numbers: Scores, passage: StoredPassage, question: Question) -> Scores:
    """Without what other languages are allowed, where much of the passage is in the question's.

    A list of English titles with Chinese sentences around it is near to any Chinese question.
    """
    if numbers.usual is None or share_in(question.script, passage.text) < _MIXED:
        return numbers
    score = numbers.score - numbers.allowance
    return numbers._replace(score=score, allowance=0.0, usual=None)


def _signals(question: Question, numbers: Scores, sentence: float) -> tuple:
    return relevance.signals(
        question,
        cosine=numbers.cosine,
        sentence=sentence,
        words=numbers.words,
        usual=numbers.usual,
    )


def _is_in_doubt(question: Question, numbers: Scores) -> bool:
    return abs(relevance.log_odds(_signals(question, numbers, numbers.cosine))) < _IN_DOUBT


def _retrieved(
    passage: StoredPassage,
    rank: int,
    question: Question,
    numbers: Scores,
    terms: Sequence[str],
    nearest: NearestSentence | None,
) -> RetrievedPassage:
    signals = _signals(question, numbers, numbers.cosine if nearest is None else nearest.cosine)
    probability = relevance.probability(signals)
    highlight = None if nearest is None else nearest.span
    if probability >= LEAST_PROBABILITY:  # finding it takes longer than the search
        evidence = best_sentence([passage.text], terms, passage.heading)
        highlight = evidence.span if evidence else highlight
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
    )


def _diverse(
    passages: list[RetrievedPassage], index: Searchable, diversity: float
) -> list[RetrievedPassage]:
    """By maximal marginal relevance, of their vectors and fused scores."""
    vectors = index.get(np.array([p.passage_id for p in passages], np.int64))  # (N, D)
    scores = np.array([p.score for p in passages])  # (N,)
    order = marginal_relevance_order(scores, np.nan_to_num(vectors), diversity)
    return [passages[place] for place in order]
