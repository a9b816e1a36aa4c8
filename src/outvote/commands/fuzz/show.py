"""What a person sees of a campaign: rates and rules while it runs, then what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from outvote.campaign.campaign import Progress
from outvote.commands.gate import gate_lines, new_ones
from outvote.commands.terminal import Screen, results
from outvote.report.pages.report import pairs_table, strategies_table

_EVERY = 10.0  # seconds between two lines where there is no terminal


class FuzzTerminal:
    """Progress goes to standard error, results to standard output."""

    def __init__(self, quiet: bool = False) -> None:
        self._err = Screen(stderr=True, quiet=quiet)
        self._out = results()

    @contextmanager
    def live(self) -> Iterator[Callable[[Progress], None]]:
        """A picture of the campaign that is redrawn as it goes on."""
        if not self._err.is_terminal:
            self._err.print("Starting targets and reading seeds …")
            yield self._lines()
            return
        start = Text("Starting targets and reading seeds …")
        with Live(start, console=self._err, transient=True, refresh_per_second=4) as live:
            yield lambda progress: live.update(_picture(progress))

    def _lines(self) -> Callable[[Progress], None]:
        last = 0.0

        def tell(progress: Progress) -> None:
            nonlocal last
            if time.monotonic() - last >= _EVERY:
                last = time.monotonic()
                self._err.print(_line(progress))

        return tell

    def show(self, result: dict[str, Any], folder: Path) -> None:
        """The findings, the rules, and where the reports are."""
        self._out.print(_findings_table(result))
        self._out.print(_rules_table(result))
        if result["comparison"]:
            self._tell_comparison(result["comparison"])
        for warning in result["warnings"]:
            self._out.print(f"[yellow]warning[/] {escape(warning)}")
        for line in gate_lines(result):
            self._out.print(line)
        colour = "red" if result["verdict"] == "inconsistent" else "green"
        word = "STOPPED" if result["interrupted"] else "DONE"
        self._out.print(f"[bold {colour}]{word}[/]  {escape(result['summary'])}")
        if result["interrupted"]:
            self._out.print(f"go on with: outvote fuzz --resume {escape(str(folder))}")
        self._out.print(f"report: {escape(str(folder / 'report.html'))}")

    def show_comparison(self, result: dict[str, Any], folder: Path) -> None:
        """Strategies side by side, and where the reports are."""
        self._tell_comparison(result)
        self._out.print(f"report: {escape(str(folder / 'report.html'))}")

    def _tell_comparison(self, result: dict[str, Any]) -> None:
        self._out.print(_plain_table("Strategies", strategies_table(result)))
        self._out.print(_plain_table("Strategies by pair", pairs_table(result)))
        for warning in result["warnings"]:
            self._out.print(f"[yellow]warning[/] {escape(warning)}")
        for stopped in (c["folder"] for c in result["campaigns"] if c["interrupted"]):
            self._out.print(f"go on with: outvote fuzz --resume {escape(stopped)}")
        self._out.print(f"[bold]COMPARED[/]  {escape(result['summary'])}")


def _plain_table(title: str, told: tuple[list[str], list[list[str]]]) -> Table:
    headings, rows = told
    table = Table(title=title, title_justify="left")
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _line(progress: Progress) -> str:
    rate = progress.tested / progress.seconds * 60 if progress.seconds else 0.0
    valid = progress.valid / progress.tested if progress.tested else 1.0
    return (
        f"{progress.tested} mutants, {rate:.0f}/min, {valid:.1%} valid, "
        f"{progress.findings} findings, amplification {progress.best:.3g}, "
        f"{progress.share:.0%} of the budget, {_left(progress)} left"
    )


def _left(progress: Progress) -> str:
    if not 0 < progress.share < 1:
        return "0 s" if progress.share >= 1 else "unknown time"
    left = progress.seconds / progress.share * (1 - progress.share)
    return f"{left:.0f} s" if left < 120 else f"{left / 60:.0f} min"


def _picture(progress: Progress) -> Group:
    table = Table(box=None, title="rules: amplified / used", title_justify="left")
    names = list(progress.rules)
    for name in names:
        table.add_column(name, justify="right")
    table.add_row(*(f"{progress.rules[n][1]}/{progress.rules[n][0]}" for n in names))
    last = Text(f"newest: {progress.last[:150]}" if progress.last else "")
    return Group(Text(_line(progress)), table, last)


def _findings_table(result: dict[str, Any]) -> Table:
    table = Table(title="Findings", title_justify="left")
    for heading in ("finding", "verdict", "kind", "times", "mutant", "what"):
        table.add_column(heading)
    for finding in new_ones(result):
        table.add_row(
            finding["fingerprint"],
            finding["triage"],
            finding["kind"],
            str(finding["count"]),
            str(finding["first"]),
            escape(finding["title"][:200]),
        )
    return table


def _rules_table(result: dict[str, Any]) -> Table:
    table = Table(title="Rules", title_justify="left")
    for heading in ("rule", "mutants", "valid", "amplified", "findings"):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for rule in result["rules"]:
        keys = ("rule", "tested", "valid", "amplified", "findings")
        table.add_row(*(str(rule[key]) for key in keys))
    return table
