"""Search in Milvus Lite beside the exact search of this machine, over the same vectors.

    python benchmarks/milvus.py [--vectors 10000] [--queries 50]

Random unit vectors of 384 numbers. The two take turns, query by query, so that a busy machine slows
both; what is found is compared. Prints a table and ends with one JSON line, in milliseconds.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rag.milvus_address import MilvusAddress
from rag.milvus_connection import MilvusConnection
from rag.milvus_index import MilvusIndex
from rag.vector_index import VectorIndex
from rag.vectors import Vectors

D = 384
K = 50


def unit_vectors(count: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, D)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def milliseconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return 1000 * (perf_counter() - started)


def in_turns(
    ask: Callable[[Vectors, np.ndarray], object], indexes: dict[str, Vectors], queries: np.ndarray
) -> dict[str, float]:
    """Median milliseconds of a question to each index."""
    took: dict[str, list[float]] = {name: [] for name in indexes}
    for query in queries:
        for name, index in indexes.items():
            took[name].append(milliseconds(partial(ask, index, query)))
    return {name: float(np.median(times)) for name, times in took.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vectors", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=50)
    args = parser.parse_args()
    ids, vectors = np.arange(args.vectors), unit_vectors(args.vectors, seed=0)
    queries = unit_vectors(args.queries, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        connection = MilvusConnection(MilvusAddress(f"{folder}/vectors.db"))
        indexes: dict[str, Vectors] = {
            "here": VectorIndex(D),
            "milvus": MilvusIndex(connection, "vectors", D),
        }
        adding = {name: milliseconds(partial(i.add, ids, vectors)) for name, i in indexes.items()}
        opening = milliseconds(lambda: MilvusIndex(connection, "vectors", D))
        kinds = {
            "search": lambda i, q: i.search(q, K),
            "search in half of them": lambda i, q: i.search(q, K, ids[::2]),
            "search in 100 of them": lambda i, q: i.search(q, K, ids[:100]),
            "cosines of 100": lambda i, q: i.cosines(q, ids[:100]),
        }
        took = {kind: in_turns(ask, indexes, queries) for kind, ask in kinds.items()}
        found = [{n: i.search(q, K).ids.tolist() for n, i in indexes.items()} for q in queries]
        connection.close()
    equal = sum(both["here"] == both["milvus"] for both in found)
    print(f"{args.vectors} vectors; median ms  {'here':>8} {'Milvus':>8}")
    for kind, each in ({"add all": adding} | took).items():
        print(f"{kind:32} {each['here']:8.2f} {each['milvus']:8.2f}")
    print(f"{'open':41} {opening:8.2f}")
    print(f"the same {K} found for {equal} of {len(queries)} queries")
    result = {kind: {n: round(ms, 2) for n, ms in each.items()} for kind, each in took.items()}
    print(
        json.dumps({"vectors": args.vectors, "open": round(opening, 1), "equal": equal, **result})
    )


if __name__ == "__main__":
    main()
