"""What callers ask of workers, wherever these run: a Pool. `local.py` is one, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from outvote.core.blackbox import Position
from outvote.core.blobs import BlobStore
from outvote.core.protocol import Hello, R, Request
from outvote.core.target import Run, Target

T = TypeVar("T")


def unheard(run: Run[Any]) -> None:
    """Nobody wants to hear of each answer as it comes."""


class Ask(Protocol):
    """A question to one worker, whichever that is."""

    def __call__(self, request: Request[R]) -> Run[R]: ...


class Pool(Protocol):
    """The workers of a session, one per target."""

    targets: dict[str, Target]
    blobs: BlobStore
    jobs: int  # workers that may be at work at once
    restarts: dict[str, int]  # how often a worker was replaced
    peaks: dict[str, int]  # bytes that its worker held at most

    def add(self, target: Target) -> None:
        """Take another target in, not started yet; who had its name ends."""
        ...

    def start(self, names: Iterable[str] | None = None) -> dict[str, Run[Hello]]:
        """Start workers side by side; each Run says what came up, or why it did not."""
        ...

    def stop(self, name: str) -> None:
        """End one worker; its memory is free again."""
        ...

    def recycle(self, name: str) -> None:
        """End a worker; its next question starts a fresh one."""
        ...

    def ask(self, name: str, request: Request[R]) -> Run[R]:
        """One worker's answer. A dead worker is replaced first."""
        ...

    def ask_all(
        self, names: Iterable[str], request: Request[R], done: Callable[[Run[R]], None] = unheard
    ) -> dict[str, Run[R]]:
        """The same question to several workers at once; `done` hears of each as it ends."""
        ...

    def ask_each(
        self, names: Iterable[str], requests: Sequence[Request[R]]
    ) -> list[dict[str, Run[R]]]:
        """Several questions to several workers; each goes on to its next without waiting."""
        ...

    def talk_to_each(self, names: Iterable[str], talk: Callable[[str, Ask], T]) -> dict[str, T]:
        """Questions of which one may depend on the answer before, to several workers at once.

        `talk` is told whom it asks. Who answers a request lets the others hurry with the same one.
        """
        ...

    def memory(self, name: str) -> int:
        """Bytes that a worker holds now; 0 while it is down."""
        ...

    def position(self, name: str) -> Position | None:
        """Where a worker is in its request; None while it is down."""
        ...

    def close(self) -> None:
        """End every worker at once, whatever it is doing."""
        ...


def asker(pool: Pool, name: str) -> Ask:
    """Questions to the worker of that target."""

    def ask(request: Request[R]) -> Run[R]:
        return pool.ask(name, request)

    return ask


def asked_each(
    pool: Pool, names: Iterable[str], requests: Sequence[Request[R]]
) -> list[dict[str, Run[R]]]:
    """`ask_each` of any pool: a talk in which no question depends on an answer."""
    wanted = list(names)
    return asked_some(pool, requests, [wanted] * len(requests))


def asked_some(
    pool: Pool,
    requests: Sequence[Request[R]],
    whom: Sequence[Collection[str]],
    how: Callable[[Ask, Request[R]], Run[R]] = lambda ask, request: ask(request),
    turn: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
) -> list[dict[str, Run[R]]]:
    """The same, and not everybody is asked every question: `whom` says who, for each.

    `how` a question is put: once, unless somebody wants to ask again. `turn`: held while a target
    is asked all of its questions.
    """

    def talk(name: str, ask: Ask) -> list[Run[R] | None]:
        pairs = zip(requests, whom, strict=True)
        with turn(name):
            return [how(ask, request) if name in names else None for request, names in pairs]

    runs = pool.talk_to_each(dict.fromkeys(name for names in whom for name in names), talk)
    answered = [{name: runs[name][i] for name in names} for i, names in enumerate(whom)]
    return [{n: run for n, run in found.items() if run is not None} for found in answered]
