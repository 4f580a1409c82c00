"""`rag.citations`: only passages that were shown are cited; support is none rather than wrong."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.citations import (
    CheckedAnswer,
    check_citations,
    link_citations,
    support,
    without_unsupported,
)


def cited(answer: str, count: int = 3) -> list[int]:
    return [s.citation for s in link_citations(answer, count) if s.citation is not None]


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("It is so [1].", [1]),
        ("It is so[2]. And so [1].", [2, 1]),
        ("Both [1][3].", [1, 3]),
        ("Both [1, 3].", [1, 3]),
        ("All [1,2;3]", [1, 2, 3]),
        ("两处【1】【2，3】", [1, 2, 3]),
        ("全角［２］", [2]),
        ("[ 1 ]", [1]),
        ("[01]", [1]),
        ("None [0] [4] [99] [-1]", []),
        ("Some [1, 99]", [1]),
        ("[1.5] [1-3] [x] [] [1 [2", []),
        ("[123456789012345678901234567890]", []),
        ("In code: `a[1]` and ``b[2]``.", []),
        ("```python\na[1] = 2\n```\nSo [2].", [2]),
        ("~~~\na[1]\n~~~ [3]", [3]),
        ("```\nstill open [1]", []),
        ("> ```\n> a[1]\n> ```\nSo [2].", [2]),
        ("a lone ` and [1]", [1]),
        ("", []),
    ],
)
def test_finds_the_citations(answer, numbers):
    assert cited(answer) == numbers


def test_without_passages_nothing_is_cited():
    assert cited("So [1].", count=0) == []


def test_each_number_of_a_group_is_its_own_segment():
    segments = link_citations("See [1, 9, 2].", 2)
    assert [(s.text, s.citation) for s in segments] == [
        ("See ", None),
        ("[1, 9, ", 1),
        ("2]", 2),
        (".", None),
    ]


@given(st.text(alphabet="[]【】1290, ，a`\n~[]1"), st.integers(0, 12))
def test_the_segments_joined_are_the_answer_and_cite_only_what_was_shown(answer, count):
    segments = link_citations(answer, count)
    assert "".join(s.text for s in segments) == answer
    assert all(s.citation is None or 1 <= s.citation <= count for s in segments)
    assert all(s.text for s in segments)


@pytest.mark.parametrize("piece", ["`", "[1", "`` ` ", "```\n", "[1, ", "【", "~~~\n`"])
def test_a_long_odd_answer_takes_no_time(piece):
    started = time.perf_counter()
    link_citations(piece * 20_000, 5)
    assert time.perf_counter() - started < 2


ENGLISH = [
    "The Ashgrove orchard was planted in 1911 by Petra Lindqvist. It has four hundred trees.",
    "The harvest begins on the second Tuesday of September. Pickers are paid by the crate.",
]
CHINESE = [
    "北礁灯塔建于一九二三年，塔高四十一米。守护人名叫沈静澜。",
    "每天傍晚六点零七分点亮主灯。",
]


@pytest.mark.parametrize(
    ("answer", "passages", "citation", "evidence"),
    [
        ("Petra Lindqvist planted the orchard in 1911.", ENGLISH, 1, "The Ashgrove orchard was"),
        ("Pickers get paid by the crate.", ENGLISH, 2, "Pickers are paid by the crate."),
        ("1911", ENGLISH, 1, "The Ashgrove orchard was"),
        ("灯塔守护人名叫沈静澜。", CHINESE, 1, "守护人名叫沈静澜。"),
        ("主灯在每天傍晚点亮。", CHINESE, 2, "每天傍晚六点零七分点亮主灯。"),
    ],
)
def test_a_sentence_is_aligned_with_what_supports_it(answer, passages, citation, evidence):
    (found,) = support(answer, passages)
    assert answer[found.start : found.end] == answer
    assert found.citation == citation
    assert passages[citation - 1][slice(*found.span)].startswith(evidence)


@pytest.mark.parametrize(
    "answer",
    [
        "Paris is the capital of France.",
        "The orchard was planted in 1912 by Petra Lindqvist.",  # another number
        "It is so.",
        "巴黎是法国的首都。",
        "The orchard was planted in 1911 by Petra Lindqvist [1].",  # has its own marker
        "```\nPetra Lindqvist planted the orchard in 1911\n```",
        "",
    ],
)
def test_rather_none_than_a_wrong_one(answer):
    assert support(answer, ENGLISH + CHINESE) == []


def test_each_sentence_is_aligned_by_itself_and_list_numbers_do_not_count():
    answer = "1. Pickers are paid by the crate.\n2. The moon is far away.\n3. It has 400 trees."
    found = support(answer, ENGLISH)
    assert [answer[s.start : s.end] for s in found] == ["1. Pickers are paid by the crate."]


def test_without_passages_nothing_is_supported():
    assert support("Petra Lindqvist planted the orchard.", []) == []


@pytest.mark.parametrize(
    ("answer", "checked"),
    [
        ("Petra Lindqvist planted the orchard. [1]", "Petra Lindqvist planted the orchard. [1]"),
        ("Petra Lindqvist planted the orchard [2].", "Petra Lindqvist planted the orchard."),
        ("Petra Lindqvist planted the orchard. [1, 2]", "Petra Lindqvist planted the orchard. [1]"),
        (
            "Petra Lindqvist [2] planted the orchard [1].",
            "Petra Lindqvist planted the orchard [1].",
        ),
        ("The orchard was planted in 1912 [1].", "The orchard was planted in 1912."),
        ("The moon is made of cheese [1][2]!", "The moon is made of cheese!"),
        ("As it says in [9] and [1999].", "As it says in [9] and [1999]."),  # text, no citation
        ("In code `a[1]`.", "In code `a[1]`."),
        ("Pickers are paid by the crate. [2] It has four hundred trees. [1]",) * 2,
        ("[1] The orchard has four hundred trees.\n[2] Pickers are paid by the crate.",) * 2,
        ("[1]", ""),
        ("守护人名叫沈静澜【3】。主灯在傍晚点亮【3】。", "守护人名叫沈静澜【3】。主灯在傍晚点亮。"),
    ],
)
def test_a_marker_that_its_passage_does_not_support_is_taken_out(answer, checked):
    assert check_citations(answer, ENGLISH + CHINESE).text == checked


def test_every_sentence_points_at_its_passage_whether_or_not_the_model_marked_it():
    answer = "The orchard has four hundred trees. [1] Pickers are paid by the crate [1]. It is big."
    checked = check_citations(answer, ENGLISH)
    pointed = [
        (checked.text[s.start : s.end], s.citation, ENGLISH[s.citation - 1][slice(*s.span)])
        for s in checked.supports
    ]
    assert pointed == [
        ("The orchard has four hundred trees.", 1, "It has four hundred trees."),
        ("[1] Pickers are paid by the crate.", 2, "Pickers are paid by the crate."),
    ]
    assert [s.written for s in checked.supports] == [True, False]


def test_without_passages_an_answer_stays_as_it_is():
    assert check_citations("So [1].", []) == CheckedAnswer("So [1].", ())


@given(st.text(alphabet="[]【】12 ，.a`\n", max_size=40))
def test_a_checked_answer_is_checked_already(answer):
    passages = ["a a 1. 2 a.", "12 a"]
    checked = check_citations(answer, passages)
    assert check_citations(checked.text, passages) == checked
    assert len(checked.text) <= len(answer)
    for one in checked.supports:
        assert checked.text[one.start : one.end].strip()
        assert passages[one.citation - 1][slice(*one.span)]


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("Aliens came [1], [2] and [3].", "Aliens came."),
        ("Aliens came ([1], [2]). They left.", "Aliens came. They left."),
        ("Aliens came（见[1]）。", "Aliens came。"),
        ("Aliens came [[1]].", "Aliens came."),
        ("- item\n  [1] aliens\n", "- item\n  aliens\n"),
        ("[1] Aliens came.\n[2] They left.", "Aliens came.\nThey left."),
        ("Keys are returned on the last day [1], [2].", "Keys are returned on the last day [1]."),
        ("Keys are returned on the last day [2], [1].", "Keys are returned on the last day [1]."),
    ],
)
def test_nothing_is_left_around_a_marker_that_is_taken_out(answer, left):
    passages = ["Keys are returned on the last day.", "Rent is due.", "Pets are welcome."]
    assert without_unsupported(answer, passages) == left


@pytest.mark.parametrize(
    "answer",
    [
        r"So \(x[1] + y[2]\) is the sum.",
        r"\[ v[1] \]",
        "$$a[1] = b$$ holds",
        r"It is \(x[1]",
        "See [1](https://example.org) there.",
    ],
)
def test_formulas_and_links_keep_their_brackets(answer):
    passages = ["Keys are returned on the last day.", "Rent is due."]
    assert without_unsupported(answer, passages) == answer
    assert [s.citation for s in link_citations(answer, 2)] == [None]


def test_an_answer_that_repeats_itself_thousands_of_times_is_checked_at_once():
    answer = "Aliens came [1]. " * 2000
    started = time.perf_counter()
    without_unsupported(answer, ["Keys are returned."])
    assert time.perf_counter() - started < 5  # it took minutes when each looked at all before it
