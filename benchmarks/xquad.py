"""XQuAD for the benchmarks: its paragraphs in stores of the product's own, its questions to ask.

Read from a folder with `xquad.en.json` and `xquad.zh.json` (github.com/google-deepmind/xquad): the
same 240 paragraphs and 1,190 questions in both languages. Nothing of it is kept in the project.
"""

import hashlib
import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rag.chunking import Passage
from rag.documents import Document, Section
from rag.embedding import Embedder
from rag.indexes import Indexes, Searchable
from rag.retriever import Retriever
from rag.store import DocumentStore

LANGUAGES = ("en", "zh")
DEPTH = 10  # how many results a search is asked for


@dataclass(frozen=True)
class Question:
    text: str
    paragraph: int
    article: int
    answer: str
    answer_start: int
    answers: tuple[str, ...] = ()  # all that count as right, `answer` first
    starts: tuple[int, ...] = ()  # where each stands in its paragraph


@dataclass(frozen=True)
class DataSet:
    paragraphs: list[str]
    articles: list[int]  # of each paragraph
    questions: list[Question]


def read_squad(path: Path) -> DataSet:
    if not path.is_file():
        sys.exit(f"{path} is missing: get it from github.com/google-deepmind/xquad")
    data = DataSet([], [], [])
    for number, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            place = len(data.paragraphs)
            data.paragraphs.append(paragraph["context"])
            data.articles.append(number)
            for asked in paragraph["qas"]:
                if not asked["answers"]:  # SQuAD 2.0 has some that nothing answers
                    continue
                answers = [(one["text"], one["answer_start"]) for one in asked["answers"]]
                texts, starts = zip(*answers, strict=True)
                data.questions.append(
                    Question(asked["question"], place, number, texts[0], starts[0], texts, starts)
                )
    return data


class Remembering:
    """An embedder that embeds each text once: the same paragraphs go into several stores.

    It has the methods of an Embedder that are called, and is no kind of one: hence the ignored
    types where it is handed on.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.identity, self.dimension = embedder.identity, embedder.dimension
        self.max_tokens, self.token_spans = embedder.max_tokens, embedder.token_spans
        self._embedder = embedder
        self._passages: dict[str, np.ndarray] = {}
        self._queries: dict[str, np.ndarray] = {}

    def embed_passages(self, texts, progress=None, should_stop=None) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        self._passages |= dict(zip(new, self._embedder.embed_passages(new), strict=True))
        return np.array([self._passages[text] for text in texts]).reshape(-1, self.dimension)

    def embed_query(self, text: str) -> np.ndarray:
        if text not in self._queries:
            self._queries[text] = self._embedder.embed_query(text)
        return self._queries[text]

    def forget_queries(self) -> None:
        self._queries.clear()


class Collection:
    """Paragraphs in a store of their own; a paragraph's place is its document's name."""

    def __init__(self, folder: Path, embedder: Remembering, texts: dict[int, str]) -> None:
        self._store = DocumentStore(folder, embedder.identity, embedder.dimension)
        self._embedder = embedder
        vectors = embedder.embed_passages(list(texts.values()))
        for (place, text), vector in zip(texts.items(), vectors, strict=True):
            document = Document(str(place), "text/plain", text, (Section(0, len(text), None, ()),))
            passage = Passage(text, 0, len(text), None, ())
            digest = hashlib.sha256(text.encode()).hexdigest()
            self._store.add(document, [passage], vector[None, :], digest)
        self.places = set(texts)
        self.retriever = Retriever(self._store, embedder)  # type: ignore[arg-type]

    @cached_property
    def _place_of(self) -> dict[int, int]:
        passages = self._store.passages_by_id(self._store.passage_ids())
        return {passage.id: int(passage.document) for passage in passages}

    def by_fusion(self, question: str) -> list[int]:
        found = self.retriever.retrieve(question, k=DEPTH)
        everything = sorted((*found.passages, *found.rejected), key=lambda p: p.rank)
        return [int(p.document) for p in everything]

    def by_vectors(self, question: str) -> list[int]:
        hits = self._indexes.nearest(self._embedder.embed_query(question), DEPTH)
        return [self._place_of[id_] for id_ in hits.ids.tolist()]

    def by_words(self, question: str) -> list[int]:
        hits = self._indexes.words.search(question, DEPTH)
        return [self._place_of[id_] for id_ in hits.ids.tolist()]

    @cached_property
    def _indexes(self) -> Searchable:
        return Indexes(self._store).current()
