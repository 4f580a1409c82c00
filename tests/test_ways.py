"""One question written in four ways, over real generation on a tiny model."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from generation.config import GenerationConfig
from generation.decoding import generate
from generation.step import FinishReason
from tests.ui_fakes import parts, passage, retrieval
from ui.ways import MAX_TEMPLATE, default_template, is_default_template, write_ways

NO_END = frozenset()
FORM = "Name: {{name|max_tokens=4}}\nSure: {{sure|choices=yes,no}}\nEnd"


def last(made, question="How long?", template=FORM, n=8, **options):
    return list(write_ways(made, question, template, n, **options))[-1]


@contextmanager
def counted(model):
    """Counts calls of the model from outside."""
    calls = []
    handle = model.register_forward_hook(lambda *_: calls.append(1))
    try:
        yield calls
    finally:
        handle.remove()


@pytest.mark.parametrize("end_ids", [NO_END, frozenset(range(94, 180))])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_jacobi_text_is_the_greedy_text_and_is_compared_in_the_run(seed, end_ids):
    made = parts(seed=seed, end_ids=end_ids)
    done = last(made, n=16)
    assert done.jacobi.token_ids == done.plain.token_ids
    assert done.jacobi_is_greedy is True
    assert done.iterations[-1].final == done.plain.tokens


def test_equality_is_computed_not_assumed():
    made = parts(end_ids=NO_END)
    done = last(made)
    other = replace(done.jacobi, token_ids=(*done.jacobi.token_ids[:-1], 7))
    assert replace(done, jacobi=other).jacobi_is_greedy is False
    assert replace(done, jacobi=None).jacobi_is_greedy is None
    unfinished = replace(done.jacobi, finish_reason=None)
    assert replace(done, jacobi=unfinished).jacobi_is_greedy is None


@pytest.mark.parametrize("question", ["How long?", "long " * 150], ids=["short", "chunked"])
def test_the_passes_said_are_the_calls_of_the_model(question):
    made = parts(end_ids=NO_END)
    seen = {}
    with counted(made.model.hf_model) as calls:
        for update in write_ways(made, question, FORM, 8):
            seen[update.writing] = len(calls)
    totals = [seen[way] for way in ("plain", "retrieved", "one_shot", "jacobi", "template")]
    each = [after - before for before, after in zip([0, *totals], totals, strict=False)]
    runs = (update.plain, update.retrieved, update.one_shot, update.jacobi, update.template)
    assert [run.passes for run in runs] == each
    assert update.one_shot.passes == 1
    assert all(run.seconds > 0 for run in runs)


def test_the_first_two_are_what_the_loop_writes_alone():
    made = parts()
    done = last(made)
    config = GenerationConfig(max_new_tokens=8)
    ids = made.model.encode_chat(done.prompt.messages)
    alone = tuple(step.token_id for step in generate(made.model, ids, config))
    assert done.retrieved.token_ids == alone
    assert done.retrieved.prompt_tokens == len(ids)
    assert done.plain.prompt_tokens < len(ids)
    assert done.plain.prompt_tokens == done.jacobi.prompt_tokens == done.template.prompt_tokens


def test_the_pieces_are_the_form_and_its_slots_at_every_update():
    updates = list(write_ways(parts(), "How long?", FORM, 8))
    for update in updates:
        if update.template is not None:
            assert "".join(piece.text for piece in update.pieces) == update.template.text
    slots = {piece.slot: piece.text for piece in update.pieces if piece.slot}
    assert list(slots) == ["name", "sure"]
    assert slots["sure"] in ("yes", "no")
    fixed = [piece.text for piece in update.pieces if piece.slot is None]
    assert fixed == ["Name: ", "\nSure: ", "\nEnd"]


def test_without_anything_relevant_the_second_way_reads_the_first_prompt():
    done = last(parts(retrieval(passage(1), relevant=False)))
    assert done.retrieved.token_ids == done.plain.token_ids
    assert not done.prompt.used


def test_a_bad_form_is_one_sentence_before_the_model_runs():
    made = parts()
    with counted(made.model.hf_model) as calls:
        for form in ("no slot", "{{open", "A: {{a|regex=(}}", "{{a}}" + "x" * MAX_TEMPLATE):
            done = last(made, template=form)
            assert done.stage == "done"
            assert done.problem.key == "ways.bad_template"
    assert not calls


@pytest.mark.parametrize("n", [3, 65, True, 8.5, "8"])
def test_a_number_of_tokens_out_of_range_is_a_problem(n):
    done = last(parts(), n=n)
    assert done.problem.key == "error.setting"
    assert "max_new_tokens" in done.problem.values["message"]


def test_a_question_that_is_too_long_is_a_problem():
    assert last(parts(), question="long " * 2000).problem.key == "error.too_long"


def test_stopping_keeps_what_is_written_and_begins_nothing_more():
    seen = []
    updates = write_ways(parts(end_ids=NO_END), "Why?", FORM, 8, should_stop=lambda: len(seen) > 4)
    for update in updates:
        seen.append(update)
    assert update.stage == "done"
    assert update.stopped
    assert update.plain.text
    assert update.template is None
    assert update.plain.finish_reason is not FinishReason.LENGTH


def test_closing_gives_the_turn_back_at_once():
    made = parts(end_ids=NO_END)
    updates = write_ways(made, "Why?", FORM, 8, session="a")
    while next(updates).stage != "writing":
        pass
    updates.close()
    with made.scheduler.turn("a"):
        pass


def test_the_default_form_speaks_the_language_of_the_question():
    assert default_template("谁？", "en") == default_template("", "zh")
    assert default_template("Who?", "zh") == default_template("", "en")
    assert is_default_template(default_template("谁？"))
    assert is_default_template("  ")
    assert not is_default_template("A: {{a}}")
    done = last(parts(end_ids=NO_END), question="多久？", template="")
    assert done.problem is None
    assert done.template.text.startswith("简短回答：")
