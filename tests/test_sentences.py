"""rag.sentences: where English and Chinese may be cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.sentences import Strength, boundaries, cut_near


def pieces(text: str, weakest: Strength = Strength.SENTENCE) -> list[str]:
    cuts = [0, *(b.position for b in boundaries(text) if b.strength >= weakest), len(text)]
    return [text[a:b].strip() for a, b in pairwise(cuts)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        ("(It works.) Next.", ["(It works.)", "Next."]),
        ("See e.g. Fig. 3.5 of Dr. J. Smith, i.e. p. 7. Then", None),
        ("It grew by 3.5 percent to v1.2.3 at example.com. Good.", None),
        ("Really?! Yes... perhaps.", ["Really?!", "Yes... perhaps."]),
        ("你好。再见！真的吗？是的。", ["你好。", "再见！", "真的吗？", "是的。"]),
        ("他说：“走吧。”然后走了。", ["他说：“走吧。”", "然后走了。"]),
        ("（见图一。）下文。", ["（见图一。）", "下文。"]),
        ("真的吗？！好吧……再说。", ["真的吗？！", "好吧……再说。"]),
        ("用半角.也可以.好的", ["用半角.", "也可以.", "好的"]),
        ("圆周率是3.14。对", ["圆周率是3.14。", "对"]),
        ("1. First item\n2. Second item", ["1. First item\n2. Second item"]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(
    text: str, sentences: list[str] | None
) -> None:
    if sentences is None:
        sentences = [text[: text.rindex(". ") + 1], text[text.rindex(". ") + 2 :]]
    assert pieces(text) == sentences


def test_paragraphs_are_stronger_than_sentences_and_lines_weaker() -> None:
    found = {b.position: b.strength for b in boundaries("A b.\nC d\ne f\n\ng\n\u3000\u3000h")}
    assert found == {
        5: Strength.SENTENCE,
        9: Strength.LINE,
        14: Strength.PARAGRAPH,
        16: Strength.PARAGRAPH,
    }


@given(st.text(alphabet=st.sampled_from('。！？.!?，,”"」)） \n\tab中3')))
def test_no_stop_or_closing_bracket_is_first_after_a_cut(text: str) -> None:
    for boundary in boundaries(text):
        assert 0 < boundary.position < len(text)
        assert text[boundary.position] not in "。！？.!?，,”」)） \t"


@given(st.text(min_size=2), st.data())
def test_a_cut_inside_a_sentence_stays_in_its_bounds(text: str, data: st.DataObject) -> None:
    lowest = data.draw(st.integers(0, len(text) - 2))
    position = data.draw(st.integers(lowest + 1, len(text) - 1))
    assert lowest < cut_near(text, position, lowest).position <= position


def test_a_cut_prefers_clauses_and_never_splits_what_is_seen_as_one_character() -> None:
    assert cut_near("前半句，后半句没有标点", 8, 0) == (4, Strength.CLAUSE)
    assert cut_near("two words", 6, 0) == (4, Strength.CLAUSE)
    family = "a👨‍👩‍👧"
    assert [cut_near(family, n, 0).position for n in range(1, len(family))] == [1, 1, 1, 1, 1]
    assert cut_near("xe\u0301", 2, 0).position == 1


def test_a_megabyte_without_any_boundary_takes_no_time() -> None:
    for text in (
        "a" * 2**20,
        " " * 2**20,
        "." * 2**20,
        "\n" * 2**20,
        "。" * 2**20,
        "a. " * 350_000,
    ):
        assert sum(1 for _ in boundaries(text)) < 2**20
