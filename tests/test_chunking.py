"""rag.chunking: passages with exact spans that lose nothing; CASES 9, 30 and 31."""

import io
import re
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chunking import MAX_TOKENS, OVERLAP, Passage, split
from rag.documents import Document, Section, load_stream

_WORDS = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")


def words(text: str) -> list[tuple[int, int]]:
    """Tokens of a simple kind: English words, single Chinese characters, punctuation."""
    return [match.span() for match in _WORDS.finditer(text)]


def characters(text: str) -> list[tuple[int, int]]:
    return [(index, index + 1) for index in range(len(text))]


def unsteady(text: str) -> list[tuple[int, int]]:
    """One more token at the start of any text, as with a marker of where words begin."""
    return [(0, 0), *words(text)]


def several(text: str) -> list[tuple[int, int]]:
    """Three tokens for each character that is not ASCII, as when bytes are the fallback."""
    return [span for span in words(text) for _ in range(1 + 2 * (text[span[0]] > "\x7f"))]


def document(text: str, *starts: tuple[int, int | None, tuple[str, ...]]) -> Document:
    marks = starts or ((0, None, ()),)
    ends = [start for start, _, _ in marks[1:]] + [len(text)]
    sections = tuple(
        Section(start, end, page, heading)
        for (start, page, heading), end in zip(marks, ends, strict=True)
    )
    return Document("a.txt", "text/plain", text, sections)


def markdown(text: str) -> Document:
    return load_stream(io.BytesIO(text.encode()), "a.md")


def assert_sound(source: Document, passages: list[Passage], token_spans, most: int) -> None:
    covered = bytearray(len(source.text))
    for passage in passages:
        assert source.text[passage.start : passage.end] == passage.text
        assert passage.text == passage.text.strip() != ""
        assert len(token_spans(passage.text)) <= most or len(passage.text) == 1
        covered[passage.start : passage.end] = b"\1" * len(passage.text)
    lost = [c for c, seen in zip(source.text, covered, strict=True) if not seen]
    assert not "".join(lost).strip()
    assert [p.start for p in passages] == sorted(p.start for p in passages)


TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from(' \n\n.。！？，"”)#ab中文字3👨\u200d\u0301\u3000'),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=600,
)


