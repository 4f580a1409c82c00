"""`rag.retriever` with an embedder without weights; with the real one in test_retrieval_quality."""

import threading

import pytest

from rag import relevance
from rag.retrieved import Dropped
from rag.retriever import Retriever
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put

EMBEDDER = FakeEmbedder()
LIGHTHOUSE = (
    "The lighthouse was built in 1923. It stands on the northern reef.",
    "The keeper lights the lamp at six. Pilot boats steer by it.",
    "灯塔守护人每天傍晚点亮主灯。塔高四十一米。",
)
ORCHARD = ("The orchard was planted by Petra.", "The apple harvest begins in September.")


@pytest.fixture
def store(tmp_path):
    store = DocumentStore(tmp_path / "data", EMBEDDER.identity, EMBEDDER.dimension)
    yield store
    store.close()


@pytest.fixture
def filled(store):
    put(store, EMBEDDER, "lighthouse.txt", *LIGHTHOUSE)
    put(store, EMBEDDER, "orchard.txt", *ORCHARD)
    return store


def test_the_passage_comes_with_its_place_and_its_numbers(filled):
    retrieval = Retriever(filled, EMBEDDER).retrieve("When was the lighthouse built?")
    best = retrieval.passages[0]
    assert (best.document, best.text) == ("lighthouse.txt", LIGHTHOUSE[0])
    assert filled.document(best.document_id).text[best.start : best.end] == best.text
    assert (best.dense_rank, best.lexical_rank) == (1, 1)
    assert best.score == pytest.approx(
        best.dense_score + relevance.LEXICAL_WEIGHT * best.lexical_score
    )
    assert retrieval.relevant and retrieval.considered == 5 and retrieval.seconds > 0
    assert retrieval.signals == {signal.name: signal.value for signal in best.signals}
    assert best.probability >= retrieval.threshold


def test_the_sentence_that_shares_most_is_highlighted(filled):
    for question, sentence in (
        ("When was the lighthouse built?", "The lighthouse was built in 1923."),
        ("Which boats steer by the lamp?", "Pilot boats steer by it."),
        ("守护人在傍晚点亮什么灯？", "灯塔守护人每天傍晚点亮主灯。"),
    ):
        best = Retriever(filled, EMBEDDER).retrieve(question).passages[0]
        assert best.highlight is not None
        assert best.text[slice(*best.highlight)] == sentence


@pytest.mark.parametrize("query", ["", "  ", "???", "hi", "Hello!", "你好", "是", "what is it?"])
def test_a_query_about_nothing_finds_nothing(filled, query):
    retrieval = Retriever(filled, EMBEDDER).retrieve(query)
    assert not retrieval.relevant
    assert retrieval.passages == () and retrieval.rejected == ()


def test_what_is_below_the_threshold_is_rejected_and_shown(filled):
    retrieval = Retriever(filled, EMBEDDER).retrieve("How do I repair a bicycle tyre?", k=3)
    assert not retrieval.relevant and retrieval.passages == ()
    assert len(retrieval.rejected) == 5
    assert {p.dropped for p in retrieval.rejected} == {Dropped.BELOW_THRESHOLD}
    assert all(p.probability < retrieval.threshold for p in retrieval.rejected)


def test_each_passage_has_to_reach_the_threshold_itself(filled):
    retrieval = Retriever(filled, EMBEDDER).retrieve("apple harvest September", k=5)
    assert [p.text for p in retrieval.passages] == [ORCHARD[1]]
    assert len(retrieval.rejected) == 4
    scores = [p.score for p in (*retrieval.passages, *retrieval.rejected)]
    assert scores == sorted(scores, reverse=True)


def test_an_empty_store_finds_nothing(store):
    retrieval = Retriever(store, EMBEDDER).retrieve("When was the lighthouse built?")
    assert (retrieval.relevant, retrieval.considered, retrieval.passages) == (False, 0, ())


def test_only_the_chosen_documents_are_searched(filled):
    lighthouse, orchard = filled.documents()
    retriever = Retriever(filled, EMBEDDER)
    question = "When was the lighthouse built?"
    inside = retriever.retrieve(question, document_ids=[lighthouse.id])
    assert inside.considered == 3 and inside.passages[0].text == LIGHTHOUSE[0]
    outside = retriever.retrieve(question, document_ids=[orchard.id])
    assert outside.considered == 2 and not outside.relevant
    assert {p.document for p in outside.rejected} == {"orchard.txt"}
    for none in ([], ["no such id"]):
        assert retriever.retrieve(question, document_ids=none).considered == 0


