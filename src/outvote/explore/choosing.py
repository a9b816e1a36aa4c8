"""Which target searches, and which one confirms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.targets.choose import choose, install_hint, missing_packages

GRADIENT_TARGETS = ("torch", "jax", "tensorflow")


def searching_target(
    name: str | None, known: Mapping[str, Target], among: Sequence[str] | None = None
) -> Target:
    """The target whose gradient is followed: as named, or the first installed that has one.

    Where `among` names the targets that are held against each other, it is one of them.
    """
    if name is None:
        for target in map(known.get, GRADIENT_TARGETS) if among is None else choose(among, known):
            if target and target.backend in GRADIENT_TARGETS and not missing_packages(target):
                return target
        if among is not None:
            raise UsageError(
                f"none of {', '.join(among)} has gradients to follow; "
                f"add one of {', '.join(GRADIENT_TARGETS)} to --targets"
            )
        raise UsageError(f"no library with gradients is installed; {install_hint('torch')}")
    (target,) = choose([name], known)
    if target.backend not in GRADIENT_TARGETS:
        raise UsageError(
            f"target {target.name!r} has no gradients to follow; "
            f"choose one of {', '.join(GRADIENT_TARGETS)}"
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
        for target in map(known.get, GRADIENT_TARGETS):
            if target and target.backend != searching.backend and not missing_packages(target):
                return target
        return None
    (target,) = choose([name], known)
    if target.backend not in GRADIENT_TARGETS:
        raise UsageError(
            f"target {target.name!r} cannot confirm finds; "
            f"choose one of {', '.join(GRADIENT_TARGETS)}, or none"
        )
    return target
