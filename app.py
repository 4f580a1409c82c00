"""The composition root: reads the options, builds the parts, and launches the page.

The only module that imports `ui` and the only one that knows all parts; nothing imports it. Heavy
modules are imported where they are needed, so that `glassbox --help` and `glassbox list` are quick.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import webbrowser
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from ui import cli
from ui.cli_options import Options, ServeOptions, is_loopback
from ui.terminal import ProgressLine

if TYPE_CHECKING:
    from gradio import Blocks
    from starlette.routing import Route

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

    def serve(self, options: ServeOptions) -> None:
        uploads = self._options.data / "uploads"
        _prepare_gradio(uploads)
        parts = self.parts()
        self._add_corpus()
        self._progress.close()
        from ui.http_api import routes
        from ui.shell import build_demo

        try:
            _launch(build_demo(parts), routes(parts, options.auth), options)
        finally:
            shutil.rmtree(uploads, ignore_errors=True)
            parts.store.close()

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
        try:
            return DocumentStore(data, embedder.identity, embedder.dimension)
        except EmbedderChanged:
            with closing(DocumentStore(data)) as store:
                label = "Embedding all documents again, for another embedder"
                reembed(store, embedder, lambda _, done, total: self._progress(label, done, total))
            return DocumentStore(data, embedder.identity, embedder.dimension)

    @cached_property
    def _retriever(self) -> Retriever:
        from rag.retriever import Retriever

        return Retriever(self._store, self._embedder)

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


def _prepare_gradio(uploads: Path) -> None:
    """Settings that Gradio reads from the environment when it is imported."""
    shutil.rmtree(uploads, ignore_errors=True)  # left by a process that was killed
    uploads.mkdir(mode=0o700, parents=True)
    os.environ["GRADIO_TEMP_DIR"] = str(uploads)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


def _launch(demo: Blocks, routes: list[Route], options: ServeOptions) -> None:
    """Serve until SIGINT or SIGTERM, then stop in order."""
    from starlette.middleware import Middleware

    from ui.guard import LOOPBACK_NAMES, Guard
    from ui.shell import launch_options

    names = LOOPBACK_NAMES | {options.host} if is_loopback(options.host) else None
    stop = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stop.set())
    demo.queue(default_concurrency_limit=16)
    _, url, _ = demo.launch(
        server_name=options.host,
        server_port=options.port or None,
        auth=options.auth,
        prevent_thread_lock=True,
        quiet=True,
        allowed_paths=[],
        app_kwargs={"middleware": [Middleware(Guard, names=names)], "routes": routes},
        **launch_options(),
    )
    url = url.rstrip("/")
    print(f"Glassbox is ready at {url}", flush=True)
    if options.open_browser:
        webbrowser.open(url)
    stop.wait()
    print("Stopping.", flush=True)
    demo.close(verbose=False)


def main(argv: Sequence[str] | None = None) -> int:
    """The `glassbox` command; returns its exit code."""
    return cli.run(sys.argv[1:] if argv is None else argv, Application)


if __name__ == "__main__":
    sys.exit(main())
