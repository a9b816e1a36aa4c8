"""Who follows the work of a command: a terminal, or nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from outvote.campaign.progress import Progress
    from outvote.run.pool import Pool

Tell = Callable[[str], None]


class View(Protocol):
    """What `run` of every command is given besides its job."""

    def watch(self, text: str, pool: Pool, names: Sequence[str]) -> AbstractContextManager[object]:
        """Open while workers are busy with what the text says."""
        ...

    def announce(self, label: str) -> AbstractContextManager[Tell]:
        """Open while pip builds an environment; told each of its lines."""
        ...

    def progress(self) -> AbstractContextManager[Callable[[Progress], None]]:
        """Open during a campaign; told how far it is."""
        ...

    def say(self, text: str) -> None:
        """A line at once, from work that goes on."""
        ...


class Nobody:
    """A View for callers that want no progress."""

    def watch(self, text: str, pool: Pool, names: Sequence[str]) -> AbstractContextManager[object]:
        return nullcontext()

    def announce(self, label: str) -> AbstractContextManager[Tell]:
        return nullcontext(lambda line: None)

    def progress(self) -> AbstractContextManager[Callable[[Progress], None]]:
        return nullcontext(lambda progress: None)

    def say(self, text: str) -> None:
        return None


UNSEEN: View = Nobody()


@contextmanager
def repeated(work: Callable[[], None], seconds: float) -> Iterator[None]:
    """Done again and again by a thread while the block runs; what it raises, the block raises."""
    stop = threading.Event()
    raised: list[Exception] = []

    def repeat() -> None:
        try:
            while not stop.wait(seconds):
                work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    for error in raised:
        raise error
