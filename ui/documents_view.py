"""Documents as escaped HTML: the list with its actions, and one document cut into its passages.

Pure functions from `rag.records` to strings. All that was read from a document is escaped, its name
too. Buttons carry `data-act` and `data-document`; what they do is decided by the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from rag.records import StoredDocument, StoredPassage
from ui.i18n import h, t

KINDS = {
    "application/pdf": "PDF",
    "application/epub+zip": "EPUB",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "DOCX",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PPTX",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "XLSX",
    "message/rfc822": "EML",
    "text/csv": "CSV",
    "text/tab-separated-values": "TSV",
    "text/html": "HTML",
    "text/markdown": "MD",
    "text/plain": "TXT",
}
PREVIEW_STEP = 40  # passages drawn at a time
COLUMNS = ("name", "kind", "passages", "characters", "added", "actions")


class Choice(NamedTuple):
    """What the list shows beside the documents: which is open, which may be removed, the filter."""

    open: str = ""
    removing: str = ""
    wanted: str = ""
    focus: str = ""  # the document whose button should have the keyboard after drawing


def list_html(documents: Sequence[StoredDocument], language: str, choice: Choice) -> str:
    """The newest document first; those whose name contains the filter, whatever its case."""
    wanted = choice.wanted.strip().casefold()
    shown = [d for d in reversed(documents) if wanted in d.name.casefold()]
    title = h(language, "documents.count", count=len(documents))
    if not shown:
        key = "documents.none_match" if documents else "rail.no_documents"
        return f'<h3 class="label">{title}</h3><p class="hint">{h(language, key)}</p>'
    heads = "".join(f'<th scope="col">{h(language, f"documents.{c}")}</th>' for c in COLUMNS)
    rows = "".join(_row(document, language, choice) for document in shown)
    return (
        f'<h3 class="label">{title}</h3><table class="documents">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def kind(media_type: str) -> str:
    """A short name for a media type."""
    return KINDS.get(media_type, media_type.rpartition("/")[2].upper())


def preview_html(
    document: StoredDocument | None,
    passages: Sequence[StoredPassage],
    count_tokens: Callable[[str], int],
    language: str,
    shown: int = PREVIEW_STEP,
) -> str:
    """A document as the passages it was cut into; text that two passages share is dimmed."""
    if document is None:
        return f'<p class="hint">{h(language, "documents.preview_empty")}</p>'
    facts = " · ".join(
        (
            kind(document.media_type),
            t(language, "rail.passages", count=document.passages),
            t(language, "documents.size", count=f"{document.characters:,}"),
        )
    )
    parts = [
        f'<header class="preview-head"><h3><bdi>{escape(document.name)}</bdi></h3>'
        f'<p class="hint">{escape(facts)}</p></header>'
    ]
    parts += [f'<p class="warning">⚠ {escape(warning)}</p>' for warning in document.warnings]
    covered = 0
    for number, passage in enumerate(passages[:shown], start=1):
        tokens = count_tokens(passage.text)
        parts.append(_passage(passage, number, tokens, max(0, covered - passage.start), language))
        covered = max(covered, passage.end)
    if len(passages) > shown:
        more = h(language, "documents.more", count=len(passages) - shown)
        parts.append(f'<button type="button" class="quiet" data-act="more">{more}</button>')
    return "".join(parts)


def _row(document: StoredDocument, language: str, choice: Choice) -> str:
    name = f"<bdi>{escape(document.name)}</bdi>"
    current = ' aria-current="true"' if document.id == choice.open else ""
    warning = ""
    if document.warnings:
        text = h(language, "documents.warnings", count=len(document.warnings))
        title = escape(" · ".join(document.warnings))
        warning = f'<span class="warning" title="{title}">⚠ {text}</span>'
    cells = (
        f'<button type="button" class="open" data-act="preview" data-document="{document.id}"'
        f' title="{escape(document.name)}">{name}</button>{warning}',
        escape(kind(document.media_type)),
        f"{document.passages:,}",
        f"{document.characters:,}",
        f'<time datetime="{escape(document.added_at)}">{escape(document.added_at[:10])}</time>',
        _actions(document, language, choice),
    )
    if document.id == choice.removing:  # the question takes the place of the figures
        question = f'<td class="actions" colspan="{len(COLUMNS) - 1}">{cells[-1]}</td>'
        return f'<tr{current}><td class="name">{cells[0]}</td>{question}</tr>'
    columns = "".join(
        f'<td class="{column}">{cell}</td>' for column, cell in zip(COLUMNS, cells, strict=True)
    )
    return f"<tr{current}>{columns}</tr>"


def _actions(document: StoredDocument, language: str, choice: Choice) -> str:
    if document.id != choice.removing:
        focus = " data-focus" if document.id == choice.focus else ""
        return _button("remove", "quiet", document, language, focus)
    question = h(language, "documents.sure", count=document.passages)
    return (
        f'<span role="alertdialog" aria-label="{question}"><span>{question}</span>'
        f"{_button('confirm', 'danger', document, language)}"
        f"{_button('keep', 'quiet', document, language, ' data-focus')}</span>"
    )


def _button(act: str, style: str, document: StoredDocument, language: str, more: str = "") -> str:
    words = h(language, f"documents.{act}")
    label = h(language, f"documents.{act}_label", name=document.name)
    return (
        f'<button type="button" class="{style}" data-act="{act}" data-document="{document.id}" '
        f'aria-label="{label}" title="{label}"{more}>{words}</button>'
    )


def _passage(passage: StoredPassage, number: int, tokens: int, overlap: int, language: str) -> str:
    places = [t(language, "passages.page", page=passage.page)] if passage.page is not None else []
    places += [" › ".join(passage.heading)] if passage.heading else []
    shared, own = passage.text[:overlap], passage.text[overlap:]
    dim = f'<span class="shared" title="{h(language, "documents.shared")}">{escape(shared)}</span>'
    return (
        f'<section class="card passage"><header><span class="number">{number}</span>'
        f'<bdi class="name">{escape(" · ".join(places))}</bdi>'
        f'<span class="place">{h(language, "chat.tokens", count=tokens)}</span></header>'
        f'<p class="text" dir="auto">{dim if shared else ""}{escape(own)}</p></section>'
    )
