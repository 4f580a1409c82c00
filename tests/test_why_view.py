"""Why these passages: both rankings, the deciding number, and how little of a document was read."""

from tests.ui_fakes import passage, retrieval
from ui.i18n import h
from ui.why_view import why_these


def test_why_these_gives_both_ranks_and_says_how_little_was_read():
    shown = why_these(retrieval(passage(3), considered=1234), "en")
    assert "1,234 passages" in shown
    assert "no. 3 · 0.900" in shown
    assert "–" in shown  # not found by words
    assert h("en", "passages.why_limit") in shown


def test_the_deciding_number_stands_beside_its_threshold():
    assert "Relevance 0.940, above the threshold 0.500" in why_these(retrieval(passage(1)), "en")
    below = why_these(retrieval(passage(1, probability=0.2), relevant=False), "en")
    assert "Relevance 0.200, below the threshold 0.500" in below
    assert "lease.pdf" in below  # what was not good enough is in the table too


def test_names_from_documents_are_escaped():
    assert "<b>" not in why_these(retrieval(passage(1, document="<b>", heading=("<b>",))), "en")
