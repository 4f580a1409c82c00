"""How much better follow-up questions are found when they are completed from the chat first.

    python -m benchmarks.follow_up [--model qwen-0.5b ...] [--language en zh] [--embedder e5-small]

Two-turn chats over corpus/ (benchmarks/follow_ups.json), both languages in one store. Prints how
often the right section is among the first three passages that are handed on, for each way to
complete the question, and how long the model takes; ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median

from generation.model import LanguageModel, load_model
from generation.weights import cache_dir, ensure
from rag import follow_up
from rag.embedding import Embedder
from rag.follow_up import SearchQuestion
from rag.ingest import ingest_folder
from rag.retrieval_config import FollowUp, RetrievalConfig
from rag.retriever import Retriever
from rag.store import DocumentStore
from ui.searching import completed, rewritten

ROOT = Path(__file__).resolve().parents[1]
K = 3
Asked = dict[str, str]
Complete = Callable[[str, list[dict[str, str]]], SearchQuestion]


def is_found(retriever: Retriever, text: str, asked: Asked, language: str) -> bool:
    """Whether one of the first `K` passages holds the section that answers."""
    wanted, section = f"{asked['document']}.{language}.md", asked["section"]
    return any(
        passage.document == wanted
        and (section in passage.heading or f"## {section}\n" in passage.text)
        for passage in retriever.retrieve(text, k=K).passages
    )


def chat_before(asked: Asked) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": asked["question"]},
        {"role": "assistant", "content": asked["answer"]},
    ]


def by_model(lm: LanguageModel) -> Complete:
    def complete(question: str, history: list[dict[str, str]]) -> SearchQuestion:
        if not follow_up.depends_on_chat(question, history):
            return SearchQuestion(question)
        return rewritten(lm, question, history, lambda: False)

    return complete


def without_model(way: FollowUp) -> Complete:
    config = RetrievalConfig(follow_up=way)
    return lambda question, history: completed(question, history, config)


def measure(retriever: Retriever, questions: list[Asked], language: str, complete: Complete):
    """Recall@3, how often the model's own words were used, and its seconds (the median)."""
    searches = [complete(asked["follow_up"], chat_before(asked)) for asked in questions]
    found = [
        is_found(retriever, search.text, asked, language)
        for search, asked in zip(searches, questions, strict=True)
    ]
    seconds = [search.seconds for search in searches if search.seconds]
    return {
        "recall@3": mean(found),
        "by the model": mean(s.origin is follow_up.Origin.REWRITTEN for s in searches),
        "seconds": median(seconds) if seconds else 0.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", nargs="*", default=[], help="also let these say the subject")
    parser.add_argument("--language", nargs="*", default=["en", "zh"], choices=["en", "zh"])
    parser.add_argument("--embedder", default="e5-small", help="catalogue name")
    options = parser.parse_args()
    sets = json.loads((ROOT / "benchmarks" / "follow_ups.json").read_text(encoding="utf-8"))
    ways = {way.value: without_model(way) for way in (FollowUp.OFF, FollowUp.CARRY)}
    ways |= {name: by_model(load_model(name)) for name in options.model}
    embedder = Embedder(ensure(options.embedder), cache_dir=cache_dir() / "converted")
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = DocumentStore(Path(folder), embedder.identity, embedder.dimension)
        for _ in ingest_folder(store, embedder, ROOT / "corpus"):
            pass
        retriever = Retriever(store, embedder)
        for kind, by_language in sets.items():
            for language in options.language:
                for way, complete in ways.items():
                    row = measure(retriever, by_language[language], language, complete)
                    results[f"{kind}, {language}, {way}"] = row
                    numbers = "  ".join(f"{name} {value:.2f}" for name, value in row.items())
                    print(f"{kind:18}{language:4}{way:12}{numbers}", flush=True)
        store.close()
    print(json.dumps({"benchmark": "follow_up", "k": K, **results}, ensure_ascii=False))


if __name__ == "__main__":
    main()
