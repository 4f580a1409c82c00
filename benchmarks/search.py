"""How long a search takes, and what it misses, in collections of 10,000 to 1,000,000 passages.

    python -m benchmarks.search --sizes 10000,100000,1000000 [--data DIR] [--folder DIR]

The collections are made by benchmarks/search_data.py, as documents of 500 passages in a store of
the product's own. A search is all that follows the embedding of the question: whether the store
changed, both searches, their fusion, and reading the best four passages from SQLite. Recall is of
the ten nearest by exact products. The peer is faiss's flat index over the same vectors, in the
same process. 1,000,000 passages take 10 GB of disk, 6 GB of memory and half an hour. Prints a table
and ends with one JSON line.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import faiss
import numpy as np
import psutil

from benchmarks.search_data import LANGUAGES, Seeds, seeds, texts, vectors
from generation.weights import cache_dir, ensure
from rag.chunking import Passage
from rag.documents import Document, Section
from rag.embedding import Embedder
from rag.hybrid_search import POOL, search
from rag.index_files import Manifest
from rag.indexes import Indexes, Searchable
from rag.store import DocumentStore

_PER_DOCUMENT = 500
_PASSAGES_READ = 4
_LEAST = 0.9  # the score of a passage worth citing; it decides nothing here
_CHANGES = 7
_EXACT = 200  # questions whose exact neighbours are found
Row = dict[str, float]


class Timer:
    """Milliseconds by name, one a turn."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.taken.setdefault(name, []).append(1e3 * (time.perf_counter() - started))

    def quantiles(self) -> Row:
        return {
            f"{name} {label} ms": float(np.quantile(values, quantile))
            for name, values in self.taken.items()
            for label, quantile in (("p50", 0.5), ("p95", 0.95))
        }


def fill(store: DocumentStore, sources: dict[str, Seeds], size: int) -> None:
    rng = np.random.default_rng(size)
    for language in LANGUAGES:
        source, count = sources[language], size // len(LANGUAGES)
        written = texts(source, language, count, rng)
        for number in range(0, count, _PER_DOCUMENT):
            some = min(_PER_DOCUMENT, count - number)
            parts = [next(written) for _ in range(some)]
            put(store, f"{language} {number}", parts, vectors(source, some, rng))


def put(store: DocumentStore, name: str, parts: list[str], rows: np.ndarray) -> str:
    ends = np.cumsum([len(part) + 1 for part in parts]).tolist()
    whole = "\n".join(parts)
    passages = [
        Passage(part, end - 1 - len(part), end - 1, None, ())
        for part, end in zip(parts, ends, strict=True)
    ]
    section = Section(0, len(whole), None, ())
    document = Document(name, "text/plain", whole, (section,))
    return store.add(document, passages, rows, f"sha256 of {name}").id


def search_all(store: DocumentStore, indexes: Indexes, asked: list[tuple[str, np.ndarray]]) -> Row:
    timed, parts = Timer(), Timer()
    for question, vector in asked:
        with timed("search"):
            index = indexes.current()
            index.count()
            numbers = search(question, vector, _LEAST, index, None)
            best = sorted(numbers, key=lambda id_: -numbers[id_].score)[:_PASSAGES_READ]
            assert len(store.passages_by_id(best)) == len(best)
        with parts("  by meaning"):
            for part in index.vectors.values():
                part.search(vector, POOL)
        with parts("  by words"):
            index.words.search(question, POOL)
        with parts("  reading passages"):
            store.passages_by_id(best)
        with parts("  has the store changed"):
            indexes.current()
    return timed.quantiles() | parts.quantiles()


