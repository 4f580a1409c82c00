"""Real Milvus Lite for tests: in a file, or as a server that others connect to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from milvus_lite.adapter.grpc.server import start_server_in_thread
from milvus_lite.server_manager import server_manager_instance

from rag.milvus_address import MilvusAddress


def file_address(folder: Path, name: str = "vectors.db") -> MilvusAddress:
    return MilvusAddress(str(folder / name))


def let_go(address: MilvusAddress) -> None:
    """As if the process had ended: pymilvus keeps a file open until then."""
    server_manager_instance.release_server(address.uri)


@contextmanager
def served(folder: Path) -> Iterator[MilvusAddress]:
    """Milvus Lite behind an address, as a server is."""
    server, database, port = start_server_in_thread(str(folder))
    try:
        yield MilvusAddress(f"http://127.0.0.1:{port}")
    finally:
        server.stop(grace=1)
        database.close()
