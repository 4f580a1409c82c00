"""Answers on a terminal and as JSON, over real generation on a tiny model."""

import json

import pytest

from generation.config import GenerationConfig
from rag.retrieval_config import RetrievalConfig
from tests.ui_fakes import parts, passage, retrieval
from ui import cli_answers
from ui.session import answer

SHORT = GenerationConfig(max_new_tokens=8)


def ask(made, config=SHORT, as_json=False, use_retrieval=True, question="How long?"):
    cli_answers.ask(
        made,
        question,
        config,
        retrieval=RetrievalConfig() if use_retrieval else None,
        language="en",
        as_json=as_json,
    )


def test_json_has_exactly_the_documented_fields(capsys):
    ask(parts(end_ids=frozenset()), as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert list(record) == [
        *("answer", "finish_reason", "prompt_tokens", "completion_tokens", "searched_for"),
        *("passages", "left_out", "rejected", "considered", "history_dropped", "seconds"),
    ]
    assert list(record["seconds"]) == ["rewriting", "retrieval", "prefill", "decode"]
    assert record["searched_for"] == {"text": "How long?", "origin": "as_asked"}
    for entry in record["passages"]:
        assert (entry["document"], entry["page"], entry["document_id"]) == ("lease.pdf", 4, "d")
        assert entry["text"] and entry["end"] > entry["start"]
        assert entry["dense_rank"] and entry["dropped"] is None
    assert len(record["passages"]) == 2
    assert record["finish_reason"] == "length"
    assert record["completion_tokens"] == 8
    assert record["prompt_tokens"] > 0


def test_json_and_the_terminal_carry_the_answer_of_the_session(capsys):
    made = parts(end_ids=frozenset())
    text = list(answer(made, "How long?", config=SHORT))[-1].text
    ask(made, as_json=True)
    assert json.loads(capsys.readouterr().out)["answer"] == text


@pytest.mark.parametrize("beams", [1, 3])
def test_an_answer_is_printed_once_with_its_passages_and_its_end(beams, capsys):
    ask(parts(end_ids=frozenset()), GenerationConfig(max_new_tokens=8, num_beams=beams))
    out = capsys.readouterr().out
    assert "[1] lease.pdf" in out
    assert "8 tokens" in out
    assert "stopped at the length limit" in out


def test_without_retrieval_no_passage_is_printed(capsys):
    ask(parts(), use_retrieval=False)
    assert "lease.pdf" not in capsys.readouterr().out


def test_a_problem_is_raised_as_its_sentence():
    with pytest.raises(cli_answers.AnswerError, match="does not fit"):
        ask(parts(), question="long " * 2000)


def test_growing_text_is_printed_piece_by_piece_and_harmless(capsys):
    write = cli_answers.Typewriter()
    for text in ("a", "a\x1b[2J", "a\x1b[2J\u202eb"):
        write(text)
    assert capsys.readouterr().out == "a\\u001b[2J\\u202eb"


def test_a_comparison_prints_both_answers_and_where_they_part(capsys):
    made = parts(end_ids=frozenset())
    cli_answers.compare(
        made, "How long?", SHORT, retrieval=RetrievalConfig(), language="en", as_json=False
    )
    out = capsys.readouterr().out
    assert out.index("With retrieval:") < out.index("Without retrieval:")
    assert "The answers part at token" in out
    assert "marked in red" not in out  # nothing is, in a terminal


def test_a_comparison_as_json_has_both_sides(capsys):
    made = parts(retrieval(passage(1)), end_ids=frozenset())
    cli_answers.compare(
        made, "How long?", SHORT, retrieval=RetrievalConfig(), language="en", as_json=True
    )
    record = json.loads(capsys.readouterr().out)
    assert record["with"]["prompt_tokens"] > record["without"]["prompt_tokens"]
    assert isinstance(record["first_difference"], int)
    assert len(record["passages"]) == 1
