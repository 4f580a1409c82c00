"""Conversations of a session as plain data: no change touches what was there before."""

import copy

from tests.ui_fakes import turn
from ui.turns import Chats, history


def test_a_turn_is_added_to_the_open_conversation_only():
    first = Chats().add(turn("one"))
    second = first.new().add(turn("two"))
    assert [chat.turns[0].update.text for chat in second.chats] == ["two", "one"]
    assert first.turns[0].update.text == "one"


def test_an_empty_conversation_is_used_again():
    chats = Chats().add(turn())
    assert chats.new().new() == chats.new() or len(chats.new().new().chats) == 2


def test_opening_an_unknown_conversation_changes_nothing():
    chats = Chats().add(turn())
    assert chats.open("nonsense") is chats
    other = chats.new()
    assert other.open(chats.chat.id).turns == chats.turns


def test_cutting_keeps_the_turns_before():
    chats = Chats().add(turn("a")).add(turn("b")).add(turn("c"))
    assert [t.update.text for t in chats.cut(1).turns] == ["a"]
    assert len(chats.turns) == 3


def test_only_a_turn_that_is_there_can_be_edited():
    chats = Chats().add(turn())
    assert chats.edit(0).editing == 0
    assert chats.edit(5).editing is None
    assert chats.edit(0).cut(0).editing is None


def test_a_question_without_an_answer_is_no_history():
    turns = Chats().add(turn("yes")).add(turn("")).turns
    assert history(turns) == [
        {"role": "user", "content": "How long?"},
        {"role": "assistant", "content": "yes"},
    ]


def test_the_state_can_be_copied_deeply_as_gradio_does():
    chats = Chats().add(turn())
    assert copy.deepcopy(chats) == chats
    assert chats.chat.title == "How long?"
