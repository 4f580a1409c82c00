"""The options of retrieval: what makes no sense is refused by name."""

import pytest

from rag.retrieval_config import MOST_NEIGHBOURS, MOST_PASSAGES, FollowUp, RetrievalConfig

BAD = (None, -1, float("nan"), float("inf"), "7", [], True, 1.5)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", ["passages", "neighbours", "diversity"])
def test_a_number_that_makes_no_sense_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        RetrievalConfig(**{name: value})


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("passages", 1, MOST_PASSAGES), ("neighbours", 0, MOST_NEIGHBOURS), ("diversity", 0, 1)],
)
def test_the_limits_themselves_are_allowed_and_nothing_beyond_them(name, least, most):
    for value in (least, most):
        assert getattr(RetrievalConfig(**{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(ValueError, match=name):
            RetrievalConfig(**{name: value})


@pytest.mark.parametrize("value", [None, True, "magic", 3, []])
def test_follow_up_questions_are_completed_in_one_of_the_known_ways(value):
    with pytest.raises(ValueError, match="follow_up must be one of off, carry, model"):
        RetrievalConfig(follow_up=value)
    assert RetrievalConfig(follow_up="off").follow_up is FollowUp.OFF


@pytest.mark.parametrize("ids", ["abc", [1], [None], 5, 1.5, True, {"a": 1}, {"a"}])
def test_documents_are_a_list_of_ids(ids):
    with pytest.raises(ValueError, match="document_ids"):
        RetrievalConfig(document_ids=ids)


def test_a_list_of_ids_becomes_a_tuple_and_no_documents_differ_from_all():
    assert RetrievalConfig(document_ids=["a", "b"]).document_ids == ("a", "b")
    assert RetrievalConfig(document_ids=[]).document_ids == ()
    assert RetrievalConfig().document_ids is None
