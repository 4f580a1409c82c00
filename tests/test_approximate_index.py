"""`rag.approximate_index`: the recall that it measures is the recall that it has."""

import numpy as np
import pytest

from rag.approximate_index import RECALL, ApproximateIndex
from rag.vector_index import VectorIndex
from rag.vector_rows import Rows, save_rows


def near_each_other(count: int, seed: int) -> np.ndarray:
    """Unit vectors (count, 32) in 40 groups, as those of texts are."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).standard_normal((40, 32))
    rows = middles[rng.integers(40, size=count)] + 0.7 * rng.standard_normal((count, 32))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return near_each_other(6000, 0)


@pytest.fixture(scope="module")
def saved(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    ids = np.arange(len(rows)) * 2 + 1
    facts = save_rows(folder, ids, 32, [rows[:2500], rows[2500:]], flat_limit=1000)
    assert facts["recall"] >= RECALL and facts["lists"] > 0

    def index() -> VectorIndex:
        return VectorIndex(32, Rows.load(folder, int(facts["lists"])))

    return index


def recall(index: VectorIndex, ids: np.ndarray, rows: np.ndarray, allowed=None) -> float:
    found = 0
    for query in near_each_other(100, 1):
        exact = ids[np.argsort(-(rows @ query))[:10]]
        hits = index.search(query, 10, allowed)
        found += len(np.intersect1d(exact, hits.ids))
        places = np.searchsorted(ids, hits.ids)
        np.testing.assert_allclose(hits.scores, rows[places] @ query, atol=1e-6)
    return found / 1000


def test_ten_nearest_are_found_and_their_scores_are_exact(saved, rows):
    assert recall(saved(), np.arange(len(rows)) * 2 + 1, rows) >= 0.97


def test_what_was_removed_is_never_found_and_what_was_added_is(saved, rows):
    index, ids = saved(), np.arange(len(rows)) * 2 + 1
    gone = np.zeros(len(rows), bool)
    gone[::3] = True
    assert index.remove(ids[gone]) == gone.sum() == index.gone
    more = near_each_other(500, 2)
    index.add(np.arange(500) + 100_000, more)
    together = np.concatenate([ids[~gone], np.arange(500) + 100_000])
    assert recall(index, together, np.concatenate([rows[~gone], more])) >= 0.97
    assert index.ids.tolist() == together.tolist() and index.unsaved == 500


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_of_those_allowed_the_nearest_are_found(saved, rows, share, monkeypatch):
    monkeypatch.setattr("rag.vector_rows._GATHERED_OF_MANY", 200)
    ids = np.arange(len(rows)) * 2 + 1
    inside = np.random.default_rng(3).random(len(rows)) < share
    assert recall(saved(), ids[inside], rows[inside], ids[inside]) >= 0.97


def test_vectors_come_back_bit_for_bit(saved, rows):
    ids = np.array([1, 2, 5])
    found = saved().get(ids)
    np.testing.assert_array_equal(found[[0, 2]], rows[[0, 2]])
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(saved().mean(), rows.mean(axis=0), atol=1e-6)


def test_fewer_rows_than_are_wanted_are_all_found():
    rows = near_each_other(5, 4)
    index, _ = ApproximateIndex.build(rows)
    assert sorted(index.candidates(rows[0], 10).tolist()) == [0, 1, 2, 3, 4]


def test_a_file_of_another_count_is_refused(rows, tmp_path):
    index, _ = ApproximateIndex.build(rows[:1000])
    index.save(tmp_path / "file")
    with pytest.raises(ValueError, match="not an index of 999"):
        ApproximateIndex.load(tmp_path / "file", 4, 999, 32)
