"""What a person sees of `outvote localize` at the end."""

from __future__ import annotations

from typing import Any

from outvote.commands.localize.job import LocalizeJob
from outvote.commands.terminal import Screen, table


def show(result: dict[str, Any], job: LocalizeJob, screen: Screen) -> None:
    """The causes of each pair, and how many layers CRADLE would list."""
    rows = [
        [" / ".join(pair["targets"]), *row]
        for pair in result["pairs"]
        for suspect in pair["suspects"]
        for row in _rows(suspect)
    ]
    screen.print(table("Causes", ("pair", "layer", "change rate", "cause", "agree with"), rows))
    for pair in result["pairs"]:
        listed, told = ", ".join(pair["cradle"]) or "none", " / ".join(pair["targets"])
        count = len(pair["cradle"])
        screen.say(f"{told}: above CRADLE's third quartile: {count} layers ({listed})")
    screen.warnings(result)
    screen.verdict(result, job.out, "STOPPED" if result["interrupted"] else "")


def _rows(suspect: dict[str, Any]) -> list[list[str]]:
    rate = suspect["rate"]
    first = [
        f"{suspect['layer']} ({suspect['layer_kind']})",
        "∞" if rate is None else f"{rate:.3g}",
    ]
    if suspect["same_as"]:
        return [[*first, f"as {suspect['same_as']}", ""]]
    told = [
        [*first, f"{c['parameter']}={c['value']!r}", ", ".join(map(repr, c["cured_by"]))]
        for c in suspect["causes"]
    ]
    return told or [[*first, "no single parameter", ""]]
