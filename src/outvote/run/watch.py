"""Who follows a long job: a text, the pool and the targets at work, as a context manager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from outvote.run.pool import Pool

Watch = Callable[[str, Pool, Sequence[str]], AbstractContextManager[object]]


def silent(text: str, pool: Pool, names: Sequence[str]) -> AbstractContextManager[object]:
    """A Watch for callers that want no progress."""
    return nullcontext()
