"""How often a model's answer holds the right one, with passages and without, and what it cites.

    python -m benchmarks.answers --data DIR [--model qwen-0.5b] [--questions 60] [--split test]
    python -m benchmarks.answers --squad FILE [--passages 0,3]

DIR holds `xquad.en.json` and `xquad.zh.json`: see benchmarks/xquad.py; FILE is any data set in
SQuAD's format. Each question goes the way it goes in the app: Retriever over a DocumentStore,
build_messages, the greedy loop, rag.citations. Questions are drawn with a fixed seed, spread over
the articles; the halves `dev` and `test` share no article, so that what is chosen on one can be
checked on the other. Prints a table and ends with one JSON line.

    contains    a gold answer stands in the answer (benchmarks/answer_metrics.py says how compared)
    exact, f1   SQuAD's figures, which a whole sentence in answer can only lose
    precision   of the citations, those whose sentence holds the gold answer
    recall      of the answers that hold a gold one, those with such a citation
    nothing     nothing was found relevant, so that the prompt had no passages
    declined    the answer says that it does not know
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import answer_metrics as metrics
from benchmarks.answer_metrics import Citation
from benchmarks.xquad import LANGUAGES, Collection, DataSet, Question, Remembering, read_squad
from generation.config import GenerationConfig
from generation.decoding import generate
from generation.model import LanguageModel, load_model
from generation.streaming import stream_text
from generation.weights import CATALOGUE, cache_dir, ensure
from rag.citations import check_citations
from rag.embedding import Embedder
from rag.prompt import build_messages
from rag.retriever import Retriever

SPLITS = {"dev": (0,), "test": (1,), "all": (0, 1)}  # by the number of the article
MOST_PARAGRAPHS = 300  # held of a data set, those asked about among them
SEED = 4


@dataclass(frozen=True)
class Answered:
    """One question with what was written; `citations` are those that the page would draw."""

    question: Question
    text: str
    found: bool
    citations: tuple[Citation, ...]
    prompt_tokens: int
    seconds: float


def drawn(questions: Sequence[Question], count: int, split: str) -> list[Question]:
    """At most `count` questions of a split, one of each article before a second of any."""
    chance = random.Random(SEED)
    by_article: dict[int, list[Question]] = {}
    for question in questions:
        if question.article % 2 in SPLITS[split]:
            by_article.setdefault(question.article, []).append(question)
    rounds: dict[int, list[Question]] = {}
    for article in sorted(by_article):
        asked = by_article[article]
        for number, question in enumerate(chance.sample(asked, len(asked))):
            rounds.setdefault(number, []).append(question)
    for number in rounds:
        chance.shuffle(rounds[number])
    return [question for number in sorted(rounds) for question in rounds[number]][:count]


def held(data: DataSet, questions: Iterable[Question]) -> dict[int, str]:
    """The paragraphs to search: all, or of a large data set those asked about and some others."""
    asked = {question.paragraph for question in questions}
    others = [place for place in range(len(data.paragraphs)) if place not in asked]
    others = random.Random(SEED).sample(others, min(len(others), MOST_PARAGRAPHS - len(asked)))
    return {place: data.paragraphs[place] for place in sorted(asked.union(others))}


def answer(
    lm: LanguageModel, retriever: Retriever, question: Question, passages: int, language: str
) -> Answered:
    started = time.perf_counter()
    found = retriever.retrieve(question.text, k=passages).passages if passages else ()
    config = GenerationConfig()
    prompt = build_messages(
        question.text,
        found,
        count_tokens=lambda messages: len(lm.encode_chat(messages)),
        budget=lm.context_length - config.max_new_tokens,
        language=language,
    )
    steps = generate(lm, lm.encode_chat(prompt.messages), config)
    text = "".join(piece for _, piece in stream_text(lm, steps))
    paragraphs = [int(passage.document) for passage in prompt.used]
    checked = check_citations(text, [passage.text for passage in prompt.used])
    citations = [Citation(paragraphs[one.citation - 1], *one.span) for one in checked.supports]
    return Answered(
        question,
        checked.text,
        bool(found),
        tuple(citations),
        prompt.tokens,
        time.perf_counter() - started,
    )


def figures(answers: Sequence[Answered], passages: int, language: str) -> dict[str, float | None]:
    """Means over `answers`; None where there is nothing to take the mean of."""
    right, contained = [], []
    for one in answers:
        golds, starts = one.question.answers, one.question.starts
        good = [metrics.holds_gold(c, one.question.paragraph, starts) for c in one.citations]
        right += good
        if metrics.contains(one.text, golds, language):
            contained.append(any(good))
    return {
        "contains": len(contained) / len(answers),
        "exact": _mean(metrics.exact(a.text, a.question.answers, language) for a in answers),
        "f1": _mean(metrics.f1(a.text, a.question.answers, language) for a in answers),
        "precision": _mean(right) if passages else None,
        "recall": _mean(contained) if passages else None,
        "nothing": _mean(not a.found for a in answers) if passages else None,
        "declined": _mean(metrics.declines(a.text) for a in answers),
        "characters": _mean(len(a.text) for a in answers),
        "prompt": _mean(a.prompt_tokens for a in answers),
        "seconds": _mean(a.seconds for a in answers),
    }


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def _row(name: str, cells: Iterable[object]) -> str:
    shown = ("-" if c is None else f"{c:.3g}" if isinstance(c, float) else str(c) for c in cells)
    return f"{name:28}" + "".join(f"{cell:>11}" for cell in shown)


def _data_sets(options: argparse.Namespace) -> dict[str, DataSet]:
    if options.squad is not None:
        return {options.squad.stem: read_squad(options.squad)}
    return {name: read_squad(options.data / f"xquad.{name}.json") for name in options.languages}


def _list(values: Iterable[str] | None = None, kind: type = str):
    """A parser of comma-separated values, each one of `values`."""

    def parse(text: str) -> list:
        found = [kind(piece) for piece in text.split(",")]
        if values is not None and not set(found) <= set(values):
            raise argparse.ArgumentTypeError(f"choose from {','.join(values)}")
        return found

    return parse


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers over XQuAD or another SQuAD-like set.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="folder with xquad.*.json")
    source.add_argument("--squad", type=Path, help="a file in SQuAD's format")
    parser.add_argument("--model", default="qwen-0.5b", help="catalogue name, file or folder")
    parser.add_argument("--embedder", default="e5-small", help="catalogue name, file or folder")
    parser.add_argument("--questions", type=int, default=60, help="of each language")
    parser.add_argument("--passages", type=_list(kind=int), default=[0, 1, 3, 5])
    parser.add_argument("--languages", type=_list(LANGUAGES), default=list(LANGUAGES))
    parser.add_argument("--split", choices=SPLITS, default="all")
    parser.add_argument("--show", action="store_true", help="print every answer, too")
    options = parser.parse_args()
    sets = _data_sets(options)
    lm = load_model(options.model)
    known = options.embedder in CATALOGUE
    embedder_path = ensure(options.embedder) if known else Path(options.embedder)
    embedder = Remembering(Embedder(embedder_path, cache_dir=cache_dir() / "converted"))
    results: dict[str, object] = {
        "benchmark": "answers",
        "model": lm.name,
        "precision": lm.precision,
        "split": options.split,
    }
    titled = False
    with tempfile.TemporaryDirectory() as folder:
        for name, data in sets.items():
            questions = drawn(data.questions, options.questions, options.split)
            language = metrics.language_of([question.text for question in questions])
            collection = Collection(Path(folder) / name, embedder, held(data, questions))
            for passages in options.passages:
                answers = [
                    answer(lm, collection.retriever, question, passages, language)
                    for question in questions
                ]
                row = figures(answers, passages, language)
                if not titled:
                    print(_row(f"{lm.name}, {options.split}", row))
                    titled = True
                row_name = f"{name}, {len(answers)} questions, {passages}"
                print(_row(row_name, row.values()), flush=True)
                results[row_name] = row
                for one in answers if options.show else ():
                    print(f"  {one.question.text} -> {one.text!r} ({one.question.answer})")
    print(json.dumps(results, ensure_ascii=False))


if __name__ == "__main__":
    main()
