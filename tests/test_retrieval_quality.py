"""The retriever with the real embedder: what must be found, and when nothing may be."""

from pathlib import Path

import pytest

from rag.ingest import ingest
from rag.retriever import Retriever
from rag.store import DocumentStore
from tests.fakes import put

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
ENGLISH = (
    "The Ashgrove orchard was planted in 1911 by Petra Lindqvist, on land that had been a quarry.",
    "The harvest begins on the second Tuesday of September. Pickers are paid by the crate.",
)
CHINESE = (
    "北礁灯塔建于一九二三年，塔高四十一米，由石匠周海生主持修建。",
    "每天傍晚六点零七分点亮主灯。守护人名叫沈静澜，住在塔下的小屋里。",
)
ABOUT_NOTHING = ["", "???", "hi", "Hello!", "thanks", "你好", "谢谢", "在吗？"]
ABOUT_SOMETHING_ELSE = [
    "How do I make pizza?",
    "Who won the world cup in 2018?",
    "What is the weather like in Paris?",
    "Recommend me a good movie",
    "怎么做披萨？",
    "2018年世界杯谁赢了？",
    "推荐一部好电影",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("quality")


def opened(folder: Path, name: str, embedder) -> DocumentStore:
    return DocumentStore(folder / name, embedder.identity, embedder.dimension)


@pytest.fixture(scope="module")
def english(folder, embedder):
    """One document of two passages: as small as it gets."""
    store = opened(folder, "english", embedder)
    put(store, embedder, "orchard.txt", *ENGLISH)
    yield Retriever(store, embedder)
    store.close()


@pytest.fixture(scope="module")
def chinese(folder, embedder):
    store = opened(folder, "chinese", embedder)
    put(store, embedder, "灯塔.txt", *CHINESE)
    yield Retriever(store, embedder)
    store.close()


@pytest.fixture(scope="module")
def mixed(folder, embedder):
    """Both, beside two documents of the corpus in each language."""
    store = opened(folder, "mixed", embedder)
    put(store, embedder, "orchard.txt", *ENGLISH)
    put(store, embedder, "灯塔.txt", *CHINESE)
    for name in ("kv-cache", "chain-rule"):
        for language in ("en", "zh"):
            path = CORPUS / language / f"{name}.md"
            ingest(store, embedder, path, f"{name}.{language}.md")
    yield Retriever(store, embedder)
    store.close()


@pytest.mark.parametrize("query", ABOUT_NOTHING + ABOUT_SOMETHING_ELSE)
@pytest.mark.parametrize("where", ["english", "chinese", "mixed"])
def test_nothing_relevant_is_never_cited(request, where, query):
    retrieval = request.getfixturevalue(where).retrieve(query)
    assert not retrieval.relevant and retrieval.passages == ()


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who planted the orchard?", ENGLISH[0]),
        ("When was the orchard planted?", ENGLISH[0]),
        ("When does the harvest begin?", ENGLISH[1]),
        ("How are the pickers paid?", ENGLISH[1]),
        ("灯塔有多高？", CHINESE[0]),
        ("灯塔是哪一年建的？", CHINESE[0]),
        ("主灯几点点亮？", CHINESE[1]),
        ("守护人叫什么名字？", CHINESE[1]),
    ],
)
@pytest.mark.parametrize("where", ["alone", "mixed"])
def test_a_question_about_the_documents_finds_its_passage_first(request, where, question, text):
    alone = "english" if text in ENGLISH else "chinese"
    retrieval = request.getfixturevalue(alone if where == "alone" else where).retrieve(question)
    assert retrieval.relevant and retrieval.passages[0].text == text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("阿什格罗夫果园是谁种植的？", ENGLISH[0]),
        ("采摘工人的工资怎么算？", ENGLISH[1]),
        ("How high is the lighthouse?", CHINESE[0]),
        ("At what time is the lamp of the lighthouse lit?", CHINESE[1]),
    ],
)
@pytest.mark.parametrize("where", ["alone", "mixed"])
def test_a_question_in_the_other_language_finds_it_too(request, where, question, text):
    alone = "english" if text in ENGLISH else "chinese"
    retrieval = request.getfixturevalue(alone if where == "alone" else where).retrieve(question)
    found = (*retrieval.passages, *retrieval.rejected)
    assert text in [passage.text for passage in found[:4]]


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("Why does the KV cache make generation faster?", {"kv-cache.en.md"}),
        ("为什么对数概率可以相加？", {"chain-rule.zh.md"}),
        ("What is perplexity?", {"chain-rule.en.md"}),
        ("键值缓存有什么用？", {"kv-cache.zh.md"}),
    ],
)
def test_the_shipped_documents_answer_what_they_are_about(mixed, question, documents):
    retrieval = mixed.retrieve(question)
    assert retrieval.relevant and retrieval.passages[0].document in documents
