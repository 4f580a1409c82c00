"""One number that says how well a passage fits a question, and how high it must be to count.

The number is the cosine of the vectors plus a share of BM25. E5's cosines all lie between .7 and
.95 and depend on the languages, so they are corrected here, once. Knows no index and no store.

The constants were chosen on XQuAD with every second article indexed, and checked with the others
indexed instead and on the shipped corpus; `python -m benchmarks.retrieval --data DIR` measures all
of it again. Another embedding model needs other constants.
"""

import math
from collections.abc import Iterable

from rag.retrieved import Signal
from rag.terms import Script

LEAST_PROBABILITY = 0.5  # of a passage worth citing

# Recall@5 on XQuAD, English and Chinese: .995 and .982 by cosine alone, .991 and .991 by BM25
# alone, .997 and .995 together; any weight from .2 to .4 gives that within .001.
LEXICAL_WEIGHT = 0.3

# The best of many chance matches is better than the best of a few: for unanswerable questions the
# best score grows by .01 with each doubling of the collection, for answerable ones it does not.
# The threshold goes between: on XQuAD it refuses .03 of the answerable questions and cites for .02
# (English) and .05 (Chinese) of the others. Where the documents resemble each other more, more is
# cited: .2 on CMRC 2018, whose Chinese paragraphs are of railways, fishes and universities.
_THRESHOLD_OF_ONE: dict[Script, float] = {"han": 0.845, "other": 0.81}
_THRESHOLD_PER_DOUBLING = 0.007

# E5 prefers passages in the question's own language to those that have the answer: without a
# correction, a Chinese question finds an English answer among Chinese passages in .04 of the cases
# (recall@5), an English question a Chinese one in .31; with this one, .93 and .95. What counts in
# the other language is by how much a cosine exceeds what this question has with any passage there.
# It is a weak sign: .06 above it are .76 of the answerable Chinese questions and .16 of the others,
# .69 of the answerable English questions and .06 of the others. More is wanted where the question's
# own language has an answer already.
_MARGIN_IN_OTHER_SCRIPT = 0.06
_MARGIN_BESIDE_AN_ANSWER = 0.08
_USUAL_COSINE: dict[Script, float] = {"han": 0.735, "other": 0.72}  # while passages are few
_FEW = 10


def threshold(question_script: Script, considered: int) -> float:
    """The least score of a passage worth citing, of `considered` passages searched."""
    doublings = math.log2(max(1, considered))
    return _THRESHOLD_OF_ONE[question_script] + _THRESHOLD_PER_DOUBLING * doublings


def allowance(
    question_script: Script, threshold: float, *, mean_cosine: float, passages: int, answered: bool
) -> float:
    """What to add to the cosine of passages in the other script to make scores comparable.

    `mean_cosine` is the question's with all `passages` in that script; `answered` says whether a
    passage in the question's own reaches the threshold.
    """
    usual = passages * mean_cosine + _FEW * _USUAL_COSINE[question_script]
    margin = _MARGIN_BESIDE_AN_ANSWER if answered else _MARGIN_IN_OTHER_SCRIPT
    return threshold - usual / (passages + _FEW) - margin


def signals(score: float, least: float) -> tuple[Signal, ...]:
    """What speaks for a passage with this fused score, where `least` is worth citing."""
    return (Signal("score", score, neutral=least, weight=60.0),)


def probability(signals: Iterable[Signal]) -> float:
    """That a passage answers: the logistic function of the sum of its signals' contributions."""
    log_odds = sum(signal.contribution for signal in signals)
    return 1 / (1 + math.exp(-min(max(log_odds, -30.0), 30.0)))
