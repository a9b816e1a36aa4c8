"""What a person sees of a campaign: rates and rules while it runs, then what was found."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from outvote.campaign.progress import Progress
from outvote.commands.fuzz.job import NewCampaign, Replay, Resumption
from outvote.commands.terminal import Screen, gate_lines, new_ones, table
from outvote.report.pages.report import pairs_table, strategies_table

_EVERY = 10.0  # seconds between two lines where there is no terminal
_START = "Starting targets and reading seeds …"


@contextmanager
def live(screen: Screen) -> Iterator[Callable[[Progress], None]]:
    """A picture of the campaign that is redrawn as it goes on."""
    if not screen.is_terminal:
        screen.say(_START)
        yield _lines(screen)
        return
    with Live(Text(_START), console=screen, transient=True, refresh_per_second=4) as picture:
        yield lambda progress: picture.update(_picture(progress))


def _lines(screen: Screen) -> Callable[[Progress], None]:
    last = 0.0

    def tell(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            screen.say(_line(progress))

    return tell


def show(result: dict[str, Any], job: NewCampaign | Resumption | Replay, screen: Screen) -> None:
    """The findings, the rules, and where the reports are."""
    show_campaign(result, job.out, screen)


def show_campaign(result: dict[str, Any], folder: Path, screen: Screen) -> None:
    """The same for every result that has the form of a campaign's."""
    screen.print(_findings_table(result))
    screen.print(_rules_table(result))
    if result["comparison"]:
        tell_comparison(result["comparison"], screen)
    screen.warnings(result)
    for line in gate_lines(result):
        screen.print(line)
    screen.verdict(result, None, "STOPPED" if result["interrupted"] else "DONE")
    if result["interrupted"]:
        configs = sorted({t["config"] for t in result["targets"] if t["config"]})
        named = f" --config {shlex.quote(configs[0])}" if configs else ""
        screen.say(f"go on with: outvote fuzz --resume {shlex.quote(str(folder))}{named}")
    screen.report(folder)


def tell_comparison(result: dict[str, Any], screen: Screen) -> None:
    """Strategies side by side."""
    screen.print(_plain_table("Strategies", strategies_table(result)))
    screen.print(_plain_table("Strategies by pair", pairs_table(result)))
    screen.warnings(result)
    for stopped in (c["folder"] for c in result["campaigns"] if c["interrupted"]):
        screen.say(f"go on with: outvote fuzz --resume {shlex.quote(stopped)}")
    screen.verdict(result, None, "COMPARED")


def _plain_table(title: str, told: tuple[list[str], list[list[str]]]) -> Table:
    headings, rows = told
    return table(title, headings, rows, right=headings[1:])


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
    rows = [
        (
            finding["fingerprint"],
            finding["triage"],
            finding["kind"],
            str(finding["count"]),
            str(finding["first"]),
            finding["title"][:200],
        )
        for finding in new_ones(result)
    ]
    return table("Findings", ("finding", "verdict", "kind", "times", "mutant", "what"), rows)


def _rules_table(result: dict[str, Any]) -> Table:
    keys = ("rule", "tested", "valid", "amplified", "findings")
    rows = [[str(rule[key]) for key in keys] for rule in result["rules"]]
    headings = ("rule", "mutants", "valid", "amplified", "findings")
    return table("Rules", headings, rows, right=headings[1:])
