"""`rag.evidence`: sentences with exact spans, and the one that shares most."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.evidence import best_sentence, sentences, statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("一。二！三？", ["一。", "二！", "三？"]),
        (
            "## Heading\n\nText e.g. this, 3.5 in all.",
            ["## Heading", "Text e.g. this, 3.5 in all."],
        ),
        ("a line\nanother line", ["a line", "another line"]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_cuts_into_sentences(text, expected):
    assert [text[start:end] for start, end in sentences(text)] == expected


@given(st.text(alphabet="ab 。.!\n\t一", max_size=200))
def test_sentences_hold_everything_but_white_space(text):
    spans = sentences(text)
    joined = "".join(text[start:end] for start, end in spans)
    assert "".join(joined.split()) == "".join(text.split())
    assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_a_rare_term_weighs_more_than_a_common_one():
    texts = ["The lamp is on. The lamp is off. The lamp is broken. The reef is dark."]
    best = best_sentence(texts, ["lamp", "reef"])
    assert best is not None
    assert texts[0][slice(*best.span)] == "The reef is dark."


def test_the_first_of_equals_is_taken():
    best = best_sentence(["One reef. The lamp.", "The lamp."], ["lamp"])
    assert best is not None and (best.text, best.span) == (0, (10, 19))


def test_a_heading_is_no_evidence_unless_it_is_all_there_is():
    text = "# The KV cache\nNotice\nThe KV cache saves work.\n| a | b |\n|---|---|"
    shown = [text[start:end] for start, end in statements(text, ("Notice",))]
    assert shown == ["The KV cache saves work.", "| a | b |"]
    assert statements("# The KV cache") == [(0, 14)]
    best = best_sentence(["# The reef\nThe lamp is by the reef."], ["reef"])
    assert best is not None and best.span == (11, 35)


def test_the_share_counts_terms_that_are_nowhere():
    full, half = (best_sentence(["the lamp"], wanted) for wanted in (["lamp"], ["lamp", "reef"]))
    assert full is not None and half is not None
    assert (full.share, half.share) == (1, 0.5)


@pytest.mark.parametrize("texts", [[], [""], ["nothing shared"]])
def test_without_a_shared_term_there_is_none(texts):
    assert best_sentence(texts, ["lamp"]) is None
    assert best_sentence(texts, []) is None