def test_a_removed_document_is_never_found_again(filled):
    retriever = Retriever(filled, EMBEDDER)
    question = "When was the lighthouse built?"
    assert retriever.retrieve(question).relevant
    filled.remove(filled.documents()[0].id)
    assert not retriever.retrieve(question).relevant
    assert not Retriever(filled, EMBEDDER).retrieve(question).relevant
    best = retriever.retrieve("apple harvest September").passages[0]
    assert best.text == ORCHARD[1]


def test_what_another_process_adds_is_found_at_once(filled, tmp_path):
    retriever = Retriever(filled, EMBEDDER)
    retriever.retrieve("lamp")
    other = DocumentStore(tmp_path / "data", EMBEDDER.identity, EMBEDDER.dimension)
    put(other, EMBEDDER, "bicycle.txt", "Repair a bicycle tyre with glue.")
    other.close()
    best = retriever.retrieve("How do I repair a bicycle tyre?").passages[0]
    assert best.document == "bicycle.txt"


def test_k_larger_than_the_store_gives_all(filled):
    retrieval = Retriever(filled, EMBEDDER).retrieve("lighthouse lamp", k=50)
    assert len(retrieval.passages) + len(retrieval.rejected) == 5


def test_other_scripts_are_put_forward_beside_a_crowd_in_the_questions_own(store):
    """Fifty passages are put forward by each search: here all fifty are English and unrelated."""
    put(store, EMBEDDER, "many.txt", *(f"number {n} about nothing much" for n in range(120)))
    put(store, EMBEDDER, "one.txt", "灯塔守护人每天傍晚点亮主灯。")
    retrieval = Retriever(store, EMBEDDER).retrieve("the keeper of the tower", k=200)
    assert "one.txt" in {p.document for p in (*retrieval.passages, *retrieval.rejected)}


def test_without_a_shared_word_the_nearest_sentence_is_highlighted(store, monkeypatch):
    put(store, EMBEDDER, "one.txt", "灯塔守护人每天傍晚点亮主灯。塔高四十一米。")
    monkeypatch.setattr(relevance, "usual_cosine", lambda *_, **__: 0.0)
    best = Retriever(store, EMBEDDER).retrieve("How high is the tower?").passages[0]
    assert best.lexical_score == 0
    assert best.highlight in [(0, 14), (14, 21)]


def test_threads_may_search_while_documents_come_and_go(filled):
    retriever, failures = Retriever(filled, EMBEDDER), []

    def search() -> None:
        for _ in range(15):
            try:
                best = retriever.retrieve("When was the lighthouse built?").passages[0]
                assert best.text == LIGHTHOUSE[0]
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(15):
        put(filled, EMBEDDER, "changing.txt", f"version {number} of a note")
    for thread in threads:
        thread.join()
    assert not failures


def test_a_list_of_foreign_titles_is_not_an_answer_to_every_question(filled, tmp_path):
    """In one script, and half in the question's: it would be alone in being allowed to be far."""
    titles = "灯塔音乐剧团曲目单：Many Rivers, The Lucky One, Wings Like A Dove, Dance Away"
    store = DocumentStore(tmp_path / "chinese", EMBEDDER.identity, EMBEDDER.dimension)
    put(store, EMBEDDER, "titles.txt", titles)
    put(store, EMBEDDER, "lamp.txt", *(f"守护人在第{n}天点亮主灯。" for n in "一二三四五六"))
    retrieval = Retriever(store, EMBEDDER).retrieve("苹果什么时候收获？")
    listed = [p for p in retrieval.rejected if p.document == "titles.txt"]
    assert listed and "doublings" in {signal.name for signal in listed[0].signals}
    store.close()


def test_the_same_text_in_two_files_is_handed_on_once(filled):
    put(filled, EMBEDDER, "copy.txt", LIGHTHOUSE[0], "Something else is said here.")
    retrieval = Retriever(filled, EMBEDDER).retrieve("When was the lighthouse built?")
    assert [p.text for p in retrieval.passages].count(LIGHTHOUSE[0]) == 1
    assert Dropped.DUPLICATE in {p.dropped for p in retrieval.rejected}


