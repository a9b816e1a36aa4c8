"""What a person sees in the terminal when an exploration has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from outvote.commands.terminal import results

_COLOURS = {"consistent": "green", "inconsistent": "red", "interrupted": "yellow"}
_WORDS = {
    "consistent": "NOTHING FOUND",
    "inconsistent": "DIFFERENCES FOUND",
    "interrupted": "STOPPED EARLY",
}


def show_explored(result: dict[str, Any], folder: Path) -> None:
    """The models, the figures, the verdict, and where the report is."""
    out = results()
    table = Table(title="Models", title_justify="left")
    for heading in ("model", "differences", "neurons", "covered"):
        table.add_column(heading)
    for model in result["coverage"]["models"]:
        name = model["model"]
        table.add_row(
            escape(name),
            str(result["differences"]["per_model"][name]),
            str(model["neurons"]),
            f"{model['coverage']:.1%}",
        )
    out.print(table)
    for line in _figures(result):
        out.print(line)
    if result["retraining"]:
        out.print(_retraining(result["retraining"]))
    for warning in result["warnings"]:
        out.print(f"[yellow]warning[/] {escape(warning)}")
    verdict = result["verdict"]
    out.print(f"[bold {_COLOURS[verdict]}]{_WORDS[verdict]}[/]  {escape(result['summary'])}")
    out.print(f"report: {escape(str(folder / 'report.html'))}")


def _figures(result: dict[str, Any]) -> list[str]:
    lines = [
        f"coverage {result['coverage']['average']:.1%} at t = {result['settings']['threshold']:g}"
    ]
    for name, curve in result["coverage"]["curves"].items():
        if name != "explore":
            share = curve["growth"][-1][1]
            lines.append(
                f"  {curve['tests']} {name} inputs: coverage {share:.1%}, "
                f"{result['baselines'][name]} of them split the models"
            )
    if result["differences"]["confirmed_on"]:
        told = f"all differences were confirmed on {result['differences']['confirmed_on']}"
        dropped = result["differences"]["unconfirmed"]
        lines.append(f"{told}; {dropped} more could not be" if dropped else told)
    elif result["differences"]["total"]:
        lines.append("the differences were not confirmed on a second target")
    if result["seeds_per_second"]:
        lines.append(f"{result['seeds_per_second']:.1f} seeds per second")
    return lines


def _retraining(result: dict[str, Any]) -> Table:
    """Accuracy on the test set, and on the finds that were not trained on where there are any."""
    table = Table(title=f"Accuracy with {result['added']} inputs added", title_justify="left")
    others = list(result["others"])
    for heading in ("model", "added", "before", "after"):
        table.add_column(heading)
    for name in others:
        table.add_column(f"on {result['others'][name]} other {escape(name)}")
    for row in result["runs"]:
        table.add_row(
            escape(row["model"]),
            row["added"],
            f"{row['before']:.2%}",
            f"{row['accuracy'][-1]:.2%}",
            *(f"{s['before']:.2%} → {s['accuracy'][-1]:.2%}" for s in row["others"].values()),
        )
    return table


def show_coverage(result: dict[str, Any], folder: Path) -> None:
    """Layers, criteria, and where the report is."""
    out = results()
    coverage = result["coverage"]
    table = Table(title=f"Neurons above {result['settings']['threshold']:g}", title_justify="left")
    for heading in ("layer", "kind", "neurons", "covered", "coverage"):
        table.add_column(heading)
    for layer in coverage["layers"]:
        part = layer["covered"] / layer["neurons"]
        table.add_row(
            escape(layer["name"]),
            escape(layer["kind"]),
            str(layer["neurons"]),
            str(layer["covered"]),
            f"{part:.1%}",
        )
    out.print(table)
    shown = [point for point in coverage["thresholds"] if point[0] in (0.0, 0.25, 0.5, 0.75)]
    out.print("neuron coverage " + ", ".join(f"{value:.1%} at t = {t:g}" for t, value in shown))
    for name, value in coverage["criteria"].items():
        told = "needs --train" if value is None else f"{value:.1%}"
        out.print(f"{name.replace('_', '-')} coverage {told}")
    out.print(f"[bold]{escape(result['summary'])}[/]")
    out.print(f"report: {escape(str(folder / 'report.html'))}")


def show_distance(result: dict[str, Any]) -> None:
    """How far the search took the targets apart."""
    d = result["distance"]
    results().print(
        f"largest relative distance {d['before']:.2g} on the seeds, {d['after']:.2g} on what was "
        f"found; it grew for {d['grew']} of {result['seeds']} seeds (gradient of {d['followed']})"
    )


def show_pollution(result: dict[str, Any], folder: Path) -> None:
    """The suspects that are likest to the evidence, and where the report is."""
    out = results()
    evidence = result["evidence"]
    if evidence:
        out.print(
            f"on average {evidence['moved']:.0%} of confidence has moved from {evidence['true']} "
            f"to {evidence['false']}; {evidence['inputs']} inputs split the models that way"
        )
    if result["suspects"]:
        first = ", ".join(str(i) for i in result["suspects"][:10])
        out.print(f"likest samples: {first}")
    words = {**_WORDS, "inconsistent": "SUSPECTS FOUND"}
    verdict = result["verdict"]
    out.print(f"[bold {_COLOURS[verdict]}]{words[verdict]}[/]  {escape(result['summary'])}")
    out.print(f"report: {escape(str(folder / 'report.html'))}")
