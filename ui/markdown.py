"""A model's answer as safe HTML: Markdown without raw HTML, images or surprising links.

Knows Markdown and escaping, no page. Whatever is not plain Markdown stays visible as text:
`<think>`, `List<int>` and `<script>` are shown, never interpreted; an image is shown as its source
text, so nothing is ever fetched; only http and https links are links.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from rag.citations import Support, link_citations
from ui.formula import formula_html, formulas
from ui.i18n import h

# Private use characters stand for what is put into the text before it is made HTML.
CURSOR, OPEN, CLOSE = "\ue000", "\ue001", "\ue002"
_PRIVATE = str.maketrans({character: "\ufffd" for character in (CURSOR, OPEN, CLOSE)})
_SUPPORT = re.compile(f"{OPEN}(\\d+){CLOSE}")
_MARKER_FOLLOWS = re.compile(r"[*_~\s]*[\[［【]\s*\d")  # "... the end. [1]": cited already
Cite = Callable[[int, bool], str]


class _Renderer(RendererHTML):
    """Renders text with citations, code with a copy button, images as text."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        # Split at what we put in: text, number, text, number, ..., text.
        text, *rest = _SUPPORT.split(tokens[idx].content)
        html = _with_citations(text, env)
        for number, text in zip(rest[::2], rest[1::2], strict=True):
            html += env["cite"](int(number), False) + _with_citations(text, env)
        return html

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        return escape(f"![{token.content}]({token.attrGet('src')})")

    def link_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        href = escape(str(tokens[idx].attrGet("href")))
        return f'<a href="{href}" target="_blank" rel="noopener noreferrer nofollow">'

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        copy = h(env["language"], "chat.copy")
        return (
            f'<div class="code"><button type="button" class="quiet" data-copy="code">{copy}'
            f"</button><pre><code>{escape(tokens[idx].content)}</code></pre></div>\n"
        )

    code_block = fence

    def formula(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return formula_html(tokens[idx].content, tokens[idx].info)


def _with_citations(text: str, env: EnvType) -> str:
    html = ""
    for segment in link_citations(text, env["count"]):
        if segment.citation is None:
            html += escape(segment.text)
        else:  # a marker stands at the word it follows
            html = html.rstrip() + env["cite"](segment.citation, True)
    return html


def _is_web_link(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in ("http", "https")
    except ValueError:
        return False


_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    .enable(["table", "strikethrough"])
    .use(formulas)
)
_MARKDOWN.validateLink = _is_web_link  # type: ignore[method-assign]


def render(
    text: str,
    cite: Cite,
    count: int,
    language: str,
    supports: Sequence[Support] = (),
    cursor: bool = False,
) -> str:
    """HTML of an answer.

    `cite(n, by_model)` is the HTML of a citation of passage n, 1 <= n <= count: one that the model
    wrote, or one that stands behind a sentence without a marker (`supports`).
    """
    text = text.translate(_PRIVATE)
    for found in sorted(supports, key=lambda s: s.end, reverse=True):
        # Inside of what closes emphasis, which would not close before a letter of ours.
        end = found.start + len(text[found.start : found.end].rstrip().rstrip("*_~"))
        if not found.written and not _MARKER_FOLLOWS.match(text, end):
            text = f"{text[:end]}{OPEN}{found.citation}{CLOSE}{text[end:]}"
    env = {"cite": cite, "count": count, "language": language}
    html = str(_MARKDOWN.render(text + CURSOR if cursor else text, env))
    return html.replace(CURSOR, '<span class="cursor" aria-hidden="true"></span>')
