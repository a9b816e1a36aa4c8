"""What a person sees of `outvote localize` and `outvote nan` at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from outvote.commands.terminal import Screen, results


def show_localize(result: dict[str, Any], folder: Path) -> None:
    """The causes of each pair, and how many layers CRADLE would list."""
    out = results()
    table = Table(title="Causes", title_justify="left")
    for heading in ("pair", "layer", "change rate", "cause", "agree with"):
        table.add_column(heading)
    for pair in result["pairs"]:
        for suspect in pair["suspects"]:
            for row in _rows(suspect):
                table.add_row(" / ".join(pair["targets"]), *map(escape, row))
    out.print(table)
    for pair in result["pairs"]:
        listed = escape(", ".join(pair["cradle"]) or "none")
        told = " / ".join(pair["targets"])
        out.print(f"{told}: above CRADLE's third quartile: {len(pair['cradle'])} layers ({listed})")
    _end(out, result, folder)


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


def show_nan(result: dict[str, Any], folder: Path) -> None:
    """Every layer's range, and where numbers ended."""
    out = results()
    table = Table(title="Layers, on the last population", title_justify="left")
    for heading in ("layer", "kind", "smallest", "largest", "NaN", "infinite"):
        table.add_column(heading)
    for layer in result["layers"]:
        ends = ["" if layer[k] is None else f"{layer[k]:.3g}" for k in ("smallest", "largest")]
        counts = [str(layer["nans"]), str(layer["infinities"])]
        table.add_row(escape(layer["layer"]), escape(layer["layer_kind"]), *ends, *counts)
    out.print(table)
    _end(out, result, folder)


def _end(out: Screen, result: dict[str, Any], folder: Path) -> None:
    for warning in result["warnings"]:
        out.print(f"[yellow]warning[/] {escape(warning)}")
    colour = "green" if result["verdict"] == "consistent" else "red"
    word = "STOPPED" if result["interrupted"] else result["verdict"].upper()
    out.print(f"[bold {colour}]{word}[/]  {escape(result['summary'])}")
    out.print(f"report: {escape(str(folder / 'report.html'))}")
