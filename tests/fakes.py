"""Hand-made stand-ins for the tests: an embedder without weights, documents without files."""

import hashlib
import re

import numpy as np

from rag.chunking import Passage
from rag.documents import Document, Section
from rag.terms import content_terms, tokenize


class FakeEmbedder:
    """Texts that share words have vectors that point the same way; the same text, the same vector.

    Like E5's, cosines of unrelated texts are far above zero: a constant is mixed into each vector.
    """

    max_tokens = 500

    def __init__(
        self, identity: str = "fake", dimension: int = 256, baseline: float = 0.77
    ) -> None:
        self.identity, self.dimension, self.baseline = identity, dimension, baseline

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"[a-zA-Z]+|\d|[^\sa-zA-Z\d]", text)]

    def embed_query(self, text: str) -> np.ndarray:
        words = np.zeros(self.dimension - 1)
        for term in content_terms(text) or tokenize(text):
            seed = hashlib.sha256(f"{self.identity} {term}".encode()).digest()
            words += np.random.default_rng(list(seed)).standard_normal(self.dimension - 1)
        length = np.linalg.norm(words) or 1.0
        mixed = np.concatenate(
            [words / length * np.sqrt(1 - self.baseline), [np.sqrt(self.baseline)]]
        )
        return (mixed / np.linalg.norm(mixed)).astype(np.float32)  # (D,)

    def embed_passages(self, texts, progress=None, should_stop=None) -> np.ndarray:
        rows = [self.embed_query(text) for text in texts]
        return np.array(rows, np.float32).reshape(-1, self.dimension)  # (N, D)


def document(name: str, *texts: str) -> tuple[Document, list[Passage]]:
    """A document whose passages are `texts`, one a paragraph."""
    whole = "\n\n".join(texts)
    passages, at = [], 0
    for text in texts:
        start = whole.index(text, at)
        at = start + len(text)
        passages.append(Passage(text, start, at, None, ()))
    section = Section(0, len(whole), None, ())
    return Document(name, "text/plain", whole, (section,)), passages


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def put(store, embedder, name: str, *texts: str):
    """Add a document made of `texts` to a store; returns what the store says of it."""
    whole, passages = document(name, *texts)
    vectors = embedder.embed_passages([passage.text for passage in passages])
    return store.add(whole, passages, vectors, sha256(whole.text))
