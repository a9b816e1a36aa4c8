"""What a person sees of `outvote coverage` at the end."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from outvote.commands.coverage.job import CoverageJob
from outvote.commands.terminal import Screen, table

_POINTS = (0.0, 0.25, 0.5, 0.75)


def show(result: dict[str, Any], job: CoverageJob, screen: Screen) -> None:
    """Layers, criteria, and where the report is."""
    coverage = result["coverage"]
    rows = [
        (
            layer["name"],
            layer["kind"],
            str(layer["neurons"]),
            str(layer["covered"]),
            f"{layer['covered'] / layer['neurons']:.1%}",
        )
        for layer in coverage["layers"]
    ]
    title = f"Neurons above {result['settings']['threshold']:g}"
    screen.print(table(title, ("layer", "kind", "neurons", "covered", "coverage"), rows))
    points = [point for point in coverage["thresholds"] if point[0] in _POINTS]
    screen.say("neuron coverage " + ", ".join(f"{value:.1%} at t = {t:g}" for t, value in points))
    for name, value in coverage["criteria"].items():
        told = "needs --train" if value is None else f"{value:.1%}"
        screen.say(f"{name.replace('_', '-')} coverage {told}")
    screen.print(f"[bold]{escape(result['summary'])}[/]")
    screen.report(job.out)
