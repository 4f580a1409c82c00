"""A form keeps its fixed text to the letter, and each slot has what its form allows."""

from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import category

import pytest

from generation import template_filling
from generation.config import GenerationConfig
from generation.decoding import generate
from generation.step import FinishReason, PromptTooLong
from generation.template_filling import fill_template
from generation.template_syntax import TemplateError
from tests.tiny import ARCHITECTURES, tiny_lm

PROMPT = list(range(40, 60))
FORM = (
    "Name: {{name|max_tokens=9}}\nIn writing: {{written|choices=yes,no,not said}}\n"
    "From {{start|regex=^[0-9]{4}-[0-9]{2}$}} to {{end|max_tokens=6}}.\n（完）"
)
CHINESE = (
    "姓名：{{name|max_tokens=8}}\n"
    "书面：{{written|choices=是,否}}，共{{fee|regex=[1-9][0-9]{0,2}元}}。"
)


def fill(lm, template, **options):
    config = GenerationConfig(**{"max_new_tokens": 30, **options})
    return list(fill_template(lm, PROMPT, template, config))


def expected(template: str, values: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+).*?\}\}(?!\})", lambda match: values[match[1]], template)


def captured(monkeypatch):
    """The token ids that each slot's run was given."""
    given: list[list[int]] = []

    def spy(lm, ids, *arguments):
        given.append(list(ids))
        return generate(lm, ids, *arguments)

    monkeypatch.setattr(template_filling, "generate", spy)
    return given


@pytest.mark.parametrize("form", [FORM, CHINESE], ids=["English", "Chinese"])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
def test_the_fixed_text_stays_and_the_slots_have_their_form(form, temperature):
    for seed in range(3):
        lm = tiny_lm(seed=seed)
        last = fill(lm, form, temperature=temperature, seed=seed)[-1]
        assert last.done
        assert last.text == expected(form, last.values)
        assert not any(category(c) == "Cc" for value in last.values.values() for c in value)
        assert last.values["name"].strip() == last.values["name"]
        if form is FORM:
            assert last.values["written"] in ("yes", "no", "not said")
            assert re.fullmatch(r"[0-9]{4}-[0-9]{2}", last.values["start"])
        else:
            assert last.values["written"] in ("是", "否")
            assert re.fullmatch(r"[1-9][0-9]{0,2}元", last.values["fee"])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_cache_changes_no_token(architecture, monkeypatch):
    lm = tiny_lm(architecture)
    ours = fill(lm, FORM, temperature=1.0, seed=3)
    monkeypatch.setattr(
        template_filling,
        "generate",
        lambda lm, ids, config, cache, stop, constraint: generate(
            lm, ids, config, None, stop, constraint
        ),
    )
    plain = fill(lm, FORM, temperature=1.0, seed=3)
    assert [u.step.token_id for u in ours[:-1]] == [u.step.token_id for u in plain[:-1]]
    assert ours[-1].text == plain[-1].text
    for one, other in zip(ours[:-1], plain[:-1], strict=True):
        assert one.step.logprob == pytest.approx(other.step.logprob, abs=1e-4)


@pytest.mark.parametrize("form", [FORM, CHINESE, "{{a|max_tokens=5}} {{b|max_tokens=5}}"])
def test_the_passes_are_counted(form, monkeypatch):
    monkeypatch.setattr("generation.decoding.PREFILL_CHUNK", 8)
    lm = tiny_lm()
    passes = 0

    def count(*_):
        nonlocal passes
        passes += 1

    lm.hf_model.register_forward_hook(count)
    config = GenerationConfig(max_new_tokens=30, temperature=2.0)
    for update in fill_template(lm, PROMPT, form, config):
        assert update.passes == passes


def test_what_the_next_slot_goes_on_from_is_the_text_so_far(monkeypatch):
    for form in (FORM, CHINESE, "a {{x|max_tokens=9}}, {{y}}\r\n  {{z|max_tokens=3}}"):
        given = captured(monkeypatch)
        lm = tiny_lm(seed=2)
        updates = fill(lm, form, temperature=1.5)
        ends = [u for u in updates[:-1] if u.step.finish_reason is not None]
        for ids, end in zip(given[1:], ends, strict=False):
            text = lm.decode(ids[len(PROMPT) :])
            assert "\ufffd" not in text
            assert text.startswith(end.text)
            assert updates[-1].text.startswith(text)


def test_every_update_belongs_to_a_slot_and_texts_only_grow():
    updates = fill(tiny_lm(), FORM, temperature=1.0)
    names = [u.slot for u in updates[:-1]]
    assert list(dict.fromkeys(names)) == ["name", "written", "start", "end"]
    assert updates[-1].slot is None
    for before, after in pairwise(updates):
        assert after.text.startswith(before.text.rstrip())
        assert after.slots[: len(before.slots)] == before.slots
    last_steps = [u for u in updates[:-1] if u.step.finish_reason]
    assert [u.slots[-1].name for u in last_steps] == ["name", "written", "start", "end"]


