"""`python -m generation`: its options are the fields, its lines the steps, an error a sentence."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields

import pytest

from generation import __main__ as command
from generation import command_options, command_output
from generation.command_options import STRATEGIES, option_names, parse
from generation.command_output import as_json, as_text, visible
from generation.config import GenerationConfig
from generation.decoding import generate
from generation.strategies import Method
from tests.tiny import tiny_lm


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line on a tiny model; the exit status, what it printed, what it said."""

    def call(*arguments, lm=None):
        lm = lm or tiny_lm()
        monkeypatch.setattr(command, "load_model", lambda *_: lm)
        try:
            status = command.main(arguments)
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def objects(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


# Options


@pytest.mark.parametrize("record", [GenerationConfig, Method])
def test_every_field_is_an_option_with_its_comment_as_help(record, capsys):
    with pytest.raises(SystemExit) as stop:
        parse(["--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert list(option_names(record)) == [field.name for field in fields(record)]
    for option in option_names(record).values():
        assert option in text
    if record is GenerationConfig:
        assert "0 is greedy" in text
        assert "strings that end the answer" in text


def test_options_reach_the_records_that_they_are_named_after():
    numbers = ["--max-new-tokens", "7", "--temperature", "0.5", "--logit-bias", "5=-2.5"]
    words = ["--stop", "a", "--stop", "b", "--regex", "x|y", "--stop-on-repetition"]
    request = parse(["hi", *numbers, *words, "--top-k", "3"])
    assert request.config == GenerationConfig(
        max_new_tokens=7,
        temperature=0.5,
        top_k=3,
        stop=("a", "b"),
        logit_bias={5: -2.5},
        stop_on_repetition=True,
    )
    assert request.method == Method(regex="x|y")
    assert parse(["hi", "--num-beams", "2", "--early-stopping", "true"]).config.early_stopping
    assert parse(["hi", "--early-stopping", "never"]).config.early_stopping == "never"


def test_without_options_everything_is_as_the_records_have_it():
    request = parse(["hi"])
    assert (request.config, request.method) == (GenerationConfig(), Method())
    assert (request.model, request.device, request.raw) == ("auto", "auto", False)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_sets_what_it_is_known_by(strategy):
    more = {"context-aware": ["--context", "c"], "template": ["--template", "{{x}}"]}
    request = parse(["hi", "--strategy", strategy, *more.get(strategy, [])])
    values = {**vars_of(request.config), **vars_of(request.method)}
    assert {name: values[name] for name in STRATEGIES[strategy]} == STRATEGIES[strategy]


def vars_of(record) -> dict:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def test_what_is_given_goes_before_what_a_strategy_sets():
    assert parse(["hi", "--strategy", "sample", "--temperature", "0.3"]).config.temperature == 0.3
    assert parse(["hi", "--strategy", "beam", "--num-beams", "9"]).config.num_beams == 9


def test_a_field_of_a_new_kind_is_noticed():
    @dataclass
    class Record:
        thing: dict[str, int]

    with pytest.raises(TypeError, match=r"Record\.thing"):
        command_options.add_fields(command_options._make_parser(), Record)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "prompt"),
        (["a", "b"], "b"),
        (["a", "--temprature", "1"], "temprature"),
        (["a", "--temp", "1"], "temp"),
        (["a", "--temperature", "hot"], "temperature"),
        (["a", "--temperature", "nan"], "temperature"),
        (["a", "--top-p", "2"], "top_p"),
        (["a", "--max-new-tokens", "1.5"], "max_new_tokens"),
        (["a", "--logit-bias", "x"], "logit_bias"),
        (["a", "--early-stopping", "soon"], "early_stopping"),
        (["a", "--strategy", "magic"], "magic"),
        (["a", "--strategy", "greedy", "--temperature", "1"], "greedy"),
        (["a", "--strategy", "sample", "--temperature", "0"], "sample"),
        (["a", "--strategy", "sample", "--num-beams", "3"], "sample"),
        (["a", "--strategy", "beam", "--num-beams", "1"], "beam"),
        (["a", "--strategy", "contrastive", "--temperature", "1"], "temperature"),
        (["a", "--strategy", "context-aware"], "--context"),
        (["a", "--context-alpha", "1"], "--context"),
        (["a", "--strategy", "jacobi", "--temperature", "1"], "--temperature"),
        (["a", "--strategy", "template"], "--template"),
        (["a", "--strategy", "greedy", "--template", "{{x}}"], "--template"),
        (["a", "--template", "{{x}}", "--regex", "a"], "template"),
        (["a", "--regex", "a", "--json-schema", "{}"], "regex"),
        (["a", "--raw", "--chat"], "--chat"),
        (["a", "--raw", "--system", "s"], "--system"),
    ],
)
def test_a_usage_error_is_one_sentence_and_status_2(arguments, words, run):
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
    assert err.startswith("python -m generation: ")


# Output


