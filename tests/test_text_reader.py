"""rag.readers.text: Markdown and plain text are kept as they are."""

from hypothesis import given
from hypothesis import strategies as st

from rag.readers.blocks import clean
from rag.readers.text import read_markdown, read_text


def headings(text: str) -> list[tuple[int, str]]:
    return [(block.level, block.title) for block in read_markdown(text) if block.level]


def test_both_kinds_of_heading_are_found() -> None:
    text = "# One #\ntext\n\nTwo\n---\n\n### 三 \n   ## Four\n"
    assert headings(text) == [(1, "One"), (2, "Two"), (3, "三"), (2, "Four")]


def test_what_only_looks_like_a_heading_is_none() -> None:
    text = "#hashtag\n\n    # indented code\n\n```\n# comment\n~~~\n# too\n```\n\n- item\n---\n"
    text += "a paragraph\nof two lines\n---\n\n| table |\n---\n\n####### seven\n"
    assert headings(text) == []


def test_a_fence_that_is_never_closed_hides_the_rest() -> None:
    assert headings("````\n```\n# x\n") == []


@given(st.text(alphabet=st.sampled_from("#=-`~ \t\nabc中\r")))
def test_the_blocks_of_markdown_joined_are_the_text(text: str) -> None:
    assert "".join(block.text for block in read_markdown(text)) == clean(text)


@given(st.text())
def test_plain_text_is_one_block(text: str) -> None:
    assert [block.text for block in read_text(text)] == [clean(text)]


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Z", "Cc", "Cs", "Co"])))
def test_clean_text_can_be_encoded_and_holds_no_controls(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert not [c for c in cleaned if c < " " and c not in "\t\n"]
    assert clean(cleaned) == cleaned


def test_surrogate_pairs_are_joined_and_lone_halves_replaced() -> None:
    assert clean("\ud83d\ude00 \ud83d a\udc00\0b") == "😀 \ufffd a\ufffdb"


def test_all_line_ends_become_newlines() -> None:
    assert clean("a\r\nb\rc\u2028d\x85e\ff") == "a\nb\nc\nd\ne\nf"


def markdown(text: str) -> str:
    return "".join(block.text for block in read_markdown(text))


def test_the_rows_of_a_table_have_its_headings() -> None:
    text = "Staff:\n\n| Name | Age |\n|:--|--:|\n| Ada | 36 |\n| a \\| b | |\n\nEnd | here\n"
    assert markdown(text) == (
        "Staff:\n\nName | Age\nName: Ada; Age: 36\nName: a | b\n\nEnd | here\n"
    )
    assert markdown("Name | Age\n--- | ---\nAda | 36") == "Name | Age\nName: Ada; Age: 36\n"


def test_what_only_looks_like_a_table_stays_as_it_is() -> None:
    for text in (
        "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\n",
        "| a | b |\n|---|\n| 1 | 2 |\n",
        "a | b\nc | d\n",
        "| a | b |\n",
        "    | a |\n",
    ):
        assert markdown(text) == text


@given(st.text(alphabet=st.sampled_from("|-: \\\nab`#")))
def test_no_word_of_any_table_is_lost(text: str) -> None:
    found = markdown(text)
    assert found.count("a") >= text.count("a") and found.count("b") >= text.count("b")
