"""What a person sees of targets and of the environments that pip has built for them."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from outvote.commands.targets.job import Environments, HealthJob, Removal
from outvote.commands.terminal import Screen, coloured, table

_COLOURS = {"ok": "green", "broken": "red"}


def show(result: dict[str, Any], job: HealthJob | Environments | Removal, screen: Screen) -> None:
    """The health of targets; or what pip has built, and how large it is."""
    if isinstance(job, Removal):
        screen.say(f"{result['freed']:.0f} MB freed")
    elif isinstance(job, Environments):
        screen.print(_environments_table(result))
    else:
        screen.print(_health_table(result))


def _health_table(result: dict[str, Any]) -> Table:
    rows = [
        (
            row.name,
            coloured(
                f"{row.state}: {row.remedy}" if row.remedy else row.state,
                _COLOURS.get(row.state, "yellow"),
            ),
            row.versions,
            row.precision,
        )
        for row in result["targets"]
    ]
    return table("Targets", ("target", "health", "versions", "precision"), rows, fold=True)


def _environments_table(result: dict[str, Any]) -> Table:
    rows = [
        (
            row.key,
            f"{row.label} (yanked: {row.yanked})" if row.yanked else row.label,
            row.kind,
            f"{row.megabytes:.0f}",
            f"{row.seconds:.0f} s",
        )
        for row in result["environments"]
    ]
    title = f"Environments in {result['folder']}"
    return table(title, ("key", "holds", "kind", "MB", "built in"), rows, fold=True)
