"""`rag.lexical_segment` and several of them in one index: exactly what one BM25 index would say."""

import random

import numpy as np
import pytest

from rag.lexical_index import LexicalIndex
from rag.lexical_segment import Segment
from rag.terms import tokenize

WORDS = [
    "lamp",
    "reef",
    "tower",
    "keeper",
    "boat",
    "pilot",
    "storm",
    "light",
    "灯塔",
    "守护",
    "傍晚",
    "主灯",
]


def texts(count: int, seed: int = 0) -> dict[int, str]:
    rng = random.Random(seed)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]
    return {
        id_: " ".join(rng.choices(WORDS, weights, k=rng.randint(1, 60)))
        for id_ in range(seed * 1000 + 1, seed * 1000 + count + 1)
    }


def segment(of: dict[int, str]) -> Segment:
    return Segment.of({id_: tokenize(text) for id_, text in of.items()})


def test_the_terms_of_passages_can_be_read_back():
    of = texts(50) | {77: "", 78: "lamp " * 400}
    found = segment(of).tokens()
    assert {i: sorted(t) for i, t in found.items()} == {i: sorted(tokenize(of[i])) for i in of}


def test_a_saved_segment_is_the_same(tmp_path):
    of = texts(50)
    segment(of).save(tmp_path)
    saved, built = LexicalIndex([Segment.load(tmp_path)]), LexicalIndex([segment(of)])
    for word in WORDS:
        assert saved.search(word, 50).by_id() == built.search(word, 50).by_id()


def test_a_segment_of_texts_without_terms_is_saved_too(tmp_path):
    segment({1: "", 2: "..."}).save(tmp_path)
    assert Segment.load(tmp_path).tokens() == {1: [], 2: []}


@pytest.mark.parametrize(
    "question", ["lamp", "keeper of the tower", "灯塔守护人", "storm light 主灯"]
)
def test_several_segments_with_removals_score_as_one_index_over_what_is_left(question):
    first, second, later = texts(300, 0), texts(40, 1), texts(25, 2)
    index = LexicalIndex([segment(first), segment(second)])
    for id_, text in later.items():
        index.add({id_: text})
    gone = [*list(first)[::3], *list(second)[::2], *list(later)[:5]]
    assert index.remove(gone) == len(gone)
    left = {i: t for i, t in (first | second | later).items() if i not in set(gone)}
    one = LexicalIndex()
    one.add(left)
    assert index.ids.tolist() == sorted(left)
    expected = one.search(question, len(left))
    assert index.search(question, len(left)).by_id() == pytest.approx(expected.by_id(), rel=1e-6)
    ids = np.array(sorted(left), np.int64)
    assert index.scores(question, ids).tolist() == one.scores(question, ids).tolist()
    assert index.search(question, 10).ids.tolist() == expected.ids[:10].tolist()


def test_added_one_by_one_they_are_merged_to_a_few_segments():
    index = LexicalIndex()
    for id_, text in texts(200).items():
        index.add({id_: text})
    assert len(index._segments) < 12 and len(index) == index.unsaved == 200


def test_what_was_removed_may_be_added_again():
    index = LexicalIndex([segment({1: "lamp", 2: "reef"})])
    index.remove([1])
    index.add({1: "tower"})
    assert index.search("tower", 5).ids.tolist() == [1]
    assert len(index.search("lamp", 5)) == 0 and index.ids.tolist() == [1, 2]
