"""The composition root: reads the options, builds the parts, and launches the page.

The only module that imports `ui` and the only one that knows all parts; nothing imports it. Heavy
modules are imported where they are needed, so that `glassbox --help` and `glassbox list` are quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cached_property
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from ui import cli
from ui.cli_options import Options, ServeOptions
from ui.terminal import ProgressLine

if TYPE_CHECKING:
    from generation.model import LanguageModel
    from rag.embedding import Embedder
    from rag.retriever import Retriever
    from rag.store import DocumentStore
    from ui.parts import Parts


class Application:
    """Opens each part when it is first asked for, and once. Implements `ui.cli.Application`."""

    def __init__(self, options: Options, progress: ProgressLine) -> None:
        self._options = options
        self._progress = progress
        os.environ |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TQDM_DISABLE": "1"}  # ours is drawn

    def document_store(self) -> DocumentStore:
        from rag.store import DocumentStore

        return DocumentStore(self._options.data)

    def indexed_store(self) -> tuple[DocumentStore, Embedder]:
        return self._store, self._embedder

    def retriever(self) -> Retriever:
        return self._retriever

    def parts(self) -> Parts:
        """The embedder is loaded beside the language model: both mostly read files and compute."""
        from generation.scheduler import Scheduler
        from ui.parts import Parts

        self._fetch_embedder()  # in this thread, so that Ctrl-C ends a download
        with ThreadPoolExecutor(max_workers=1) as beside:
            retriever = beside.submit(self.retriever)
            model = self._load_model()
            return Parts(
                model=model,
                store=self._store,
                embedder=self._embedder,
                retriever=retriever.result(),
                scheduler=Scheduler(),
                notice=model.notice,
            )

    def move_vectors(self, to: str, *, abandon: bool) -> int:
        from rag.vector_moving import move_vectors

        data, token = self._options.data, self._options.milvus_token
        return move_vectors(data, to, token, self._progress, abandon=abandon)

    def serve(self, options: ServeOptions) -> None:
        from ui.serving import require_port, serve_until_stopped, upload_folder

        require_port(options)
        with upload_folder(self._options.data / "uploads"):
            with ThreadPoolExecutor(max_workers=1) as beside:
                beside.submit(import_module, "ui.shell")  # Gradio takes as long as a model
                parts = self.parts()
            self._add_corpus()
            self._progress.close()
            with closing(parts.store):
                serve_until_stopped(parts, options)

    @cached_property
    def _embedder(self) -> Embedder:
        from generation.weights import cache_dir
        from rag.embedding import Embedder

        return Embedder(
            self._fetch_embedder(), cache_dir=cache_dir() / "converted", device=self._options.device
        )

    def _fetch_embedder(self) -> Path:
        from generation import weights

        name = self._options.embedder
        return weights.ensure(name, self._progress) if name in weights.CATALOGUE else Path(name)

    @cached_property
    def _store(self) -> DocumentStore:
        """Opened for this embedder; passages that another one embedded are embedded again."""
        from rag.reembedding import reembed
        from rag.store import DocumentStore, EmbedderChanged

        data, embedder = self._options.data, self._embedder
        where = self._options.store, self._options.milvus_token
        try:
            return DocumentStore(data, embedder.identity, embedder.dimension, *where)
        except EmbedderChanged:
            with closing(DocumentStore(data)) as store:
                label = "Embedding all documents again, for another embedder"
                reembed(store, embedder, lambda _, done, total: self._progress(label, done, total))
            return DocumentStore(data, embedder.identity, embedder.dimension, *where)

    @cached_property
    def _retriever(self) -> Retriever:
        """Once each passage has its vector where vectors are kept: those that are lost are made."""
        from rag.device import choose_device
        from rag.lost_vectors import restore_lost
        from rag.reranker import Reranker
        from rag.retriever import Retriever

        folder, device = self._options.reranker, choose_device(self._options.device)
        reranker = None if folder is None else Reranker(folder, device)
        store, label = self._store, "Embedding again the passages whose vectors are gone"
        restore_lost(
            store, self._embedder, lambda _, done, total: self._progress(label, done, total)
        )
        if store.elsewhere is not None:
            store.elsewhere.fill_all(self._progress)
        return Retriever(store, self._embedder, reranker)

    def _load_model(self) -> LanguageModel:
        from generation.model import load_model

        options = self._options
        return load_model(options.model, options.device, options.precision, self._progress)

    def _add_corpus(self) -> None:
        """On the first start, add the documents that come with the app; later they may be gone."""
        done = self._options.data / "corpus-added"
        if done.exists():
            return
        from rag.ingest import ingest_folder

        if not self._store.documents():
            with as_file(files("corpus")) as corpus:
                total = len(list(corpus.glob("*/*.md")))
                added = ingest_folder(self._store, self._embedder, corpus)
                for number, _ in enumerate(added, start=1):
                    self._progress("Adding the documents that come with Glassbox", number, total)
        done.touch()


def main(argv: Sequence[str] | None = None) -> int:
    """The `glassbox` command; returns its exit code."""
    return cli.run(sys.argv[1:] if argv is None else argv, Application)


if __name__ == "__main__":
    sys.exit(main())
