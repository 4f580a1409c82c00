"""One entrance to every way of writing: each reaches its own loop, and odd mixtures are refused."""

from __future__ import annotations

import json

import pytest

from generation.config import GenerationConfig
from generation.context_aware import generate_context_aware
from generation.contrastive_search import contrastive_search
from generation.decoding import generate
from generation.strategies import Method, strategy_name, write
from tests.tiny import tiny_lm

PROMPT = list(range(40, 60))
WITHOUT = PROMPT[10:]
CONFIG = GenerationConfig(max_new_tokens=12)


def tokens(steps):
    return [step.token_id for step in steps]


def test_nothing_chosen_is_the_plain_loop():
    lm = tiny_lm()
    assert tokens(write(lm, PROMPT, CONFIG)) == tokens(generate(lm, PROMPT, CONFIG))


def test_each_method_is_the_loop_of_its_name():
    lm = tiny_lm()
    contrastive = write(lm, PROMPT, CONFIG, Method(penalty_alpha=0.6, contrastive_top_k=5))
    assert tokens(contrastive) == tokens(
        contrastive_search(lm, PROMPT, CONFIG, top_k=5, penalty_alpha=0.6)
    )
    aware = write(lm, PROMPT, CONFIG, Method(context_alpha=1.0), without_ids=WITHOUT)
    assert tokens(aware) == tokens(generate_context_aware(lm, PROMPT, WITHOUT, CONFIG, alpha=1.0))


def test_without_a_context_there_is_nothing_to_amplify():
    lm = tiny_lm()
    aware = write(lm, PROMPT, CONFIG, Method(context_alpha=1.0))
    assert tokens(aware) == tokens(generate(lm, PROMPT, CONFIG))


def test_a_form_is_kept():
    lm = tiny_lm()
    steps = list(write(lm, PROMPT, CONFIG, Method(regex="(yes|no)")))
    assert lm.decode([t for t in tokens(steps) if t not in lm.end_ids]) in {"yes", "no"}
    schema = json.dumps({"enum": ["red", "blue"]})
    steps = list(write(lm, PROMPT, CONFIG, Method(json_schema=schema)))
    text = lm.decode([t for t in tokens(steps) if t not in lm.end_ids])
    assert json.loads(text) in ("red", "blue")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (dict(penalty_alpha=0.5, context_alpha=0.5), "penalty_alpha"),
        (dict(regex="a", json_schema="{}"), "regex"),
        (dict(penalty_alpha=-1), "penalty_alpha"),
        (dict(context_alpha=float("nan")), "context_alpha"),
        (dict(contrastive_top_k=0), "contrastive_top_k"),
        (dict(regex=3), "regex"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(options, named):
    with pytest.raises(ValueError, match=named):
        Method(**options)


@pytest.mark.parametrize(
    ("config", "method", "named"),
    [
        (dict(num_beams=2), dict(regex="a"), "num_beams"),
        (dict(num_beams=2), dict(penalty_alpha=0.5), "num_beams"),
        (dict(temperature=1.0), dict(penalty_alpha=0.5), "temperature"),
    ],
)
def test_what_cannot_be_combined_is_refused_before_the_model_runs(config, method, named):
    with pytest.raises(ValueError, match=named):
        write(tiny_lm(), PROMPT, GenerationConfig(**config), Method(**method))


def test_each_combination_has_a_name():
    assert strategy_name(GenerationConfig(), Method()) == "greedy"
    assert strategy_name(GenerationConfig(), Method(penalty_alpha=0.5)) == "contrastive search"
    sampling = GenerationConfig(temperature=1)
    assert strategy_name(sampling, Method(context_alpha=1)) == "context-aware sampling"
    assert strategy_name(sampling, Method(regex="a")) == "constrained sampling"
    assert strategy_name(GenerationConfig(num_beams=2), Method()) == "beam search"
