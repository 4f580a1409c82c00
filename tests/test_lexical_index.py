"""`rag.lexical_index` against BM25 written out, and scores that compare across collections."""

import math
import threading

import pytest

from rag.lexical_index import LexicalIndex
from rag.terms import content_terms, tokenize

TEXTS = {
    3: "The lighthouse was built in 1923 on the northern reef.",
    5: "The keeper lights the lamp at six; the lamp is bright.",
    8: "灯塔守护人每天傍晚点亮主灯。",
    13: "Beam search keeps several hypotheses; beam width is how many.",
    21: "束搜索同时保留若干个候选，宽度就是候选的数目。",
}


def index_of(texts: dict[int, str]) -> LexicalIndex:
    index = LexicalIndex()
    index.add(texts)
    return index


def by_hand(texts: dict[int, str], question: str, k1: float = 1.5, b: float = 0.75):
    """BM25 as in Lucene, as a share of every term of the question and one unseen one."""
    tokens = {id_: tokenize(text) for id_, text in texts.items()}
    mean = sum(map(len, tokens.values())) / len(tokens)

    def idf(term: str | None) -> float:
        count = sum(term in document for document in tokens.values())
        return math.log(1 + (len(tokens) - count + 0.5) / (count + 0.5))

    wanted = content_terms(question)
    most = sum(map(idf, wanted)) + idf(None)
    scores = {}
    for id_, document in tokens.items():
        length = k1 * (1 - b + b * len(document) / mean)
        counts = {term: document.count(term) for term in wanted}
        scores[id_] = sum(idf(t) * n / (n + length) for t, n in counts.items()) / most
    found = [(id_, score) for id_, score in scores.items() if score > 0]
    return sorted(found, key=lambda item: (-item[1], item[0]))


@pytest.mark.parametrize(
    "question",
    [
        "When was the lighthouse built?",
        "lamp",
        "How wide is a beam?",
        "什么是束搜索？",
        "灯塔 lamp",
    ],
)
def test_scores_are_bm25(question):
    hits = index_of(TEXTS).search(question, 10)
    expected = by_hand(TEXTS, question)
    assert hits.ids.tolist() == [id_ for id_, _ in expected]
    assert hits.scores.tolist() == pytest.approx([score for _, score in expected], rel=1e-4)


def test_scores_lie_between_0_and_1():
    index = index_of({1: "lamp " * 1000, 2: "reef", 3: "tower"})
    assert 0 < index.search("lamp lamp", 1).scores[0] < 1


def test_one_word_in_common_is_less_than_half():
    """ "hello" is in many texts as an example; it says little about what somebody wants."""
    index = index_of(TEXTS | {30: "probe " * 99})
    assert index.search("probe", 1).scores[0] < 0.5


def test_only_k_of_those_that_share_a_term_are_found():
    index = index_of({id_: f"lamp {'reef ' * id_}" for id_ in range(1, 9)})
    assert index.search("lamp", 3).ids.tolist() == [1, 2, 3]
    assert len(index.search("lamp", 100)) == 8


def test_a_filtered_search_keeps_the_scores():
    index = index_of(TEXTS)
    everywhere = index.search("the lamp of the lighthouse", 10).by_id()
    assert index.search("the lamp of the lighthouse", 10, [5, 13, 99]).by_id() == {5: everywhere[5]}


@pytest.mark.parametrize("question", ["", "???", "What is it?", "你好", "zzz"])
def test_what_no_text_is_about_finds_nothing(question):
    assert len(index_of(TEXTS).search(question, 5)) == 0


def test_an_empty_index_finds_nothing():
    assert len(LexicalIndex().search("lamp", 5)) == 0
    assert len(index_of({1: "...", 2: ""}).search("lamp", 5)) == 0


def test_changes_are_seen_by_the_next_search():
    index = index_of(TEXTS)
    assert index.search("lamp", 5).ids.tolist() == [5]
    assert index.remove([5, 77]) == 1
    assert len(index.search("lamp", 5)) == 0
    index.add({6: "another lamp"})
    assert index.search("lamp", 5).ids.tolist() == [6]
    rebuilt = index_of({id_: text for id_, text in TEXTS.items() if id_ != 5} | {6: "another lamp"})
    assert index.search("beam lamp", 5).by_id() == rebuilt.search("beam lamp", 5).by_id()


def test_an_id_that_is_there_is_refused_and_nothing_is_added():
    index = index_of(TEXTS)
    with pytest.raises(ValueError, match="once"):
        index.add({4: "new", 5: "again"})
    assert index.ids.tolist() == sorted(TEXTS)


def test_searches_while_another_thread_adds_always_answer():
    index = index_of(TEXTS)
    failures = []

    def search() -> None:
        for number in range(100):
            try:
                assert 5 in index.search(f"lamp word{number}", 5).ids
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(100):
        index.add({1000 + number: f"word{number} " * 50})
    for thread in threads:
        thread.join()
    assert not failures
