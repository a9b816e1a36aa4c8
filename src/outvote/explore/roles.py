"""Which target searches, and which one confirms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.targets.choose import choose, install_hint, missing_packages


def _with_gradients(known: Mapping[str, Target]) -> list[Target]:
    """Targets that can be searched with, the quickest first."""
    able = [t for t in known.values() if t.can("gradients") and not (t.setup or t.requirements)]
    return sorted(able, key=lambda target: target.climbing_costs)


def _names(known: Mapping[str, Target]) -> str:
    return ", ".join(target.name for target in _with_gradients(known) if target.is_eager)


def searching_target(
    name: str | None, known: Mapping[str, Target], among: Sequence[str] | None = None
) -> Target:
    """The target whose gradient is followed: as named, or the first installed that has one.

    Where `among` names the targets that are held against each other, it is one of them.
    """
    if name is None:
        for target in _with_gradients(known) if among is None else choose(among, known):
            if target.can("gradients") and not missing_packages(target):
                return target
        if among is not None:
            raise UsageError(
                f"none of {', '.join(among)} has gradients to follow; "
                f"add one of {_names(known)} to --targets"
            )
        raise UsageError(f"no library with gradients is installed; {install_hint('torch')}")
    (target,) = choose([name], known)
    if not target.can("gradients"):
        raise UsageError(
            f"target {target.name!r} has no gradients to follow; choose one of {_names(known)}"
        )
    if among is not None and target.name not in among:
        raise UsageError(
            f"--target {target.name} is not among --targets {','.join(among)}; name one of them"
        )
    return target


def confirming_target(
    name: str | None, searching: Target, known: Mapping[str, Target]
) -> Target | None:
    """The target on which finds are confirmed: as named, or the first other one installed."""
    if name == "none":
        return None
    if name is None:
        for target in _with_gradients(known):
            if target.backend != searching.backend and not missing_packages(target):
                return target
        return None
    (target,) = choose([name], known)
    if not target.can("gradients"):
        raise UsageError(
            f"target {target.name!r} cannot confirm finds; choose one of {_names(known)}, or none"
        )
    return target
