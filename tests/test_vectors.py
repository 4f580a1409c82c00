"""What every `Vectors` keeps to, wherever they are: on this machine, and in real Milvus Lite."""

import threading
from itertools import count

import numpy as np
import pytest

from rag.milvus_connection import MilvusConnection
from rag.milvus_index import MilvusIndex
from rag.vector_index import VectorIndex
from rag.vectors import VectorIndexError, Vectors
from tests.milvus_files import file_address, let_go

DIMENSION = 16
NAMES = count()


@pytest.fixture(scope="module")
def milvus(tmp_path_factory):
    address = file_address(tmp_path_factory.mktemp("文件 é"))
    connection = MilvusConnection(address)
    yield connection
    connection.close()
    let_go(address)


@pytest.fixture(params=["here", "milvus"])
def empty(request, milvus) -> Vectors:
    if request.param == "here":
        return VectorIndex(DIMENSION)
    return MilvusIndex(milvus, f"vectors_{next(NAMES)}", DIMENSION)


def unit_vectors(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


IDS, VECTORS = np.arange(50) * 7 + 3, unit_vectors(50)


@pytest.fixture
def filled(empty):
    shuffled = np.random.default_rng(9).permutation(len(IDS))
    empty.add(IDS[shuffled], VECTORS[shuffled])
    return empty


def by_numpy(ids, vectors, query, k) -> list[int]:
    return ids[np.argsort(-(vectors @ query), kind="stable")][:k].tolist()


@pytest.mark.parametrize("k", [1, 5, 50, 500])
def test_finds_what_numpy_finds(filled, k):
    for query in unit_vectors(10, seed=1):
        hits = filled.search(query, k)
        assert hits.ids.tolist() == by_numpy(IDS, VECTORS, query, k)
        np.testing.assert_allclose(hits.scores, np.sort(VECTORS @ query)[::-1][:k], atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
def test_a_filtered_search_finds_the_best_of_those_allowed(filled, share):
    rng = np.random.default_rng(2)
    for query in unit_vectors(10, seed=3):
        inside = rng.random(len(IDS)) < share
        hits = filled.search(query, 5, IDS[inside])
        assert hits.ids.tolist() == by_numpy(IDS[inside], VECTORS[inside], query, 5)


def test_allowed_ids_that_are_not_there_find_nothing(filled):
    assert len(filled.search(VECTORS[0], 5, np.array([1, 2, 10**12]))) == 0


def test_removal_leaves_every_other_id_on_its_vector(filled):
    gone = np.isin(IDS, IDS[::3])
    assert filled.remove([*IDS[gone].tolist(), 999_999]) == gone.sum()
    assert filled.ids.tolist() == IDS[~gone].tolist()
    assert len(filled) == (~gone).sum()
    for query in unit_vectors(10, seed=4):
        found = filled.search(query, 9).ids.tolist()
        assert found == by_numpy(IDS[~gone], VECTORS[~gone], query, 9)


def test_what_was_removed_is_not_removed_again(filled):
    assert filled.remove(IDS[:3]) == 3
    assert filled.remove(IDS[:4]) == 1


def test_an_id_can_be_added_again_after_it_was_removed(filled):
    filled.remove(IDS[:1])
    filled.add(IDS[:1], VECTORS[1:2])
    assert set(filled.search(VECTORS[1], 2).ids.tolist()) == set(IDS[:2].tolist())
    np.testing.assert_array_equal(filled.get(IDS[:1]), VECTORS[1:2])


def test_equal_scores_come_in_the_order_of_ids(empty):
    empty.add([9, 2, 7, 1, 4], np.repeat(VECTORS[:1], 5, axis=0))
    assert empty.search(VECTORS[0], 5).ids.tolist() == [1, 2, 4, 7, 9]


def test_an_empty_index_finds_nothing(empty):
    assert len(empty) == len(empty.ids) == len(empty.search(VECTORS[0], 5)) == 0
    assert empty.remove([1, 2]) == 0
    assert empty.mean().tolist() == [0.0] * DIMENSION


def test_k_of_zero_finds_nothing(filled):
    assert len(filled.search(VECTORS[0], 0)) == 0


def test_vectors_come_in_the_order_of_the_ids_asked_for_and_nan_for_none(filled):
    got = filled.get(np.array([IDS[5], 1, IDS[2], IDS[5]]))
    np.testing.assert_array_equal(got[[0, 2, 3]], VECTORS[[5, 2, 5]])
    assert np.isnan(got[1]).all()
    assert filled.get(np.empty(0, np.int64)).shape == (0, DIMENSION)


def test_cosines_are_those_of_the_vectors(filled):
    wanted = np.array([IDS[9], IDS[0], IDS[30]])
    cosines = filled.cosines(VECTORS[3], wanted)
    assert cosines.dtype == np.float32
    np.testing.assert_allclose(cosines, VECTORS[[9, 0, 30]] @ VECTORS[3], atol=1e-6)
    assert np.isnan(filled.cosines(VECTORS[3], np.array([1]))).all()


def test_the_mean_follows_what_comes_and_goes(filled):
    np.testing.assert_allclose(filled.mean(), VECTORS.mean(axis=0), atol=1e-6)
    filled.remove(IDS[10:])
    np.testing.assert_allclose(filled.mean(), VECTORS[:10].mean(axis=0), atol=1e-6)
    filled.add(IDS[20:30], VECTORS[20:30])
    there = np.concatenate([VECTORS[:10], VECTORS[20:30]])
    np.testing.assert_allclose(filled.mean(), there.mean(axis=0), atol=1e-6)
    filled.remove(IDS)
    assert filled.mean().tolist() == [0.0] * DIMENSION


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused_whole(filled, bad):
    rows = unit_vectors(3, seed=5)
    rows[1, 4] = bad
    with pytest.raises(VectorIndexError, match="NaN or infinity"):
        filled.add([1000, 1001, 1002], rows)
    with pytest.raises(VectorIndexError, match="NaN or infinity"):
        filled.search(rows[1], 5)
    assert filled.ids.tolist() == IDS.tolist()


@pytest.mark.parametrize(
    ("ids", "shape", "problem"),
    [
        ([1, 2], (2, 15), "not \\(N, 16\\)"),
        ([1, 2], (2, 2, 16), "not \\(N, 16\\)"),
        ([1, 2, 4], (2, 16), "3 ids for 2 vectors"),
        ([-1], (1, 16), "negative"),
        ([5, 5], (2, 16), "once"),
        ([3, 5], (2, 16), "once"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_added(filled, ids, shape, problem):
    with pytest.raises(VectorIndexError, match=problem):
        filled.add(ids, np.ones(shape, np.float32))
    assert filled.ids.tolist() == IDS.tolist()


def test_threads_search_while_others_add_and_remove(filled):
    failures = []

    def search():
        for query in unit_vectors(5, seed=6):
            hits = filled.search(query, 5, IDS)
            if hits.ids.tolist() != by_numpy(IDS, VECTORS, query, 5):
                failures.append(hits.ids)

    def change(first: int):
        ids = np.arange(first, first + 5)
        filled.add(ids, unit_vectors(5, seed=first))
        filled.remove(ids[:3])

    threads = [threading.Thread(target=search) for _ in range(4)]
    threads += [threading.Thread(target=change, args=(1000 * n,)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(filled) == len(IDS) + 6
