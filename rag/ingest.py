"""One file into the store: parsed in a sandbox, split, embedded, and committed in one transaction.

Nothing is kept of a file until all of it is ready, so a failure or a cancel at any point leaves the
store as it was. Does not know who asked, nor how the pieces do their work.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rag.chunking import MAX_TOKENS, split
from rag.documents import DocumentError
from rag.embedding import Embedder, EmbeddingStopped
from rag.names import display_path
from rag.records import StoredDocument, searchable_text
from rag.sandbox import parse_in_sandbox
from rag.store import AlreadyStored, DocumentStore

Progress = Callable[[str, int, int], None]  # (label, done, total)


@dataclass(frozen=True)
class Ingested:
    """`replaced`: a document of the same name and other content was there; it is gone now."""

    document: StoredDocument
    status: Literal["added", "unchanged", "replaced"]


def ingest(
    store: DocumentStore,
    embedder: Embedder,
    path: Path,
    name: str | None = None,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
    folder: str = "",
) -> Ingested:
    """Add the file at `path` under `name` (default: its own), or find that it is there already.

    A `folder` that it is shown in keeps files of the same name in other folders apart from it.

    Raises DocumentError when it cannot be read, when the same content is there under another name
    ("already_stored"), when the file changed meanwhile ("changed") or when `should_stop` said so
    ("cancelled"); StoreError when it cannot be kept. Either way nothing of it is.
    """
    name = path.name if name is None else name
    shown = display_path(name, folder)
    sha256 = _hash(path)
    existing = store.find(sha256=sha256)
    if existing is not None:
        return _unchanged(existing, shown)
    document = parse_in_sandbox(path, name, should_stop=should_stop, progress=progress)
    document = replace(document, name=shown)
    if _hash(path) != sha256:
        raise DocumentError("changed", "This file was changed while it was read. Add it again.")

    def token_spans(text: str) -> list[tuple[int, int]]:  # asked often while a long text is split
        if should_stop is not None and should_stop():
            raise EmbeddingStopped
        return embedder.token_spans(text)

    try:
        passages = split(document, token_spans, min(MAX_TOKENS, embedder.max_tokens))
        vectors = embedder.embed_passages(
            [searchable_text(passage.heading, passage.text) for passage in passages],
            progress=progress,
            should_stop=should_stop,
        )
        if should_stop is not None and should_stop():
            raise EmbeddingStopped
    except EmbeddingStopped:
        raise DocumentError("cancelled", "Adding this file was cancelled.") from None
    status: Literal["added", "replaced"] = "replaced" if store.find(name=shown) else "added"
    try:
        return Ingested(store.add(document, passages, vectors, sha256), status)
    except AlreadyStored as error:  # by someone else, since we looked
        return _unchanged(error.existing, shown)


def ingest_folder(
    store: DocumentStore, embedder: Embedder, folder: Path, progress: Progress | None = None
) -> Iterator[Ingested]:
    """Add the Markdown files of `folder`'s subfolders, one a language; only what changed is read.

    The same file name in two languages is two documents: `en/a.md` is shown as `a.en.md`.
    """
    for path in sorted(folder.glob("*/*.md")):
        name = f"{path.stem}.{path.parent.name}{path.suffix}"
        yield ingest(store, embedder, path, name, progress=progress)


def _unchanged(existing: StoredDocument, name: str) -> Ingested:
    if existing.name == name:
        return Ingested(existing, "unchanged")
    raise DocumentError(
        "already_stored",
        f"The same content is here already, as {existing.name}. To have it under this name, "
        "remove that one first.",
    )


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
