"""`rag.milvus_address`: what may stand after `--store`, and that its secret is never shown."""

import pytest

from rag.database import StoreError
from rag.milvus_address import MilvusAddress, parse_store


def test_sqlite_is_no_address():
    assert parse_store("sqlite") is None


def test_a_file_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = parse_store("milvus:数 据/vectors.db")
    assert address == MilvusAddress(str(tmp_path / "数 据" / "vectors.db"))
    assert address.is_file


@pytest.mark.parametrize(
    ("text", "uri", "token"),
    [
        ("milvus:http://host:19530", "http://host:19530", None),
        ("milvus:https://host/library/", "https://host/library", None),
        ("milvus:tcp://[::1]:19530", "tcp://[::1]:19530", None),
        ("milvus:http://root:s%40crt@host:19530", "http://host:19530", "root:s@crt"),
        ("milvus:https://key@host", "https://host", "key"),
    ],
)
def test_a_server_loses_its_user_to_the_token(text, uri, token):
    address = parse_store(text)
    assert (address.uri, address.token, address.is_file) == (uri, token, False)
    assert "crt" not in f"{address}{address!r}" and "key" not in f"{address}{address!r}"
    assert parse_store(str(address)) == address  # what is noted can be read again


def test_the_token_of_the_environment_is_used_where_the_uri_names_no_user():
    assert parse_store("milvus:http://host", "secret").token == "secret"
    assert parse_store("milvus:http://me:mine@host", "secret").token == "me:mine"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "milvus",
        "milvus:",
        "faiss:x.db",
        "milvus:vectors.sqlite",
        "milvus:ftp://host",
        "milvus:http://",
        "milvus:http://host:port",
        "milvus:http://me:secret@host/?token=secret",
        "milvus:http://me:secret@[host",
    ],
)
def test_anything_else_is_a_sentence_without_the_secret(text):
    with pytest.raises(StoreError) as refused:
        parse_store(text)
    assert refused.value.code == "bad_address"
    assert "secret" not in str(refused.value)
