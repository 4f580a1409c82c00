"""Formulas: drawn by the browser, and nothing in them is more than a formula."""

import re

import pytest

from ui.formula import mathml
from ui.markdown import render


def html(text: str) -> str:
    return render(text, lambda n, by_model: f"<cite-{n}>" if by_model else f"<found-{n}>", 2, "en")


@pytest.mark.parametrize("text", [r"\(x^2\)", r"$$x^2$$", r"\[x^2\]", "$$\nx^2\n$$"])
def test_a_formula_is_mathml(text):
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html(text)


@pytest.mark.parametrize(
    "text", ["$5 and $10", "It is $x$ dollars", r"\(x", "$$x", "$$$$", r"`\(x\)`"]
)
def test_money_code_and_half_a_formula_are_text(text):
    assert "<math" not in html(text)


@pytest.mark.parametrize(
    "source",
    [
        r"\text{<script>alert(1)</script>}",
        r"\text{&lt;img src=x onerror=alert(1)&gt;}",
        r"\href{javascript:alert(1)}{x}",
        r"\class{a\" onclick=\"x}{y}",
        r"\style{background:url(//evil.example)}{y}",
        r'\color{red" onmouseover="x}{y}',
        r"\html@mathml{x}{y}",
        r"\require{html}x",
    ],
)
def test_a_formula_brings_no_element_and_no_attribute_of_its_own(source):
    drawn = mathml(source, "inline") or ""
    assert not re.search(r"<(?!/?m|/?none)", drawn)
    assert not re.search(r"<[^>]*\s(on\w+|href|style|class|src)=", drawn)


@pytest.mark.parametrize("source", [r"\newcommand{\a}{xx}\a", r"\def\a{x}", "x" * 3000, r"\frac{"])
def test_what_could_grow_or_cannot_be_read_stays_text(source):
    assert mathml(source, "inline") is None
    assert "<math" not in html(rf"\({source}\)")


def test_a_citation_next_to_a_formula_is_a_citation():
    assert "<cite-1>" in html(r"So \(a[1]\) it is [1].")
    assert html(r"So \(a[1]\) it is.").count("<cite") == 0
