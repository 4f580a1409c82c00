"""One of a few texts, in the tokens it usually has."""

from __future__ import annotations

import pytest
import torch

from generation.choices import ChoiceConstraint
from generation.config import GenerationConfig
from generation.decoding import generate
from generation.errors import ConstraintError
from generation.step import FinishReason
from tests.tiny import tiny_lm

PROMPT = list(range(40, 60))


def run(lm, constraint, **options):
    """The steps and the text without its end-of-text token."""
    steps = list(generate(lm, PROMPT, GenerationConfig(**options), constraint=constraint))
    return steps, lm.decode([s.token_id for s in steps if s.token_id not in lm.end_ids])


CHOICES = ["yes", "no", "a|b", "(", "\\d\n\t-", "三个月", " "]


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_is_taken_letter_by_letter(choice):
    lm = tiny_lm()
    assert run(lm, ChoiceConstraint(lm, [choice]))[1] == choice


def test_with_several_choices_one_of_them_is_written():
    texts = set()
    for seed in range(12):
        lm = tiny_lm(seed=seed)
        texts.add(run(lm, ChoiceConstraint(lm, CHOICES), temperature=5.0, seed=seed)[1])
    assert texts <= set(CHOICES)
    assert len(texts) > 2


@pytest.mark.parametrize("choices", ["yes", [], [1], [None]])
def test_choices_must_be_texts(choices):
    with pytest.raises(ConstraintError, match="at least one text"):
        ChoiceConstraint(tiny_lm(), choices)


def test_a_choice_may_begin_another_and_the_end_decides():
    lm = tiny_lm()
    a, b = lm.encode("ab")
    constraint = ChoiceConstraint(lm, ["a", "ab"])
    logits = torch.zeros(1, lm.vocab_size)

    def allowed():
        return set(constraint.allowed(logits)[0].isfinite().nonzero().flatten().tolist())

    assert allowed() == {a}
    constraint.accept(a)
    assert (constraint.satisfied, constraint.finished) == (True, False)
    assert allowed() == {b, *lm.end_ids}
    constraint.accept(b)
    assert (constraint.satisfied, constraint.finished) == (True, True)
    assert allowed() == lm.end_ids
    with pytest.raises(ConstraintError, match="none of the choices"):
        constraint.accept(b)


def test_a_choice_that_the_model_cannot_write_is_refused():
    lm = tiny_lm(end_ids=frozenset({65}))
    letter = lm.decode([65])
    for choice in ("\ud800", f"x{letter}"):
        with pytest.raises(ConstraintError, match="cannot be written"):
            ChoiceConstraint(lm, ["fine", choice])


def test_a_run_without_an_end_token_ends_with_its_choice():
    lm = tiny_lm(end_ids=frozenset())
    steps, text = run(lm, ChoiceConstraint(lm, ["yes", "no"]))
    assert text in ("yes", "no")
    assert steps[-1].finish_reason is FinishReason.EOS


def test_the_real_model_chooses_between_whole_words(smollm2):
    constraint = ChoiceConstraint(smollm2, [" yes", " no", " not said"])
    first = {smollm2.decode([ids[0]]) for ids in map(smollm2.encode, (" yes", " no", " not said"))}
    logits = constraint.allowed(torch.zeros(1, smollm2.vocab_size))[0]
    allowed = {smollm2.decode([i]) for i in logits.isfinite().nonzero().flatten().tolist()}
    assert allowed == first == {" yes", " no", " not"}
