"""Makes targets ready to start: whatever their requirements ask for is built, or found built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from outvote.core.target import Target
from outvote.targets.environments import pip
from outvote.targets.environments.plan import Environment, interpreter, plan
from outvote.targets.environments.store import EnvironmentStore

Announce = Callable[[str], AbstractContextManager[pip.Tell]]
"""Shown while an environment is built: opened with its label, then told each line of pip."""


@contextmanager
def unseen(label: str) -> Iterator[pip.Tell]:
    """An Announce for callers that want no progress."""
    yield lambda line: None


def provide(
    targets: Iterable[Target],
    links: Sequence[str] = (),
    announce: Announce = unseen,
    store: EnvironmentStore | None = None,
) -> tuple[Target, ...]:
    """The same targets with the interpreter and the folders that their requirements name."""
    store = store or EnvironmentStore()
    return tuple(_ready(target, links, announce, store) for target in targets)


def is_built(target: Target, store: EnvironmentStore | None = None) -> bool:
    """Whether a target starts at once, without pip."""
    store = store or EnvironmentStore()
    return all(store.find(e) is not None for e in plan(target) if e is not None)


def yanked(target: Target, store: EnvironmentStore | None = None) -> str:
    """Why a release that a built target stands on was withdrawn; empty if none was."""
    store = store or EnvironmentStore()
    reasons = [str(store.facts(e)["yanked"]) for e in plan(target) if e is not None]
    return next(filter(None, reasons), "")


def _ready(
    target: Target, links: Sequence[str], announce: Announce, store: EnvironmentStore
) -> Target:
    if not target.requirements and not target.recipe:
        return target
    environment, overlay = plan(target)
    path, python = target.path, target.python
    if environment is not None:
        python = _get(environment, links, announce, store) / "bin" / "python"
    if overlay is not None:
        path = (_get(overlay, links, announce, store), *path)
    return replace(target, python=python or interpreter(target), path=path)


def _get(
    environment: Environment, links: Sequence[str], announce: Announce, store: EnvironmentStore
) -> Path:
    def make(folder: Path) -> dict[str, Any]:
        with announce(environment.label) as tell:
            return {"yanked": pip.fill(environment, folder, links, tell)}

    return store.get(environment, make)
