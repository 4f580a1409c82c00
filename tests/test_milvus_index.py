"""`rag.milvus_index` and its connection in real Milvus Lite; the contract is in test_vectors.py."""

import socket
import subprocess
import sys
from concurrent import futures
from pathlib import Path
from time import monotonic

import grpc
import numpy as np
import pytest

from rag import milvus_connection, milvus_index
from rag.milvus_address import MilvusAddress, parse_store
from rag.milvus_connection import MilvusConnection, MilvusError
from rag.milvus_index import MilvusIndex
from rag.vector_index import VectorIndex
from tests.milvus_files import file_address, let_go, served

ROOT = Path(__file__).resolve().parents[1]
D = 64


@pytest.fixture
def address(tmp_path):
    address = file_address(tmp_path)
    yield address
    let_go(address)


@pytest.fixture
def connection(address):
    connection = MilvusConnection(address)
    yield connection
    connection.close()


def unit_vectors(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, D)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_thousand_vectors_give_the_answers_of_faiss_also_after_a_restart(address, connection):
    ids, vectors = np.arange(1000) * 3, unit_vectors(1000)
    here, there = VectorIndex(D), MilvusIndex(connection, "thousand", D)
    here.add(ids, vectors)
    there.add(ids, vectors)
    gone = ids[::10]
    assert here.remove(gone) == there.remove(gone) == 100
    connection.close()
    let_go(address)
    there = MilvusIndex(MilvusConnection(address), "thousand", D)
    assert there.ids.tolist() == here.ids.tolist()
    np.testing.assert_allclose(there.mean(), here.mean(), atol=1e-6)
    np.testing.assert_array_equal(there.get(ids), here.get(ids))
    for query in unit_vectors(10, seed=1):
        for allowed in (None, ids[100:900], ids[200:500]):
            ours, theirs = (index.search(query, 50, allowed) for index in (here, there))
            assert ours.ids.tolist() == theirs.ids.tolist()
            np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-5)


def test_a_server_finds_nearly_all_that_an_exact_search_finds(tmp_path):
    ids, vectors = np.arange(2000), unit_vectors(2000)
    here = VectorIndex(D)
    here.add(ids, vectors)
    with served(tmp_path) as address:
        there = MilvusIndex(MilvusConnection(address), "through_hnsw", D)
        there.add(ids, vectors)
        pairs = [(here.search(q, 10), there.search(q, 10)) for q in unit_vectors(20, seed=1)]
    found = [len(set(ours.ids) & set(theirs.ids)) for ours, theirs in pairs]
    assert sum(found) >= 0.97 * 10 * len(pairs)
    for ours, theirs in pairs:
        scores = ours.by_id()
        assert all(
            theirs.by_id()[i] == pytest.approx(scores[i], abs=1e-5)
            for i in scores
            if i in theirs.ids
        )


def test_a_filter_of_many_ids_is_asked_in_parts(connection, monkeypatch):
    monkeypatch.setattr(milvus_index, "_GATHERED", 0)
    monkeypatch.setattr(milvus_index, "_FILTERED", 40)
    index, ids, vectors = MilvusIndex(connection, "parts", D), np.arange(200), unit_vectors(200)
    index.add(ids, vectors)
    query, allowed = unit_vectors(1, seed=2)[0], ids[::2]
    best = allowed[np.argsort(-(vectors[allowed] @ query))][:50]
    assert index.search(query, 50, allowed).ids.tolist() == best.tolist()
    assert index.remove(ids) == 200
    assert len(MilvusIndex(connection, "parts", D)) == 0


def test_what_is_left_of_a_killed_addition_is_replaced(connection):
    index, vectors = MilvusIndex(connection, "again", D), unit_vectors(3)
    with connection.explained() as client:
        client.insert("again", [{"id": 7, "vector": vectors[0]}])
    index.add([7, 8], vectors[1:])
    np.testing.assert_array_equal(index.get(np.array([7, 8])), vectors[1:])
    assert index.search(vectors[1], 5).ids.tolist()[0] == 7
    assert len(MilvusIndex(connection, "again", D)) == 2


