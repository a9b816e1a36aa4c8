"""A decision as an ordered table: the first row that holds decides. The docs print these rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Facts = TypeVar("Facts")


@dataclass(frozen=True)
class DecisionRow(Generic[Facts]):
    """One case: when it applies, the verdict, and the sentence that says what was done."""

    name: str
    when: str  # for people
    holds: Callable[[Facts], bool]
    triage: str
    says: str  # a sentence with {words} for what was found
    accused: Callable[[Facts], tuple[str, ...]] = lambda facts: ()
    whom: str = "nobody"  # for people


def first(rows: Sequence[DecisionRow[Facts]], facts: Facts) -> DecisionRow[Facts]:
    """The row that decides; the last one of a table holds always."""
    return next(row for row in rows if row.holds(facts))


@dataclass(frozen=True)
class Words(Mapping[str, str], Generic[Facts]):
    """What fills the words of a sentence; each is worked out when a sentence has it."""

    facts: Facts
    known: Mapping[str, Callable[[Facts], str]]

    def __getitem__(self, name: str) -> str:
        return self.known[name](self.facts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


def sentence(row: DecisionRow[Facts], words: Words[Facts]) -> str:
    """What a row says of the facts that it holds for."""
    return row.says.format_map(words)


def table(rows: Sequence[DecisionRow[Facts]]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| row | if | verdict | accused | says |", "|---|---|---|---|---|"]
    lines += [
        f"| `{row.name}` | {row.when} | {row.triage} | {row.whom} | {row.says} |" for row in rows
    ]
    return "\n".join(lines) + "\n"
