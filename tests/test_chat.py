"""The chat page without a browser: its handlers are drained as Gradio would, over a tiny model."""

from types import SimpleNamespace

import gradio as gr
import pytest

from generation.step import FinishReason
from tests.ui_fakes import parts, turn
from ui import chat, rail
from ui.i18n import Words, h
from ui.page import Shell
from ui.settings import PRESETS
from ui.turns import Chats

REQUEST = SimpleNamespace(session_hash="me")


def event(**data):
    return SimpleNamespace(_data=data)


@pytest.fixture
def page():
    with gr.Blocks():
        language, changed, words = gr.State("en"), gr.State(0.0), Words()
        made = parts(end_ids=frozenset())
        the_rail = rail.build(made, words, language, changed)
        return chat._ChatPage(Shell(made, words, language, changed, gr.Tabs(), the_rail))


def form(page, **changes):
    """The values of the controls in their order."""
    values = {name: component.value for name, component in page._controls._fields.items()}
    return [*{**values, "max_new_tokens": 6, **changes}.values()]


def ask(page, question="How long?", chats=None, language="en", **changes):
    return list(page._on_ask(REQUEST, question, chats or Chats(), language, *form(page, **changes)))


def kept(frames, page):
    return next(frame[page._chats] for frame in frames if page._chats in frame)


def test_a_question_becomes_a_turn_and_the_box_is_empty_at_once(page):
    frames = ask(page)
    assert frames[0] == {page._question: ""}
    (made,) = kept(frames, page).turns
    assert made.question == "How long?"
    assert made.update.finish_reason is FinishReason.LENGTH
    assert h("en", "finish.length") in frames[-2][page._live]


def test_stop_replaces_send_while_writing_and_only_then(page):
    frames = ask(page)
    assert frames[1][page._stop]["visible"] and not frames[1][page._send]["visible"]
    assert frames[-1][page._send]["visible"] and not frames[-1][page._stop]["visible"]


@pytest.mark.parametrize("question", ["", "  \n "])
def test_an_empty_question_does_nothing(page, question):
    assert ask(page, question) == []


def test_the_passages_are_drawn_when_they_change_and_not_with_every_token(page):
    frames = ask(page, max_new_tokens=32)
    assert 2 <= sum(page._side in frame for frame in frames) <= 4


def test_a_number_that_makes_no_sense_is_a_sentence_and_the_question_is_kept(page):
    frames = ask(page, top_p=7)
    assert "top_p" in frames[-2][page._live]
    assert kept(frames, page).turns[0].question == "How long?"


def test_the_next_question_knows_the_answer_before(page):
    first = kept(ask(page), page)
    second = kept(ask(page, "And why?", first), page)
    contents = [m["content"] for m in second.turns[1].update.prompt.messages]
    assert contents[1][0]["text"] == "How long?"
    assert len(second.turns) == 2


def test_stop_from_another_event_ends_the_answer_and_keeps_it(page):
    frames = page._on_ask(REQUEST, "How long?", Chats(), "en", *form(page, max_new_tokens=500))
    shown = []
    for frame in frames:
        shown.append(frame)
        if len(shown) == 8:
            page._on_stop(REQUEST)
    (made,) = kept(shown, page).turns
    assert made.update.finish_reason is FinishReason.CANCELLED
    assert made.update.tokens < 500


def test_a_closed_tab_ends_the_run(page):
    frames = page._on_ask(REQUEST, "How long?", Chats(), "en", *form(page, max_new_tokens=500))
    for _ in range(8):
        next(frames)
    assert page._running.active("me")
    frames.close()
    assert not page._running.active("me")
    with page._parts.scheduler.turn("me"):
        pass


def test_sessions_do_not_stop_each_other(page):
    frames = page._on_ask(REQUEST, "How long?", Chats(), "en", *form(page))
    next(frames)
    page._on_stop(SimpleNamespace(session_hash="somebody else"))
    (made,) = kept(list(frames), page).turns
    assert made.update.finish_reason is FinishReason.LENGTH


def test_retry_replaces_the_turn(page):
    chats = Chats().add(turn("a")).add(turn("b"))
    frames = list(page._on_retry(REQUEST, event(turn="1"), chats, "en", *form(page)))
    assert kept(frames, page).turns[0].update.text == "a"
    assert len(kept(frames, page).turns) == 2


@pytest.mark.parametrize("number", ["7", "-1", "x", "", None, "1e3", "９", "9" * 99])
def test_numbers_from_the_browser_are_checked(page, number):
    chats = Chats().add(turn("a"))
    assert list(page._on_retry(REQUEST, event(turn=number), chats, "en", *form(page))) == []
    assert page._on_edit(REQUEST, event(turn=number), chats, "en").get(page._chats, chats) == chats
    page._on_show(event(turn=number), chats, "en")


def test_editing_puts_the_question_into_the_box_and_sending_replaces_what_followed(page):
    chats = Chats().add(turn("a")).add(turn("b"))
    frame = page._on_edit(REQUEST, event(turn="0"), chats, "en")
    assert frame[page._question] == "How long?"
    assert h("en", "chat.editing") in frame[page._banner]
    after = kept(ask(page, "How short?", frame[page._chats]), page)
    assert [t.question for t in after.turns] == ["How short?"]
    back = page._on_cancel_edit(frame[page._chats], "en")
    assert back[page._chats].turns == chats.turns and back[page._banner] == ""


def test_another_conversation_opens_after_the_answer_being_written_has_ended(page):
    chats = kept(ask(page), page)
    assert page._halt(REQUEST, event(chat="x")) == "x"
    frame = page._on_open("", chats, "en")
    assert not frame[page._chats].turns
    again = page._on_open(chats.chat.id, frame[page._chats], "en")
    assert again[page._chats].turns == chats.turns


def test_the_page_is_drawn_again_in_the_other_language(page):
    frame = page._draw(Chats().add(turn()), "zh")
    assert h("zh", "finish.eos") in frame[page._live]
    assert h("zh", "passages.why") in frame[page._side]


def test_every_preset_is_valid(page):
    for numbers in PRESETS.values():
        assert (
            page._controls.read(form(page, **numbers)).config.temperature == numbers["temperature"]
        )
