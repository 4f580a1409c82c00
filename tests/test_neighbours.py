"""`rag.neighbours`: passages that touch, as one span of their document."""

from dataclasses import replace

import pytest

from rag.neighbours import join, touches, widen
from rag.records import StoredPassage
from tests.ui_fakes import passage

TEXT = "The first is here. The second follows.\n\nThe third ends. Another begins. And the last."
PARTS = ("The first is here.", "The second follows.", "The third ends.", "Another begins.")


def part(number: int, **changes):
    start = TEXT.index(PARTS[number])
    made = passage(number, start=start, end=start + len(PARTS[number]), text=PARTS[number])
    return replace(made, highlight=(4, 9), **changes)


def stored(number: int, heading=("Lease", "Notice")) -> StoredPassage:
    p = part(number)
    return StoredPassage(number, "d", p.document, p.page, heading, p.start, p.end, p.text)


def test_passages_touch_when_only_white_space_lies_between():
    assert touches(part(0), part(1), TEXT) and touches(part(1), part(0), TEXT)
    assert touches(part(1), part(2), TEXT)
    assert not touches(part(0), part(2), TEXT)
    assert not touches(part(0), part(1, document_id="other"), TEXT)
    assert not touches(part(0), part(1, heading=("Lease",)), TEXT)


@pytest.mark.parametrize(("best", "other"), [(0, 1), (1, 0), (2, 1)])
def test_what_is_joined_is_a_span_of_the_document_and_marks_the_same_words(best, other):
    marked = part(best).text[4:9]
    joined = join(part(best), part(other), TEXT)
    assert joined.text == TEXT[joined.start : joined.end]
    assert PARTS[best] in joined.text and PARTS[other] in joined.text
    assert joined.highlight is not None and joined.text[slice(*joined.highlight)] == marked
    assert (joined.passage_id, joined.joined) == (best, (other,))
    assert joined.probability == part(best).probability


def test_overlapping_passages_are_joined_without_repeating_text():
    start = TEXT.index("is here")
    end = TEXT.index("follows")
    middle = replace(part(1), start=start, end=end, text=TEXT[start:end], highlight=None)
    joined = join(part(0), middle, TEXT)
    assert joined.text == TEXT[:end] and joined.text.count("is here") == 1


def test_a_passage_is_widened_by_those_around_it_under_its_heading():
    around = [stored(0), stored(1), stored(2), stored(3)]
    one = widen(part(1), around, 1, TEXT)
    assert one.text == TEXT[: part(2).end] and one.joined == (0, 2)
    assert one.highlight is not None
    assert one.text[slice(*one.highlight)] == part(1).text[4:9]
    assert widen(part(0), around, 9, TEXT).joined == (1, 2, 3)
    assert widen(part(1), around, 0, TEXT).text == PARTS[1]


def test_a_heading_ends_what_is_joined():
    around = [stored(0, ("Other",)), stored(1), stored(2), stored(3, ("Other",))]
    assert widen(part(1), around, 3, TEXT).joined == (2,)


def test_a_passage_of_a_replaced_document_stays_as_it_is():
    assert widen(part(1), [stored(0)], 1, TEXT) == part(1)
