"""`rag.vector_index` against plain NumPy, and what it refuses."""

import threading

import numpy as np
import pytest

from rag.vector_index import VectorIndex, VectorIndexError


def unit_vectors(count: int, dimension: int = 16, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(count: int = 50) -> tuple[VectorIndex, np.ndarray, np.ndarray]:
    ids, vectors = np.arange(count) * 7 + 3, unit_vectors(count)
    index = VectorIndex(16)
    index.add(ids, vectors)
    return index, ids, vectors


def by_numpy(ids, vectors, query, k) -> list[int]:
    return ids[np.argsort(-(vectors @ query), kind="stable")][:k].tolist()


@pytest.mark.parametrize("k", [1, 5, 50, 500])
def test_finds_what_numpy_finds(k):
    index, ids, vectors = filled()
    for query in unit_vectors(20, seed=1):
        hits = index.search(query, k)
        assert hits.ids.tolist() == by_numpy(ids, vectors, query, k)
        expected = np.sort(vectors @ query)[::-1][:k]
        np.testing.assert_allclose(hits.scores, expected, atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_a_filtered_search_finds_the_best_of_those_allowed(share):
    index, ids, vectors = filled()
    rng = np.random.default_rng(2)
    for query in unit_vectors(20, seed=3):
        inside = rng.random(len(ids)) < share
        hits = index.search(query, 5, ids[inside].tolist())
        assert hits.ids.tolist() == by_numpy(ids[inside], vectors[inside], query, 5)


def test_allowed_ids_that_are_not_there_find_nothing():
    index, _, vectors = filled()
    assert len(index.search(vectors[0], 5, [1, 2, 10**12])) == 0


def test_removal_leaves_every_other_id_on_its_vector():
    index, ids, vectors = filled()
    gone = ids[::3].tolist()
    assert index.remove([*gone, 999_999]) == len(gone)
    kept = np.isin(ids, gone, invert=True)
    assert index.ids.tolist() == ids[kept].tolist()
    for query in unit_vectors(20, seed=4):
        assert index.search(query, 9).ids.tolist() == by_numpy(ids[kept], vectors[kept], query, 9)


def test_an_id_can_be_added_again_after_it_was_removed():
    index, ids, vectors = filled()
    index.remove([int(ids[0])])
    index.add(ids[:1], vectors[1:2])
    assert set(index.search(vectors[1], 2).ids.tolist()) == {int(ids[0]), int(ids[1])}


def test_equal_scores_come_in_the_order_of_ids():
    index = VectorIndex(16)
    same = np.repeat(unit_vectors(1), 5, axis=0)
    index.add([9, 2, 7, 1, 4], same)
    assert index.search(same[0], 5).ids.tolist() == [1, 2, 4, 7, 9]


def test_an_empty_index_finds_nothing():
    assert len(VectorIndex(16).search(unit_vectors(1)[0], 5)) == 0


def test_k_of_zero_finds_nothing():
    index, _, vectors = filled()
    assert len(index.search(vectors[0], 0)) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused_whole(bad):
    index, _, vectors = filled()
    rows = unit_vectors(3, seed=5)
    rows[1, 4] = bad
    with pytest.raises(VectorIndexError, match="NaN or infinity"):
        index.add([1000, 1001, 1002], rows)
    with pytest.raises(VectorIndexError, match="NaN or infinity"):
        index.search(rows[1], 5)
    assert len(index) == len(vectors)


@pytest.mark.parametrize("shape", [(2, 15), (2, 17), (16,), (2, 2, 16)])
def test_another_dimension_is_refused(shape):
    with pytest.raises(VectorIndexError, match="not \\(N, 16\\)"):
        VectorIndex(16).add([1, 2], np.ones(shape, np.float32))


def test_as_many_ids_as_vectors_are_wanted():
    with pytest.raises(VectorIndexError, match="3 ids for 2 vectors"):
        VectorIndex(16).add([1, 2, 3], unit_vectors(2))


def test_negative_ids_are_refused():
    with pytest.raises(VectorIndexError, match="negative"):
        VectorIndex(16).add([-1], unit_vectors(1))


@pytest.mark.parametrize("ids", [[5, 5], [3, 5]])
def test_an_id_twice_is_refused_and_nothing_is_added(ids):
    index, _, _ = filled()
    with pytest.raises(VectorIndexError, match="once"):
        index.add(ids, unit_vectors(2))
    assert len(index) == 50


def test_searches_while_another_thread_adds_and_removes_find_whole_answers():
    index, _, vectors = filled()
    extra = unit_vectors(200, seed=7)
    failures = []

    def search() -> None:
        for query in vectors:
            hits = index.search(query, 1)
            if hits.scores[0] < 0.999:
                failures.append(hits)

    def change() -> None:
        for at in range(0, 200, 10):
            index.add(np.arange(1000 + at, 1010 + at), extra[at : at + 10])
            index.remove(np.arange(1000 + at, 1005 + at))

    threads = [threading.Thread(target=search) for _ in range(6)]
    threads.append(threading.Thread(target=change))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(index) == 150
