"""How passages are ranked for a question, and how probable it is that one answers it.

The rank is by one score: the cosine of the vectors plus a share of BM25. The probability is a
logistic regression of a few signals of the passage. Knows no index and no store.

The weights were fitted on one half of XQuAD (`python -m benchmarks.relevance --data DIR` prints
them) and checked on the other and on other collections (`python -m benchmarks.retrieval --data
DIR`). Another embedding model needs other constants.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from rag.retrieved import Signal
from rag.terms import Script

LEAST_PROBABILITY = 0.5  # of a passage worth citing

# Recall@5 on XQuAD, English and Chinese: .995 and .982 by cosine alone, .991 and .991 by BM25
# alone, .997 and .995 together; any weight from .2 to .4 gives that within .001.
LEXICAL_WEIGHT = 0.3

# E5's cosines all lie between .7 and .95, higher between Chinese texts; "neutral" is the cosine of
# a passage, and of its best sentence, that speaks neither way. The best of many chance matches is
# better than the best of a few, so each doubling of the collection counts against a passage.
# Rounded from 58, 87, 31, -.67 and .843, .797: the sum changes little.
_WEIGHTS = {"cosine": 60.0, "sentence": 85.0, "words": 32.0, "doublings": -0.6}
_NEUTRAL_COSINE: dict[Script, float] = {"han": 0.845, "other": 0.8}
_NEUTRAL_WORDS = 0.1

# In the other language a cosine counts by how much it exceeds what this question has with any
# passage there. It is a weak sign: on XQuAD a quarter of the answerable questions and a tenth of
# the others are on the wrong side. Rounded from 101, 39, 34 and .063, .056, made a little stricter;
# "answered" is not fitted, but weighs what the two margins below differ by.
_FOREIGN_WEIGHTS = {"cosine": 100.0, "sentence": 40.0, "words": 34.0, "answered": -2.8}
_FOREIGN_NEUTRAL: dict[Script, float] = {"han": 0.065, "other": 0.058}

# E5 prefers passages in the question's own language to those that have the answer: without a
# correction, a Chinese question finds an English answer among Chinese passages in .04 of the cases
# (recall@5), an English question a Chinese one in .31; with this one, .93 and .95. More is wanted
# where the question's own language has an answer already.
_LEAST_SCORE_OF_ONE: dict[Script, float] = {"han": 0.845, "other": 0.81}
_LEAST_SCORE_PER_DOUBLING = 0.007
_MARGIN_IN_OTHER_SCRIPT = 0.06
_MARGIN_BESIDE_AN_ANSWER = 0.08
_USUAL_COSINE: dict[Script, float] = {"han": 0.735, "other": 0.72}  # while passages are few
_FEW = 10


class Question(NamedTuple):
    """What the probability needs to know of a question: its script, how many passages were
    searched, and whether one in its own script has a score of `least_score`."""

    script: Script
    considered: int
    answered: bool


def least_score(question_script: Script, considered: int) -> float:
    """The score that chance matches rarely reach among `considered` passages."""
    doublings = math.log2(max(1, considered))
    return _LEAST_SCORE_OF_ONE[question_script] + _LEAST_SCORE_PER_DOUBLING * doublings


def usual_cosine(question_script: Script, mean_cosine: float, passages: int) -> float:
    """What this question has with any passage in the other script.

    `mean_cosine` is its mean with all `passages` there, which says little while they are few.
    """
    known, few = passages * mean_cosine, _FEW * _USUAL_COSINE[question_script]
    return (known + few) / (passages + _FEW)


def allowance(least: float, usual: float, *, answered: bool) -> float:
    """What to add to the score of passages in the other script to make scores comparable.

    `answered` says whether a passage in the question's own script reaches the `least` score.
    """
    margin = _MARGIN_BESIDE_AN_ANSWER if answered else _MARGIN_IN_OTHER_SCRIPT
    return least - usual - margin


def signals(
    question: Question, *, cosine: float, sentence: float, words: float, usual: float | None
) -> tuple[Signal, ...]:
    """What speaks for and against a passage.

    Args:
        cosine: of the question with the passage.
        sentence: of the question with the passage's best sentence, or with the passage as long as
            nobody has looked at its sentences.
        words: the share of BM25.
        usual: the question's usual cosine in the passage's script; None when it is its own.
    """
    if usual is None:
        neutral = _NEUTRAL_COSINE[question.script]
        doublings = math.log2(max(1, question.considered))
        return (
            Signal("cosine", cosine, neutral, _WEIGHTS["cosine"]),
            Signal("sentence", sentence, neutral, _WEIGHTS["sentence"]),
            Signal("words", words, _NEUTRAL_WORDS, _WEIGHTS["words"]),
            Signal("doublings", doublings, 0.0, _WEIGHTS["doublings"]),
        )
    neutral = usual + _FOREIGN_NEUTRAL[question.script]
    return (
        Signal("cosine", cosine, neutral, _FOREIGN_WEIGHTS["cosine"]),
        Signal("sentence", sentence, neutral, _FOREIGN_WEIGHTS["sentence"]),
        Signal("words", words, 0.0, _FOREIGN_WEIGHTS["words"]),
        Signal("answered", float(question.answered), 0.0, _FOREIGN_WEIGHTS["answered"]),
    )


def log_odds(signals: Iterable[Signal]) -> float:
    return sum(signal.contribution for signal in signals)


def probability(signals: Iterable[Signal]) -> float:
    """That a passage answers: the logistic function of the sum of its signals' contributions."""
    return 1 / (1 + math.exp(-min(max(log_odds(signals), -30.0), 30.0)))