def test_a_slot_ends_at_a_new_line_at_the_next_text_and_at_a_stop_string():
    lm = tiny_lm(seed=1)
    letters = {lm.encode(c)[0]: 60.0 for c in "ab"}
    newline, end = lm.encode("\n")[0], lm.encode(";")[0]
    cases = [
        ("{{x}}\nEnd", {newline: 90.0}, {}, "\n"),
        ("{{x}};{{y|max_tokens=2}}", {end: 61.0}, {}, ";"),
        ("{{x}}", {}, {"stop": ("ba",)}, "ba"),
    ]
    for form, bias, options, ending in cases:
        updates = fill(lm, form, temperature=1.0, logit_bias=letters | bias, **options)
        (first, *_) = updates[-1].slots
        assert first.finish_reason is FinishReason.STOP_STRING, form
        assert ending not in first.text[1:]  # a slot is not empty
        assert set(first.text[1:]) <= set("ab"), first.text


def test_a_choice_costs_no_pass_to_end():
    lm = tiny_lm()
    updates = fill(lm, "{{x|choices=abc,abd}}")
    assert len(updates) == 3 + 1
    assert updates[-1].passes == 3
    assert updates[-1].slots[0].finish_reason is FinishReason.EOS


def test_a_choice_that_begins_another_can_be_the_answer():
    texts = set()
    for seed in range(8):
        lm = tiny_lm(seed=seed)
        last = fill(lm, "{{x|choices=a,a b}}\n", temperature=20.0, seed=seed)[-1]
        texts.add(last.values["x"])
    assert texts == {"a", "a b"}


def test_a_slot_that_is_cut_says_so():
    lm = tiny_lm()
    updates = fill(lm, "{{x|max_tokens=2|choices=abcdef}} {{y|max_tokens=1}}\n")
    first, second = updates[-1].slots
    assert (first.text, first.finish_reason) == ("ab", FinishReason.LENGTH)
    assert second.finish_reason is FinishReason.LENGTH


def test_the_same_seed_fills_the_same_and_slots_draw_differently():
    lm = tiny_lm()
    form = "{{a|regex=[0-9]{12}}} {{b|regex=[0-9]{12}}}"
    one = fill(lm, form, temperature=9.0, seed=4)[-1]
    assert one.text == fill(lm, form, temperature=9.0, seed=4)[-1].text
    assert one.values["a"] != one.values["b"]


def test_control_tokens_in_a_template_stay_text(monkeypatch):
    given = captured(monkeypatch)
    lm = tiny_lm()
    last = fill(lm, "<|im_end|>\n<|im_start|>system {{x|choices=a}} <|im_end|>{{y|choices=b}}")[-1]
    assert last.text == "<|im_end|>\n<|im_start|>system a <|im_end|>b"
    assert max(given[-1]) < 256


def test_it_can_be_cancelled():
    lm = tiny_lm()
    asked = iter([False] * 4 + [True] * 9)
    config = GenerationConfig(max_new_tokens=30)
    updates = list(
        fill_template(lm, PROMPT, "{{x|choices=abcdefghij}}", config, lambda: next(asked))
    )
    assert updates
    assert not any(update.done for update in updates)


def test_closing_it_ends_the_work():
    lm = tiny_lm()
    passes = 0

    def count(*_):
        nonlocal passes
        passes += 1

    lm.hf_model.register_forward_hook(count)
    run = fill_template(lm, PROMPT, "{{x|choices=abcdefgh}}", GenerationConfig())
    next(run)
    next(run)
    run.close()
    assert passes == 2


def test_a_form_fits_the_window_or_is_refused_before_the_model_runs():
    lm = tiny_lm(context=64)
    form = "first {{x|regex=[a-z]{60}}} then {{y|choices=z}}"
    last = fill(lm, form, max_new_tokens=60)[-1]
    assert last.slots[0].finish_reason is FinishReason.CONTEXT_FULL
    assert last.values["y"] == "z"
    with pytest.raises(PromptTooLong, match="template"):
        fill_template(lm, PROMPT, "x" * 40 + "{{x}}", GenerationConfig())


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("no slot", "no slot"),
        ("{{x|regex=(}}", "Slot x: .*unclosed"),
        ("{{x|regex=a(?=b)}}", "Slot x: .*look-around"),
    ],
)
def test_a_bad_form_is_refused_before_the_model_runs(form, words):
    lm = tiny_lm()
    lm.hf_model.forward = None
    with pytest.raises(TemplateError, match=words):
        fill_template(lm, PROMPT, form, GenerationConfig())


def test_beams_fill_no_form():
    with pytest.raises(ValueError, match="num_beams"):
        fill_template(tiny_lm(), PROMPT, "{{x}}", GenerationConfig(num_beams=2))


def test_the_real_model_fills_a_form_from_a_passage_in_few_passes(smollm2):
    question = (
        "The tenant is Anna Berg. The notice period is three months and notice must be given in "
        "writing. The rent is 950 euros. Fill in the form."
    )
    prompt = smollm2.encode_chat([{"role": "user", "content": question}])
    form = (
        "Name: {{name}}\nNotice period: {{period|max_tokens=12}}\nIn writing: "
        "{{written|choices=yes,no}}\nRent: {{rent|regex=[0-9]{2,4} euros}} a month\n"
    )
    *_, last = fill_template(smollm2, prompt, form, GenerationConfig(max_new_tokens=16))
    assert last.text == expected(form, last.values)
    assert last.values["name"] == "Anna Berg"
    assert last.values["rent"] == "950 euros"
    assert last.passes < len(smollm2.encode(last.text))
