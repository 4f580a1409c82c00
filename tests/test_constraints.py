"""Every answer under a constraint has its form, whatever the model would rather have written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from generation.choices import ChoiceConstraint
from generation.config import GenerationConfig
from generation.constraints import json_constraint, regex_constraint
from generation.decoding import generate
from generation.errors import ConstraintError
from generation.step import FinishReason
from generation.template_filling import fill_template
from tests.tiny import VOCABULARY, tiny_lm

PROMPT = list(range(40, 60))

CLAUSE = {
    "type": "object",
    "properties": {
        "period": {"enum": ["一个月", "三个月", "半年"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 365},
        "in_writing": {"type": "boolean"},
        "party": {
            "type": "object",
            "properties": {"role": {"const": "tenant"}, "name": {"type": "string", "maxLength": 5}},
            "required": ["role", "name"],
            "additionalProperties": False,
        },
        "fees": {
            "type": "array",
            "items": {"type": "number", "minimum": -1, "maximum": 1, "multipleOf": 0.5},
            "minItems": 1,
            "maxItems": 3,
        },
    },
    "required": ["period", "days", "in_writing", "party", "fees"],
    "additionalProperties": False,
}


def is_clause(value) -> bool:
    return (
        list(value) == list(CLAUSE["properties"])
        and value["period"] in ("一个月", "三个月", "半年")
        and type(value["days"]) is int
        and 0 <= value["days"] <= 365
        and value["in_writing"] in (True, False)
        and list(value["party"]) == ["role", "name"]
        and value["party"]["role"] == "tenant"
        and len(value["party"]["name"]) <= 5
        and 1 <= len(value["fees"]) <= 3
        and all(-1 <= fee <= 1 and fee * 2 == int(fee * 2) for fee in value["fees"])
    )


SCHEMAS: list[tuple[dict, Callable[[object], bool]]] = [
    ({"enum": ["yes", "no", 3, None]}, lambda v: v in ("yes", "no", 3, None)),
    (
        {"type": "integer", "minimum": -20, "maximum": 1999},
        lambda v: type(v) is int and -20 <= v <= 1999,
    ),
    ({"type": "string", "pattern": "^[一-龥]{2,4}$"}, lambda v: re.fullmatch("[一-龥]{2,4}", v)),
    (
        {"type": "array", "items": {"enum": ["甲", "乙"]}, "maxItems": 6},
        lambda v: len(v) <= 6 and set(v) <= {"甲", "乙"},
    ),
    (CLAUSE, is_clause),
]
PATTERNS = [
    r"[A-Z][a-z]{1,8} (is|was) [0-9]{1,4}\.",
    r"(一|两|三)个(月|星期)",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    r"(?s:.{0,12})",
    r"",
    r"(yes|no)(, because [^.\n]{3,9}\.)?",
]


def run(lm, constraint, prompt=PROMPT, **options):
    """The steps and the text without its end-of-text token."""
    config = GenerationConfig(**{"max_new_tokens": 300, **options})
    steps = list(generate(lm, prompt, config, constraint=constraint))
    return steps, lm.decode([s.token_id for s in steps if s.token_id not in lm.end_ids])


@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
def test_every_answer_of_a_random_model_has_the_form_of_the_schema(temperature):
    for seed, (schema, check) in enumerate(SCHEMAS):
        lm = tiny_lm(seed=seed)
        steps, text = run(lm, json_constraint(lm, schema), temperature=temperature, seed=seed)
        assert steps[-1].finish_reason is FinishReason.EOS, text
        assert check(json.loads(text)), text


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_every_answer_of_a_random_model_matches_the_expression(pattern, temperature):
    for seed in range(2):
        lm = tiny_lm(seed=seed)
        constraint = regex_constraint(lm, pattern)
        steps, text = run(lm, constraint, temperature=temperature, seed=seed)
        assert steps[-1].finish_reason is FinishReason.EOS
        assert re.fullmatch(pattern, text), text


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_constraint_that_allows_everything_changes_no_token(temperature):
    lm = tiny_lm(seed=3, end_ids=frozenset({256}))
    for prompt in (PROMPT, [104, 101], lm.encode("一次")):
        options = dict(temperature=temperature, max_new_tokens=60, seed=5)
        constraint = regex_constraint(lm, r"(?s:.*)")
        free = list(generate(lm, prompt, GenerationConfig(**options)))
        text = lm.decode([s.token_id for s in free])
        if "\ufffd" in text or any(s.token_id > 256 for s in free):
            free = free[: len(free_prefix(lm, free))]  # what is no text is not allowed
        if temperature and len(free) < 60:
            continue  # the draws are no longer comparable
        ours, _ = run(lm, constraint, prompt, **options)
        assert [s.token_id for s in ours[: len(free)]] == [s.token_id for s in free]
        assert [s.logprob for s in ours[: len(free)]] == [s.logprob for s in free]


def free_prefix(lm, steps):
    """The first steps that are whole characters and no control tokens."""
    best = 0
    for n in range(1, len(steps) + 1):
        ids = [s.token_id for s in steps[:n]]
        if max(ids) < 256 and "\ufffd" not in lm.decode(ids):
            best = n
    return steps[:best]


def test_what_the_model_predicted_is_recorded_beside_what_was_allowed():
    lm = tiny_lm()
    (free,) = generate(lm, PROMPT, GenerationConfig(max_new_tokens=1))
    steps, _ = run(lm, ChoiceConstraint(lm, ["x"]), num_candidates=VOCABULARY)
    first, end = steps
    assert first.logprob < 0
    assert first.sampler_logprob == 0.0  # nothing else was possible
    assert first.rank > 1
    assert first.entropy == pytest.approx(free.entropy)
    assert {c.sampler_logprob for c in first.candidates if c.token_id != first.token_id} == {
        -torch.inf
    }
    assert end.token_id in lm.end_ids


# Where an answer may end


def test_the_end_is_allowed_only_when_the_form_is_complete():
    lm = tiny_lm()
    logits = torch.zeros(1, VOCABULARY)
    constraint = regex_constraint(lm, "ab?")
    states = []
    for text in ("", "a", "b"):
        for token_id in lm.encode(text):
            constraint.accept(token_id)
        allowed = constraint.allowed(logits)[0].isfinite().nonzero().flatten().tolist()
        ends = [i for i in allowed if i in lm.end_ids]
        texts = [lm.decode([i]) for i in allowed if i not in lm.end_ids]
        states.append((ends, texts, constraint.satisfied, constraint.finished))
    end_ids = sorted(lm.end_ids)
    assert states == [
        ([], ["a"], False, False),
        (end_ids, ["b"], True, False),
        (end_ids, [], True, True),
    ]


def test_an_answer_cut_by_the_length_limit_says_so():
    lm = tiny_lm()
    steps, text = run(lm, ChoiceConstraint(lm, ["abcdef"]), max_new_tokens=3)
    assert text == "abc"
    assert steps[-1].finish_reason is FinishReason.LENGTH


def test_a_model_without_an_end_token_ends_when_nothing_can_follow():
    lm = tiny_lm(end_ids=frozenset())
    steps, text = run(lm, ChoiceConstraint(lm, ["yes", "no"]))
    assert text in ("yes", "no")
    assert steps[-1].finish_reason is FinishReason.EOS


def test_an_ordinary_token_that_ends_answers_is_never_part_of_one():
    end = 65
    lm = tiny_lm(end_ids=frozenset({end}))
    letter = lm.decode([end])
    steps, text = run(lm, regex_constraint(lm, f"x|{letter}"))
    assert text == "x"
    assert steps[-1].token_id == end


@pytest.mark.parametrize(
    "options",
    [
        {"no_repeat_ngram_size": 1},
        {"min_new_tokens": 50},
        {"repetition_penalty": 5.0, "presence_penalty": 2.0, "frequency_penalty": 2.0},
        {"temperature": 2.0, "top_k": 1},
        {"temperature": 2.0, "top_p": 1e-6},
        {"temperature": 2.0, "min_p": 1.0},
        {"temperature": 2.0, "typical_p": 0.1},
        {"logit_bias": {97: -100, 256: 100}},
    ],
    ids=str,
)
def test_no_other_option_breaks_the_form(options):
    lm = tiny_lm(seed=1)
    steps, text = run(lm, ChoiceConstraint(lm, ["aaaaaaaa", "bbbbbbbb"]), **options)
    assert text in ("aaaaaaaa", "bbbbbbbb")
    assert all(s.sampler_logprob > -torch.inf for s in steps)
    _, text = run(lm, json_constraint(lm, CLAUSE), **options)
    assert is_clause(json.loads(text))


def test_logits_may_be_wider_than_the_vocabulary():
    lm = tiny_lm(vocabulary=300)
    steps, _ = run(lm, regex_constraint(lm, "(?s:.{1,20})"), temperature=3.0)
    assert max(s.token_id for s in steps) < VOCABULARY


def test_spaces_between_the_signs_of_a_json_text_cannot_go_on_for_ever():
    lm = tiny_lm()
    bias = {lm.encode(" ")[0]: 100, lm.encode("\n")[0]: 100}
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    steps, text = run(lm, json_constraint(lm, schema), logit_bias=bias)
    assert json.loads(text) == {"a": 1}
    assert len(steps) < 120


# Forms that cannot be followed


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "unclosed group"),
        ("[a", "unclosed character class"),
        ("a(?=b)", "look-around"),
        (r"(a)\1", "backreferences"),
        (r"\bword", "lookarounds"),
        ("a^b", "lookarounds"),
        (r"[^\s\S]", "cannot"),
        ("a\ud800", "half a character"),
        (None, "must be text"),
        (b"a", "must be text"),
    ],
)
def test_a_bad_expression_is_refused_in_one_sentence(pattern, words):
    with pytest.raises(ValueError, match="regular expression") as caught:
        regex_constraint(tiny_lm(), pattern)
    check_sentence(str(caught.value), words)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "line 1"),
        ("3", "must be an object"),
        ([], "must be an object"),
        (None, "must be an object"),
        ({"type": "text"}, "Invalid type: text"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"not": {}}, "not"),
        ({"$ref": "http://example.org/schema"}, "example.org"),
        ({"$ref": "#/nowhere"}, "nowhere"),
        ({"type": "string", "format": "colour"}, "colour"),
        ({"type": "string", "pattern": "(?!a)"}, "look-around"),
        ({"type": "integer", "minimum": 5, "maximum": 2}, "minimum"),
        ({"enum": []}, "Unsatisfiable"),
        (False, "Unsatisfiable"),
        ({"const": float("nan")}, "no JSON"),
        ({"const": {1, 2}}, "no JSON"),
        ({"const": "\ud800"}, "half a character"),
    ],
    ids=str,
)
def test_a_bad_schema_is_refused_in_one_sentence(schema, words):
    with pytest.raises(ValueError, match="JSON schema") as caught:
        json_constraint(tiny_lm(), schema)
    check_sentence(str(caught.value), words)


def check_sentence(message: str, words: str) -> None:
    assert words in message
    assert message.endswith(".")
    assert "\n" not in message


def test_a_schema_that_contains_itself_too_deeply_is_refused():
    schema: dict = {}
    for _ in range(3000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(ConstraintError, match="JSON schema"):
        json_constraint(tiny_lm(), schema)


def test_a_token_that_was_not_allowed_is_reported():
    lm = tiny_lm()
    constraint = regex_constraint(lm, "ab")
    with pytest.raises(ConstraintError):
        constraint.accept(lm.encode("b")[0])


def test_a_schema_may_be_text_or_the_word_true():
    lm = tiny_lm()
    _, text = run(lm, json_constraint(lm, '{"const": {"甲": [1, null]}}'))
    assert json.loads(text) == {"甲": [1, None]}
    constraint = json_constraint(lm, True)
    for token_id in lm.encode('{"a": [1, "二"]}'):
        constraint.accept(token_id)
    assert constraint.satisfied


# A trained model


def test_the_real_model_fills_schemas(smollm2):
    question = "Give the notice period of a lease of three months in writing. Answer as JSON."
    prompt = smollm2.encode_chat([{"role": "user", "content": question}])
    for schema, check in SCHEMAS[1:]:
        constraint = json_constraint(smollm2, schema)
        steps, text = run(smollm2, constraint, prompt, max_new_tokens=120)
        assert steps[-1].finish_reason is FinishReason.EOS, text
        assert check(json.loads(text)), text


def test_the_real_model_matches_expressions(smollm2):
    prompt = smollm2.encode_chat([{"role": "user", "content": "What is the capital of France?"}])
    for pattern in PATTERNS[:3]:
        steps, text = run(smollm2, regex_constraint(smollm2, pattern), prompt, max_new_tokens=60)
        assert steps[-1].finish_reason is FinishReason.EOS, text
        assert re.fullmatch(pattern, text), text


def test_a_constraint_that_allows_everything_changes_nothing_for_the_real_model(smollm2):
    prompt = smollm2.encode_chat([{"role": "user", "content": "What is the capital of France?"}])
    free, text = run(smollm2, None, prompt, max_new_tokens=40)
    ours, same = run(smollm2, regex_constraint(smollm2, "(?s:.*)"), prompt, max_new_tokens=40)
    assert same == text
    assert [s.token_id for s in ours] == [s.token_id for s in free]
    assert ours[-1].finish_reason is free[-1].finish_reason


# Vocabularies of another kind

SIGNS = [*'abcdefghijklmnopqrstuvwxyz0123456789.,:{}"[]']


def llama_style_tokenizer(style: str) -> PreTrainedTokenizerFast:
    """As llama's: words begin with a mark, and what has no piece is spelled in bytes."""
    merges = [("▁", "y"), ("▁y", "e"), ("▁ye", "s"), ("▁", "n"), ("▁n", "o")]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *SIGNS]
    pieces += [left + right for left, right in merges]
    backend = Tokenizer(
        models.BPE(
            {piece: n for n, piece in enumerate(pieces)},
            merges,
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    if style == "normalizer":
        steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        backend.normalizer = normalizers.Sequence(steps)
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("style", ["normalizer", "metaspace"])
def test_forms_hold_where_words_carry_their_spaces(style):
    tokenizer = llama_style_tokenizer(style)
    lm = replace(tiny_lm(vocabulary=320, end_ids=frozenset({2})), tokenizer=tokenizer)
    prompt = lm.encode("q: a")
    expression = " (yes|no)[0-9]{2}三?"
    for seed in range(3):
        options = dict(temperature=2.0, seed=seed)
        steps, _ = run(lm, regex_constraint(lm, expression), prompt, **options)
        ids = [s.token_id for s in steps if s.token_id not in lm.end_ids]
        written = lm.decode([*prompt, *ids])[len(lm.decode(prompt)) :]
        assert re.fullmatch(expression, written), written
        _, text = run(lm, json_constraint(lm, {"enum": [{"a": "甲 b"}, ["c"]]}), prompt, **options)
        assert json.loads(text) in ({"a": "甲 b"}, ["c"])
        form = "ok: {{w|choices=yes,no}} and {{n|max_tokens=5}}, {{z|regex=[0-9]{2}}}."
        *_, last = fill_template(lm, prompt, form, GenerationConfig(**options))
        assert re.fullmatch(r"ok: (yes|no) and .*, [0-9]{2}\.", last.text), last.text


def test_the_vocabulary_may_be_larger_than_the_model():
    lm = tiny_lm(vocabulary=256, end_ids=frozenset({5}))
    _, text = run(lm, regex_constraint(lm, "[a-z]{3}"))
    assert re.fullmatch("[a-z]{3}", text)
