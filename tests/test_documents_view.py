"""The list of documents and one document's passages, drawn from plain records."""

import re

import pytest

from rag.records import StoredDocument, StoredPassage
from ui.documents_view import Choice, kind, list_html, preview_html


def stored(id_, name, warnings=()):
    return StoredDocument(
        id_, name, "application/pdf", "f" * 64, 1234, 3, "2026-01-02T03:04:05+00:00", warnings
    )


def passage(start, end, text, page=1):
    return StoredPassage(1, "a1", "a.pdf", page, ("Chapter", "Section"), start, end, text)


DOCUMENTS = [stored("a1", "Lease.pdf"), stored("b2", "租约.pdf")]


def test_the_newest_document_comes_first():
    html = list_html(DOCUMENTS, "en", Choice())
    assert html.index("租约.pdf") < html.index("Lease.pdf")


@pytest.mark.parametrize(("wanted", "found"), [("lease", 1), ("租", 1), (".PDF", 2), ("x", 0)])
def test_the_filter_ignores_case(wanted, found):
    html = list_html(DOCUMENTS, "en", Choice(wanted=wanted))
    assert html.count('data-act="preview"') == found


def test_removing_asks_first_and_the_safe_answer_has_the_keyboard():
    html = list_html(DOCUMENTS, "en", Choice(removing="a1"))
    assert html.count('data-act="confirm"') == 1
    assert re.search(r'data-act="keep"[^>]*data-focus', html)
    assert html.count('data-act="remove"') == 1


def test_after_keeping_the_keyboard_is_back_on_the_button():
    html = list_html(DOCUMENTS, "en", Choice(focus="a1"))
    assert re.search(r'data-act="remove" data-document="a1"[^>]*data-focus', html)


@pytest.mark.parametrize("hostile", ['"><img src=x onerror=alert(1)>', "<script>alert(1)</script>"])
def test_names_warnings_headings_and_texts_stay_text(hostile):
    document = stored("a1", hostile, (hostile,))
    cut = [StoredPassage(1, "a1", hostile, None, (hostile,), 0, len(hostile), hostile)]
    for html in (
        list_html([document], "en", Choice(removing="a1")),
        preview_html(document, cut, len, "en"),
    ):
        assert "<img" not in html
        assert "<script" not in html


def test_a_passage_shows_page_heading_tokens_and_what_it_shares():
    cut = [passage(0, 10, "0123456789"), passage(6, 14, "6789abcd", page=2)]
    html = preview_html(DOCUMENTS[0], cut, lambda text: len(text) * 2, "en")
    assert "p. 2 · Chapter › Section" in html
    assert "20 tokens" in html
    assert ">6789</span>abcd" in html


def test_a_long_document_is_drawn_in_steps():
    cut = [passage(n, n + 1, "x") for n in range(100)]
    html = preview_html(DOCUMENTS[0], cut, len, "en", shown=40)
    assert html.count('class="card passage"') == 40
    assert "Show 60 more" in html


def test_kinds_have_short_names():
    assert kind("text/markdown") == "MD"
    assert kind("application/x-unknown") == "X-UNKNOWN"


def test_nothing_open_says_what_to_do():
    assert "Choose a document" in preview_html(None, [], len, "en")
