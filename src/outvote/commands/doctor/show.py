"""What a person sees of this machine: one page."""

from __future__ import annotations

from typing import Any

from outvote.commands.doctor.job import DoctorJob
from outvote.commands.terminal import Screen, coloured, table

_COLOURS = {"ok": "green", "broken": "red"}


def show(result: dict[str, Any], job: DoctorJob, screen: Screen) -> None:
    """The machine, the targets that are there, and what to do for more."""
    screen.say(f"outvote {result['outvote']}, Python {result['python']}, {result['machine']}")
    there = [row for row in result["health"] if row.state not in ("not installed", "not built")]
    rows = [
        (
            row.name,
            coloured(row.state, _COLOURS.get(row.state, "yellow")),
            f"{row.seconds:.1f} s" if row.seconds else "",
            row.versions,
            result["abilities"][row.name],
        )
        for row in there
    ]
    headings = ("target", "health", "starts in", "versions", "can")
    screen.print(table("Targets", headings, rows, right=("starts in",), fold=True))
    missing = [row.name for row in result["health"] if row not in there]
    if missing:
        screen.say(f"not here: {', '.join(missing)}")
    screen.say(f"in tests: {', '.join(result['testing']) or 'neither pytest nor hypothesis'}")
    for line in result["advice"]:
        screen.say(f"- {line}")
    good = result["verdict"] == "consistent"
    votes = ", ".join(result["libraries"]) or "none"
    screen.say(f"{'READY' if good else 'NOT READY'}  libraries that can be compared: {votes}")
