"""Parts of pages that change: each is made once for all who look, however many they are."""

from __future__ import annotations

import threading
from collections.abc import Callable

from starlette.responses import HTMLResponse, Response

_MOST = 16  # are kept: each has tens of kilobytes


class Parts:
    """The last version of each part; nobody makes one while another does."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, bytes]] = {}
        self._lock = threading.Lock()

    def shown(self, key: str, version: str, make: Callable[[], Response]) -> Response:
        """The part of that key, made anew if it is of another version."""
        with self._lock:
            kept, body = self._made.get(key, ("", b""))
            if kept != version:
                body = bytes(make().body)
                self._made.pop(key, None)
                self._made[key] = (version, body)
                for oldest in list(self._made)[:-_MOST]:
                    del self._made[oldest]
        return HTMLResponse(body)