def test_each_token_is_one_line_with_its_numbers(run):
    lm = tiny_lm()
    status, out, _ = run("hello", "--raw", "--max-new-tokens", "6", lm=lm)
    assert status == 0
    steps = list(generate(lm, lm.encode("hello"), GenerationConfig(max_new_tokens=6)))
    lines = out.splitlines()[2 : 2 + len(steps)]
    for line, step in zip(lines, steps, strict=True):
        position, p, sampler, rank, entropy, end, *_ = line.split()
        assert (int(position), int(rank)) == (step.position, step.rank)
        assert float(p) == pytest.approx(math.exp(step.logprob), rel=0.06, abs=1e-4)
        assert float(sampler) == 1.0
        assert float(entropy) == pytest.approx(step.entropy, abs=1e-3)
        assert float(end) == pytest.approx(step.end_prob, abs=1e-4)
        assert repr(step.text) in line
    assert steps[-1].finish_reason in lines[-1]


def test_json_lines_hold_the_steps(run):
    lm = tiny_lm()
    arguments = ["hello", "--raw", "--max-new-tokens", "6", "--temperature", "2", "--top-k", "2"]
    status, out, _ = run(*arguments, "--num-candidates", "3", "--json", lm=lm)
    config = GenerationConfig(max_new_tokens=6, temperature=2.0, top_k=2, num_candidates=3)
    steps = list(generate(lm, lm.encode("hello"), config))
    first, *tokens, end = objects(out)
    assert (status, first["type"], end["type"]) == (0, "run", "end")
    assert first["strategy"] == "sampling"
    for token, step in zip(tokens, steps, strict=True):
        assert token["token_id"] == step.token_id
        assert token["logprob"] == step.logprob
        assert token["candidates"][0]["token_id"] == step.candidates[0].token_id
        cut = [c["sampler_logprob"] for c in token["candidates"]].count(None)
        assert cut == sum(c.sampler_logprob == -math.inf for c in step.candidates)
    assert end["tokens"] == len(steps)
    assert end["passes"] == len(steps)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--strategy", "sample", "--max-new-tokens", "4"], "token"),
        (["--strategy", "beam", "--max-new-tokens", "4"], "hypothesis"),
        (["--strategy", "contrastive", "--max-new-tokens", "4"], "token"),
        (["--strategy", "context-aware", "--context", "c", "--max-new-tokens", "4"], "token"),
        (["--strategy", "one-shot", "--max-new-tokens", "4"], "token"),
        (["--strategy", "jacobi", "--max-new-tokens", "4"], "pass"),
        (["--template", "a {{x|choices=yes,no}}"], "token"),
        (["--regex", "[a-c]{3}"], "token"),
        (["--json-schema", '{"enum": [1, 2]}'], "token"),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else value,
)
def test_every_strategy_runs_and_counts_its_passes(arguments, kind, run):
    lm = tiny_lm()
    passes = 0

    def count(*_):
        nonlocal passes
        passes += 1

    lm.hf_model.register_forward_hook(count)
    status, out, err = run("hello", "--raw", "--json", *arguments, lm=lm)
    assert (status, err) == (0, "")
    records = objects(out)
    assert kind in {record["type"] for record in records}
    scored = 2 if kind == "hypothesis" else 0  # for the numbers of the best text
    assert records[-1]["passes"] == passes - scored
    assert records[-1]["seconds"] > 0
    for record in records:
        assert as_text(record)


def test_a_form_shows_its_slots_and_ends_with_the_text(run):
    status, out, _ = run("q", "--raw", "--template", "In writing: {{w|choices=yes}}.")
    assert status == 0
    assert "[w]" in out
    assert "\nIn writing: yes.\n" in out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\t一　二", "a\nb\t一　二"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\u200b\ufeff\u2028", "\\u200b\\ufeff\\u2028"),
        ("\r\x00\x7f\x9b", "\\r\\x00\\x7f\\x9b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("🙂é", "🙂é"),
    ],
)
def test_signs_that_could_act_on_a_terminal_are_escaped(text, shown):
    assert visible(text) == shown
    record = {"type": "token", "position": 1, "text": text, "logprob": -1.0}
    for line in (as_text(record), as_json(record)):
        assert all(sign.isprintable() for sign in line)
    assert json.loads(as_json(record))["text"] == text


def test_small_probabilities_are_not_rounded_to_nothing():
    assert command_output._probability(math.log(3e-7)).strip() == "3.0e-07"
    assert command_output._probability(-math.inf).strip() == "0.0000"
    assert command_output._probability(None).strip() == "-"


# Errors after the model is there


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["", "--raw"], 2, "empty"),
        (["a" * 600, "--raw"], 2, "600 tokens"),
        (["a", "--raw", "--regex", "("], 2, "unclosed group"),
        (["a", "--raw", "--json-schema", "{"], 2, "JSON schema"),
        (["a", "--raw", "--template", "{{x|regex=(}}"], 2, "Slot x"),
    ],
)
def test_what_cannot_be_written_is_one_sentence_and_nothing_else(arguments, status, words, run):
    found, out, err = run(*arguments)
    assert (found, out) == (status, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_model_that_does_not_exist_is_status_1(capsys):
    assert command.main(["hi", "--model", "no-such-model"]) == 1
    assert "no-such-model" in capsys.readouterr().err


def test_the_prompt_can_come_from_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin.read", lambda: "from a pipe", raising=False)
    assert parse(["-"]).prompt == "from a pipe"


def test_the_real_model_answers_a_chat_message(smollm2, run):
    status, out, _ = run("What is the capital of France?", "--max-new-tokens", "12", lm=smollm2)
    assert status == 0
    assert "' Paris'" in out
    assert "\nThe capital of France is Paris.\n" in out
    assert out.rstrip().splitlines()[-1].startswith("eos, 8 tokens")