def test_neighbours_come_along_as_one_span_of_the_document(filled):
    retriever = Retriever(filled, EMBEDDER)
    alone = retriever.retrieve("When was the lighthouse built?", k=1).passages[0]
    wide = retriever.retrieve("When was the lighthouse built?", k=1, neighbours=1).passages[0]
    text = filled.document(wide.document_id).text
    assert wide.text == text[wide.start : wide.end] and LIGHTHOUSE[1] in wide.text
    assert (wide.passage_id, len(wide.joined)) == (alone.passage_id, 1)
    assert alone.highlight is not None and wide.highlight is not None
    assert wide.text[slice(*wide.highlight)] == alone.text[slice(*alone.highlight)]


def test_more_than_k_that_answer_are_said_to_be_beyond(store):
    for number in range(6):
        put(store, EMBEDDER, f"{number}.txt", f"the lighthouse lamp was lit on day {number}")
    retrieval = Retriever(store, EMBEDDER).retrieve("lighthouse lamp lit", k=2)
    assert len(retrieval.passages) == 2
    assert Dropped.BEYOND_K in {p.dropped for p in retrieval.rejected}


@pytest.mark.parametrize("options", [{}, {"diversity": 0.5}, {"neighbours": 2}])
def test_the_filter_by_document_holds_with_every_option(filled, options):
    lighthouse, orchard = filled.documents()
    retriever = Retriever(filled, EMBEDDER)
    inside = retriever.retrieve(
        "lighthouse lamp apple harvest", k=9, document_ids=[orchard.id], **options
    )
    found = (*inside.passages, *inside.rejected)
    assert found and {p.document_id for p in found} == {orchard.id}
    filled.remove(orchard.id)
    for gone in ([orchard.id], [orchard.id, lighthouse.id]):
        after = retriever.retrieve("When was the lighthouse built?", document_ids=gone, **options)
        assert {p.document_id for p in after.passages} == {lighthouse.id} & set(gone)


def test_diversity_changes_the_order_and_nothing_else(filled):
    retriever = Retriever(filled, EMBEDDER)
    plain = retriever.retrieve("lighthouse keeper lamp apple harvest", k=5)
    diverse = retriever.retrieve("lighthouse keeper lamp apple harvest", k=5, diversity=0.9)
    assert {p.passage_id for p in plain.passages} == {p.passage_id for p in diverse.passages}


@pytest.mark.parametrize("options", [{"diversity": 1.5}, {"diversity": -1}, {"neighbours": -1}])
def test_options_out_of_range_are_refused(filled, options):
    with pytest.raises(ValueError, match="diversity"):
        Retriever(filled, EMBEDDER).retrieve("lamp", **options)


@pytest.mark.parametrize("text", ["。", "!!! ... --- ***", "\u200b\u200b", "___", "🎉🏳️\u200d🌈"])
def test_a_passage_without_a_letter_is_never_handed_on(store, text):
    class Alike(FakeEmbedder):
        """Finds everything like everything, as E5 does with what it has no word for."""

        def embed_query(self, _):
            return super().embed_query("same")

    put(store, EMBEDDER, "nothing.txt", text)
    put(store, EMBEDDER, "lighthouse.txt", *LIGHTHOUSE)
    for question in ("When was the lighthouse built?", "灯塔在哪里？"):
        retrieval = Retriever(store, Alike()).retrieve(question, 50)
        found = [*retrieval.passages, *retrieval.rejected]
        assert "nothing.txt" not in {p.document for p in found}


def test_a_question_of_a_million_characters_is_searched_for_by_its_ends(filled):
    embedded = []

    class Listening(FakeEmbedder):
        def embed_query(self, text):
            embedded.append(text)
            return super().embed_query("When was the lighthouse built?")

    question = "When was the lighthouse built?" + " x" * 500_000 + " Who planted the orchard?"
    found = Retriever(filled, Listening()).retrieve(question)
    assert found.passages[0].text == LIGHTHOUSE[0]
    assert len(embedded[0]) < 20_000
    assert embedded[0].startswith("When was") and embedded[0].endswith("orchard?")
