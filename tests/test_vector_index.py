"""`rag.vector_index` against plain NumPy, and what it refuses."""

import threading

import faiss
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
    assert index.ids == frozenset(ids[kept].tolist())
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


def test_a_saved_index_answers_as_before(tmp_path):
    index, _, vectors = filled()
    index.remove([3])
    sha256 = index.save(tmp_path / "index")
    loaded = VectorIndex.load(tmp_path / "index", sha256=sha256, dimension=16, count=49)
    for query in unit_vectors(10, seed=6):
        assert loaded.search(query, 7).ids.tolist() == index.search(query, 7).ids.tolist()
    loaded.add([3], vectors[:1])
    assert loaded.search(vectors[0], 1).ids.tolist() == [3]
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


def test_a_file_with_one_byte_changed_is_never_handed_to_faiss(tmp_path, monkeypatch):
    index, _, _ = filled()
    sha256 = index.save(tmp_path / "index")
    data = bytearray((tmp_path / "index").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "index").write_bytes(data)
    monkeypatch.setattr(faiss, "deserialize_index", lambda _: pytest.fail("was read"))
    with pytest.raises(VectorIndexError, match="SHA-256"):
        VectorIndex.load(tmp_path / "index", sha256=sha256, dimension=16, count=50)


@pytest.mark.parametrize("wrong", [{"dimension": 17}, {"count": 49}])
def test_a_file_of_another_dimension_or_count_is_refused(tmp_path, wrong):
    index, _, _ = filled()
    expected = {"sha256": index.save(tmp_path / "index"), "dimension": 16, "count": 50}
    with pytest.raises(VectorIndexError, match="50 vectors of dimension 16"):
        VectorIndex.load(tmp_path / "index", **{**expected, **wrong})


def test_another_kind_of_index_is_refused(tmp_path):
    flat = faiss.IndexFlatIP(16)
    data = faiss.serialize_index(flat).tobytes()
    (tmp_path / "index").write_bytes(data)
    import hashlib

    with pytest.raises(VectorIndexError):
        VectorIndex.load(
            tmp_path / "index", sha256=hashlib.sha256(data).hexdigest(), dimension=16, count=0
        )


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
            index.remove(range(1000 + at, 1005 + at))

    threads = [threading.Thread(target=search) for _ in range(6)]
    threads.append(threading.Thread(target=change))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(index) == 150
