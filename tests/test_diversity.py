"""`rag.diversity` against its definition."""

import numpy as np
import pytest

from rag.diversity import marginal_relevance_order


def unit(rows):
    rows = np.asarray(rows, float)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_definition(scores, vectors, diversity):
    order = [int(np.argmax(scores))]
    while len(order) < len(scores):
        rest = [place for place in range(len(scores)) if place not in order]
        gains = [
            (1 - diversity) * scores[p] - diversity * max(vectors[p] @ vectors[o] for o in order)
            for p in rest
        ]
        order.append(rest[int(np.argmax(gains))])
    return order


@pytest.mark.parametrize("diversity", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_order_is_that_of_the_paper(diversity):
    random = np.random.default_rng(5)
    for count in (1, 2, 7, 20):
        scores = random.random(count)
        vectors = unit(random.standard_normal((count, 4)))
        expected = by_definition(scores, vectors, diversity)
        assert marginal_relevance_order(scores, vectors, diversity) == expected


def test_without_diversity_the_order_is_that_of_the_scores():
    vectors = unit([[1, 0], [1, 0], [0, 1]])
    assert marginal_relevance_order(np.array([0.2, 0.9, 0.5]), vectors, 0.0) == [1, 2, 0]


def test_a_copy_of_the_best_comes_after_what_differs():
    vectors = unit([[1, 0], [1, 0], [0, 1]])
    assert marginal_relevance_order(np.array([0.9, 0.89, 0.8]), vectors, 0.3) == [0, 2, 1]


def test_of_nothing_there_is_no_order():
    assert marginal_relevance_order(np.empty(0), np.empty((0, 3)), 0.5) == []


@pytest.mark.parametrize("diversity", [-0.1, 1.1, float("nan")])
def test_diversity_is_from_0_to_1(diversity):
    with pytest.raises(ValueError, match="diversity"):
        marginal_relevance_order(np.ones(1), np.ones((1, 1)), diversity)
