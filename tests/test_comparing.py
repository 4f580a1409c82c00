"""One question answered twice, over real generation on a tiny model."""

import pytest

from generation.config import GenerationConfig
from generation.decoding import generate
from generation.scoring import score
from generation.step import FinishReason
from tests.ui_fakes import parts, passage, retrieval
from ui.comparing import SIDES, compare_answers

SHORT = GenerationConfig(max_new_tokens=8)
NO_END = frozenset()


def last(made, question="How long?", config=SHORT, **kwargs):
    return list(compare_answers(made, question, config, **kwargs))[-1]


def test_the_sides_are_written_in_turn_and_both_are_updates():
    updates = list(compare_answers(parts(end_ids=NO_END), "How long?", SHORT))
    stages = [update.stage for update in updates]
    assert stages == ["retrieving", "waiting", "reading", *["writing"] * 16, "done"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_each_side_writes_what_it_would_write_alone(temperature):
    config = GenerationConfig(max_new_tokens=12, temperature=temperature, seed=7)
    made = parts()
    done = last(made, config=config)
    for side in SIDES:
        run = done.runs[side]
        ids = made.model.encode_chat(run.prompt.messages)
        alone = [step.token_id for step in generate(made.model, ids, config)]
        assert [step.token_id for step in run.steps] == alone
        assert len(run.pieces) == len(run.steps)
        assert run.prompt_tokens == len(ids)


def test_only_one_side_has_passages():
    done = last(parts())
    assert done.runs["with"].prompt.used
    assert not done.runs["without"].prompt.used
    assert done.differing > 0


def test_the_divergence_is_the_first_differing_token():
    done = last(parts(end_ids=NO_END))
    with_ids, without_ids = ([s.token_id for s in done.runs[side].steps] for side in SIDES)
    at = done.divergence
    assert at is not None
    assert with_ids[:at] == without_ids[:at]
    assert with_ids[at] != without_ids[at]


def test_without_anything_relevant_both_sides_are_equal():
    done = last(parts(retrieval(passage(1), relevant=False)))
    assert done.differing == 0
    assert done.divergence is None
    assert done.runs["with"].text == done.runs["without"].text


def test_stopping_keeps_both_texts_and_says_so():
    written = []
    updates = compare_answers(
        parts(end_ids=NO_END), "How long?", SHORT, should_stop=lambda: len(written) >= 4
    )
    for update in updates:
        if update.stage == "writing":
            written.append(update)
    assert update.stage == "done"
    for run in update.runs.values():
        assert run.finish_reason is FinishReason.CANCELLED
        assert run.steps


def test_closing_gives_the_turn_back_at_once():
    made = parts(end_ids=NO_END)
    updates = compare_answers(made, "How long?", SHORT, session="a")
    while next(updates).stage != "writing":
        pass
    updates.close()
    with made.scheduler.turn("a"):
        pass


def test_a_question_that_is_too_long_becomes_a_problem_not_an_exception():
    done = last(parts(), question="long " * 2000)
    assert done.stage == "done"
    assert done.problem.key == "error.too_long"


def test_the_answer_with_passages_is_rescored_under_the_prompt_without():
    made = parts()
    done = last(made)
    run = done.runs["with"]
    ids = made.model.encode_chat(done.runs["without"].prompt.messages)
    expected = score(made.model, ids, [step.token_id for step in run.steps])
    assert [s.token_id for s in done.rescored] == [step.token_id for step in run.steps]
    assert [s.logprob for s in done.rescored] == pytest.approx([s.logprob for s in expected])


def test_a_stopped_comparison_and_equal_prompts_are_not_rescored():
    equal = last(parts(retrieval(passage(1), relevant=False)))
    assert not equal.rescored
    calls = iter(range(100))
    stopped = last(parts(end_ids=NO_END), should_stop=lambda: next(calls) > 6)
    assert not stopped.rescored
