"""The end of what a process prints, read so that it never has to wait."""

from __future__ import annotations

import threading
from typing import IO

_LOG_BYTES = 64 << 10


class Tail:
    """Drains a stream in a thread of its own, and keeps the end of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with self._stream as stream:
            while chunk := stream.read1(65536):  # type: ignore[attr-defined]
                self._kept = (self._kept + chunk)[-_LOG_BYTES:]

    def join(self) -> None:
        self._thread.join(timeout=2)

    def text(self) -> str:
        return self._kept.decode(errors="replace")
