"""How long the embedder takes to load and to embed, and how far bf16 is from fp32.

    python -m benchmarks.embedding [--embedder e5-small] [--passages 64]

Passages are 200 tokens of the documents in corpus/; questions are their first ten words. Loading
is timed after the imports, which are listed by themselves. Prints a table and ends with one JSON
line. What it finds, and with what recall, is measured by benchmarks/retrieval.py.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from generation.weights import cache_dir, ensure
from rag.embedding import Embedder

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
TOKENS = 200
PRECISIONS = ("fp32", "bf16")


def passages_of(embedder: Embedder, count: int) -> list[str]:
    """`count` texts of TOKENS tokens; the corpus is read again from its start if it is short."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*/*.md")))
    spans = embedder.token_spans(text)
    starts = range(0, len(spans) - TOKENS, TOKENS)
    parts = [text[spans[at][0] : spans[at + TOKENS - 1][1]] for at in starts]
    return [parts[number % len(parts)] for number in range(count)]


def measure(path: Path, precision: str, count: int) -> tuple[dict[str, float], np.ndarray]:
    started = time.perf_counter()
    embedder = Embedder(path, cache_dir=cache_dir() / "converted", precision=precision)
    loaded = time.perf_counter()
    passages = passages_of(embedder, count)
    embedder.embed_passages(passages[:4])  # the first passes of a process are slower
    begun = time.perf_counter()
    vectors = embedder.embed_passages(passages)
    ended = time.perf_counter()
    queries = []
    for passage in passages:
        asked = time.perf_counter()
        embedder.embed_query(" ".join(passage.split()[:10]))
        queries.append(time.perf_counter() - asked)
    row = {
        "load_seconds": loaded - started,
        "passages_per_second": count / (ended - begun),
        "query_ms": 1000 * statistics.median(queries),
    }
    return row, vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embedder", default="e5-small", help="e5-small, minilm")
    parser.add_argument("--passages", type=int, default=64)
    options = parser.parse_args()
    path = ensure(options.embedder)

    started = time.perf_counter()
    import sentence_transformers  # noqa: F401

    imports = time.perf_counter() - started
    print(f"imports: {imports:.1f} s\n")
    print(f"{'':6}{'load, s':>10}{'passages/s':>12}{'query, ms':>11}{'cosine to fp32':>16}")
    rows: dict[str, dict[str, float]] = {}
    exact = np.empty(0)
    for precision in PRECISIONS:
        row, vectors = measure(path, precision, options.passages)
        exact = vectors if precision == "fp32" else exact
        row["cosine_to_fp32"] = float((vectors * exact).sum(axis=1).min())
        rows[precision] = row
        print(
            f"{precision:6}{row['load_seconds']:>10.2f}{row['passages_per_second']:>12.1f}"
            f"{row['query_ms']:>11.1f}{row['cosine_to_fp32']:>16.5f}"
        )
    print(json.dumps({"embedder": options.embedder, "import_seconds": imports, **rows}))


if __name__ == "__main__":
    main()
