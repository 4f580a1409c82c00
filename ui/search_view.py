"""What was searched for, and how much of the documents was looked at, as escaped HTML.

Pure functions from plain data to strings.
"""

from __future__ import annotations

import re
from html import escape

from rag.follow_up import Origin, SearchQuestion
from rag.retrieved import Retrieval
from ui.i18n import h

MOST_REPLY = 80  # characters of what the model wrote in vain

# A question about all of something, which a few passages cannot answer.
_ABOUT_ALL = re.compile(
    r"\bhow (?:many|often)\b|\b(?:number|total|sum|count|average) of\b"
    r"|\b(?:count|list) (?:all|the|every)\b|\bin (?:all|total)\b"
    r"|\b(?:all|every|each) (?:the|of|row|record|entry|document|line)\b"
    r"|多少[个条行次份项]|几[个条行次份项]|一共|总共|共有|列出|所有|全部|每[个条行份项]|平均|总数",
    re.IGNORECASE,
)


def searched_for(search: SearchQuestion | None, language: str) -> str:
    """What was searched for in place of a follow-up question, and why; else nothing."""
    if search is None or search.origin is Origin.AS_ASKED:
        return ""
    key = "search.refused" if search.refused else f"search.{search.origin.value}"
    cut = "…" if len(search.refused) > MOST_REPLY else ""
    reply = search.refused[:MOST_REPLY] + cut
    why = h(language, key, seconds=f"{search.seconds:.1f}", reply=reply)
    return (
        f'<div class="searched"><p>{h(language, "search.searched")} '
        f'<q dir="auto">{escape(search.text)}</q></p>'
        f'<p class="hint">{why} <button type="button" class="quiet" data-panel="retrieval" '
        f'aria-controls="panel-retrieval">{h(language, "search.change")}</button></p></div>'
    )


def scope(retrieval: Retrieval, used: int, question: str, language: str) -> str:
    """How many passages of how many the model read; more plainly where a question is about all."""
    if not used or used >= retrieval.considered:
        return ""
    said = h(language, "passages.scope", used=used, considered=f"{retrieval.considered:,}")
    if is_about_all(question):
        return f'<p class="notice scope">{said} {h(language, "passages.counting")}</p>'
    return f'<p class="hint scope">{said}</p>'


def is_about_all(question: str) -> bool:
    """Whether a question seems to need everything there is, not the few passages that fit best."""
    return _ABOUT_ALL.search(question) is not None
