"""Lets in who knows the token and comes from our own pages; browsers may load nothing else.

An address begins with the token, so that no other page can guess one; pages of other origins are
refused by `Origin` and `Sec-Fetch-Site` all the same, other names of this machine by `Host`.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Any, Send], Awaitable[None]]

_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


class Guard:
    """Stands before the pages."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            return  # nothing else is spoken here
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        refused = refusal(scope["method"], scope["path"], headers, self._token)
        if refused:
            await _answer(send, refused)
            return

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in _HEADERS.items()
                        if name.encode() not in given
                    ),
                ]
            await send(message)

        root = f"/{self._token}"
        inner = {**scope, "path": scope["path"].removeprefix(root), "root_path": ""}
        await self._app(inner, receive, guarded)


def refusal(method: str, path: str, headers: dict[str, str], token: str) -> str:
    """Why a request is not answered; empty: it is."""
    host = headers.get("host", "")
    if host.rpartition(":")[0] not in _NAMES and host not in _NAMES:
        return "this page is only to be had from 127.0.0.1"
    given = path.split("/")[1] if path.startswith("/") else ""
    if not hmac.compare_digest(given.encode(), token.encode()):
        return "the address lacks the token that `outvote serve` has printed"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return "pages of another origin get no answer"
    site = headers.get("sec-fetch-site", "same-origin")
    if site not in ("same-origin", "none"):
        return "pages of another origin get no answer"
    if method not in ("GET", "HEAD") and headers.get("x-outvote") != "1":
        return "only our own pages may change anything"
    return ""


async def _answer(send: Send, text: str) -> None:
    body = f"outvote: {text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    headers += [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
