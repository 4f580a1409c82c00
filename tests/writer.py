"""Changes a store without end and logs each change once it is done: to be killed by a test."""

import sys
from itertools import count
from pathlib import Path

from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put

NAMES = 6


def main(data: str, log: str, run: str) -> None:
    embedder = FakeEmbedder()
    store = DocumentStore(Path(data), embedder.identity, embedder.dimension)
    with open(log, "a", buffering=1) as file:
        for turn in count():
            name, version = f"n{turn % NAMES}", f"v{run}x{turn}"
            if turn % 4 == 3:
                stored = store.find(name=name)
                if stored is not None:
                    store.remove(stored.id)
                file.write(f"removed {name} {version}\n")
            else:
                put(store, embedder, name, *(f"note {version} part {n}" for n in range(20)))
                file.write(f"added {name} {version}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
