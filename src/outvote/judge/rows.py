"""A decision as an ordered table: the first row that holds decides. The docs print these rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Facts = TypeVar("Facts")


@dataclass(frozen=True)
class Row(Generic[Facts]):
    """One case: when it applies, the verdict, and the sentence that says what was done."""

    name: str
    when: str  # for people
    holds: Callable[[Facts], bool]
    triage: str
    says: Callable[[Facts], str]
    accused: Callable[[Facts], tuple[str, ...]] = lambda facts: ()
    whom: str = "nobody"  # for people


def first(rows: Sequence[Row[Facts]], facts: Facts) -> Row[Facts]:
    """The row that decides; the last one of a table holds always."""
    return next(row for row in rows if row.holds(facts))


def table(rows: Sequence[Row[Facts]]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| row | if | verdict | accused |", "|---|---|---|---|"]
    lines += [f"| `{row.name}` | {row.when} | {row.triage} | {row.whom} |" for row in rows]
    return "\n".join(lines) + "\n"
