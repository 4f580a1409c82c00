"""Collections of any size to search, grown from a few thousand real vectors and real words.

Vectors: sentences and passages of `corpus/` (and of XQuAD, if there is a folder with it), embedded
in both languages, are grown so that neighbours stay neighbours: `normalise(t a + (1 - t) b +
.35 (c - d))`, where a is any real vector, b one of its 16 nearest, t uniform in [0, 1], and c and d
any two of the same language: between real vectors, and off them in directions in which real
vectors differ. Questions are real, and so are their vectors.

Texts: 40 to 120 words each, drawn by Zipf's law (exponent 1.05) from the real words in the order of
their frequency, followed by as many made-up ones as a collection of that size has (Heaps' law).
Chinese words are pairs of characters, written without spaces. Half of the passages are Chinese.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.xquad import read_squad
from rag.embedding import Embedder
from rag.evidence import sentences
from rag.terms import tokenize

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("en", "zh")
_NEIGHBOURS = 16
_SPREAD = 0.35
_ZIPF = 1.05
_LETTERS = np.array(list("bcdfghklmnprstvw"))
_VOWELS = np.array(list("aeiou"))


@dataclass(frozen=True)
class Seeds:
    """What a collection in one language is grown from."""

    vectors: NDArray[np.float32]  # (S, D)
    nearest: NDArray[np.intp]  # (S, 16) of each of them
    words: list[str]  # by falling frequency
    questions: list[str]
    question_vectors: NDArray[np.float32]  # (Q, D)


def seeds(embedder: Embedder, data: Path | None) -> dict[str, Seeds]:
    asked = json.loads((ROOT / "benchmarks" / "questions.json").read_text(encoding="utf-8"))
    found = {}
    for language in LANGUAGES:
        paths = sorted((ROOT / "corpus" / language).glob("*.md"))
        texts = [path.read_text(encoding="utf-8") for path in paths]
        questions = [text for kind in asked.values() for text in kind[language]]
        if data is not None:
            squad = read_squad(data / f"xquad.{language}.json")
            texts += squad.paragraphs
            questions += [question.text for question in squad.questions[::6]]
        parts = [text[start:end] for text in texts for start, end in sentences(text)]
        parts = [part for part in dict.fromkeys(parts) if len(part) > 20]
        counts = Counter(term for text in texts for term in tokenize(text))
        real = embedder.embed_passages(parts)  # (S, D)
        found[language] = Seeds(
            real,
            np.argsort(-(real @ real.T), axis=1)[:, 1 : _NEIGHBOURS + 1],
            [word for word, _ in counts.most_common()],
            questions,
            np.array([embedder.embed_query(question) for question in questions]),
        )
    return found


def vectors(seed: Seeds, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """(count, D), as the module says."""
    real = seed.vectors  # (S, D)
    a, c, d = rng.integers(len(real), size=(3, count))
    b = seed.nearest[a, rng.integers(_NEIGHBOURS, size=count)]
    t = rng.random((count, 1), np.float32)
    rows = t * real[a] + (1 - t) * real[b] + np.float32(_SPREAD) * (real[c] - real[d])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def texts(seed: Seeds, language: str, count: int, rng: np.random.Generator) -> Iterator[str]:
    """`count` passages; about as many distinct words as so much text would have."""
    words = np.array([*seed.words, *_made_up(language, int(30 * (80 * count) ** 0.5), rng)])
    weights = 1 / np.arange(3, len(words) + 3) ** _ZIPF
    limits = np.cumsum(weights / weights.sum())
    lengths = rng.integers(40, 121, count)
    separator = " " if language == "en" else ""
    for length in lengths.tolist():
        drawn = words[np.minimum(np.searchsorted(limits, rng.random(length)), len(words) - 1)]
        yield separator.join(drawn.tolist()) + ("." if language == "en" else "。")


def _made_up(language: str, count: int, rng: np.random.Generator) -> list[str]:
    if language == "zh":
        pairs = rng.integers(0x4E00, 0x9FA5, (count, 2))
        return [chr(first) + chr(second) for first, second in pairs.tolist()]
    parts = [rng.choice(_LETTERS if at % 2 == 0 else _VOWELS, count) for at in range(7)]
    return ["".join(letters) for letters in zip(*parts, strict=True)]
