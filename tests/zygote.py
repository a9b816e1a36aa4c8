"""One nursery for all tests: workers are divided off processes that have their library already.

Most of the life of a worker in a test is the import of its library, and the tests start hundreds.
A pool of `outvote` has a nursery of its own (`outvote/run/nursery.py`); here all share one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from outvote.run import local
from outvote.run.nursery import Nursery


class Shared(Nursery):
    """Outlives the pools that it serves."""

    def end(self) -> None:
        """Others may still need what stands ready."""

    def close(self) -> None:
        """Nor is it gone with one pool."""

    def close_at_last(self) -> None:
        super().end()
        super().close()


@contextmanager
def quick_workers() -> Iterator[None]:
    shared = Shared()
    vars(local)["Nursery"] = lambda: shared
    try:
        yield
    finally:
        vars(local)["Nursery"] = Nursery
        shared.close_at_last()
