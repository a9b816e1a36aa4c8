"""Who follows a long job: told of its stages, the targets at work, and of what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from outvote.core.events import Event
from outvote.run.pool import Pool

# A part of the work: its text, the pool, and the targets at work, while the block runs.
Stage = Callable[[str, Pool, Sequence[str]], AbstractContextManager[object]]


class Watch(Protocol):
    """Shown the stages of a job, and told what happens in them."""

    def __call__(
        self, text: str, pool: Pool, names: Sequence[str]
    ) -> AbstractContextManager[object]:
        """A stage begins; it ends with the block."""
        ...

    def tell(self, event: Event) -> None:
        """Something has happened."""
        ...


class Silent:
    """A Watch for callers that want no progress."""

    def __call__(
        self, text: str, pool: Pool, names: Sequence[str]
    ) -> AbstractContextManager[object]:
        return nullcontext()

    def tell(self, event: Event) -> None:
        pass


silent = Silent()
