"""How often the right paragraph is found, and how often none is found when there is none.

    python -m benchmarks.retrieval --data DIR [--embedder e5-small] [--json FILE]

DIR holds `xquad.en.json` and `xquad.zh.json`: see benchmarks/xquad.py. Paragraphs are documents,
and all runs through the product's own Retriever over a DocumentStore. Prints tables and ends
with one JSON line. The constants in rag/relevance.py are checked here.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.xquad import LANGUAGES, Collection, DataSet, Question, Remembering, read_squad
from generation.weights import CATALOGUE, cache_dir, ensure
from rag.citations import support
from rag.embedding import Embedder
from rag.ingest import ingest_folder
from rag.relevance import log_odds
from rag.retriever import Retriever
from rag.store import DocumentStore

ROOT = Path(__file__).resolve().parents[1]
DIRECTIONS = (("en", "en"), ("zh", "zh"), ("zh", "en"), ("en", "zh"))  # question, paragraphs
Rows = dict[str, dict[str, float]]


def recall(search: Callable[[str], list[int]], questions: Sequence[Question]) -> dict[str, float]:
    found = [(search(question.text), question.paragraph) for question in questions]
    return {f"r@{k}": _mean(right in places[:k] for places, right in found) for k in (1, 5, 10)}


def refusals(collection: Collection, questions: Iterable[Question]) -> dict[str, float]:
    """Shares: answerable questions for which nothing is cited, others for which something is.

    Then what other thresholds would give: the second share where the first is .03, and the area
    under the curve (ROC), the chance that of two questions the answerable one seems the likelier.
    """
    answerable: list[float] = []
    other: list[float] = []
    for question in questions:
        inside = question.paragraph in collection.places
        (answerable if inside else other).append(best_log_odds(collection.retriever, question.text))
    yes, no = np.array(answerable), np.array(other)
    above = (yes[:, None] > no).mean() + (yes[:, None] == no).mean() / 2
    return {
        "refused": float((yes < 0).mean()),
        "cited": float((no >= 0).mean()),
        "cited at .03": float((no >= np.quantile(yes, 0.03)).mean()),
        "AUC": float(above),
    }


def best_log_odds(retriever: Retriever, question: str) -> float:
    """Of the likeliest passage; 0 is the threshold."""
    found = retriever.retrieve(question)
    odds = [log_odds(p.signals) for p in (*found.passages, *found.rejected)]
    assert found.relevant == (max(odds, default=-math.inf) >= 0)
    return max(odds, default=-math.inf)


def in_whole(whole: dict[str, Collection], sets: dict[str, DataSet]) -> Rows:
    rows = {}
    for asked, held in DIRECTIONS:
        searches = {"by vectors": whole[held].by_vectors, "by words": whole[held].by_words}
        searches["fused"] = whole[held].by_fusion
        for how, search in searches.items():
            rows[f"{asked} -> {held}, {how}"] = recall(search, sets[asked].questions)
    return rows


def in_two_languages(make: Callable[..., Collection], sets: dict[str, DataSet]) -> Rows:
    """Every other article in English, the rest in Chinese; then the other way round."""
    rows = {}
    for parity in (0, 1):
        articles = sets["en"].articles
        held = ["en" if article % 2 == parity else "zh" for article in articles]
        mixed = make({place: sets[held[place]].paragraphs[place] for place in range(len(held))})
        for asked in LANGUAGES:
            for same in (True, False):
                questions = [
                    q for q in sets[asked].questions if (held[q.paragraph] == asked) == same
                ]
                where = "its own" if same else "the other"
                rows[f"{asked}, answer in {where} language ({parity})"] = recall(
                    mixed.by_fusion, questions
                )
    return rows


def with_half(make: Callable[..., Collection], sets: dict[str, DataSet]) -> Rows:
    """Every second article indexed, all questions asked; then the other articles indexed."""
    rows = {}
    for asked, held in DIRECTIONS:
        for parity in (0, 1):
            data = sets[held]
            places = [p for p, article in enumerate(data.articles) if article % 2 == parity]
            half = make({place: data.paragraphs[place] for place in places})
            rows[f"{asked} -> {held} ({parity})"] = refusals(half, sets[asked].questions)
    return rows


def with_few(make: Callable[..., Collection], sets: dict[str, DataSet]) -> Rows:
    """One or five neighbouring paragraphs indexed; asked about them and about other articles."""
    rows = {}
    for language in LANGUAGES:
        data = sets[language]
        for size in (1, 5):
            outcomes = []
            for first in range(0, len(data.paragraphs) - size, 12):
                places = range(first, first + size)
                few = make({place: data.paragraphs[place] for place in places})
                near = {data.articles[place] for place in places}
                inside = [q for q in data.questions if q.paragraph in places]
                outside = [q for q in data.questions if q.article not in near]
                outcomes.append(refusals(few, [*inside, *outside[first % 7 :: 7]]))
            rows[f"{language}, {size} indexed"] = {
                kind: _mean(outcome[kind] for outcome in outcomes) for kind in outcomes[0]
            }
    return rows


def on_the_corpus(embedder: Remembering, folder: Path) -> Rows:
    """The documents that come with the app; questions about them, and about anything else."""
    questions = json.loads((ROOT / "benchmarks" / "questions.json").read_text(encoding="utf-8"))
    rows = {}
    for held in (("en",), ("zh",), LANGUAGES):
        name = "-".join(held)
        store = DocumentStore(folder / f"corpus-{name}", embedder.identity, embedder.dimension)
        for added in ingest_folder(store, embedder, ROOT / "corpus"):  # type: ignore[arg-type]
            if added.document.name.split(".")[-2] not in held:
                store.remove(added.document.id)
        retriever = Retriever(store, embedder)  # type: ignore[arg-type]
        for asked in LANGUAGES:
            about, other = (
                [retriever.retrieve(question).relevant for question in questions[kind][asked]]
                for kind in ("answered by the corpus", "about something else")
            )
            rows[f"{asked} -> {name}"] = {"refused": 1 - _mean(about), "cited": _mean(other)}
        store.close()
    return rows


def pointing(retriever: Retriever, questions: Sequence[Question]) -> dict[str, float]:
    """Shares of questions whose highlight holds the answer, and of answers aligned with it."""
    highlighted, aligned, right_sentence = [], [], []
    for question in questions:
        passages = retriever.retrieve(question.text, k=3).passages
        right = [p for p in passages if p.document == str(question.paragraph)]
        if not right:
            continue
        span = right[0].highlight or (0, 0)
        highlighted.append(span[0] <= question.answer_start < span[1])
        found = support(question.answer, [p.text for p in passages])
        aligned.append(bool(found))
        for one in found[:1]:
            held = one.span[0] <= question.answer_start < one.span[1]
            right_sentence.append(held and passages[one.citation - 1] is right[0])
    return {
        "highlighted": _mean(highlighted),
        "aligned": _mean(aligned),
        "of which right": _mean(right_sentence),
    }


def with_diversity(whole: dict[str, Collection], sets: dict[str, DataSet]) -> Rows:
    """Of the answerable questions, for how many the right paragraph is among four handed on."""
    rows = {}
    for language in LANGUAGES:
        retriever, questions = whole[language].retriever, sets[language].questions
        for diversity in (0.0, 0.1, 0.3, 0.5, 0.7):
            found = [retriever.retrieve(q.text, diversity=diversity).passages for q in questions]
            right = [
                str(q.paragraph) in [p.document for p in passages]
                for q, passages in zip(questions, found, strict=True)
            ]
            row = {"handed on": _mean(right), "passages": _mean(map(len, found))}
            rows[f"{language}, diversity {diversity}"] = row
    return rows


def milliseconds(retriever: Retriever, questions: Sequence[Question]) -> dict[str, float]:
    seconds = [retriever.retrieve(question.text).seconds for question in questions]
    return {"p50": 1e3 * float(np.median(seconds)), "p95": 1e3 * float(np.quantile(seconds, 0.95))}


def measure(sets: dict[str, DataSet], plain: Embedder, folder: Path) -> Iterator[tuple[str, Rows]]:
    embedder = Remembering(plain)
    made = 0

    def make(texts: dict[int, str], embedder: Remembering = embedder) -> Collection:
        nonlocal made
        made += 1
        return Collection(folder / str(made), embedder, texts)

    whole = {language: make(dict(enumerate(data.paragraphs))) for language, data in sets.items()}
    yield "recall", in_whole(whole, sets)
    yield "recall, half of the articles in each language", in_two_languages(make, sets)
    yield "nothing relevant, half of the articles", with_half(make, sets)
    yield "nothing relevant, few paragraphs", with_few(make, sets)
    yield "nothing relevant, the shipped corpus", on_the_corpus(embedder, folder)
    yield "maximal marginal relevance", with_diversity(whole, sets)
    yield (
        "pointing at a sentence",
        {name: pointing(whole[name].retriever, sets[name].questions) for name in LANGUAGES},
    )
    asking = Collection(folder / "asking", embedder, dict(enumerate(sets["en"].paragraphs)))
    timed = {}
    for language in LANGUAGES:
        embedder.forget_queries()
        timed[language] = milliseconds(asking.retriever, sets[language].questions[:100])
    yield "milliseconds a question, 240 English passages", timed


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _print(title: str, rows: Rows) -> None:
    columns = list(next(iter(rows.values())))
    print(f"\n{title:50}" + "".join(f"{column:>16}" for column in columns))
    for name, row in rows.items():
        print(f"  {name:48}" + "".join(f"{row[column]:16.4g}" for column in columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall and refusals of the retriever on XQuAD.")
    parser.add_argument("--data", type=Path, required=True, help="folder with xquad.*.json")
    parser.add_argument("--embedder", default="e5-small", help="catalogue name, file or folder")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args()
    sets = {language: read_squad(options.data / f"xquad.{language}.json") for language in LANGUAGES}
    known = options.embedder in CATALOGUE
    weights = ensure(options.embedder) if known else Path(options.embedder)
    embedder = Embedder(weights, cache_dir=cache_dir() / "converted")
    results: dict[str, object] = {"benchmark": "retrieval", "embedder": embedder.identity}
    with tempfile.TemporaryDirectory() as folder:
        for title, rows in measure(sets, embedder, Path(folder)):
            _print(title, rows)
            results[title] = rows
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
