"""The comparison drawn: the receipt, the mark where answers part, and untrusted text kept text."""

from types import SimpleNamespace

import pytest

from generation.config import GenerationConfig
from generation.method import Method
from generation.step import FinishReason, Step
from ui import compare_view
from ui.comparing import ComparisonUpdate, SideRun
from ui.prompt_difference import difference, difference_html
from ui.token_view import divergence_mark

HOSTILE = '<img src=x onerror="alert(1)"> </pre><script>alert(1)</script>'


def step(token_id, text, reason=None, logprob=-0.5):
    return Step(
        position=token_id,
        token_id=token_id,
        text=text,
        logprob=logprob,
        sampler_logprob=0.0,
        rank=1,
        entropy=0.1,
        end_prob=0.0,
        candidates=(),
        seconds=0.1,
        finish_reason=reason,
    )


def prompt(question="Where?", passage=None):
    parts = [{"type": "text", "text": "Answer the question.\n", "trusted": True}]
    if passage is not None:
        parts.append({"type": "text", "text": f"{passage}\n", "trusted": False})
    parts.append({"type": "text", "text": question, "trusted": False})
    used = (SimpleNamespace(document="a.md", text=passage),) if passage is not None else ()
    messages = [{"role": "user", "content": parts}]
    return SimpleNamespace(messages=messages, used=used, dropped=(), history_dropped=0, tokens=9)


def side(pieces, reason=FinishReason.EOS, **kwargs):
    steps = [step(n, piece) for n, piece in enumerate(pieces)]
    return SideRun(prompt(**kwargs), 9, steps, list(pieces), reason)


def update(with_side, without_side, **kwargs):
    runs = {"with": with_side, "without": without_side}
    return ComparisonUpdate("writing", "Where?", GenerationConfig(), runs=runs, **kwargs)


def test_the_bar_stands_before_the_first_differing_token_on_both_sides():
    shown = update(side(["It is", " Paris", "."]), side(["It is", " Rome", "."]), divergence=1)
    html = compare_view.columns_html(shown, "en")
    assert html.count('class="diverge"') == 2
    for answer in ("Paris", "Rome"):
        assert f"</span><strong>{answer}</strong>" in html


def test_a_difference_in_the_end_token_is_marked_at_the_end():
    html = compare_view.answer_html(side(["Yes", ""]), 1, "en")
    assert html.index("Yes") < html.index('class="diverge"')


def test_no_bar_while_the_answers_are_equal():
    html = compare_view.answer_html(side(["Yes", "."]), None, "en")
    assert "diverge" not in html
    assert "<strong>" not in html


@pytest.mark.parametrize("piece", ["**bold", "`code", "[link](", "\n\n- item", "\ue010\ue011"])
def test_markdown_at_the_point_of_divergence_stays_well_formed(piece):
    html = compare_view.answer_html(side(["A ", piece, " end"]), 1, "en")
    assert html.count("<strong>") == html.count("</strong>")
    assert html.count('class="diverge"') == 1
    assert not set(html) & {"\ue010", "\ue011", "\ue012"}


@pytest.mark.parametrize("text", [HOSTILE, "![x](http://evil.example/x.png)", "<think>"])
def test_an_answer_never_becomes_markup(text):
    html = compare_view.answer_html(side([text]), 0, "en")
    for tag in ("<img", "<script", "<think", "</pre>"):
        assert tag not in html


@pytest.mark.parametrize(
    ("answer", "links"),
    [("Rent is due monthly [1] and [2].", 1), ("The moon is far away [1].", 0)],
)
def test_only_supported_citations_of_shown_passages_are_linked(answer, links):
    shown = side([answer], passage="The rent is due monthly.")
    assert compare_view.answer_html(shown, None, "en").count('class="cite"') == links


def test_the_receipt_says_what_is_equal_and_how_many_tokens_differ():
    shown = update(side(["a"], passage="Passage text"), side(["b"]), differing=1412)
    html = compare_view.receipt_html(shown, "en")
    for words in ("same weights", "same decoder: greedy", "same seed 0", "1,412 prompt tokens"):
        assert words in html
    assert html.count("only-with") >= 2  # the key and the passage


def test_equal_prompts_are_called_equal():
    html = compare_view.receipt_html(update(side(["a"]), side(["a"])), "en")
    assert "same prompt" in html
    assert "difference" not in html


def test_the_decoder_is_described_by_the_options_that_act():
    config = GenerationConfig(temperature=0.7, top_p=0.9)
    assert compare_view.decoder_text(config, Method(), "en") == "T 0.7 · top-p 0.9"


def test_only_the_passages_are_marked_as_different():
    marked = difference(prompt(passage="Line one\nline two"), prompt())
    assert [m.line.text for m in marked if m.only == "with"] == ["Line one\n", "line two\n"]
    assert not [m for m in marked if m.only == "without"]


def test_prompt_text_stays_text_in_the_difference():
    html = difference_html(prompt(HOSTILE, HOSTILE), prompt(HOSTILE), "en")
    assert "<img" not in html
    assert "<script" not in html


def test_the_finish_line_carries_the_measured_figures():
    facts = compare_view.run_facts(side(["a", "b", "c"]), "en")
    assert "3 tokens" in facts
    assert "mean log-prob −0.50" in facts
    assert "10.0 tokens/s" in facts


def test_tokens_and_prompts_can_be_opened_only_when_nothing_changes_any_more():
    shown = update(side(["a"]), side(["b"]))
    assert "<details" not in compare_view.columns_html(shown, "en")
    done = ComparisonUpdate("done", "Where?", GenerationConfig(), runs=shown.runs)
    assert "<details" in compare_view.columns_html(done, "en")


def test_a_sentence_from_a_passage_points_at_it_wherever_the_bar_stands():
    sentence = "The Ashgrove orchard was planted in 1911 by Petra Lindqvist."
    words = [word + " " for word in sentence.split()]
    for divergence in (0, 3, len(words) - 1, None):
        run = side(words, passage=sentence)
        html = compare_view.answer_html(run, divergence, "en")
        assert html.count('class="cite found"') == 1
        assert html.index("Lindqvist") < html.index('class="cite found"')
        bare = html.replace("<strong>", "").replace("</strong>", "")
        assert "orchard was planted" in bare.replace(divergence_mark("en"), "")
