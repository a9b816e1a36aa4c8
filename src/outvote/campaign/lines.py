"""Which lines of the targets' own Python a campaign has reached, and who was the first.

Workers tell what they had not told before. One that is new, or of another crew, tells much again:
what counts is new here. It stands where its store stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from outvote.core.protocol import LinesReached
from outvote.store import facts
from outvote.store.rows import Reached
from outvote.store.store import Store

_Place = tuple[str, int]  # a file and a line


class Lines:
    """What was reached so far, by target."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._totals = store.fact(facts.LINES)
        self._known: dict[str, set[_Place]] = {}
        for row in store.reached():
            self._of(row.target).update(_places(row.files))

    def new_in(self, told: Mapping[str, LinesReached]) -> dict[str, LinesReached]:
        """What nobody has reached before, which from now on is known."""
        found = {}
        for target, lines in told.items():
            known = self._of(target)
            files = {
                path: tuple(line for line in some if (path, line) not in known)
                for path, some in lines.files.items()
            }
            known.update(_places(files))
            found[target] = replace(lines, files={p: some for p, some in files.items() if some})
        return found

    def keep(self, number: int, at: float, new: Mapping[str, LinesReached]) -> None:
        """Store what a mutant was the first to reach."""
        for target, lines in new.items():
            if lines.files:
                self._store.reach(Reached(number, target, at, lines.files))
            if self._totals.get(target) != lines.of:
                self._totals[target] = lines.of
                self._store.note(facts.LINES, self._totals)

    def _of(self, target: str) -> set[_Place]:
        return self._known.setdefault(target, set())


def yielded(new: Mapping[str, LinesReached]) -> int:
    """How many lines these are; one that several targets run counts once."""
    return len({place for lines in new.values() for place in _places(lines.files)})


def _places(files: Mapping[str, Sequence[int]]) -> set[_Place]:
    return {(path, line) for path, lines in files.items() for line in lines}
