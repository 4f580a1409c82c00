"""Answers as safe HTML: nothing a model writes is markup of ours, a script, or a request."""

import re
from html import escape

import pytest

from rag.citations import Support
from ui.markdown import CURSOR, render


def html(text: str, count: int = 2, supports=(), cursor: bool = False) -> str:
    return render(
        text,
        lambda n, by_model: f"<cite-{n}>" if by_model else f"<found-{n}>",
        count,
        "en",
        supports,
        cursor,
    )


@pytest.mark.parametrize("text", ["List<int>", "<think>hm</think>", "$5 and $10", "a < b & c > d"])
def test_what_looks_like_markup_stays_text(text):
    assert html(text) == f"<p>{escape(text)}</p>\n"


PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/a.png?leak)",
    "![x][r]\n\n[r]: https://evil.example/a.png",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](//evil.example)",
    "[x](file:///etc/passwd)",
    "<javascript:alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "`<svg onload=alert(1)>`",
    "```html\n<iframe src=//evil.example>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "| <b>a</b> |\n|---|\n| <svg/onload=alert(1)> |",
    "# <style>@import '//evil.example'</style>",
    '[x](https://a.example/"onmouseover=alert(1))',
    "[x](https://a.example 'ti\"tle')",
    "\x00<object data=x>",
    "> <form action=//evil.example><input>",
    "[<img src=x>](https://a.example)",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_becomes_an_element_or_an_address(payload):
    shown = html(payload)
    allowed = {"p", "code", "pre", "div", "button", "table", "thead", "tbody", "tr", "th", "td",
               "h1", "blockquote", "a", "br", "em"}  # fmt: skip
    assert set(re.findall(r"<(\w+)", shown)) <= allowed
    for tag in re.findall(r"<[^>]*>", shown):
        assert not re.search(r"\s(on\w+|src|style)\s*=", tag)
        assert all(
            link.startswith("https://a.example") for link in re.findall(r'href="(.*?)"', tag)
        )


def test_links_open_elsewhere_and_tell_nothing():
    assert 'target="_blank" rel="noopener noreferrer nofollow"' in html("[x](https://a.example)")


def test_citations_stand_at_the_word_they_follow():
    assert html("Three months [1], in writing [2].") == (
        "<p>Three months<cite-1>, in writing<cite-2>.</p>\n"
    )


def test_only_passages_that_were_shown_are_cited():
    assert "<cite" not in html("See [99] and [0].")
    assert "<cite" not in html("See [1].", count=0)


def test_a_passage_behind_a_sentence_stands_after_it_and_is_told_apart():
    text = "Three **months.** In writing [2]."
    found = [Support(0, 18, 1, (0, 5))]
    assert html(text, supports=found) == (
        "<p>Three <strong>months.<found-1></strong> In writing<cite-2>.</p>\n"
    )


def test_a_sentence_with_a_marker_right_behind_it_gets_no_second_one():
    assert html("Three months. [1] Yes.", supports=[Support(0, 13, 1, (0, 5))]).count("-1>") == 1


def test_a_sentence_that_the_model_marked_itself_gets_no_second_marker():
    found = [Support(0, 18, 1, (0, 5), written=True)]
    assert html("Three [1] months.", supports=found) == "<p>Three<cite-1> months.</p>\n"


def test_a_model_cannot_write_what_we_found():
    assert "<found" not in html("a\ue0011\ue002")


def test_citations_in_code_are_code():
    assert "<cite" not in html("`a[1]`\n\n```\nb[2]\n```")


def test_the_cursor_stands_at_the_end_of_the_text_even_in_open_code():
    assert html("Hello", cursor=True).count('class="cursor"') == 1
    assert '<span class="cursor"' in html("```python\nprint(1", cursor=True)


def test_a_model_cannot_write_a_cursor():
    assert "cursor" not in html(f"a{CURSOR}b")


def test_code_can_be_copied_and_tables_are_tables():
    assert "data-copy" in html("```\nx\n```")
    assert "<td>1</td>" in html("| a |\n|---|\n| 1 |")
