"""A death counts if a fresh worker dies of the same: someone else may have killed the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from outvote.core.protocol import R, Request
from outvote.core.target import Outcome, Run
from outvote.run.pool import Ask, Pool, asker, unheard

RETRIES = 2  # a kill from outside may hit a second worker too


def settled(
    ask: Ask,
    request: Request[R],
    run: Run[R],
    opening: Request[Any] | None = None,
    retries: int = RETRIES,
) -> Run[R]:
    """The run as it is, unless its worker died or its session was lost: then it is asked again.

    A request that belongs to a session needs the `opening` of it. What hung is not asked again.
    """
    for _ in range(retries):
        again = run.outcome.is_death and run.outcome is not Outcome.HANG
        if not again and run.outcome is not Outcome.LOST:
            break
        if opening is not None:
            opened = ask(opening)
            if not opened.ok:
                run = Run(opened.target, opened.outcome, message=opened.message)
                continue
        run = ask(request)
    return run


def ask_settled(pool: Pool, name: str, request: Request[R]) -> Run[R]:
    """One worker's answer, its death only if it repeats."""
    return settled(asker(pool, name), request, pool.ask(name, request))


def ask_all_settled(
    pool: Pool,
    names: Iterable[str],
    request: Request[R],
    *,
    done: Callable[[Run[R]], None] = unheard,
    opening: Request[Any] | None = None,
    retries: int = RETRIES,
) -> dict[str, Run[R]]:
    """The same question to several workers; `done` hears of each, and again of one that rose."""
    runs = pool.ask_all(names, request, done)
    for name, run in runs.items():
        runs[name] = settled(asker(pool, name), request, run, opening, retries)
        if runs[name] is not run:
            done(runs[name])
    return runs


def ask_each_settled(
    pool: Pool, names: Iterable[str], requests: Sequence[Request[R]]
) -> list[dict[str, Run[R]]]:
    """Several questions to several workers."""
    found = pool.ask_each(names, requests)
    for request, runs in zip(requests, found, strict=True):
        for name, run in runs.items():
            runs[name] = settled(asker(pool, name), request, run)
    return found


def ask_in_session(
    pool: Pool, names: Iterable[str], requests: Sequence[Request[R]], opening: Request[Any]
) -> dict[str, list[Run[R]]]:
    """Steps of a session on several workers; each takes its next without waiting for the others.

    The first that a target fails is its last. A gap is no failure.
    """

    def talk(name: str, ask: Ask) -> list[Run[R]]:
        runs: list[Run[R]] = []
        for request in requests:
            runs.append(settled(ask, request, ask(request), opening))
            if not runs[-1].ok and runs[-1].outcome is not Outcome.UNSUPPORTED:
                break
        return runs

    return pool.talk_to_each(names, talk)
