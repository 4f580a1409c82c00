"""Fits the weights of rag/relevance.py on one half of XQuAD and checks them on the other.

    python -m benchmarks.relevance --data DIR [--parity 0] [--embedder e5-small]

DIR holds `xquad.en.json` and `xquad.zh.json`: see benchmarks/xquad.py. Deterministic: logistic
regression by Newton's method on the best passage of each question, with collections of several
sizes, each of which counts the same, and so do answerable and other questions. Every signal is
measured for every question here; the product looks at sentences only where it is in doubt. Prints
the constants, the shares of wrong decisions in each half, and ends with one JSON line.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.xquad import LANGUAGES, Collection, DataSet, Question, Remembering, read_squad
from generation.weights import CATALOGUE, cache_dir, ensure
from rag import relevance
from rag.embedding import Embedder
from rag.evidence import statements
from rag.terms import script_of

SIGNALS = ("cosine", "sentence", "words", "doublings", "in Chinese", "constant")
FOREIGN = ("cosine", "sentence", "words", "in Chinese", "constant")
PENALTY = 1e-4  # on the squares of standardised weights: they stay finite where signals separate
Make = Callable[[dict[int, str]], Collection]


class Sample(NamedTuple):
    """Signals (N, S) of the best passage of N questions, and which have an answer indexed (N,)."""

    signals: NDArray[np.float64]
    answerable: NDArray[np.bool_]


class Fitting:
    """Makes collections of parts of XQuAD and measures questions on them."""

    def __init__(self, make: Make, embedder: Remembering, sets: dict[str, DataSet]) -> None:
        self._make, self._embedder, self._sets = make, embedder, sets

    def sample(
        self, asked: str, held: str, places: Sequence[int], questions: Iterable[Question]
    ) -> Sample:
        """Paragraphs `places` of language `held`, asked in language `asked`."""
        texts = {place: self._sets[held].paragraphs[place] for place in places}
        collection = self._make(texts)
        mean = self._embedder.embed_passages(list(texts.values())).mean(axis=0)  # (D,)
        rows, answerable = [], []
        for question in questions:
            found = collection.retriever.retrieve(question.text)
            best = min((*found.passages, *found.rejected), key=lambda p: p.rank, default=None)
            if best is None:
                continue
            vector = self._embedder.embed_query(question.text)  # (D,)
            sentences = [best.text[start:end] for start, end in statements(best.text)]
            sentence = float((self._embedder.embed_passages(sentences) @ vector).max())
            script, usual = script_of(question.text), 0.0
            if asked != held:
                usual = relevance.usual_cosine(script, float(vector @ mean), len(texts))
            row = [best.dense_score - usual, sentence - usual, best.lexical_score]
            row += [math.log2(len(texts))] if asked == held else []
            rows.append([*row, float(script == "han"), 1.0])
            answerable.append(question.paragraph in texts)
        return Sample(np.array(rows), np.array(answerable))

    def half(self, asked: str, held: str, parity: int) -> Sample:
        articles = self._sets[held].articles
        places = [place for place, article in enumerate(articles) if article % 2 == parity]
        return self.sample(asked, held, places, self._sets[asked].questions)

    def small(self, language: str, parity: int) -> Iterable[Sample]:
        """Every eighth article; then one paragraph and five at a time, of those of `parity`."""
        data = self._sets[language]
        eighth = [p for p, article in enumerate(data.articles) if article % 8 == parity]
        yield self.sample(language, language, eighth, data.questions)
        for size in (1, 5):
            parts = []
            for first in range(0, len(data.paragraphs) - size, 7):
                if data.articles[first] % 2 != parity:
                    continue
                places = range(first, first + size)
                near = {data.articles[place] for place in places}
                inside = [q for q in data.questions if q.paragraph in places]
                outside = [q for q in data.questions if q.article not in near]
                asked = [*inside, *outside[first % 7 :: 7]]
                parts.append(self.sample(language, language, places, asked))
            yield Sample(
                np.concatenate([part.signals for part in parts]),
                np.concatenate([part.answerable for part in parts]),
            )


def fit(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """Weights (S,) of the signals; the last signal is 1, so that its weight is the constant."""
    rows = np.concatenate([sample.signals for sample in samples])  # (N, S)
    right = np.concatenate([sample.answerable for sample in samples]).astype(float)  # (N,)
    counts = np.concatenate(
        [np.where(s.answerable, 1 / s.answerable.sum(), 1 / (~s.answerable).sum()) for s in samples]
    )
    counts /= counts.sum()
    mean = counts @ rows[:, :-1]
    spread = np.sqrt(counts @ (rows[:, :-1] - mean) ** 2)
    scaled = np.column_stack([(rows[:, :-1] - mean) / spread, rows[:, -1]])
    penalty = PENALTY * np.diag([*[1.0] * len(mean), 0.0])
    weights = np.zeros(rows.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        slope = scaled.T @ (counts * (chance - right)) + penalty @ weights
        curve = (scaled.T * (counts * chance * (1 - chance))) @ scaled + penalty
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-10:
            break
    plain = weights[:-1] / spread
    return np.append(plain, weights[-1] - plain @ mean)


def wrong(weights: NDArray[np.float64], sample: Sample) -> dict[str, float]:
    odds = sample.signals @ weights
    return {
        "refused": float((odds[sample.answerable] < 0).mean()),
        "cited": float((odds[~sample.answerable] >= 0).mean()),
    }


def constants(weights: NDArray[np.float64], names: Sequence[str], words: float) -> dict:
    """As rag/relevance.py writes them: a neutral cosine by script instead of a constant."""
    named = dict(zip(names, weights.tolist(), strict=True))
    steep = named["cosine"] + named["sentence"]
    constant = named["constant"] + words * named["words"]
    neutral = {
        "other": -constant / steep,
        "han": -(constant + named["in Chinese"]) / steep,
    }
    return {name: named[name] for name in names[:-2]} | {"neutral cosine": neutral}


def measure(fitting: Fitting, parity: int) -> dict:
    own = {(lang, p): fitting.half(lang, lang, p) for lang in LANGUAGES for p in (0, 1)}
    train = [own[lang, parity] for lang in LANGUAGES]
    train += [sample for lang in LANGUAGES for sample in fitting.small(lang, parity)]
    weights = fit(train)
    pairs = (("zh", "en"), ("en", "zh"))
    foreign = {(*pair, p): fitting.half(*pair, p) for pair in pairs for p in (0, 1)}
    foreign_weights = fit([foreign[(*pair, parity)] for pair in pairs])
    return {
        "fitted on": parity,
        "own language": constants(weights, SIGNALS, words=0.1),
        "other language": constants(foreign_weights, FOREIGN, words=0.0),
        "checks": {f"{lang} ({p})": wrong(weights, own[lang, p]) for lang, p in own}
        | {
            f"{asked} -> {held} ({p})": wrong(foreign_weights, foreign[asked, held, p])
            for asked, held, p in foreign
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit what decides whether a passage answers.")
    parser.add_argument("--data", type=Path, required=True, help="folder with xquad.*.json")
    parser.add_argument("--parity", type=int, choices=(0, 1), default=0, help="articles to fit on")
    parser.add_argument("--embedder", default="e5-small", help="catalogue name, file or folder")
    options = parser.parse_args()
    sets = {language: read_squad(options.data / f"xquad.{language}.json") for language in LANGUAGES}
    known = options.embedder in CATALOGUE
    weights = ensure(options.embedder) if known else Path(options.embedder)
    embedder = Remembering(Embedder(weights, cache_dir=cache_dir() / "converted"))
    with tempfile.TemporaryDirectory() as folder:
        made = 0

        def make(texts: dict[int, str]) -> Collection:
            nonlocal made
            made += 1
            return Collection(Path(folder) / str(made), embedder, texts)

        results = measure(Fitting(make, embedder, sets), options.parity)
    for title in ("own language", "other language", "checks"):
        print(f"\n{title}")
        for name, values in results[title].items():
            shown = values if isinstance(values, dict) else {"weight": values}
            print(f"  {name:16}" + "".join(f"{k:>10} {v:8.4g}" for k, v in shown.items()))
    print(json.dumps({"benchmark": "relevance", **results}))


if __name__ == "__main__":
    main()
