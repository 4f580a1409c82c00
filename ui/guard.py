"""Headers and checks around every HTTP request: who may ask, and what a page may load.

ASGI middleware; knows HTTP and no page. It stands before Gradio, so that a site elsewhere on the
web can neither read this app by pointing its own name at this machine (DNS rebinding) nor post.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
# Gradio's page carries its configuration and its templates as inline scripts, hence the two
# `unsafe`s; what matters here is that nothing is loaded from, or sent to, another host.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Guard:
    """`names` are the host names that may be asked for; None allows any (behind a password)."""

    def __init__(self, app: Any, names: frozenset[str] | None = LOOPBACK_NAMES) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refusal = self._refusal(headers)
        if refusal is not None:
            await _refuse(send, refusal)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _refusal(self, headers: MutableMapping[bytes, bytes]) -> bytes | None:
        host = _host_name("//" + headers.get(b"host", b"").decode("latin-1"))
        if self._names is not None and host not in self._names:
            return b"This Glassbox answers only to its own address."
        origin = headers.get(b"origin")
        if origin is not None and _host_name(origin.decode("latin-1")) not in {
            host,
            *(self._names or ()),
        }:
            return b"Glassbox takes no requests from other sites."
        return None


def _host_name(url: str) -> str | None:
    """The host of a URL without its port, or None for what is not one (`null`, garbage)."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


async def _refuse(send: Send, text: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *HEADERS]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": text})
