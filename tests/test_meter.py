"""What fills the context window: the parts add up to the prompt, and the bar says so in words."""

from dataclasses import replace

from tests.ui_fakes import turn
from ui.meter import ContextUse, measure, meter

PROMPT = replace(turn().update.prompt, tokens=500)
HISTORY = [{"role": "user", "content": "q" * 40}, {"role": "assistant", "content": "a" * 60}]


def test_the_parts_add_up_to_the_prompt():
    use = measure(PROMPT, "x" * 30, HISTORY, len, room=256, limit=4096)
    assert use.used == 500
    assert (use.question, use.history) == (30, 100)
    assert use.passages == sum(len(p.text) for p in PROMPT.used)


def test_history_that_was_dropped_is_not_counted():
    use = measure(replace(PROMPT, history_dropped=2), "x", HISTORY, len, room=1, limit=4096)
    assert use.history == 0
    assert use.used == 500


def test_parts_never_exceed_the_whole():
    use = measure(replace(PROMPT, tokens=10), "x" * 99, HISTORY, len, room=1, limit=4096)
    assert use.used == 10
    assert min(use.system, use.passages, use.history, use.question) >= 0


def test_the_bar_is_drawn_and_said():
    html = meter(ContextUse(10, 200, 30, 10, 256, 1000), 1000, "en")
    assert 'class="m-passages" style="flex-basis:20.00%"' in html
    assert "250 of 1,000 tokens" in html
    assert "room for the answer 256" in html


def test_the_room_is_what_is_left_when_that_is_less():
    assert "room for the answer 5" in meter(ContextUse(995, 0, 0, 0, 256, 1000), 1000, "en")


def test_before_the_first_question_it_is_empty():
    assert "0 of 4,096 tokens" in meter(None, 4096, "en")
