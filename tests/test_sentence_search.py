"""`rag.sentence_search` with an embedder without weights."""

import numpy as np

from rag.records import StoredPassage
from rag.sentence_search import nearest_sentences
from tests.fakes import FakeEmbedder

EMBEDDER = FakeEmbedder()


def stored(number: int, text: str) -> StoredPassage:
    return StoredPassage(number, "d", "d.txt", None, (), 0, len(text), text)


def test_each_passages_nearest_sentence_is_that_of_largest_cosine():
    texts = ["The lamp is lit at six. Boats steer by it.", "Apples ripen. The lamp is green."]
    vector = EMBEDDER.embed_query("when is the lamp lit")
    found = nearest_sentences(EMBEDDER, [stored(n, text) for n, text in enumerate(texts)], vector)
    assert [texts[n][slice(*found[n].span)] for n in (0, 1)] == [
        "The lamp is lit at six.",
        "The lamp is green.",
    ]
    for n in (0, 1):
        sentence = texts[n][slice(*found[n].span)]
        assert np.isclose(found[n].cosine, EMBEDDER.embed_query(sentence) @ vector)


def test_of_no_passages_nothing_is_embedded():
    assert nearest_sentences(None, [], np.zeros(4, np.float32)) == {}  # type: ignore[arg-type]
