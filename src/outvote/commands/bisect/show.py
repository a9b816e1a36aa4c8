"""What a person sees of a search through releases."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from outvote.commands.bisect.job import BisectJob
from outvote.commands.terminal import Screen, table

_DISTANCES = ("distance", "distance_to_first")


def show(result: dict[str, Any], job: BisectJob, screen: Screen) -> None:
    """Every release that was tried, and the one that changed the outcome."""
    screen.print(_releases_table(result["bisect"]))
    screen.verdict(result, job.out)


def _releases_table(bisect: dict[str, Any]) -> Table:
    marks = {bisect["before"]: "  ← last before", bisect["after"]: "  ← first after"}
    rows = [
        [
            row["version"] + marks.get(row["version"], ""),
            row["state"] + (f": {row['message'][:100]}" if row["message"] else ""),
            *("" if row[k] is None else f"{row[k]:.2g}" for k in _DISTANCES),
        ]
        for row in bisect["releases"]
    ]
    headings = ("release", "outcome", "distance to reference", "to the first")
    return table(f"Releases of {bisect['package']}", headings, rows)
