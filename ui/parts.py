"""The parts that the pages and the command line share, built once in `app.py` and handed down.

Knows no Gradio and builds nothing itself: there is no global model, store or scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass

from generation.model import LanguageModel
from generation.scheduler import Scheduler
from rag.embedding import Embedder
from rag.retriever import Retriever
from rag.store import DocumentStore


@dataclass(frozen=True)
class Parts:
    """Everything an adapter needs. `notice` is one sentence to show on every page, or None."""

    model: LanguageModel
    store: DocumentStore
    embedder: Embedder
    retriever: Retriever
    scheduler: Scheduler
    notice: str | None = None
