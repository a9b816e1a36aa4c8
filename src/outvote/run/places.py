"""Who may use what there are few of: one after the other, as they asked for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """So many places. Python's own locks may give a place back to who just left it, for long."""

    def __init__(self, places: int = 1) -> None:
        self._free = places
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def one(self, first: bool = False) -> Iterator[None]:
        """A place, when all who asked before have had theirs; `first`: before all who wait."""
        self._take(first)
        try:
            yield
        finally:
            self._leave()

    def _take(self, first: bool) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            called = threading.Lock()
            called.acquire()
            (self._waiting.appendleft if first else self._waiting.append)(called)
        try:
            called.acquire()
        except BaseException:
            self._give_up(called)
            raise

    def _give_up(self, called: threading.Lock) -> None:
        """Nobody waits any more; where the place has come meanwhile, it goes to the next."""
        with self._lock:
            if called in self._waiting:
                self._waiting.remove(called)
                return
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
