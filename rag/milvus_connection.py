"""A connection to Milvus, whose failures are sentences.

Milvus Lite runs inside this process over a folder whose name ends in .db, and lets one process in
at a time; a server is shared. Does not know what is kept there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.database import StoreError
from rag.milvus_address import MilvusAddress

if TYPE_CHECKING:
    from pymilvus import MilvusClient

CONNECT_SECONDS = 10.0  # until a server that does not answer is given up
CALL_SECONDS = 60.0
INSTALL = 'Keeping vectors in Milvus needs an extra: pip install "glassbox-chat[milvus]"'
_UNANSWERED = ("connect", "timeout", "timed out", "unavailable", "deadline")
_LOUD = ("pymilvus", "milvus_lite.server_manager", "grpc._server")  # print what they also raise


class MilvusError(StoreError):
    """Milvus could not be used; nothing that was reported as added is lost."""


class MilvusConnection:
    """One client, used by all threads. Raises MilvusError when there is nobody to connect to."""

    def __init__(self, address: MilvusAddress) -> None:
        self.address = address
        self.writing = threading.Lock()  # Milvus Lite wants one writer at a time
        self.client = self._open()

    def close(self) -> None:
        self.client.close()

    @contextmanager
    def explained(self) -> Iterator[MilvusClient]:
        """The client; what it raises inside the block comes out as a MilvusError."""
        import grpc
        from pymilvus import MilvusException

        try:
            yield self.client
        except (MilvusException, grpc.RpcError) as error:
            raise self._error(error) from error

    def _open(self) -> MilvusClient:
        try:
            import grpc
            from pymilvus import MilvusClient, MilvusException

            if self.address.is_file:
                import milvus_lite  # noqa: F401  # so that a lack of it is told here
        except ImportError as error:
            raise MilvusError("not_installed", INSTALL) from error
        for name in _LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        given: dict[str, Any] = {"uri": self.address.uri, "timeout": CONNECT_SECONDS}
        if self.address.token:
            given["token"] = self.address.token
        try:
            if self.address.is_file:
                # Vectors tell much of the text they were made from: not for other users to read.
                Path(self.address.uri).mkdir(mode=0o700, parents=True, exist_ok=True)
            return MilvusClient(**given)
        except OSError as error:
            raise self._unopened(error) from error
        except (MilvusException, grpc.RpcError) as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> MilvusError:
        """The first line of what Milvus said, in front of it what it means."""
        said, where = _said(error), self.address
        low = " ".join(_said(cause) for cause in _causes(error)).lower()
        if self.address.is_file and "open local milvus" in low:
            return self._not_opened()
        if "auth" in low or "permission" in low:
            return MilvusError(
                "refused",
                f"{where} refused the sign-in: set MILVUS_TOKEN to its key or user:password",
            )
        if any(word in low for word in _UNANSWERED):
            return MilvusError(
                "unreachable", f"{where} does not answer: start it, or check its address"
            )
        if "no space" in low:
            return MilvusError("disk_full", f"The disk of {where} is full: free some space")
        return MilvusError("milvus", f"{where} failed: {said}")

    def _unopened(self, error: OSError) -> MilvusError:
        return MilvusError("milvus", f"{self.address} cannot be opened: {error.strerror or error}")

    def _not_opened(self) -> MilvusError:
        """pymilvus does not say why: open the folder once more, without it, to be told."""
        from milvus_lite import MilvusLite
        from milvus_lite.exceptions import DataDirLockedError

        where = self.address
        try:
            MilvusLite(self.address.uri).close()
        except DataDirLockedError:
            return MilvusError(
                "locked", f"{where} is open in another program: end that one, or use a server"
            )
        except OSError as error:
            return self._unopened(error)
        except Exception as error:  # whatever a damaged folder makes it raise is the reason
            return MilvusError("damaged", f"{where} cannot be opened: {error}")
        return MilvusError("milvus", f"{where} could not be opened: try again")


def _causes(error: BaseException) -> list[BaseException]:
    """`error` and what it was raised from: pymilvus hides a refusal behind "fail connecting"."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:  # it also raises errors from themselves
        found.append(cause)
        cause = cause.__cause__
    return found


def _said(error: BaseException) -> str:
    """One line. gRPC's own errors print a screenful, with only `details` meant for people."""
    details = getattr(error, "details", None)
    text = details() if callable(details) else getattr(error, "message", None)
    code = getattr(error, "code", None)
    named = f"{code().name}: " if callable(code) and hasattr(code(), "name") else ""
    return named + (str(text or error).strip().splitlines() or ["no reason given"])[0]
