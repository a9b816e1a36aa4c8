"""Who is outvoted: votes are counted per independent implementation, not per target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from outvote.core.target import Target


@dataclass(frozen=True)
class Vote:
    """Targets in groups that agree; the group that won, or none, and why."""

    groups: tuple[tuple[str, ...], ...]
    majority: tuple[str, ...]
    reason: str

    @property
    def decided(self) -> bool:
        return bool(self.majority)

    @property
    def outvoted(self) -> tuple[str, ...]:
        if not self.decided:
            return ()
        return tuple(name for group in self.groups if group != self.majority for name in group)


def vote(
    targets: Mapping[str, Target], agreements: Iterable[tuple[str, str]], layer_kind: str | None
) -> Vote:
    """Count the libraries behind each group of agreeing targets.

    The group with the most wins, if it has at least two and no other has as many.
    """
    groups = _groups(list(targets), agreements)
    libraries = [
        sorted({targets[name].implementation_of(layer_kind) for name in group}) for group in groups
    ]
    told = _sides(groups)
    if not groups:
        return Vote(groups, (), "cannot be decided, nobody answered")
    if len(groups) == 1:
        return Vote(groups, (), f"all agree: {told}")
    original = _original(groups, targets)
    if original is not None:
        return Vote(groups, original, f"a transformed model must agree with its original: {told}")
    counts = [len(found) for found in libraries]
    best = max(counts)
    if best < 2:
        return Vote(groups, (), f"cannot be decided, one implementation each: {told}")
    if counts.count(best) > 1:
        return Vote(groups, (), f"cannot be decided, the votes are tied: {told}")
    winner = groups[counts.index(best)]
    told = _sides([winner, *(group for group in groups if group != winner)])
    return Vote(groups, winner, f"{best} independent implementations agree: {told}")


def _sides(groups: Sequence[tuple[str, ...]]) -> str:
    return " against ".join(", ".join(group) for group in groups)


def _original(
    groups: Sequence[tuple[str, ...]], targets: Mapping[str, Target]
) -> tuple[str, ...] | None:
    """The group that all others are transformations of; None where others differ too."""
    for group in groups:
        others = [targets[name] for other in groups if other != group for name in other]
        if all(target.original in group for target in others):
            return group
    return None


def _groups(names: list[str], agreements: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """Connected components of the agreements, in the order of the names."""
    label = {name: name for name in names}
    for a, b in agreements:
        old, new = label[b], label[a]
        label = {name: new if value == old else value for name, value in label.items()}
    grouped: dict[str, list[str]] = {}
    for name in names:
        grouped.setdefault(label[name], []).append(name)
    return tuple(tuple(group) for group in grouped.values())
