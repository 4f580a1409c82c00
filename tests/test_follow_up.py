"""Follow-up questions: which lean on the chat, what the model is asked, and what is made of it."""

import json
from pathlib import Path

import pytest

from rag.follow_up import (
    MAX_ANSWER,
    MAX_CARRIED,
    MAX_TERMS,
    MOST_CARRIED,
    MOST_EXCHANGES,
    carry,
    complete,
    depends_on_chat,
    judge,
    request,
)

CHAT = [
    {"role": "user", "content": "What is the KV cache?"},
    {"role": "assistant", "content": "A store of attention keys and values."},
]
CHAT_ZH = [
    {"role": "user", "content": "什么是键值缓存？"},
    {"role": "assistant", "content": "保存先前各位置的键和值。"},
]
QUESTIONS = Path(__file__).parents[1] / "benchmarks" / "follow_ups.json"


def chat(*questions):
    return [
        message
        for question in questions
        for message in (
            {"role": "user", "content": question},
            {"role": "assistant", "content": "Yes."},
        )
    ]


def text_of(messages):
    return "".join(part["text"] for message in messages for part in message["content"])


@pytest.mark.parametrize(
    "question",
    ["How big is it?", "And GPT-2?", "What about beams?", "Why?", "Who wrote that?", "how many?",
     "Are there others?", "Is this fast?", "What are its limits?", "Which of those is faster?",
     "Why is that so?", "它有多大？", "那为什么？", "GPT-2 呢？", "还有别的吗？", "这样做快吗？",
     "为什么快？", "前者有什么缺点？", "多少？", "它们一样吗"],
)  # fmt: skip
def test_a_question_that_points_back_depends_on_the_chat(question):
    assert depends_on_chat(question, CHAT)


@pytest.mark.parametrize(
    "question",
    ["What is perplexity?", "Who was Shannon?", "How does beam search work?", "thanks", "hi", "",
     "???", "Is it true that beams are slow?", "Which token is the one that ends a text?",
     "什么是困惑度？", "束搜索是怎么工作的？", "谢谢", "你是谁？", "应该用哪种解码策略？",
     "其他解码策略比束搜索好在什么地方？"],
)  # fmt: skip
def test_a_question_that_stands_by_itself_does_not(question):
    assert not depends_on_chat(question, CHAT)


def test_without_a_chat_no_question_depends_on_it():
    assert not depends_on_chat("How big is it?", [])
    assert not depends_on_chat("它呢？", [{"role": "assistant", "content": "你好"}])


def test_most_of_our_follow_ups_are_recognised_and_no_change_of_subject_is():
    asked = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    found = {
        kind: [depends_on_chat(q["follow_up"], CHAT) for lang in sets.values() for q in lang]
        for kind, sets in asked.items()
    }
    assert sum(found["follow-up"]) >= 36  # of 40
    assert sum(found["change of subject"]) == 0  # of 12


def test_what_people_typed_is_untrusted_and_what_we_wrote_is_trusted():
    messages = request("How big is IT?", CHAT, count_tokens=lambda m: 1, budget=10)
    parts = messages[-1]["content"]
    theirs = [part["text"] for part in parts if not part["trusted"]]
    assert theirs == [CHAT[0]["content"], CHAT[1]["content"], "How big is IT?"]
    assert all(part["trusted"] for message in messages[:-1] for part in message["content"])


def test_the_newest_exchanges_that_fit_are_shown_and_long_answers_cut():
    history = chat("first?", "second?", "third?")
    history[-1]["content"] = "word " * 1000
    shown = text_of(request("And then?", history, count_tokens=lambda m: 1, budget=10)[-1:])
    assert "first?" not in shown
    assert shown.count("Question: ") == MOST_EXCHANGES
    assert len(shown) < MAX_ANSWER + 200
    room = len(text_of(request("And then?", history[-2:], count_tokens=lambda m: 1, budget=10)))
    tight = request("And then?", history, count_tokens=lambda m: len(text_of(m)), budget=room)
    assert "third?" in text_of(tight) and "second?" not in text_of(tight)


def test_without_room_the_model_is_not_asked():
    assert request("And?", CHAT, count_tokens=lambda m: 99, budget=10) is None
    assert request("And?", [], count_tokens=lambda m: 1, budget=10) is None


@pytest.mark.parametrize("reply", ["the KV cache", '"KV cache".', " KV cache\n"])
def test_a_name_from_the_chat_is_accepted_without_its_quotes(reply):
    assert judge(reply, "How big is it?", CHAT) in ("the KV cache", "KV cache")


@pytest.mark.parametrize(
    "reply",
    ["", "???", "How big is the KV cache?", "the GPU memory", "KV cache of Llama", "it", "big",
     "the KV cache\nand more", "keys " * (MAX_TERMS + 1)],
)  # fmt: skip
def test_a_reply_that_asks_invents_adds_nothing_or_goes_on_is_refused(reply):
    assert judge(reply, "How big is it?", CHAT) is None


def test_a_chinese_name_is_judged_by_its_pieces():
    assert judge("键值缓存。", "它有多大？", CHAT_ZH) == "键值缓存"
    assert judge("显卡内存", "它有多大？", CHAT_ZH) is None


@pytest.mark.parametrize(
    ("question", "name", "expected"),
    [
        ("How big is it?", "the KV cache", "How big is the KV cache?"),
        ("What are its limits?", "beam search", "What are beam search's limits?"),
        ("And what comes after that?", "prefill", "And what comes after prefill?"),
        ("Does this leave a problem?", "teacher forcing", "Does teacher forcing leave a problem?"),
        ("Who invented it and is it fast?", "BM25", "Who invented BM25 and is it fast?"),
        ("What about GPT-2?", "size", "size: What about GPT-2?"),
        ("它占多少内存？", "键值缓存", "键值缓存占多少内存？"),
        ("这样做为什么稳定？", "教师强制", "教师强制为什么稳定？"),
        ("GPT-2 呢？", "参数", "参数：GPT-2 呢？"),
        ("How big is it?", r"\1 \g<own>", r"How big is \1 \g<own>?"),
    ],
)
def test_the_name_takes_the_place_of_the_word_that_stands_for_it(question, name, expected):
    assert complete(question, name) == expected


def test_the_question_before_is_carried_along_back_to_one_that_stands_by_itself():
    assert carry("How big is it?", CHAT) == "What is the KV cache? How big is it?"
    history = chat("What is BM25?", "What is the KV cache?", "How big is it?")
    assert carry("And why?", history) == "What is the KV cache? How big is it? And why?"


def test_a_chat_that_never_names_anything_is_carried_whole_and_ends():
    assert carry("And it?", chat("Why?", "And that?")) == "Why? And that? And it?"


@pytest.mark.parametrize("name", ["C:\\data", "\\g<0>", "\\1", "a\\", "$1"])
@pytest.mark.parametrize("question", ["它在哪里？", "Where is it?"])
def test_a_name_is_put_in_as_it_is_whatever_it_looks_like(question, name):
    assert complete(question, name) in (f"{name}在哪里？", f"Where is {name}?")


def test_a_chat_of_thousands_of_turns_is_carried_at_once_and_only_in_part():
    history = [
        turn
        for _ in range(20_000)
        for turn in (
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "Because."},
        )
    ]
    assert carry("And then?", history) == "Why? " * MOST_CARRIED + "And then?"
    long = [{"role": "user", "content": "x" * 100_000 + " Who owns the reef?"}]
    carried = carry("And why?", long)
    assert carried.endswith("Who owns the reef? And why?")
    assert len(carried) < 2 * MAX_CARRIED