def all_rows(index: Searchable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for part in index.vectors.values():
        for at in range(0, len(part), 50_000):
            ids = part.ids[at : at + 50_000]
            yield ids, part.get(ids)


def compared(index: Searchable, queries: np.ndarray) -> Row:
    """Recall@10 of the search by meaning, and the time of faiss's flat index."""
    flat = faiss.IndexFlatIP(queries.shape[1])
    names = []
    for ids, rows in all_rows(index):
        flat.add(rows)
        names.append(ids)
    names = np.concatenate(names)
    _, exact = flat.search(queries, 10)  # (Q, 10)
    found = [
        len(np.intersect1d(index.nearest(query, 10).ids, names[right]))
        for query, right in zip(queries, exact, strict=True)
    ]
    timer = Timer()
    for query in queries[:40]:
        with timer("faiss flat"):
            flat.search(query[None, :], POOL)
    return {"recall@10": float(np.mean(found)) / 10} | timer.quantiles()


def changed(store: DocumentStore, indexes: Indexes, source: Seeds) -> Row:
    """Of one passage: from the call that adds it until a search has found it; then removed."""
    timer, rng = Timer(), np.random.default_rng(1)
    for number in range(_CHANGES):
        (row,) = vectors(source, 1, rng)
        text = f"unheard{number} of word"
        with timer("add one, searchable"):
            id_ = put(store, text, [text], row[None, :])
            (wanted,) = store.passage_ids([id_]).tolist()
            assert wanted in search(text, row, _LEAST, indexes.current(), None)
        with timer("remove one, gone"):
            store.remove(id_)
            assert wanted not in search(text, row, _LEAST, indexes.current(), None)
    return timer.quantiles()


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def anonymous_megabytes() -> float:
    """Memory that is not mapped from files; all there is where the system does not say."""
    rollup = Path("/proc/self/smaps_rollup")
    if not rollup.exists():
        return psutil.Process().memory_info().rss / 1e6
    (line,) = [line for line in rollup.read_text().splitlines() if line.startswith("Anonymous:")]
    return int(line.split()[1]) / 1e3


def measure(folder: Path, sources: dict[str, Seeds], size: int) -> Iterator[Row]:
    store = DocumentStore(folder, "synthetic", sources["en"].vectors.shape[1])
    yield {"passages": size, "fill s": seconds(lambda: fill(store, sources, size))}
    first = Indexes(store)
    yield {"first start, nothing saved s": seconds(first.current)}
    yield {"approximate index, in the background s": seconds(first.wait)}
    del first
    before = anonymous_megabytes()
    indexes = Indexes(store)
    yield {"start, mapped s": seconds(indexes.current)}
    yield {"memory of the indexes MB": anonymous_megabytes() - before}
    files = Manifest.from_json(store.index_files()).parts
    yield {"segments of words": sum(part.kind == "words" for part in files)}
    for part in files:
        yield {f"{part.kind}, {name}": value for name, value in part.facts.items() if value}
    asked = [
        (question, vector)
        for source in sources.values()
        for question, vector in zip(source.questions, source.question_vectors, strict=True)
    ]
    order = np.random.default_rng(2).permutation(len(asked))
    asked = [asked[at] for at in order]
    search_all(store, indexes, asked[:100])  # the first searches read what is mapped from disk
    yield search_all(store, indexes, asked)
    yield changed(store, indexes, sources["en"])
    yield compared(indexes.current(), np.array([vector for _, vector in asked[:_EXACT]]))
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Times and recall of searches, by size.")
    parser.add_argument("--sizes", default="10000,100000", help="passages, with commas")
    parser.add_argument("--data", type=Path, help="folder with xquad.*.json: more real vectors")
    parser.add_argument("--folder", type=Path, help="where stores are made for a while")
    options = parser.parse_args()
    embedder = Embedder(ensure("e5-small"), cache_dir=cache_dir() / "converted")
    sources = seeds(embedder, options.data)
    results: list[Row] = []
    for size in map(int, options.sizes.split(",")):
        results.append({})
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for row in measure(Path(folder), sources, size):
                results[-1] |= row
                for name, value in row.items():
                    print(f"{name:40}{value:14,.3f}", flush=True)
        print()
    print(json.dumps({"benchmark": "search", "results": results}))


if __name__ == "__main__":
    main()