def test_what_another_process_added_is_taken_note_of_when_asked(tmp_path):
    with served(tmp_path) as address:
        ours = MilvusIndex(MilvusConnection(address), "shared", D)
        theirs = MilvusIndex(MilvusConnection(address), "shared", D)
        theirs.add([1, 2, 3], unit_vectors(3))
        assert len(ours) == 0
        ours.adopt(np.array([2, 3, 4]))
        assert ours.ids.tolist() == [2, 3]
        np.testing.assert_allclose(ours.mean(), unit_vectors(3)[1:].mean(axis=0), atol=1e-6)


def test_the_mean_of_many_is_that_of_a_sample_spread_over_them(connection, monkeypatch):
    monkeypatch.setattr(milvus_index, "_SAMPLE", 10)
    index, vectors = MilvusIndex(connection, "sample", D), unit_vectors(100)
    index.add(np.arange(100), vectors)
    np.testing.assert_allclose(index.mean(), vectors[::10].mean(axis=0), atol=1e-6)


def test_a_collection_of_another_dimension_is_refused_and_kept(connection):
    MilvusIndex(connection, "small", D).add([1], unit_vectors(1))
    with pytest.raises(MilvusError, match="vectors of 64 numbers, not 32") as refused:
        MilvusIndex(connection, "small", 32)
    assert refused.value.code == "other_dimension"
    assert MilvusIndex(connection, "small", D).ids.tolist() == [1]


def test_a_collection_of_somebody_else_is_refused(connection):
    with connection.explained() as client:
        client.create_collection("theirs", dimension=D, primary_field_name="key")
    with pytest.raises(MilvusError, match="not of Glassbox"):
        MilvusIndex(connection, "theirs", D)


def test_a_file_that_another_process_has_open_is_a_sentence(address, connection):
    code = (
        "from rag.milvus_address import MilvusAddress\n"
        "from rag.milvus_connection import MilvusConnection, MilvusError\n"
        f"try: MilvusConnection(MilvusAddress({address.uri!r}))\n"
        "except MilvusError as error: print(error.code, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == (
        f"locked {address} is open in another program: end that one, or use a server\n"
    )
    assert done.stderr == ""


def test_other_users_cannot_read_a_file_that_is_made(address, connection):
    assert Path(address.uri).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"not a folder"])
def test_something_else_in_the_place_of_the_file_is_a_sentence(tmp_path, content):
    (tmp_path / "vectors.db").write_bytes(content)
    with pytest.raises(MilvusError, match=r"vectors\.db cannot be opened: File exists"):
        MilvusConnection(file_address(tmp_path))
    assert (tmp_path / "vectors.db").read_bytes() == content


def test_a_server_that_is_not_there_is_a_sentence():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = parse_store(f"milvus:http://me:secret@127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(MilvusError, match="does not answer") as failed:
            MilvusConnection(address)
    assert failed.value.code == "unreachable"
    assert "secret" not in str(failed.value)


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(milvus_connection, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        started = monotonic()
        with pytest.raises(MilvusError, match="does not answer"):
            MilvusConnection(MilvusAddress(f"http://127.0.0.1:{mute.getsockname()[1]}"))
    assert monotonic() - started < 5


def test_a_server_that_goes_away_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(milvus_index, "CALL_SECONDS", 1.0)
    with served(tmp_path) as address:
        index = MilvusIndex(MilvusConnection(address), "gone", D)
        index.add([1], unit_vectors(1))
    with pytest.raises(MilvusError, match="does not answer"):
        index.search(unit_vectors(1)[0], 1)


def test_a_sign_in_that_is_refused_names_the_variable_to_set():
    class Refusing(grpc.ServerInterceptor):
        def intercept_service(self, continuation, details):
            def refuse(request, context):
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check")

            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.server(futures.ThreadPoolExecutor(1), interceptors=[Refusing()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(MilvusError, match="MILVUS_TOKEN") as refused:
            MilvusConnection(MilvusAddress(f"http://127.0.0.1:{port}", "me:secret"))
        assert refused.value.code == "refused"
        assert "secret" not in str(refused.value)
    finally:
        server.stop(None)


@pytest.mark.parametrize("missing", ["pymilvus", "milvus_lite"])
def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MilvusError, match=r'pip install "glassbox-chat\[milvus\]"'):
        MilvusConnection(file_address(tmp_path))
