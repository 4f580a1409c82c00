"""`rag.selection`: what is handed on, and why the rest is not."""

from rag.retrieved import Dropped
from rag.selection import select, without_duplicates
from tests.ui_fakes import passage

TEXT = "One is here. Two follows. Three ends. Four begins."
SPANS = ((0, 12), (13, 25), (26, 37), (38, 50))


def part(number: int, document_id: str = "d"):
    start, end = SPANS[number]
    changes = {"start": start, "end": end, "text": TEXT[start:end], "document_id": document_id}
    return passage(number, highlight=None, **changes)


def test_the_same_text_is_handed_on_once():
    kept, dropped = without_duplicates(
        [passage(1, text="Same  text"), passage(2, text="same text\n"), passage(3, text="other")],
        0.5,
    )
    assert [p.passage_id for p in kept] == [1, 3]
    assert [(p.passage_id, p.dropped) for p in dropped] == [(2, Dropped.DUPLICATE)]


def test_what_is_below_the_threshold_says_so():
    kept, dropped = without_duplicates([passage(1, probability=0.49)], 0.5)
    assert kept == [] and dropped[0].dropped is Dropped.BELOW_THRESHOLD


def test_at_most_k_are_handed_on():
    chosen = select([part(0, "a"), part(1, "b"), part(2, "c")], 2, lambda _: TEXT)
    assert [p.document_id for p in chosen.kept] == ["a", "b"]
    assert [p.dropped for p in chosen.dropped] == [Dropped.BEYOND_K]


def test_those_that_touch_become_one_under_the_number_of_the_better():
    chosen = select([part(1), part(3), part(0)], 4, lambda _: TEXT)
    assert [(p.passage_id, p.joined) for p in chosen.kept] == [(1, (0,)), (3, ())]
    assert chosen.kept[0].text == TEXT[0:25]
    assert [(p.passage_id, p.dropped) for p in chosen.dropped] == [(0, Dropped.JOINED)]


def test_joined_passages_count_so_that_the_text_stays_within_k_passages():
    chosen = select([part(0), part(1), part(2)], 2, lambda _: TEXT)
    assert [p.joined for p in chosen.kept] == [(1,)]
    assert [p.dropped for p in chosen.dropped] == [Dropped.JOINED, Dropped.BEYOND_K]


def test_passages_of_a_document_that_went_are_not_joined():
    chosen = select([part(0), part(1)], 2, lambda _: None)
    assert [p.joined for p in chosen.kept] == [(), ()]
