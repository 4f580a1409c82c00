"""The rail's lists as HTML."""

from types import SimpleNamespace

from tests.ui_fakes import turn
from ui.i18n import h
from ui.rail import SHOWN_DOCUMENTS, chats_view, documents_view
from ui.turns import Chats


def documents(count):
    return [SimpleNamespace(name=f"<{n}>.md", passages=n) for n in range(count)]


def test_the_newest_documents_come_first_and_the_count_is_of_all():
    html = documents_view(documents(9), "en")
    assert html.count("<li") == SHOWN_DOCUMENTS
    assert html.index("&lt;8&gt;.md") < html.index("&lt;7&gt;.md")
    assert h("en", "rail.documents", count=9) in html


def test_without_documents_it_says_how_to_add_some():
    assert h("zh", "rail.no_documents") in documents_view([], "zh")


def test_conversations_are_listed_once_they_have_a_question_and_the_open_one_is_marked():
    assert chats_view(Chats(), "en") == ""
    chats = Chats().add(turn()).new()
    html = chats_view(chats, "en")
    assert html.count("<li>") == 1 and "aria-current" not in html
    assert "aria-current" in chats_view(chats.open(chats.chats[-1].id), "en")
