"""The record of a command: its events in the store, its result, and the reports made of it.

One way in and one way out for all commands: what a run tells is kept in the store of its folder,
with the result that the reports are made of, so that `outvote report` writes the same again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from outvote.commands.view import repeated
from outvote.core.errors import UsageError
from outvote.core.events import Broken, Event, Finished, StageBegun, StageEnded, Started
from outvote.core.result import plain
from outvote.findings.gate import Gate
from outvote.report.folder import prepare_folder, write_into
from outvote.run.pool import Pool
from outvote.run.watch import Stage
from outvote.store import facts
from outvote.store.owner import this_process
from outvote.store.store import Store

_EVERY = 0.5  # seconds between two looks at the workers


class Record:
    """A Watch that keeps what it is told, and shows stages. Without a folder nothing is kept."""

    def __init__(self, watch: Stage, store: Store | None, out: Path | None, gate: Gate | None):
        self._watch = watch
        self._store = store
        self._out = out
        self._gate = gate

    @contextmanager
    def __call__(self, text: str, pool: Pool, names: Sequence[str]) -> Iterator[None]:
        self.tell(StageBegun(text, tuple(names)))
        began, complete = time.monotonic(), False
        try:
            with self._watch(text, pool, names), positions_noted(self._store, pool, names):
                yield
            complete = True
        finally:
            self.tell(StageEnded(text, round(time.monotonic() - began, 3), complete))

    def tell(self, event: Event) -> None:
        if self._store is not None:
            self._store.tell(event)

    def publish(self, result: dict[str, Any]) -> dict[str, Any]:
        """Keep the result, judge it where the command has a gate, and write every report."""
        told = plain(result)
        self.tell(Finished(told["verdict"], told["summary"], told))
        return written(told, self._out, self._gate)


@contextmanager
def recording(
    command: str, out: Path | None, watch: Stage, gate: Gate | None = None
) -> Iterator[Record]:
    """A run of a command, from its beginning to its end or failure."""
    if out is None:
        yield Record(watch, None, None, gate)
        return
    prepare_folder(out)
    with closing(Store(out, create=True)) as store, broken_is_told(store):
        begin(store, Started(command, gate.stored() if gate is not None else None))
        yield Record(watch, store, out, gate)


def begin(store: Store, started: Started) -> None:
    """A new run of a command in a folder, by this process."""
    store.note(facts.OWNER, this_process())
    store.begin(started)


@contextmanager
def positions_noted(store: Store | None, pool: Pool, names: Sequence[str]) -> Iterator[None]:
    """While the block runs the store knows where each worker is, for those who follow it."""
    if store is None:
        yield
        return
    noted: dict[str, Any] = {}

    def note() -> None:
        found = {name: pool.position(name) for name in names}
        told = {n: [p.done, p.total, p.layer] for n, p in found.items() if p is not None}
        if told != noted:
            noted.clear()
            noted.update(told)
            with suppress(UsageError):  # of a full disk, which those at work meet and say
                store.note(facts.POSITIONS, told)

    with repeated(note, _EVERY):
        yield
    store.note(facts.POSITIONS, {})


@contextmanager
def broken_is_told(store: Store) -> Iterator[None]:
    """A run that ends without a result says so in the store."""
    try:
        yield
    except KeyboardInterrupt:
        store.tell(Broken(""))
        raise
    except Exception as error:
        store.tell(Broken(f"{type(error).__name__}: {error}"))
        raise


def written(result: dict[str, Any], out: Path | None, gate: Gate | None) -> dict[str, Any]:
    """The result, held against the gate, and its reports in the folder."""
    judged = gate.judged(result) if gate is not None else result
    write_into(out, judged)
    return judged
