"""Reads the events of a run while it goes on, from the store that it writes into."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from outvote.core.errors import UsageError
from outvote.core.events import Broken, Finished
from outvote.store.store import FILE, Store, Told

_PAUSE = 0.1  # seconds between two looks


def follow(folder: Path, going_on: Callable[[], bool], after: int = 0) -> Iterator[Told]:
    """The events of the last run in a folder, until it ends or nobody is at work any more.

    A run is waited for that comes after that number, as long as `going_on` says that one may come.
    """
    with closing(_opened(folder, going_on)) as store:
        while (run := store.last_run()) <= after and going_on():
            time.sleep(_PAUSE)
        seen = 0
        while run > after:
            at_work = going_on()  # asked before the look: what was told at the end is not missed
            told = store.events(run, skip=seen)
            seen += len(told)
            yield from told
            if not at_work or (told and isinstance(told[-1].event, Finished | Broken)):
                return
            time.sleep(_PAUSE)


def last_run(folder: Path) -> int:
    """The number of the last run that a folder holds; 0 where it holds none."""
    if not (folder / FILE).exists():
        return 0
    with closing(Store(folder, create=False)) as store:
        return store.last_run()


def _opened(folder: Path, going_on: Callable[[], bool]) -> Store:
    """The store, once whoever is at work has made it."""
    while going_on():
        try:
            return Store(folder, create=False)
        except UsageError:
            time.sleep(_PAUSE)
    return Store(folder, create=False)
