"""Which Milvus: the text after `--store` as an address, with its secret kept apart.

Parses only; does not connect. What may be written to disk and shown is `str(address)`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rag.database import StoreError

SCHEME = "milvus:"
SQLITE = "sqlite"
LITE_SUFFIX = ".db"  # by which pymilvus tells a file of Milvus Lite from a server
_SERVERS = ("http", "https", "tcp")


@dataclass(frozen=True)
class MilvusAddress:
    """`uri` is a file's absolute path or a server's URI without a user; `token` opens the server.

    `token` is a key, or `user:password`. It is nowhere but in memory, and never shown.
    """

    uri: str
    token: str | None = field(default=None, repr=False, compare=False)

    @property
    def is_file(self) -> bool:
        """Milvus Lite, inside this process, or a server?"""
        return urlsplit(self.uri).scheme not in _SERVERS

    def __str__(self) -> str:
        return SCHEME + self.uri


def parse_store(text: str, token: str | None = None) -> MilvusAddress | None:
    """`sqlite` (None) or `milvus:URI`; `token` is used where the URI names no user.

    Raises StoreError, whose message says what can be given.
    """
    if text == SQLITE:
        return None
    scheme, _, uri = text.partition(":")
    if f"{scheme}:" != SCHEME or not uri:
        raise _unusable("--store takes sqlite, milvus:FILE.db or milvus:http://HOST:19530")
    if "://" not in uri:
        if not uri.endswith(LITE_SUFFIX):
            raise _unusable(f"A file of Milvus Lite must end in {LITE_SUFFIX}: milvus:vectors.db")
        return MilvusAddress(str(Path(uri).expanduser().absolute()))
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _unusable("The address of Milvus is not a URI such as http://HOST:19530") from None
    if parts.scheme not in _SERVERS or not host:
        raise _unusable("The address of a Milvus server begins with http://, https:// or tcp://")
    if parts.query or parts.fragment:
        raise _unusable("The address of Milvus ends after the host, the port and the database")
    if parts.username:
        token = unquote(parts.username)
        if parts.password:
            token += ":" + unquote(parts.password)
    host = f"[{host}]" if ":" in host else host
    place = f"{host}:{port}" if port else host
    return MilvusAddress(f"{parts.scheme}://{place}{parts.path.rstrip('/')}", token)


def _unusable(message: str) -> StoreError:
    return StoreError("bad_address", message)
