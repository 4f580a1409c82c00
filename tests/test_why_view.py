"""Why these passages: every number that chose them, what became of each, and the reason."""

from dataclasses import replace

import pytest

from rag.retrieved import Dropped, Signal
from tests.ui_fakes import passage, retrieval, turn
from ui.i18n import LANGUAGES, h
from ui.meter import ContextUse
from ui.why_view import fate, percent, why_these

USE = ContextUse(10, 200, 30, 10, 256, 1000, each_passage={1: 120, 2: 512}, history_dropped=77)


def test_it_gives_both_ranks_and_says_how_little_was_read():
    shown = why_these(retrieval(passage(3, lexical_rank=2), considered=1234), "en")
    assert "1,234 passages" in shown
    assert "no. 3<small>0.900</small>" in shown  # by meaning
    assert "no. 2<small>0.300</small>" in shown  # by words
    assert h("en", "passages.why_limit") in shown


def test_a_search_that_did_not_find_a_passage_has_no_rank_for_it():
    shown = why_these(retrieval(passage(1)), "en")
    assert h("en", "why.not_found") in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_column_is_explained_in_words(language):
    shown = why_these(retrieval(passage(1)), language)
    for name in ("meaning", "words", "fused", "probability"):
        assert h(language, f"why.{name}_means") in shown
    assert h(language, "why.rerank_means") not in shown
    reranked = why_these(retrieval(passage(1, rerank_score=3.25), passage(2)), language)
    assert h(language, "why.rerank_means") in reranked
    assert "3.250" in reranked


def test_the_deciding_probability_stands_beside_its_threshold():
    above = why_these(retrieval(passage(1, probability=0.9)), "en")
    assert "probability of 90 %, above the threshold 50 %" in above
    below = why_these(retrieval(passage(1, probability=0.2), relevant=False), "en")
    assert "20 %, below the threshold 50 %" in below
    assert "lease.pdf" in below  # what was not good enough is in the table too


def test_the_signals_add_up_to_the_probability_that_is_shown():
    signals = (Signal("cosine", 0.91, 0.86, 60.0), Signal("margin", 0.1, 0.3, 5.0))
    shown = why_these(retrieval(passage(1, signals=signals, probability=0.88)), "en")
    assert "<td>+3.00</td>" in shown and "<td>−1.00</td>" in shown
    assert "Together +2.00, which is 88 %" in shown
    assert h("en", "signal.cosine") in shown and "margin" in shown


def test_what_was_given_to_the_model_and_what_did_not_fit_says_its_tokens():
    prompt = replace(turn().update.prompt, used=(passage(1),), dropped=(passage(2),))
    assert "passage 1 · 120 tokens" in fate(passage(1), prompt, USE, "en")
    assert fate(passage(2), prompt, USE, "en").endswith("its 512 tokens did not fit, 494 were free")
    assert fate(passage(1), prompt, None, "en")  # also before it is counted
    assert fate(passage(2), prompt, None, "en")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reason", Dropped)
def test_every_reason_has_words(reason, language):
    left = passage(5, dropped=reason)
    said = fate(left, turn().update.prompt, USE, language)
    assert said
    assert said in why_these(replace(retrieval(passage(1)), rejected=(left,)), language)


def test_history_that_did_not_fit_is_named_with_its_tokens():
    prompt = replace(turn().update.prompt, history_dropped=4)
    shown = why_these(retrieval(passage(1)), "en", prompt, USE)
    assert "4 earlier messages, 77 tokens" in shown


def test_joined_neighbours_are_counted():
    shown = why_these(retrieval(passage(1, joined=(2, 3))), "en")
    assert h("en", "why.joined", count=2) in shown


@pytest.mark.parametrize(
    ("probability", "said"),
    [(1.0, "99.9 %"), (0.0, "0.1 %"), (0.5, "50 %"), (0.004, "0.4 %"), (0.995, "99.5 %")],
)
def test_nothing_is_called_certain(probability, said):
    assert percent(probability) == said


def test_names_from_documents_are_escaped():
    nasty = passage(1, document="<b>", heading=("<b>",), signals=(Signal("<b>", 1, 0, 1),))
    assert "<b></" not in why_these(retrieval(nasty), "en").replace("<b>9", "")
    assert "&lt;b&gt;" in why_these(retrieval(nasty), "en")
