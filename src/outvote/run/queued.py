"""How long a worker could have gone on and no processor was free: that is no fault of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

Shares = Mapping[str, tuple[int, int]]
"""By thread: nanoseconds on a processor, and in a queue for one."""


def shares_of(pids: Iterable[int], proc: Path = Path("/proc")) -> Shares:
    """Of all threads of some processes; nothing where the system does not say."""
    found = {}
    for pid in pids:
        threads = proc / str(pid) / "task"
        with suppress(OSError):  # the process has ended
            for thread in threads.iterdir():
                with suppress(OSError, ValueError):  # the thread has ended
                    ran, queued, _ = (thread / "schedstat").read_text().split()
                    found[thread.name] = int(ran), int(queued)
    return found


@dataclass
class Queue:
    """The time since `began` in which nothing ran of a worker, and something would have.

    What it computes is its own time, however many of its threads wait for each other meanwhile.
    """

    began: float
    looked: float | None = None  # when, for the last time; nothing is known before the first
    seconds: float = 0.0
    _known: dict[str, tuple[int, int]] = field(default_factory=dict)
    _ran: int = 0
    _queued: int = 0

    def look(self, now: float, shares: Shares) -> None:
        """Note what has happened since the last look."""
        if self.looked is not None:
            for thread, (ran, queued) in shares.items():
                before = self._known.get(thread, (0, 0))
                self._ran += max(0, ran - before[0])
                self._queued += max(0, queued - before[1])
        self._known.update(shares)
        self.looked = now
        still = now - self.began - self._ran / 1e9
        self.seconds = max(0.0, min(self._queued / 1e9, still))
