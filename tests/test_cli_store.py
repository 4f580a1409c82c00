"""`--store` and `glassbox move-vectors`, from the command line to real Milvus Lite."""

import shutil

import pytest

import app
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put
from tests.milvus_files import file_address, let_go
from ui import cli_options
from ui.cli_options import Options

EMBEDDER = FakeEmbedder()


@pytest.fixture
def milvus(tmp_path):
    address = file_address(tmp_path)
    yield address
    let_go(address)


@pytest.fixture
def data(tmp_path):
    store = DocumentStore(tmp_path / "data", EMBEDDER.identity, EMBEDDER.dimension)
    put(store, EMBEDDER, "a.txt", "the lighthouse was built in 1923", "the keeper lights the lamp")
    store.close()
    return tmp_path / "data"


def test_vectors_are_moved_and_counted(data, milvus, capsys):
    assert app.main(["move-vectors", str(milvus), "--data", str(data)]) == 0
    assert capsys.readouterr().out == "moved  2 vectors\n"
    assert app.main(["move-vectors", "sqlite", "--data", str(data)]) == 0
    assert capsys.readouterr().out == "moved  2 vectors\n"


@pytest.mark.parametrize("to", ["faiss", "milvus:vectors", "milvus:http://me:secret@127.0.0.1:9"])
def test_where_they_cannot_be_moved_to_is_one_sentence(data, to, capsys):
    assert app.main(["move-vectors", to, "--data", str(data)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "secret" not in shown.err
    (line,) = [line for line in shown.err.splitlines() if line.startswith("glassbox: ")]
    assert len(line) < 120


def test_lost_vectors_are_made_again_at_the_start_and_that_is_said(data, milvus, monkeypatch):
    app.main(["move-vectors", str(milvus), "--data", str(data)])
    let_go(milvus)
    shutil.rmtree(milvus.uri)
    monkeypatch.setattr(app.Application, "_embedder", EMBEDDER)
    said = []
    opened = app.Application(Options(data), lambda *step: said.append(step))
    found = opened.retriever().retrieve("When was the lighthouse built?")
    assert found.passages[0].text == "the lighthouse was built in 1923"
    assert ("Embedding again the passages whose vectors are gone", 0, 2) in said
    opened._store.close()


def test_the_place_is_chosen_by_an_option_and_noted(tmp_path, milvus, monkeypatch):
    monkeypatch.setattr(app.Application, "_embedder", EMBEDDER)
    for store in (str(milvus), None):
        options = Options(tmp_path / "data", store=store)
        opened = app.Application(options, lambda *step: None)
        assert str(opened._store.elsewhere.address) == str(milvus)
        opened._store.close()


def test_the_key_comes_from_the_environment_and_is_not_printed(monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", "secret")
    args = cli_options.parse(["search", "x", "--store", "milvus:http://me:hidden@host"])
    options = cli_options.options_from(args)
    assert (options.store, options.milvus_token) == ("milvus:http://me:hidden@host", "secret")
    assert "secret" not in repr(options) and "hidden" not in repr(options)
