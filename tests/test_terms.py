"""`rag.terms`: what is compared when searching by words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.terms import content_terms, has_han, share_in, tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The KV cache", ["the", "kv", "cache"]),
        ("kv_cache, KV-cache", ["kv", "cache", "kv", "cache"]),
        ("困惑度", ["困惑", "惑度"]),
        ("是", ["是"]),
        ("KV缓存很快", ["kv", "缓存", "存很", "很快"]),
        ("零。一", ["零", "一"]),
        ("ＡＢＣ １２３", ["abc", "123"]),
        ("ﬁnal", ["final"]),
        ("Straße", ["strasse"]),
        ("Newton's", ["newton", "s"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("", []),
        ("?!… 。，", []),
        ("___", []),
    ],
)
def test_tokenizes(text, expected):
    assert tokenize(text) == expected


def test_an_accent_written_apart_is_the_same_word():
    assert tokenize("cafe\u0301 nai\u0308f") == tokenize("caf\u00e9 na\u00eff") == ["café", "naïf"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the KV cache?", ["kv", "cache"]),
        ("hi", []),
        ("Hello!", []),
        ("What can you do?", []),
        ("what's the cache's cache", ["cache"]),
        ("什么是困惑度？", ["困惑", "惑度"]),
        ("困惑度是什么", ["困惑", "惑度"]),
        ("你好", []),
        ("好的", []),
        ("是", []),
        ("模型理解文字吗？", ["模型", "型理", "理解", "解文", "文字"]),
        ("申请", ["申请"]),
        ("附近的酒吧", ["附近", "近的", "的酒", "酒吧"]),
        ("好吧？", ["好"]),
    ],
)
def test_content_terms_are_what_a_question_is_about(question, expected):
    assert content_terms(question) == expected


@given(st.text())
def test_terms_are_folded_and_hold_no_space(text):
    for term in tokenize(text):
        assert term and not any(character.isspace() for character in term)


@given(st.text())
def test_content_terms_are_some_of_the_terms_once(text):
    content = content_terms(text)
    assert len(set(content)) == len(content)


def test_han_is_recognized():
    assert has_han("the 缓存") and has_han("ひ") and not has_han("the cache, façade, 。")


def test_shares_of_scripts_add_up_to_all_letters():
    assert share_in("han", "灯塔") == 1 and share_in("other", "灯塔") == 0
    assert share_in("han", "灯 lamp 12") == pytest.approx(3 / 7)
    assert share_in("other", "灯 lamp 12") == pytest.approx(4 / 7)
    assert share_in("han", "12 ?") == share_in("other", "12 ?") == 0
