"""What a person sees of a check at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from outvote.commands.check.job import Job
from outvote.commands.terminal import Screen, coloured, gate_lines, new_ones, table
from outvote.report import wording

_ALL_PAIRS = 10  # with more pairs than this, those that agree are only counted


def show(result: dict[str, Any], job: Job, screen: Screen) -> None:
    """The verdict, the targets, the pairs, the findings, and where the reports are."""
    show_check(result, job.out, screen)


def show_check(result: dict[str, Any], folder: Path | None, screen: Screen) -> None:
    """The same for every result that has the form of a check's."""
    screen.print(_targets_table(result))
    if result["comparisons"]:
        screen.print(_pairs_table(result))
    if result["version_matrix"]:
        screen.print(_versions_table(result["version_matrix"]))
    if result.get("twins"):
        screen.print(_twins_table(result["twins"]))
    if result.get("training"):
        screen.print(_stages_table(result["training"]))
    screen.warnings(result)
    for finding in new_ones(result):
        screen.print(f"[bold]{escape(finding['triage'])}[/] {escape(finding['title'])}")
        screen.say(f"    {finding['reason']}")
        if finding["repro"] and folder is not None:
            screen.say(f"    repro: python {folder / finding['repro']}")
    for line in gate_lines(result):
        screen.print(line)
    screen.verdict(result, folder)


def _targets_table(result: dict[str, Any]) -> Table:
    rows = []
    for target in result["targets"]:
        ok = target["outcome"] == "ok"
        told = target["outcome"] if ok else f"{target['outcome']}: {target['message'][:120]}"
        rows.append(
            (
                target["name"],
                ", ".join(f"{k} {v}" for k, v in target["versions"].items()),
                coloured(told, "green" if ok else "red"),
                f"{target['seconds']:.1f}",
                f"{target['accuracy']['1']:.2%}" if target["accuracy"] else "",
            )
        )
    return table("Targets", ("target", "versions", "outcome", "seconds", "top-1"), rows)


def _pairs_table(result: dict[str, Any]) -> Table:
    pairs = result["comparisons"]
    apart = [pair for pair in pairs if pair["inconsistent"] or pair["explained"]]
    told = pairs if len(pairs) <= _ALL_PAIRS else apart
    rows = [_pair(pair) for pair in told]
    if alike := len(pairs) - len(told):
        rows.append([f"{alike} other pairs", coloured("consistent", "green"), ""])
    return table("Pairs", ("pair", "verdict", "largest distances"), rows)


def _pair(pair: dict[str, Any]) -> list[str | Text]:
    verdict = coloured("consistent", "green")
    if pair["explained"]:
        verdict = coloured(pair["explained"], "yellow")
    elif pair["inconsistent"]:
        verdict = coloured("inconsistent", "red")
    distances = ", ".join(
        f"{m['name']} {'NaN' if m['maximum'] is None else format(m['maximum'], '.2g')}"
        for m in pair["metrics"]
    )
    return [" / ".join(pair["targets"]), verdict, pair["mismatch"] or distances]


def _twins_table(twins: list[dict[str, Any]]) -> Table:
    """Transformed models: as far off as their type explains, or spoilt, and where they lose."""
    rows = []
    for twin in twins:
        lost = sorted((la for la in twin["layers"] if la["alone"]), key=lambda la: -la["alone"])
        good = twin["verdict"] in ("agrees", "rounding", "precision")
        rows.append(
            [
                twin["target"],
                coloured(twin["verdict"], "green" if good else "red"),
                "" if twin["distance"] is None else f"{twin['distance']:.2g}",
                wording.answers(twin["answers"]),
                twin["spoilt"] or "",
                ", ".join(f"{la['layer']} {la['alone']:.2g}" for la in lost[:3]),
            ]
        )
    lost_most = "layers that lose most, alone"
    headings = ("transformed", "verdict", "distance", "answers", "spoilt at", lost_most)
    return table("Transformed models", headings, rows)


def _stages_table(training: dict[str, Any]) -> Table:
    rows = [
        [
            row["stage"],
            coloured("agrees", "green") if row["agrees"] else coloured("differs", "red"),
            "NaN" if row["distance"] is None else f"{row['distance']:.2g}",
            str(row["exercises"]),
            str(row["arrays"]),
        ]
        for row in training["stages"]
    ]
    headings = ("stage", "verdict", "largest distance", "exercises", "arrays")
    return table("Training", headings, rows)


def _versions_table(matrix: dict[str, Any]) -> Table:
    colours = {"consistent": "green", "rounding": "yellow"}
    rows = [
        [version, *(coloured(c, colours.get(c, "red")) if c else "" for c in cells)]
        for version, cells in zip(matrix["versions"], matrix["cells"], strict=True)
    ]
    headings = ("version", *(" / ".join(pair) for pair in matrix["pairs"]))
    return table("Unique inconsistency of each pair on each version", headings, rows)
