"""Formulas in an answer as MathML, which browsers draw by themselves: no script and no request.

A rule for markdown-it: `\\(...\\)` within a line, `$$...$$` and `\\[...\\]` on lines of their own.
A single dollar sign is money. What cannot be read, or could do more than be drawn, stays source
text.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from functools import lru_cache
from html import escape, unescape

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

LONGEST = 2_000  # characters of one formula
DELIMITERS = {"\\(": ("\\)", "inline"), "\\[": ("\\]", "block"), "$$": ("$$", "block")}
_DEFINES = re.compile(r"\\(?:new|renew|provide|def|let|gdef|edef|input|include)")  # macros, files
_ELEMENTS = frozenset(
    """math mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup
    msup mtable mtd mtext mtr munder munderover mmultiscripts mprescripts none""".split()  # noqa: SIM905  (a list of words)
)
_ATTRIBUTES = frozenset(
    """accent columnalign columnlines columnspacing depth display displaystyle fence form
    height largeop linethickness lspace mathvariant maxsize minsize movablelimits rowlines
    rowspacing rspace scriptlevel separator stretchy voffset width""".split()  # noqa: SIM905  (a list of words)
)


def formulas(markdown: MarkdownIt) -> None:
    """A markdown-it plugin; tokens of type "formula" hold the source, `info` how to show it."""
    markdown.inline.ruler.before("escape", "formula", _rule)


@lru_cache(maxsize=512)
def mathml(source: str, display: str) -> str | None:
    """MathML of a LaTeX formula, or None where it stays text."""
    if len(source) > LONGEST or _DEFINES.search(source):
        return None
    try:
        element = convert_to_element(source, display=display)
    except Exception:  # the converter raises many kinds, and an answer may end in half a formula
        return None
    return ElementTree.tostring(element, encoding="unicode") if _make_safe(element) else None


def _make_safe(root: ElementTree.Element) -> bool:
    """Keep only attributes that place and size; False when an element is none of MathML's own."""
    for element in root.iter():
        if element.tag not in _ELEMENTS:
            return False
        kept = {name: value for name, value in element.attrib.items() if name in _ATTRIBUTES}
        element.attrib.clear()
        element.attrib.update(kept)
        element.text = unescape(element.text or "")  # the converter writes symbols as references
    return True


def _rule(state: StateInline, silent: bool) -> bool:
    opening = state.src[state.pos : state.pos + 2]
    if opening not in DELIMITERS:
        return False
    closing, display = DELIMITERS[opening]
    end = state.src.find(closing, state.pos + 2, state.posMax)
    source = state.src[state.pos + 2 : end].strip()
    if end < 0 or not source or mathml(source, display) is None:
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.info = source, display
    state.pos = end + 2
    return True


def formula_html(source: str, display: str) -> str:
    """What a "formula" token is drawn as; its source is what a copy or a screen reader gets."""
    label = escape(source)
    return f'<span class="formula {display}" title="{label}">{mathml(source, display)}</span>'