@settings(deadline=None, max_examples=200)
@given(TEXTS, st.sampled_from([words, characters, unsteady, several]), st.data())
def test_no_text_is_lost_spans_are_exact_and_none_is_too_long(text, token_spans, data) -> None:
    most = data.draw(st.integers(4, 60))
    overlap = data.draw(st.integers(0, most // 2))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=5)))
    marks = [
        (start, page, data.draw(st.sampled_from([(), ("A",), ("A", "B"), ("A", "B", "C")])))
        for page, start in enumerate([0, *(cut for cut in cuts if cut < len(text))], 1)
    ]
    source = document(text, *marks)
    assert_sound(source, split(source, token_spans, most, overlap), token_spans, most)


def test_a_short_document_is_one_passage() -> None:
    assert [p.text for p in split(document("  One. Two.\n\nThree.\n"), words)] == [
        "One. Two.\n\nThree."
    ]


@pytest.mark.parametrize("text", ["", " \n ", "\n\n"])
def test_white_space_gives_no_passages(text: str) -> None:
    assert split(document(text), words) == []


SENTENCES = [f"Sentence number {n} has a few words in it, as one would expect." for n in range(400)]


def test_a_long_text_becomes_passages_of_about_the_same_size() -> None:
    source = document("\n\n".join(" ".join(SENTENCES[n : n + 5]) for n in range(0, 400, 5)))
    sizes = [len(words(passage.text)) for passage in split(source, words)]
    assert all(120 <= size <= MAX_TOKENS for size in sizes), sizes


def test_passages_begin_and_end_with_sentences_and_overlap_by_whole_ones() -> None:
    source = document(" ".join(SENTENCES))
    passages = split(source, words)
    for before, after in pairwise(passages):
        assert before.text.endswith(".")
        assert after.text.startswith("Sentence")
        shared = source.text[after.start : before.end]
        assert 0 < len(words(shared)) <= OVERLAP


def test_chinese_sentences_stay_whole_and_stops_do_not_open_a_passage() -> None:
    text = "".join(f"他说：“这是第{n}句话，讲的是语言模型。”真的吗？" for n in range(300))
    passages = split(document(text), words)
    assert len(passages) > 20
    for passage in passages:
        assert passage.text[0] in "他真"
        assert passage.text[-1] in "”？"


@pytest.mark.parametrize("length", [10_000, 350_000])
def test_chinese_without_a_space_or_stop_is_cut_by_tokens(length: int) -> None:
    text = "语言模型逐个生成词元" * (length // 10)
    passages = split(document(text), words)
    sizes = [len(passage.text) for passage in passages]
    assert sum(sizes) == length
    assert min(sizes) >= 120 and max(sizes) <= MAX_TOKENS


def test_a_line_of_a_megabyte_is_cut_and_nothing_is_lost() -> None:
    for text in ("x" * 2**20, "word " * 200_000, "a,b;" * 250_000):
        source = document(text)
        begin = time.perf_counter()
        passages = split(source, characters)
        assert time.perf_counter() - begin < 20
        assert_sound(source, passages, characters, MAX_TOKENS)


def test_time_grows_in_step_with_length() -> None:
    def seconds(count: int) -> float:
        source = document("The cat sat. It was 3.5 m high, e.g. a tree.\n" * count)
        begin = time.process_time()
        split(source, words)
        return time.process_time() - begin

    seconds(500)
    assert seconds(16_000) < 8 * seconds(4_000) + 0.5


def test_headings_of_the_outer_levels_are_not_crossed() -> None:
    parts = [f"## Part {n}\n\n" + " ".join(SENTENCES[:8]) for n in range(5)]
    source = markdown("# Guide\n\n" + "\n\n".join(parts))
    passages = split(source, words)
    assert [p.heading for p in passages] == [("Guide", f"Part {n}") for n in range(5)]
    assert passages[0].text.startswith("# Guide\n\n## Part 0")
    assert all(p.text.startswith(f"## Part {n}") for n, p in enumerate(passages) if n)


def test_tiny_parts_join_what_follows_and_inner_headings_do_not_part() -> None:
    source = markdown("# A\n\nOne line.\n\n# B\n\nAnother.\n\n# C\n\n" + " ".join(SENTENCES[:8]))
    assert [p.text[:3] for p in split(source, words)] == ["# A"]
    source = markdown(
        "# A\n\n## B\n\n" + "\n\n".join(f"### {n}\n\n{SENTENCES[n]}" for n in range(8))
    )
    assert len(split(source, words)) == 1


def test_a_heading_stays_with_its_text() -> None:
    source = markdown("# A\n\n" + "\n\n".join(f"### H{n}\n\n{SENTENCES[n]}" for n in range(99)))
    for passage in split(source, words):
        assert not re.search(r"### H\d+$", passage.text)


def test_a_passage_has_the_page_it_starts_on_and_may_cross_pages() -> None:
    text = " ".join(SENTENCES[:40])
    half = text.index(SENTENCES[20])
    passages = split(document(text, (0, 1, ()), (half, 2, ())), words)
    assert {p.page for p in passages} == {1, 2}
    assert all(p.page == (1 if p.start < half else 2) for p in passages)
    assert any(p.start < half < p.end for p in passages)


def test_a_sentence_longer_than_a_passage_is_cut_at_its_commas() -> None:
    text = "，".join("这是一个很长的句子的一部分" for _ in range(60)) + "。"
    for passage in split(document(text), words)[:-1]:
        assert passage.text.endswith("，")


def test_rows_of_a_long_table_stay_whole() -> None:
    rows = [f"Name: Person {n}; Age: {n}; City: Town {n}" for n in range(300)]
    for passage in split(document("\n".join(rows)), words):
        assert all(line in rows for line in passage.text.splitlines())


def test_an_impossible_overlap_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        split(document("x"), words, 10, 10)
