"""What a person sees in the terminal when an exploration has ended."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from outvote.commands.check.show import show_check
from outvote.commands.explore.job import BetweenTargets
from outvote.commands.terminal import Screen, table
from outvote.explore.job import ExploreJob

_WORDS = {
    "consistent": "NOTHING FOUND",
    "inconsistent": "DIFFERENCES FOUND",
    "interrupted": "STOPPED EARLY",
}


def show(result: dict[str, Any], job: ExploreJob | BetweenTargets, screen: Screen) -> None:
    """The models, the figures, the verdict, and where the report is."""
    if "comparisons" in result:  # of targets: a check
        show_check(result, job.out, screen)
        screen.say(_distance(result))
        return
    rows = [
        (
            model["model"],
            str(result["differences"]["per_model"][model["model"]]),
            str(model["neurons"]),
            f"{model['coverage']:.1%}",
        )
        for model in result["coverage"]["models"]
    ]
    screen.print(table("Models", ("model", "differences", "neurons", "covered"), rows))
    for line in _figures(result):
        screen.say(line)
    if result["retraining"]:
        screen.print(_retraining(result["retraining"]))
    screen.warnings(result)
    screen.verdict(result, job.out, _WORDS[result["verdict"]])


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
    others = [f"on {count} other {name}" for name, count in result["others"].items()]
    rows = [
        [
            row["model"],
            row["added"],
            f"{row['before']:.2%}",
            f"{row['accuracy'][-1]:.2%}",
            *(f"{s['before']:.2%} → {s['accuracy'][-1]:.2%}" for s in row["others"].values()),
        ]
        for row in result["runs"]
    ]
    title = f"Accuracy with {result['added']} inputs added"
    return table(title, ("model", "added", "before", "after", *others), rows)


def _distance(result: dict[str, Any]) -> str:
    """How far the search took the targets apart."""
    d = result["distance"]
    before, after = (
        "NaN or infinite" if d[key] is None else f"{d[key]:.2g}" for key in ("before", "after")
    )
    return (
        f"largest relative distance {before} on the seeds, {after} on what was found; "
        f"it grew for {d['grew']} of {result['seeds']} seeds (gradient of {d['followed']})"
    )
